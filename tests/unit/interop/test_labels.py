"""Human labels: every line checked, kept once, read back."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from policysweep.errors import InputError, StoreError
from policysweep.interop.label_reader import metrics_of
from policysweep.interop.labels import count_labels, import_labels, read_labels
from policysweep.sweep.ledger import RunLedger
from policysweep.v1 import episode_pb2 as ep
from policysweep.v1 import judge_pb2, run_pb2

from .samples import lines, our_run

METRICS = {"verbosity": False, "consistency_drift": True}


async def units(ledger: RunLedger) -> Sequence[run_pb2.Unit]:
    return [record.unit async for record in ledger.read_records()]


def csv(path: Path, *rows: str) -> Path:
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return path


async def problems(ledger: RunLedger, path: Path, metrics: Any = METRICS) -> list[str]:
    """What an import is refused for: `line: column: message`."""
    with pytest.raises(InputError) as raised:
        await import_labels(ledger, path, metrics)
    assert await read_labels(ledger) == []
    head, *listed = str(raised.value).split("\n")
    assert head == f"{path}: nothing was imported, because of {len(listed)} errors:"
    return [line.strip().removeprefix(f"{path}:") for line in listed]


async def test_csv_and_json_lines_give_the_same_labels(tmp_path: Path) -> None:
    ledger = await our_run()
    one, two, *_ = await units(ledger)
    table = csv(
        tmp_path / "labels.csv",
        "unit,metric,message_index,value,annotator",
        f"{one.unit_id},verbosity,,4,ann",
        f'{one.unit_id[:12]},consistency_drift,4,2.5,"ann"',
        "",
        f"{two.unit_id},outcome,,DENY_REFUND,bob",
    )
    done = await import_labels(ledger, table, METRICS)
    assert (done.labels, done.new) == (3, True)
    labels = await read_labels(ledger)
    assert sorted(labels, key=lambda label: label.metric) == [
        run_pb2.HumanLabel(
            unit_id=one.unit_id, metric="consistency_drift", message_index=4, value=2.5, annotator="ann"
        ),
        run_pb2.HumanLabel(
            unit_id=two.unit_id, metric="outcome", outcome=ep.OUTCOME_DENY_REFUND, annotator="bob"
        ),
        run_pb2.HumanLabel(unit_id=one.unit_id, metric="verbosity", value=4, annotator="ann"),
    ]
    rows = [
        {"unit": two.unit_id, "metric": "outcome", "value": "DENY_REFUND", "annotator": "bob"},
        {"unit": one.unit_id, "metric": "verbosity", "value": 4, "annotator": "ann", "message_index": None},
        {
            "scenario": one.scenario_id,
            "agent": one.agent,
            "trial": one.trial,
            "metric": "consistency_drift",
            "message_index": 4,
            "value": 2.5,
            "annotator": "ann",
        },
    ]
    again = await import_labels(ledger, lines(tmp_path / "labels.jsonl", rows), METRICS)
    assert (again.name, again.new) == (done.name, False)
    assert await read_labels(ledger) == labels


async def test_a_file_of_a_spreadsheet_is_read(tmp_path: Path) -> None:
    ledger = await our_run()
    unit = (await units(ledger))[0]
    (tmp_path / "labels.csv").write_bytes(
        "\ufeffunit, metric ,value,annotator\r\n".encode()
        + f"{unit.unit_id}, verbosity , 3 ,Ann\r\n,,,\r\n".encode()
    )
    assert (await import_labels(ledger, tmp_path / "labels.csv", METRICS)).labels == 1


async def test_the_file_is_named_after_its_content(tmp_path: Path) -> None:
    ledger = await our_run()
    unit = (await units(ledger))[0]
    path = csv(tmp_path / "l.csv", "unit,metric,value,annotator", f"{unit.unit_id},verbosity,3,ann")
    done = await import_labels(ledger, path, METRICS)
    content = await ledger.folder("labels").read(done.name.removeprefix("labels/"))
    assert content is not None
    assert done.name == f"labels/{hashlib.sha256(content).hexdigest()}.jsonl"
    await ledger.folder("labels").replace(done.name.removeprefix("labels/"), content + b"{}\n")
    with pytest.raises(StoreError, match=r"content is not what was imported; delete the file"):
        await read_labels(ledger)


async def test_labels_of_several_imports_are_read_together(tmp_path: Path) -> None:
    ledger = await our_run()
    unit = (await units(ledger))[0]
    head = "unit,metric,value,annotator"
    first = csv(tmp_path / "a.csv", head, f"{unit.unit_id},verbosity,3,ann")
    both = csv(tmp_path / "b.csv", head, f"{unit.unit_id},verbosity,3,ann", f"{unit.unit_id},verbosity,5,bob")
    await import_labels(ledger, first, METRICS)
    assert (await import_labels(ledger, both, METRICS)).new
    found = await read_labels(ledger)
    assert [(label.annotator, label.value) for label in found] == [("ann", 3), ("bob", 5)]
    assert count_labels(found) == {("verbosity", "ann"): 1, ("verbosity", "bob"): 1}


async def test_a_label_that_contradicts_one_that_stands_is_refused(tmp_path: Path) -> None:
    ledger = await our_run()
    unit = (await units(ledger))[0]
    head = "unit,metric,value,annotator"
    done = await import_labels(
        ledger, csv(tmp_path / "a.csv", head, f"{unit.unit_id},verbosity,3,ann"), METRICS
    )
    with pytest.raises(InputError, match=rf":2: value: ann said 3 of the same in {done.name}, which stands"):
        await import_labels(ledger, csv(tmp_path / "b.csv", head, f"{unit.unit_id},verbosity,4,ann"), METRICS)
    assert len(await read_labels(ledger)) == 1


async def test_a_file_that_contradicts_itself_is_refused(tmp_path: Path) -> None:
    ledger = await our_run()
    unit = (await units(ledger))[0]
    row = f"{unit.unit_id},outcome"
    path = csv(
        tmp_path / "a.csv",
        "unit,metric,value,annotator",
        f"{row},DENY_REFUND,ann",
        f"{row},DENY_REFUND,ann",
        f"{row},USER_ABORT,ann",
    )
    assert await problems(ledger, path) == ["4: value: ann said DENY_REFUND of the same in line 2"]


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        ("{unit},verbosity,,0,ann", "value: must be a number from 1 to 5, is '0'"),
        ("{unit},verbosity,,5.01,ann", "value: must be a number from 1 to 5, is '5.01'"),
        ("{unit},verbosity,,nan,ann", "value: must be a number from 1 to 5, is 'nan'"),
        ("{unit},verbosity,,+4,ann", "value: must be a number from 1 to 5, is '+4'"),
        ("{unit},outcome,,4,ann", "value: must be one of RETURN_REFUND_FULL_BANK, "),
        ("{unit},verbosity,4,4,ann", "message_index: must be left out: 'verbosity' does not look at turns"),
        ("{unit},consistency_drift,,4,ann", "message_index: is missing: 'consistency_drift' looks at turns"),
        ("{unit},consistency_drift,5,4,ann", "message_index: is 5, the conversation has 5 messages, from 0"),
        ("{unit},consistency_drift,2,4,ann", "message_index: is 2, a tool's answer: label messages of agent"),
        (
            "{unit},consistency_drift,-1,4,ann",
            "message_index: must be a whole number, counted from 0, is '-1'",
        ),
        ("{unit},verbosty,,4,ann", "metric: the run's rubric has no 'verbosty'; did you mean 'verbosity'?"),
        ("{unit},tone,,4,ann", "metric: the run's rubric has no 'tone'; it has verbosity, consistency_drift"),
        ("{unit},Ver bosity,,4,ann", "metric: must be the key of a metric, or 'outcome', is 'Ver bosity'"),
        ("ffffffffffff,verbosity,,4,ann", "unit: no recorded unit has unit ffffffffffff"),
        ("../../etc,verbosity,,4,ann", "unit: must be a unit id or the beginning of one, in hex digits, is"),
        (",verbosity,,4,ann", "unit: is missing: name a unit, or a scenario with its agent and trial"),
        ("{unit},verbosity,,4,", "annotator: is missing"),
        ("{unit},verbosity,,4," + "a" * 101, "annotator: must be 1 to 100 characters in one line"),
        ('{unit},verbosity,,4,"a\nb"', "annotator: must be 1 to 100 characters in one line"),
        ("{unit},verbosity,,4", ": has 4 cells, the header has 5"),
    ],
)
async def test_a_wrong_cell_is_told_with_its_line(tmp_path: Path, cells: str, expected: str) -> None:
    ledger = await our_run()
    unit = (await units(ledger))[0].unit_id
    head = "unit,metric,message_index,value,annotator"
    path = csv(tmp_path / "l.csv", head, f"{unit},verbosity,,3,ann", cells.format(unit=unit))
    [found] = await problems(ledger, path)
    line = "4" if "\n" in cells else "3"
    assert found.startswith(f"{line}: {expected}".replace(": : ", ": "))


async def test_all_that_is_wrong_is_told_at_once(tmp_path: Path) -> None:
    ledger = await our_run()
    path = csv(tmp_path / "l.csv", "unit,metric,value,annotator", "zz,Nope,9,ann", "ffff,verbosity,x,ann")
    found = await problems(ledger, path)
    assert [line.split(": ")[:2] for line in found] == [
        ["2", "metric"],
        ["2", "unit"],
        ["2", "value"],
        ["3", "unit"],
        ["3", "value"],
    ]


async def test_a_unit_that_is_not_told_apart_is_refused(tmp_path: Path) -> None:
    ledger = await our_run()
    unit = (await units(ledger))[0]
    head = "scenario,agent,trial,agent_persona,metric,value,annotator"
    rest = "verbosity,3,ann"
    persona = ep.AgentPersona.Name(unit.agent_persona).removeprefix("AGENT_PERSONA_").lower()
    other = "direct" if persona != "direct" else "fair"
    path = csv(
        tmp_path / "l.csv",
        head,
        f"{unit.scenario_id},,,,{rest}",
        f"{unit.scenario_id},{unit.agent},{unit.trial},{other},{rest}",
        f"{unit.scenario_id},{unit.agent},{unit.trial},kind,{rest}",
        f"{unit.scenario_id},{unit.agent},one,,{rest}",
    )
    found = await problems(ledger, path)
    assert found[0].startswith(f"2: scenario: 4 recorded units have scenario {unit.scenario_id}: ")
    assert found[1].startswith(f"3: scenario: no recorded unit has scenario {unit.scenario_id}, agent ")
    assert found[2].startswith("4: agent_persona: must be one of DIRECT, FAIR, ")
    assert found[3] == "5: trial: must be a whole number, counted from 0, is 'one'"
    path = csv(tmp_path / "l.csv", head, f"{unit.scenario_id},{unit.agent},{unit.trial},{persona},{rest}")
    assert (await import_labels(ledger, path, METRICS)).labels == 1


async def test_without_a_rubric_only_the_form_of_a_metric_counts(tmp_path: Path) -> None:
    ledger = await our_run()
    unit = (await units(ledger))[0].unit_id
    path = csv(
        tmp_path / "l.csv",
        "unit,metric,message_index,value,annotator",
        f"{unit},our_own_metric,,3,ann",
        f"{unit},our_own_metric,4,3,ann",
    )
    assert (await import_labels(ledger, path, None)).labels == 2


def test_the_metrics_of_a_rubric() -> None:
    rubric = judge_pb2.Rubric(
        metrics=[
            judge_pb2.Metric(key="verbosity", level=judge_pb2.METRIC_LEVEL_CONVERSATION),
            judge_pb2.Metric(key="consistency_drift", level=judge_pb2.METRIC_LEVEL_TURN),
        ]
    )
    assert metrics_of(rubric) == METRICS


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("l.csv", "unit;metric;value;annotator\n", "unit;metric;value;annotator: unknown column; use unit, "),
        ("l.csv", "unit,metrik,value,annotator\n", "1: metrik: unknown column; did you mean 'metric'?"),
        ("l.csv", "unit,value,value,annotator\n", "1: value: occurs twice"),
        ("l.csv", "", "1: metric: is missing"),
        ("l.csv", "unit,metric,value,annotator\n", "no label in it"),
        ("l.csv", 'unit,metric,value,annotator\na,b,c,"d\n', "2: not CSV: unexpected end of data"),
        ("l.jsonl", '{"unit": "a", "metric": "b", "value": 3}\n', "1: annotator: is missing"),
        ("l.jsonl", '{"unit": "a", "metrics": "b"}\n', "1: metrics: unknown column; did you mean 'metric'?"),
        ("l.jsonl", "[1]\n", "1: must be an object"),
        ("l.jsonl", "{\n", "1: not JSON: "),
        ("l.xlsx", "", "label files are named .csv or .jsonl"),
    ],
)
async def test_a_file_that_cannot_be_read(tmp_path: Path, name: str, content: str, expected: str) -> None:
    path = tmp_path / name
    path.write_bytes(content.encode())
    with pytest.raises(InputError) as raised:
        await import_labels(await our_run(), path, METRICS)
    assert expected in str(raised.value)


async def test_a_run_without_labels_has_none() -> None:
    assert await read_labels(await our_run()) == []


async def test_two_files_that_contradict_each_other_are_told(tmp_path: Path) -> None:
    """As two imports at once can leave them."""
    ledger, other = await our_run(), await our_run()
    unit = (await units(ledger))[0]
    for run, value in ((ledger, 3), (other, 4)):
        row = {"unit": unit.unit_id, "metric": "verbosity", "value": value, "annotator": "ann"}
        done = await import_labels(run, lines(tmp_path / "l.jsonl", [row]), METRICS)
    name = done.name.removeprefix("labels/")
    content = await other.folder("labels").read(name)
    assert content is not None
    await ledger.folder("labels").create(name, content)
    with pytest.raises(InputError, match=r"contradict each other on unit .*, verbosity, by ann"):
        await read_labels(ledger)
