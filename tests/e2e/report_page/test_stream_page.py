"""The report of a stream run in a real browser, opened from disk: charts, tasks, entries, hostile texts.

With POLICYSWEEP_SCREENSHOTS set, the screenshots are kept in that folder.
"""

from __future__ import annotations

import asyncio
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from policysweep.report.streams.reading import write_reports
from policysweep.v1 import episode_pb2 as ep
from policysweep.v1 import policybank_pb2 as pb
from policysweep.v1 import stream_pb2
from tests.unit.report_streams.samples import SampleRun, sample_run

from .browsing import MARKS, NO_PLAYWRIGHT, Open

if TYPE_CHECKING:
    from playwright.sync_api import Page

playwright = pytest.importorskip("playwright.sync_api", reason=NO_PLAYWRIGHT)
HOSTILE = '</script><img src=x onerror="window.hit=1"><b>\'&\u2028\u202e${1}`'
TASKS = 36

pytestmark = MARKS


@dataclass(frozen=True)
class Site:
    """Reports on disk."""

    whole: Path
    cut: Path
    hostile: Path
    run: SampleRun


def write(run: SampleRun, folder: Path) -> Path:
    async def both() -> None:
        await write_reports(await run.write(str(folder)))

    asyncio.run(both())
    return folder / "report.html"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    folder = tmp_path_factory.mktemp("streams")
    run, cut, hostile = sample_run(), sample_run(), sample_run(seeds=1, trials=1)
    cut_short(cut)
    plant(hostile)
    return Site(
        whole=write(run, folder / "whole"),
        cut=write(cut, folder / "cut"),
        hostile=write(hostile, folder / "hostile"),
        run=run,
    )


def cut_short(run: SampleRun) -> None:
    """A stream that an outage stopped at its task 20, and a task whose feedback was lost."""
    stream = learner(run)
    task = next(each for each in of(run, stream) if each.task.position == 20).task
    run.records = [
        each for each in run.records if each.task.stream_id != stream.stream_id or each.task.position < 20
    ]
    failure = stream_pb2.StreamFailure(task=task)
    failure.attempts.add(
        party=ep.FAULT_PARTY_INFRASTRUCTURE, reason="MODEL_SERVER_UNAVAILABLE", message="Nobody answers."
    )
    run.failures = [failure]
    lost = of(run, stream)[0]
    lost.ClearField("revision")
    lost.bank_revision_after = lost.bank_revision_before
    lost.missing_feedback.party = ep.FAULT_PARTY_CURATOR
    lost.missing_feedback.reason = "CURATOR_UNUSABLE"
    lost.missing_feedback.message = "No answer could be used."


def plant(run: SampleRun) -> None:
    """Markup in every text that a model or a task brings."""
    for task in run.inputs.tasks.values():
        task.user_scenario.reason_for_call = HOSTILE
    for record in run.records:
        for message in record.episode.messages:
            message.content = HOSTILE
        for call in record.episode.model_calls:
            call.consulted_spec_ids[:] = [HOSTILE] if call.consulted_spec_ids else []
        if record.revision.capability_id:
            record.revision.capability_id = record.revision.after.capability_id = HOSTILE
            record.revision.rationale = record.revision.diff = record.revision.after.spec.action = HOSTILE


def learner(run: SampleRun) -> stream_pb2.Stream:
    """The first stream of PolicyBank."""
    return next(each for each in run.streams() if each.method == pb.MEMORY_METHOD_POLICY_BANK)


def of(run: SampleRun, stream: stream_pb2.Stream) -> list[stream_pb2.StreamRecord]:
    """The records of a stream in order."""
    return [each for each in run.records if each.task.stream_id == stream.stream_id]


def expect(page: Page, text: str) -> None:
    playwright.expect(page.locator("#case")).to_contain_text(text)


def test_the_report_opens_from_disk_with_all_its_charts(open_: Open, site: Site) -> None:
    page = open_(site.whole).page
    boxes = page.locator(".chart-box")
    boxes.last.locator("svg").wait_for()
    for position in range(boxes.count()):
        assert boxes.nth(position).locator("svg").count() > 0
    assert page.locator("#viewer").is_hidden()
    assert page.locator(".banner").is_visible()
    assert "Rehearsal" in page.title()
    assert "20 of 20 streams are complete" in page.locator("#summary").inner_text()


def test_a_stream_lists_its_tasks_with_what_became_of_them(open_: Open, site: Site) -> None:
    stream = learner(site.run)
    page = open_(site.whole, f"#stream={stream.stream_id}").page
    rows = page.locator("#hits li")
    assert rows.count() == TASKS
    passed = sum(each.grade.reward == 1 for each in of(site.run, stream))
    assert page.locator("#hits .r-passed").count() == passed
    assert f"{passed} passed" in page.locator("#found").inner_text()
    first = of(site.run, stream)[0]
    assert first.task.task_id in rows.first.inner_text()


def test_a_task_is_shown_beside_no_memory_with_grade_and_lesson(open_: Open, site: Site) -> None:
    stream = learner(site.run)
    record = next(each for each in of(site.run, stream) if each.revision.kind == pb.REVISION_KIND_ADD)
    page = open_(site.whole, f"#stream={stream.stream_id}&task={record.task.position}").page
    expect(page, f"Task {record.task.task_id} of airline")
    assert page.locator("#case .unit h3").all_inner_texts() == ["PolicyBank (explanation)", "No memory"]
    own = page.locator("#case .unit.chosen")
    assert "Reward 0" in own.inner_text()
    assert "not met" in own.locator(".verdicts").inner_text()
    assert "kept to the written policy" in own.locator(".lesson").inner_text()
    assert "Tells \u201c12\u201d." in own.locator(f"#turn-{record.task.unit_id}-4 .notes").inner_text()
    page.select_option("#case label.controls select", label="Human oracle")
    playwright.expect(page.locator("#case .unit h3").nth(1)).to_have_text("Human oracle")
    page.select_option("#case label.controls select", label="nothing")
    playwright.expect(page.locator("#case .unit")).to_have_count(1)


def test_an_entry_tells_how_it_came_to_read_as_it_does(open_: Open, site: Site) -> None:
    stream = learner(site.run)
    page = open_(site.whole, f"#stream={stream.stream_id}").page
    page.locator(".entries a", has_text="lesson G-4").click()
    expect(page, "As it reads at the end")
    changes = [each for each in of(site.run, stream) if each.revision.capability_id == "lesson G-4"]
    assert page.locator(".evolution > li").count() == len(changes)
    second = page.locator(".evolution > li").nth(1)
    assert "type II, the policy is wrong" in second.inner_text()
    removed = f"-ACTION: As task {changes[0].task.task_id} shows, parts count too."
    assert second.locator(".diff .removed").inner_text().strip() == removed
    second.locator("h3 a").click()
    expect(page, f"Task {changes[1].task.task_id} of airline")


def test_another_method_keeps_the_task(open_: Open, site: Site) -> None:
    stream = learner(site.run)
    page = open_(site.whole, f"#stream={stream.stream_id}&task=5").page
    expect(page, "place 6 of 36")
    page.select_option("[name=arm]", label="Human oracle")
    expect(page, "Human oracle in airline")
    expect(page, "place 6 of 36")
    assert "task=5" in page.url
    page.select_option("[name=seed]", "1")
    expect(page, "Entries that")
    assert "task=" not in page.url


def test_a_stream_that_stopped_says_where_and_why(open_: Open, site: Site) -> None:
    stream = learner(site.run)
    page = open_(site.cut, f"#stream={stream.stream_id}").page
    expect(page, "model server unavailable (infrastructure). Nobody answers.")
    assert page.locator("#hits .r-pending").count() == TASKS - 20
    page.locator("#hits li a").first.click()
    expect(page, "No lesson: curator, curator unusable. No answer could be used.")
    page.locator("#hits li a").nth(25).click()
    expect(page, "This task has no record yet.")
    page.goto(f"file://{site.cut}#coverage")
    assert "Nobody answers." in page.locator("#coverage").inner_text()


def test_the_keyboard_reaches_a_task(open_: Open, site: Site) -> None:
    page = open_(site.whole, f"#stream={learner(site.run).stream_id}").page
    page.locator("#hits li a").first.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    expect(page, "place 2 of 36")
    playwright.expect(page.locator("#case")).to_be_focused()


def test_an_unknown_stream_and_missing_files_are_told(open_: Open, site: Site, tmp_path: Path) -> None:
    page = open_(site.whole, "#stream=nobody").page
    assert "There is no stream nobody" in page.locator("#case").inner_text()
    alone = tmp_path / "report.html"
    shutil.copy(site.whole, alone)
    tab = open_(alone, f"#stream={learner(site.run).stream_id}")
    tab.page.wait_for_selector("[role=alert]")
    assert "keep the folder report-data beside" in tab.page.locator("[role=alert]").inner_text()
    # The browser itself complains about the file.
    assert len(tab.complaints) == 1
    assert "ERR_FILE_NOT_FOUND" in tab.complaints.pop()


def test_hostile_texts_are_shown_and_never_run(open_: Open, site: Site) -> None:
    run = sample_run(seeds=1, trials=1)
    stream = learner(run)
    page = open_(site.hostile).page
    for place in ("", "&task=1", "&task=4"):
        page.goto(f"file://{site.hostile}#stream={stream.stream_id}{place}")
        expect(page, "onerror")
    page.goto(f"file://{site.hostile}#stream={stream.stream_id}")
    page.locator(".entries a.entry").first.click()
    expect(page, "As it reads at the end")
    assert page.evaluate("window.hit") is None
    assert page.locator("img").count() == 0


@pytest.mark.parametrize("width", [1280, 700, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_view_is_wider_than_the_window(open_: Open, site: Site, width: int, scheme: str) -> None:
    stream = learner(site.run)
    views = {
        "report": "",
        "learnt": f"#stream={stream.stream_id}",
        "task": f"#stream={stream.stream_id}&task=5",
        "entry": f"#stream={stream.stream_id}&entry=lesson%20G-4",
    }
    page = open_(site.whole, width=width, color_scheme=scheme).page
    for name, place in views.items():
        page.goto(f"file://{site.whole}{place or '#'}")
        if name != "report":
            page.wait_for_selector("#case h2")
        assert page.evaluate("document.documentElement.scrollWidth") <= width, name
        assert page.locator(".banner").is_visible()
        if folder := os.environ.get("POLICYSWEEP_SCREENSHOTS"):
            page.screenshot(path=Path(folder) / f"stream-{name}-{width}-{scheme}.png", full_page=True)


def test_names_of_methods_stand_whole_on_a_phone(open_: Open, site: Site) -> None:
    page = open_(site.whole, width=390).page
    lines = """cell => {
        const range = document.createRange();
        range.selectNodeContents(cell);
        return new Set([...range.getClientRects()].map(box => box.top)).size;
    }"""
    names = page.locator("#coverage .word", has_text="ReasoningBank")
    assert names.count() > 2
    assert {names.nth(at).evaluate(lines) for at in range(names.count())} == {1}
