"""The main job: every unit once, the same the next time, and what a killed process costs."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from policysweep.v1 import run_pb2

pytestmark = pytest.mark.e2e

# Long enough that a process can be killed in the middle, short enough for CI.
KILL_SWEEP = {"scenarios": {"limit": 80}, "concurrency": 6}


def children(pid: int) -> dict[str, int]:
    """The services of a driver: process id by module, for example services.simulator."""
    listed = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    found = {}
    for child in listed:
        arguments = Path(f"/proc/{child}/cmdline").read_bytes().decode().split("\0")
        if "-m" in arguments:
            found[arguments[arguments.index("-m") + 1]] = int(child)
    return found


def alive(pid: int) -> bool:
    try:
        return "(zombie)" not in Path(f"/proc/{pid}/status").read_text()
    except FileNotFoundError:
        return False


def test_a_sweep_ends_with_its_report_and_the_proof(make_sweep: Any) -> None:
    sweep = make_sweep()
    code, output = sweep.run(report=True)
    assert code == 0, output
    assert "REHEARSAL" in output
    assert (sweep.folder / "report.json").exists()
    assert len(sweep.records) == 24
    code, output = sweep.verify()
    assert code == 0
    assert "24 of 24 planned units have exactly one record" in output


def test_a_second_run_changes_nothing(make_sweep: Any) -> None:
    sweep = make_sweep()
    assert sweep.run()[0] == 0
    before = sweep.contents()
    code, output = sweep.run()
    assert code == 0
    assert "0 units recorded now, 24 before" in output
    assert sweep.contents() == before


def test_two_stores_get_identical_records(
    make_sweep: Any, tmp_path: Path, settled: Callable[[bytes], run_pb2.UnitRecord]
) -> None:
    first, second = make_sweep(), make_sweep(concurrency=2)
    second.store = tmp_path / "other"
    assert first.run()[0] == 0
    assert second.run()[0] == 0
    assert [path.name for path in first.records] == [path.name for path in second.records]
    for one, other in zip(first.records, second.records, strict=True):
        assert settled(one.read_bytes()) == settled(other.read_bytes())


def test_shards_are_disjoint_and_complete(make_sweep: Any) -> None:
    sweep = make_sweep()
    assert sweep.run("--shard", "0/2")[0] == 0
    part = len(sweep.records)
    assert 0 < part < 24
    assert sweep.verify()[0] == 1
    code, output = sweep.run("--shard", "1/2")
    assert code == 0
    assert f"{24 - part} units recorded now, 0 before" in output
    assert sweep.verify()[0] == 0


def test_two_drivers_at_once_leave_one_record_each(make_sweep: Any) -> None:
    sweep = make_sweep(scenarios={"limit": 40})
    drivers = [sweep.start(), sweep.start()]
    outputs = [driver.communicate(timeout=150)[0] for driver in drivers]
    assert [driver.returncode for driver in drivers] == [0, 0], outputs
    assert len(sweep.records) == 80
    assert sweep.verify()[0] == 0


def test_a_changed_sweep_is_refused_and_the_change_named(make_sweep: Any) -> None:
    assert make_sweep().run()[0] == 0
    changed = make_sweep(limits={"max_turns": 7})
    before = changed.contents()
    code, output = changed.run()
    assert code == 2
    assert "max_turns was 20 and is 7" in output
    assert changed.contents() == before


def test_ctrl_c_ends_cleanly_and_the_next_run_goes_on(make_sweep: Any) -> None:
    sweep = make_sweep(**KILL_SWEEP)
    driver = sweep.start()
    sweep.wait_for_records(10)
    services = children(driver.pid)
    driver.send_signal(signal.SIGINT)
    output, _ = driver.communicate(timeout=60)
    assert driver.returncode == 130
    assert "Interrupted" in output
    assert "Traceback" not in output
    assert not any(alive(pid) for pid in services.values())
    assert sweep.run()[0] == 0
    assert sweep.verify()[0] == 0


def test_killing_the_driver_twice_loses_only_what_was_in_flight(make_sweep: Any) -> None:
    sweep = make_sweep(**KILL_SWEEP)
    for _ in range(2):
        recorded = len(sweep.records)
        driver = sweep.start()
        sweep.wait_for_records(recorded + 15)
        services = children(driver.pid)
        assert len(services) >= 3
        driver.kill()
        driver.communicate()
        assert len(sweep.records) >= recorded + 15
        _all_gone(list(services.values()))
    before = sweep.contents()
    code, output = sweep.run()
    assert code == 0, output
    assert f"{160 - len(before) + 3} units recorded now" in output
    assert {name: data for name, data in sweep.contents().items() if name in before} == before
    assert sweep.verify()[0] == 0


def _all_gone(pids: list[int]) -> None:
    deadline = time.monotonic() + 30
    while any(alive(pid) for pid in pids):
        assert time.monotonic() < deadline, "services outlived their driver"
        time.sleep(0.1)


@pytest.mark.parametrize("module", ["services.simulator", "services.agent", "policysweep"])
def test_killing_a_service_in_mid_sweep_loses_nothing(make_sweep: Any, module: str) -> None:
    sweep = make_sweep(**KILL_SWEEP)
    driver = sweep.start()
    for number in (10, 40):
        sweep.wait_for_records(number)
        os.kill(_service(driver, module), signal.SIGKILL)
    output, _ = driver.communicate(timeout=150)
    assert "restarting it" in output
    code, output = sweep.run()
    assert code == 0, output
    assert len(sweep.records) == 160
    assert sweep.verify()[0] == 0


def _service(driver: subprocess.Popen[str], module: str) -> int:
    deadline = time.monotonic() + 30
    while module not in (found := children(driver.pid)):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return found[module]
