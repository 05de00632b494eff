"""What is kept of a record after it was seen: never the record.

A message that is a part of another one keeps the whole of it in memory, conversation included, and nothing in
Python shows that. So each consumer sees 200 MB of records here, in a process whose memory is read.
"""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

RECORDS, MEGABYTES_EACH, MEGABYTES_ALLOWED = 100, 2, 60

SCRIPT = """
    import resource, sys
    from google.protobuf.timestamp_pb2 import Timestamp
    from policysweep.report.rows import row
    from policysweep.sweep.judge_plan import PlanBuilder
    from policysweep.sweep.verify import PlanCheck
    from policysweep.v1 import episode_pb2 as ep
    from policysweep.v1 import run_pb2, scenario_pb2

    def records():
        for number in range(int(sys.argv[2])):
            unit = run_pb2.Unit(unit_id=f"{number:032x}", scenario_id="s", task_id="t", agent="a")
            record = run_pb2.UnitRecord(unit=unit, recorded_at=Timestamp(seconds=number))
            record.episode.outcome = ep.OUTCOME_DENY_REFUND
            record.episode.messages.add(content="x" * (int(sys.argv[3]) << 20))
            yield run_pb2.UnitRecord.FromString(record.SerializeToString())

    scenarios = {"s": scenario_pb2.Scenario(scenario_id="s", task_id="t")}
    builder = PlanBuilder(run_pb2.Judging(), {}, scenarios)
    see = {"verify": PlanCheck([]).see, "judge": builder.add, "report": row}[sys.argv[1]]
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    kept = [see(record) for record in records()]
    print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""


@pytest.mark.parametrize("consumer", ["verify", "judge", "report"])
def test_records_are_let_go(consumer: str) -> None:
    done = subprocess.run(
        (sys.executable, "-c", textwrap.dedent(SCRIPT), consumer, str(RECORDS), str(MEGABYTES_EACH)),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < MEGABYTES_ALLOWED
