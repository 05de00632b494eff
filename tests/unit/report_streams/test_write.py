from __future__ import annotations

import json
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest

from policysweep.errors import InputError
from policysweep.report.streams.reading import overreach_hashes, summary_of, write_reports
from policysweep.streams.inputs import StreamInputs
from policysweep.v1 import tau2_pb2

from .samples import SampleRun, made_inputs, sample_run

CALL = re.compile(r'policysweepTranscripts\("([^"]+)", (.*)\);\n', re.DOTALL)


@pytest.fixture
def run() -> SampleRun:
    return sample_run(seeds=1, trials=1)


async def written(run: SampleRun, folder: Path) -> Path:
    await write_reports(await run.write(str(folder / "run")))
    return folder / "run"


def content(folder: Path, name: str) -> dict:  # type: ignore[type-arg]  # JSON
    found = CALL.fullmatch((folder / name).read_text())
    assert found
    assert found[1] == name
    return json.loads(found[2])  # type: ignore[no-any-return]  # JSON


def index_of(folder: Path) -> dict:  # type: ignore[type-arg]  # JSON
    page = (folder / "report.html").read_text()
    found = re.search(r'<script id="data" type="application/json">(.*?)</script>', page, re.DOTALL)
    assert found
    return json.loads(found[1])["index"]  # type: ignore[no-any-return]  # JSON


async def test_each_record_has_a_file_that_the_index_leads_to(run: SampleRun, tmp_path: Path) -> None:
    folder = await written(run, tmp_path)
    index = index_of(folder)
    place = {stream["id"]: position for position, stream in enumerate(index["streams"])}
    for record in run.records:
        name = f"report-data/s{place[record.task.stream_id]:03}-{record.task.position:04}.js"
        assert content(folder, name)["task"]["unit_id"] == record.task.unit_id
    tasks = content(folder, index["domains"]["airline"]["file"])
    assert set(tasks["tasks"]) == {task.task_id for task in run.inputs.tasks.values()}
    assert set(tasks["gaps"]) == {gap.gap_id for gap in run.inputs.gaps}


async def test_the_index_has_a_letter_for_each_task(run: SampleRun, tmp_path: Path) -> None:
    run.records = [each for each in run.records if each.task.position < 30]
    index = index_of(await written(run, tmp_path))
    arm = next(at for at, each in enumerate(index["arms"]) if each["title"].startswith("PolicyBank"))
    stream = next(each for each in index["streams"] if each["arm"] == arm)
    own = [each for each in run.records if each.task.stream_id == stream["id"]]
    assert stream["outcomes"][:30] == "".join("P" if each.grade.reward else "F" for each in own)
    assert stream["outcomes"][30:] == "......"
    kinds = {2: "A", 3: "R", 4: "O"}
    assert stream["lessons"][:30] == "".join(kinds[each.revision.kind] for each in own)
    order = index["orders"]["airline"]["0"]
    assert [each.task.task_id for each in own] == order[:30]


async def test_a_stream_file_tells_what_it_learnt(run: SampleRun, tmp_path: Path) -> None:
    folder = await written(run, tmp_path)
    for stream in index_of(folder)["streams"]:
        history = content(folder, stream["file"])
        own = [each for each in run.records if each.task.stream_id == stream["id"]]
        assert [each["unit"] for each in history["tasks"]] == [each.task.unit_id for each in own]


async def test_the_same_run_gives_the_same_files(run: SampleRun, tmp_path: Path) -> None:
    folder = await written(run, tmp_path)
    before = {path: path.read_bytes() for path in folder.rglob("*report*") if path.is_file()}
    again = await written(sample_run(seeds=1, trials=1), tmp_path / "again")
    assert {path.relative_to(folder): data for path, data in before.items()} == {
        path.relative_to(again): path.read_bytes() for path in again.rglob("*report*") if path.is_file()
    }
    assert json.loads((folder / "stream-report.json").read_text())["kind"] == "streams"


class Checker(HTMLParser):
    """Every element is closed in its place, and ids are unique."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.ids += [value for name, value in attrs if name == "id" and value]
        if tag not in ("meta", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


async def test_the_page_is_sound_and_marked(run: SampleRun, tmp_path: Path) -> None:
    page = ((await written(run, tmp_path)) / "report.html").read_text()
    checker = Checker()
    checker.feed(page)
    assert checker.open == []
    assert len(set(checker.ids)) == len(checker.ids)
    assert page.count("No figure here is a finding.") == 1
    assert "<title>Rehearsal: sample" in page
    assert '<body class="rehearsal">' in page


HOSTILE = '</script><img src=x onerror="alert(1)"><b>\'&'


async def test_texts_of_models_and_tasks_are_escaped(run: SampleRun, tmp_path: Path) -> None:
    for record in run.records:
        if record.revision.capability_id:
            record.revision.capability_id = record.revision.after.capability_id = HOSTILE
            record.revision.rationale = HOSTILE
    for gap in run.inputs.gaps:
        gap.policy_sentence = HOSTILE
    folder = await written(run, tmp_path)
    for path in folder.rglob("*"):
        if path.suffix in (".html", ".js"):
            assert "<img" not in path.read_text()


@pytest.mark.parametrize("name", ["manifest", "records"])
async def test_one_mark_is_enough(name: str, run: SampleRun, tmp_path: Path) -> None:
    if name == "records":
        run.manifest.rehearsal = False
    else:
        for record in run.records:
            record.episode.rehearsal = False
    summary = await summary_of(await run.write(str(tmp_path / "run")))
    assert summary["rehearsal"]


def _controls(inputs: StreamInputs) -> Iterator[tau2_pb2.Tau2Task]:
    return (task for task in inputs.tasks.values() if task.kind == tau2_pb2.TAU2_TASK_KIND_CONTROL)


def test_the_overreach_of_made_controls_is_not_known() -> None:
    assert overreach_hashes(made_inputs()) == {}


def test_the_overreach_of_the_real_controls_is() -> None:
    from policysweep.datasets.tau2 import load_tau2
    from policysweep.streams.inputs import inputs_of

    try:
        dataset = load_tau2("retail")
    except InputError:
        pytest.skip("the tau2-bench package is not installed")
    inputs = inputs_of(dataset.tasks, dataset.gaps)
    (control,) = _controls(inputs)
    ((key, reached),) = overreach_hashes(inputs).items()
    assert key == ("retail", control.task_id)
    assert re.fullmatch(r"[0-9a-f]{64}", reached)
    # A control that this version does not know in exactly this form is not claimed to be known.
    changed = tau2_pb2.Tau2Task()
    changed.CopyFrom(control)
    changed.user_scenario.known_info += " And more."
    assert overreach_hashes(inputs_of([changed], [])) == {}
