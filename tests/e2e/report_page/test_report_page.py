"""The report in a real browser, opened from disk: charts, filters, side by side, keyboard, hostile texts.

With POLICYSWEEP_SCREENSHOTS set, the screenshots are kept in that folder.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from policysweep.v1 import episode_pb2 as ep
from policysweep.v1 import run_pb2

from .browsing import MARKS, NO_PLAYWRIGHT, Open
from .samples import AGENTS, PERSONAS, TASKS, SampleRun, plant, sample_run, unit_id

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

playwright = pytest.importorskip("playwright.sync_api", reason=NO_PLAYWRIGHT)
HOSTILE = '</script><img src=x onerror="window.hit=1"><b>\'&\u2028\u2029\u202e${1}`'
UNITS = TASKS * PERSONAS * len(AGENTS)

pytestmark = MARKS


@dataclass(frozen=True)
class Site:
    """Reports on disk. They are written before the browser starts, whose driver holds the event loop."""

    judged: Path
    plain: Path
    trials: Path
    hostile: Path
    run: SampleRun


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    folder = tmp_path_factory.mktemp("reports")
    run, hostile = sample_run(), sample_run()
    plant(hostile, HOSTILE)
    return Site(
        judged=run.write(folder / "judged"),
        plain=sample_run(judged=False).write(folder / "plain"),
        trials=sample_run(trials=2).write(folder / "trials"),
        hostile=hostile.write(folder / "hostile"),
        run=run,
    )


def hits(page: Page) -> int:
    """Conversations found, as the page states them."""
    return int(page.locator("#found strong").inner_text().split()[0])


def shown_agents(page: Page) -> list[str]:
    return page.locator("#case .unit h3").all_inner_texts()


def test_the_report_opens_from_disk_with_all_its_charts(open_: Open, site: Site) -> None:
    page = open_(site.judged).page
    boxes = page.locator(".chart-box")
    boxes.last.locator("svg").wait_for()
    for position in range(boxes.count()):
        assert boxes.nth(position).locator("svg").count() > 0
    assert page.locator("#summary .lead li").count() == 5
    assert "Rehearsal" in page.title()
    assert page.locator(".banner").is_visible()
    assert page.locator("#viewer").is_hidden()


def test_a_run_that_is_not_judged_has_no_scores_and_says_so(open_: Open, site: Site) -> None:
    page = open_(site.plain).page
    assert page.locator("#scores").count() == 0
    assert "No unit is judged" in page.locator("#summary").inner_text()
    page.goto(f"file://{site.plain}#list")
    assert page.locator("#filters [name=score]").count() == 0
    assert hits(page) == UNITS


def test_the_banner_is_on_every_view(open_: Open, site: Site) -> None:
    page = open_(site.judged, f"#unit={unit_id('fair', 'S_t000_0')}").page
    page.wait_for_selector("#case .unit")
    page.mouse.wheel(0, 2000)
    assert page.locator(".banner").is_visible()
    assert "Rehearsal" in page.locator(".banner").inner_text()


def _expected(run: SampleRun, fits: Callable[[run_pb2.UnitRecord], bool]) -> int:
    return sum(1 for record in run.records if fits(record))


def test_filters_narrow_the_list(open_: Open, site: Site) -> None:
    page = open_(site.judged, "#list").page
    assert hits(page) == UNITS
    page.select_option("[name=agent]", "strict")
    assert hits(page) == UNITS // 3
    page.select_option("[name=outcome]", "DENY_REFUND")
    denied = _expected(
        site.run, lambda r: r.unit.agent == "strict" and r.episode.outcome == ep.OUTCOME_DENY_REFUND
    )
    assert 0 < denied < UNITS // 3
    assert hits(page) == denied
    assert "agent=strict" in page.url
    page.reload()
    assert hits(page) == denied
    page.click("text=Clear filters")
    page.select_option("[name=task]", "task_003")
    assert hits(page) == PERSONAS * len(AGENTS)
    page.select_option("[name=persona]", "persona_1")
    assert hits(page) == len(AGENTS)


def test_filters_by_fault_contradiction_and_division(open_: Open, site: Site) -> None:
    page = open_(site.judged, "#list").page
    page.select_option("[name=fault]", "AGENT")
    assert hits(page) == 1
    page.click("text=Clear filters")
    page.check("[name=mismatch]")
    assert hits(page) == 1
    page.click("text=Clear filters")
    page.check("[name=split]")
    assert 0 < hits(page) < UNITS
    assert hits(page) % len(AGENTS) == 0


def test_the_score_range_selects_scores_within_it(open_: Open, site: Site) -> None:
    page = open_(site.judged, "#list").page
    page.fill("[name=min]", "4")
    assert 0 < hits(page) < UNITS
    grades = [float(text) for text in page.locator("#hits .grade").all_inner_texts()]
    assert grades
    assert min(grades) >= 4.0
    page.select_option("[name=sort]", "low")
    ordered = [float(text) for text in page.locator("#hits .grade").all_inner_texts()]
    assert ordered == sorted(ordered)


def test_a_filter_that_nothing_fits_says_so(open_: Open, site: Site) -> None:
    page = open_(site.judged, "#list&min=5&max=1").page
    assert hits(page) == 0
    assert "No conversation fits" in page.locator("#hits").inner_text()


def test_the_list_is_paged(open_: Open, site: Site) -> None:
    page = open_(site.judged, "#list").page
    assert page.locator("#hits li").count() == 50
    first = page.locator("#hits li").first.inner_text()
    page.click("text=Next page")
    assert page.locator("#hits li").first.inner_text() != first
    assert f"page 2 of {-(-UNITS // 50)}" in page.locator("#hits").inner_text()


def test_a_scenario_is_shown_side_by_side_across_agents(open_: Open, site: Site) -> None:
    page = open_(site.judged, "#list&task=task_003").page
    page.locator("#hits li a").nth(1).click()
    page.wait_for_selector("#case .unit")
    assert shown_agents(page) == list(AGENTS)
    assert page.locator("#case .unit.chosen h3").inner_text() == "fair"
    assert page.locator("#case h2").inner_text() == "Return number 3"
    page.click("text=Only fair")
    playwright.expect(page.locator("#case .unit h3")).to_have_text(["fair"])
    page.click("text=All agents side by side")
    playwright.expect(page.locator("#case .unit h3")).to_have_text(list(AGENTS))


def test_on_a_phone_the_chosen_agent_is_the_one_in_view(open_: Open, site: Site) -> None:
    page = open_(site.judged, f"#unit={unit_id('lenient', 'S_t003_0')}", width=390).page
    page.wait_for_selector("#case .unit")
    box = page.locator("#case .unit.chosen").bounding_box()
    assert box is not None
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= 390
    assert page.locator("#viewer .choose").is_hidden()
    page.click("text=Back to the list")
    assert page.locator("#viewer .choose").is_visible()


def test_trials_are_cases_of_their_own(open_: Open, site: Site) -> None:
    page = open_(site.trials, f"#unit={unit_id('fair', 'S_t002_1', 1)}").page
    page.wait_for_selector("#case .unit")
    assert shown_agents(page) == list(AGENTS)
    assert page.locator("#case .unit .meta", has_text="trial 2").count() == len(AGENTS)
    page.click("text=fair, trial 1")
    playwright.expect(page.locator("#case .unit .meta").first).not_to_contain_text("trial 2")
    assert unit_id("fair", "S_t002_1", 0) in page.url


def test_scores_stand_beside_the_turns_that_they_cite(open_: Open, site: Site) -> None:
    name = unit_id("fair", "S_t004_2")
    page = open_(site.judged, f"#unit={name}&alone=1").page
    page.wait_for_selector("#case .unit")
    notes = page.locator(f"#turn-{name}-3 .notes").inner_text()
    assert "Metric drift" in notes
    assert "Turn 3 keeps to the point." in notes
    assert "Metric support cites this" in notes
    assert "In [3] the agent names the window." in notes
    assert page.locator(f"#turn-{name}-0 .notes").count() == 0
    page.click("#case summary:has-text('Scores by panel')")
    assert "Money back" in page.locator(".verdicts").inner_text()


def test_tool_traffic_is_folded_and_the_customers_stands_apart(open_: Open, site: Site) -> None:
    name = unit_id("fair", "S_t004_2")
    page = open_(site.judged, f"#unit={name}&alone=1").page
    page.wait_for_selector("#case .unit")
    result = page.locator(f"#turn-{name}-2 details")
    assert result.locator("pre").count() == 0
    result.locator("summary").click()
    assert '"item_id": "I-1"' in result.locator("pre").inner_text()
    private = page.locator(".turn.private")
    assert private.count() == 1
    # Between the messages 3 and 4, where it happened.
    assert private.evaluate("li => li.nextElementSibling.id") == f"turn-{name}-4"


def test_an_answer_names_the_entries_that_it_rests_on(open_: Open, site: Site) -> None:
    name = unit_id("fair", "S_t004_2")
    page = open_(site.judged, f"#unit={name}&alone=1").page
    page.wait_for_selector("#case .unit")
    assert "Consulted return_windows, exceptions" in page.locator(f"#turn-{name}-3 .said").inner_text()
    assert page.locator(".said", has_text="Consulted").count() == 1


def test_contradictions_and_faults_are_visible(open_: Open, site: Site) -> None:
    tab = open_(site.judged, f"#unit={unit_id('lenient', 'S_t000_0')}&alone=1")
    tab.page.wait_for_selector("#case .unit")
    assert "executed Deny Refund" in tab.page.locator(".alert").inner_text()
    assert "Nothing was paid back." in tab.page.locator(".alert").inner_text()
    tab = open_(site.judged, f"#unit={unit_id('strict', 'S_t000_1')}&alone=1")
    tab.page.wait_for_selector("#case .unit")
    assert "Fault of the agent: turn limit." in tab.page.locator(".alert").inner_text()
    assert "End: turn limit." in tab.page.locator(".ending").inner_text()


def test_the_keyboard_reaches_a_conversation(open_: Open, site: Site) -> None:
    page = open_(site.judged, "#list").page
    page.locator("#hits li a").first.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    page.wait_for_selector("#case .unit")
    assert page.locator("#case .unit.chosen h3").inner_text() == "fair"
    assert page.evaluate("document.activeElement.id") == "case"
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") in ("Back to the list", "Previous")


def test_the_skip_link_comes_first(open_: Open, site: Site) -> None:
    page = open_(site.judged, width=700).page
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the content"


def test_an_unknown_unit_and_missing_transcripts_are_told(open_: Open, site: Site, tmp_path: Path) -> None:
    page = open_(site.judged, "#unit=nobody").page
    assert "There is no unit nobody" in page.locator("#case").inner_text()
    alone = tmp_path / "report.html"
    shutil.copy(site.judged, alone)
    tab = open_(alone, f"#unit={unit_id('fair', 'S_t000_0')}")
    tab.page.wait_for_selector("[role=alert]")
    assert "keep the folder report-data beside" in tab.page.locator("[role=alert]").inner_text()
    # The browser itself complains about the file.
    assert len(tab.complaints) == 1
    assert "ERR_FILE_NOT_FOUND" in tab.complaints.pop()


def test_a_cell_of_the_mosaic_opens_its_conversation(open_: Open, site: Site) -> None:
    page = open_(site.judged).page
    cell = page.locator(".mosaic rect").nth(4)
    cell.scroll_into_view_if_needed()
    cell.hover()
    cell.click(force=True)
    page.wait_for_selector("#case .unit")
    assert "unit=" in page.url


@pytest.mark.parametrize("place", ["", "#list", "alone", "together"])
def test_hostile_texts_are_shown_and_never_run(open_: Open, site: Site, place: str) -> None:
    name = unit_id("lenient", "S_t000_0")
    places = {"alone": f"#unit={name}&alone=1", "together": f"#unit={name}"}
    page = open_(site.hostile, places.get(place, place)).page
    if place in places:
        page.wait_for_selector("#case .unit")
    page.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")
    page.wait_for_timeout(200)
    assert page.evaluate("window.hit") is None
    assert page.locator("img, main b img, main script").count() == 0
    assert page.locator("main:not([hidden])").inner_text().count("<img src=x onerror=") > 3


LOOKS = {
    "wide": ("", 1280, "light"),
    "phone": ("", 390, "light"),
    "wide-dark": ("", 1280, "dark"),
    "case-wide": ("case", 1280, "light"),
    "case-phone": ("case", 390, "dark"),
    "list-phone": ("#list", 390, "light"),
}


@pytest.mark.parametrize("look", LOOKS)
def test_nothing_sticks_out_at_two_widths(open_: Open, site: Site, tmp_path: Path, look: str) -> None:
    place, width, scheme = LOOKS[look]
    address = f"#unit={unit_id('lenient', 'S_t000_0')}" if place == "case" else place
    page = open_(site.judged, address, width=width, color_scheme=scheme).page
    page.wait_for_selector("#case .unit" if place == "case" else "main:not([hidden])")
    page.wait_for_timeout(100)
    kept = Path(os.environ.get("POLICYSWEEP_SCREENSHOTS") or tmp_path)
    page.screenshot(path=kept / f"report-{look}.png", full_page=True)
    assert page.evaluate("document.documentElement.scrollWidth") == width


def test_it_prints_with_folded_tables_open_and_the_mark_of_a_rehearsal(
    open_: Open, site: Site, tmp_path: Path
) -> None:
    page = open_(site.judged, width=800).page
    page.wait_for_selector(".chart-box svg")
    page.emulate_media(media="print")
    assert page.locator("section > details table").first.is_visible()
    assert page.locator(".bar nav").is_hidden()
    assert page.evaluate("getComputedStyle(document.body, '::after').content") == '"REHEARSAL"'
    kept = Path(os.environ.get("POLICYSWEEP_SCREENSHOTS") or tmp_path)
    assert len(page.pdf(path=kept / "report.pdf", format="A4")) > 50_000


def test_without_scripts_the_tables_can_be_read(browser: Browser, site: Site) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"file://{site.judged}")
    assert page.locator("#outcomes table").first.is_visible()
    assert page.locator("figure").first.is_hidden()
    context.close()


def test_every_control_and_table_has_a_name(open_: Open, site: Site) -> None:
    page = open_(site.judged, "#list").page
    unnamed = page.evaluate(
        "[...document.querySelectorAll('select, input')].filter(each => !each.labels.length).length"
    )
    assert unnamed == 0
    assert page.evaluate("[...document.querySelectorAll('#report table')].every(each => each.caption)")
    assert page.evaluate("[...document.querySelectorAll('#report th')].every(each => each.scope)")
