"""Interoperability as a user meets it: files of others in, through every command, and out again."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from typing import Any

import click
import orjson
import pytest
from click.testing import CliRunner, Result

from policysweep.commands.export import export
from policysweep.commands.import_run import import_run
from policysweep.commands.labels import labels
from policysweep.errors import InputError
from policysweep.interop.dripr.evaluation import DIMENSIONS
from policysweep.sweep.ledger import RunLedger
from policysweep.v1 import episode_pb2 as ep
from policysweep.v1 import judge_pb2, run_pb2

pytestmark = pytest.mark.e2e

METRICS = [metric for metrics in DIMENSIONS.values() for metric in metrics]


def call(command: click.Command, *args: str | Path) -> Result:
    result = CliRunner().invoke(command, [str(arg) for arg in args])
    assert result.exception is None, result.output
    return result


def command(*args: str | Path) -> str:
    """`policysweep ARGS` as a process."""
    done = subprocess.run(
        [sys.executable, "-m", "policysweep", *map(str, args)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=150,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def refusal(command: click.Command, *args: str | Path) -> str:
    """The one message of a command that is refused."""
    result = CliRunner().invoke(command, [str(arg) for arg in args])
    assert isinstance(result.exception, InputError), result.output
    return str(result.exception)


def read(path: Path) -> list[Any]:
    return [orjson.loads(line) for line in path.read_bytes().split(b"\n")[:-1]]


async def _verdicts(ledger: RunLedger) -> AsyncGenerator[run_pb2.VerdictRecord]:
    """What a judge may leave: a score a metric, one of them absent."""
    for unit_id in await ledger.done_units():
        found = run_pb2.VerdictRecord(
            unit_id=unit_id, judge="gpt", rubric=judge_pb2.RubricRef(name="drip-r", version=1)
        )
        found.verdict.panel = "all"
        for metric in METRICS:
            found.verdict.scores.add(metric=metric, value=4.25, subject=ep.ROLE_AGENT, message_index=1)
        found.verdict.scores[0].ClearField("value")
        found.verdict.scores[0].absent_reason = judge_pb2.ABSENT_REASON_REFUSED
        yield found


@pytest.fixture(autouse=True)
def judged(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every run has verdicts, without the time that a judge takes."""
    monkeypatch.setattr(RunLedger, "read_verdicts", _verdicts)


def public_issues(record: dict[str, Any]) -> list[str]:
    """What the public evaluator complains about in a conversation record."""
    issues = [key for key in ("scenario_id", "source_scenario", "conversation_1") if key not in record]
    issues += [
        f"turn {number}"
        for number, turn in enumerate(record["conversation_1"])
        if "turn" not in turn or "message" not in turn
    ]
    resolution = record.get("resolution_1")
    if not isinstance(resolution, dict) or "resolution_type" not in resolution:
        issues.append("resolution_1")
    issues += [key for key in ("task", "Policy") if key not in record["source_scenario"]]
    return issues


SWEEP = """
name: small
scenarios: {limit: 6}
agents:
  - {name: strict, model: rehearsal-strict}
  - {name: lenient, model: rehearsal-lenient}
trials: 2
concurrency: 8
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of 24 units that the rehearsal model played."""
    folder = tmp_path_factory.mktemp("interop")
    (folder / "sweep.yaml").write_text(SWEEP, encoding="utf-8")
    command("run", folder / "sweep.yaml", "--store", folder / "store", "--no-report")
    return folder / "store" / "small"


def test_a_run_goes_out_as_the_public_code_writes_it_and_comes_back(run: Path, tmp_path: Path) -> None:
    out, store = tmp_path / "out", tmp_path / "again"
    output = call(export, run, "--format", "dripr", "--output", out).output
    assert "24 units and 24 verdicts exported" in output
    assert "REHEARSAL" in output
    files = [out / agent / "conversations.jsonl" for agent in ("strict", "lenient")]
    for file in files:
        conversations = read(file)
        assert [issue for record in conversations for issue in public_issues(record)] == []
        _check_evaluations(conversations, file.parent / "evaluations/gpt/drip-r-1/evaluations.jsonl")
    output = call(import_run, "dripr", *files, "--store", store, "--name", "back").output
    assert "24 conversations imported: 6 scenarios, 6 tasks, agents: strict, lenient" in output
    assert command("verify", store / "back").startswith("24 of 24 planned units")
    assert _outcomes(store / "back") == _outcomes(run)
    output = call(import_run, "dripr", *files, "--store", store, "--name", "back").output
    assert "0 conversations imported, 24 were there before" in output


def _check_evaluations(conversations: Sequence[Any], file: Path) -> None:
    evaluations = read(file)
    assert [each["transcript_id"] for each in evaluations] == [each["row_id"] for each in conversations]
    for each in evaluations:
        [variant] = each["variants"]
        values = {
            key: value
            for dimension in variant["dimension_scores"].values()
            for key, value in dimension["sub_metrics"].items()
        }
        assert list(values) == METRICS
        assert variant["absent_reasons"] == {METRICS[0]: "REFUSED"}
        assert values[METRICS[0]] is None
        assert values["verbosity"] == 4.25


def _outcomes(run: Path) -> Any:
    report = orjson.loads(command("report", run, "--json"))
    assert report["rehearsal"]
    return {name: agent["outcomes"] for name, agent in report["agents"].items()}


def test_the_other_formats_hold_every_unit(run: Path, tmp_path: Path) -> None:
    call(export, run, "--format", "jsonl", "--output", tmp_path / "jsonl")
    assert len(read(tmp_path / "jsonl" / "units.jsonl")) == 24
    assert len(read(tmp_path / "jsonl" / "verdicts.jsonl")) == 24
    call(export, run, "--format", "parquet", "--output", tmp_path / "tables")
    assert len(list((tmp_path / "tables").glob("*.parquet"))) == 5
    message = refusal(export, run, "--format", "jsonl", "--output", tmp_path / "tables")
    assert "is not empty" in message
    call(export, run, "--format", "jsonl", "--output", tmp_path / "tables", "--force")


def test_a_file_that_is_wrong_anywhere_leaves_no_run(run: Path, tmp_path: Path) -> None:
    call(export, run, "--format", "dripr", "--output", tmp_path / "out")
    good = tmp_path / "out" / "strict" / "conversations.jsonl"
    bad = tmp_path / "bad.jsonl"
    lines = good.read_bytes().split(b"\n")
    broken = orjson.loads(lines[4])
    broken["resolution_1"] = {"resolution_type": "MAYBE", "resolution_description": ""}
    bad.write_bytes(b"\n".join([*lines[:3], b'{"half":', orjson.dumps(broken), *lines[5:]]))
    message = refusal(import_run, "dripr", bad, "--store", tmp_path / "store")
    assert "nothing was imported, because of 2 errors" in message
    assert f"{bad}:4: not JSON: " in message
    assert f"{bad}:5: resolution_1.resolution_type: is 'MAYBE', must be one of" in message
    assert not (tmp_path / "store").exists()
    message = refusal(import_run, "dripr", good, "--store", tmp_path / "store", "--name", "No Name")
    assert message.startswith("--name must be 1 to 63 of a-z")
    message = refusal(import_run, "dripr", good, good, "--store", tmp_path / "store", "--agent", "a")
    assert message == "--agent is given 1 times for 2 files: once for each, or never"


def test_an_imported_conversation_is_shown(run: Path, tmp_path: Path) -> None:
    call(export, run, "--format", "dripr", "--output", tmp_path / "out")
    file = tmp_path / "out" / "strict" / "conversations.jsonl"
    call(import_run, "dripr", file, "--store", tmp_path / "store")
    unit = next((tmp_path / "store" / "imported" / "episodes").iterdir()).stem
    output = command("show", tmp_path / "store" / "imported", unit)
    assert "customer:" in output
    assert "REHEARSAL" in output


def test_labels_are_kept_with_the_run(run: Path, tmp_path: Path) -> None:
    unit = next((run / "episodes").iterdir()).stem
    file = tmp_path / "labels.csv"
    file.write_text(
        f"unit,metric,value,annotator\n{unit},verbosity,4,ann\n{unit[:16]},outcome,DENY_REFUND,ann\n",
        encoding="utf-8",
    )
    assert "2 labels imported: labels/" in call(labels, "import", file, "--run", run).output
    assert "2 labels were there before" in call(labels, "import", file, "--run", run).output
    output = call(labels, "list", run).output
    assert "2 labels on 1 units by 1 annotators" in output
    file.write_text(file.read_text(encoding="utf-8").replace(",4,", ",9,"), encoding="utf-8")
    message = refusal(labels, "import", file, "--run", run)
    assert f"{file}:2: value: must be a number from 1 to 5, is '9'" in message
    command("verify", run)
