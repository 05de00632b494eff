from __future__ import annotations

import base64
import hashlib
import re

import pytest

from policysweep.report.html.markup import join
from policysweep.report.html.sections.lead import five_sentences
from policysweep.report.html.sections.setup import setup_section
from policysweep.report.summary import summarise

from .builders import DENY, FULL, Files, data_of, inputs, judged, manifest, record, scenario


def _page(
    number: int = 12, *, judge: bool = True, rehearsal: bool = False, planned: int | None = None
) -> str:
    records = [record("strict", at, DENY) for at in range(number)]
    records += [record("fair", at, FULL if at % 3 else DENY) for at in range(number)]
    verdicts = [judged(made.unit.unit_id) for made in records] if judge else None
    scenarios = [scenario(at) for at in range(number)]
    units = [made.unit for made in records]
    units += [record("fair", number + at).unit for at in range(planned or 0)]
    scenarios += [scenario(number + at) for at in range(planned or 0)]
    files = Files(records, verdicts or [])
    return files.report(inputs(records, scenarios, verdicts, planned=units, rehearsal=rehearsal))


def _text(html: str) -> str:
    return re.sub(r"<[^>]*>", "", html)


def test_the_policy_runs_nothing_but_what_the_page_was_made_with() -> None:
    page = _page()
    found = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    assert found
    policy = found[1].replace("&#x27;", "'")
    assert policy.startswith("default-src 'none'; script-src 'self' file: 'sha256-")
    assert "unsafe" not in policy
    scripts = re.findall(
        r"<(?:script|script type=\"module\"|style)>(.*?)</(?:script|style)>", page, re.DOTALL
    )
    assert len(scripts) == 3
    for script in scripts:
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy


def test_it_loads_nothing() -> None:
    page = _page()
    body = re.sub(r"<(script|style)[^>]*>.*?</\1>", "", page, flags=re.DOTALL)
    assert not re.search(r"\bsrc=|<link|https?://", body)
    assert re.findall(r'href="([^"]*)"', body)
    assert all(address.startswith("#") for address in re.findall(r'href="([^"]*)"', body))


def test_the_sections_of_a_judged_run() -> None:
    page = _page()
    sections = re.findall(r'<section id="(\w+)"', page)
    expected = ["outcomes", "agreement", "scores", "tasks", "breakdowns", "judges", "coverage", "manifest"]
    assert [name for name in sections if name in expected] == expected


def test_what_is_not_judged_has_no_scores() -> None:
    page = _page(judge=False)
    assert 'id="scores"' not in page
    assert 'id="judges"' not in page
    assert data_of(page)["summary"]["judging"] is None


def test_the_five_sentences_give_the_numbers() -> None:
    summary = data_of(_page())["summary"]
    told = [_text(join(sentence)) for sentence in five_sentences(summary)]
    assert len(told) == 5
    assert "24 of 24 units are scored, a coverage of 100%" in told[0]
    assert "33.3% [" in told[1]
    assert "strict grants 0.0% [" in told[2]
    assert "fair grants 66.7% [" in told[2]
    assert "Judge j tells the agents apart most in policy" in told[3]
    assert "The agents split most on task_1 (1.00 bits between agents): Return 1" in told[4]


def test_below_the_coverage_the_headlines_are_withheld_with_the_reason() -> None:
    page = _text(_page(planned=12))
    assert "Withheld: shares of fair. 12 of 24 planned units are scored" in page
    assert "How far the agents agree is not given: 12 of 24" in page


def test_one_agent_has_nobody_to_agree_with() -> None:
    records = [record("fair", at) for at in range(3)]
    page = Files(records).report(inputs(records, [scenario(at) for at in range(3)]))
    assert 'id="agreement"' not in page
    assert "No task divides the agents." in page


def test_a_run_without_records_has_a_page() -> None:
    planned = [record("fair", 0).unit, record("strict", 0).unit]
    page = Files([]).report(inputs([], [scenario(0)], planned=planned))
    assert "0 of 2 units are scored" in page


@pytest.mark.parametrize("rehearsal", [True, False])
def test_the_banner_is_there_for_a_rehearsal_only(rehearsal: bool) -> None:
    page = _page(rehearsal=rehearsal)
    assert ('class="banner"' in page) is rehearsal
    assert ('<body class="rehearsal">' in page) is rehearsal
    assert ("<title>Rehearsal: " in page) is rehearsal


def test_every_chart_states_its_n() -> None:
    captions = re.findall(r"<figcaption>(.*?)</figcaption>", _page(), re.DOTALL)
    assert len(captions) == 6
    for caption in captions:
        assert re.search(r"\bn\b[ :=]|\d+ matched conversations", _text(caption)), caption


def test_tables_have_a_caption_and_scoped_headers() -> None:
    page = _page()
    assert page.count("<table>") == page.count("<caption>")
    assert "<th>" not in page


def test_hostile_names_are_text() -> None:
    name = '"><img src=x onerror=alert(1)>'
    records = [record(name, at) for at in range(3)] + [record("fair", at, DENY) for at in range(3)]
    page = Files(records).report(inputs(records, [scenario(at) for at in range(3)]))
    assert "<img" not in page
    assert "&quot;&gt;&lt;img src=x" in page


def test_the_manifest_tells_what_an_agent_reads() -> None:
    told = manifest(agents=["plain", "reader"])
    told.agents[0].info.memory_mode = "none"
    reader = told.agents[1]
    reader.info.memory_mode, reader.info.policy_withheld = "full", True
    reader.bank.bank_id, reader.bank.revision, reader.bank.rehearsal = "returns", 3, True
    page = _text(
        str(join(each for each in setup_section(summarise([], {"plain": 1, "reader": 1}, [], told)) if each))
    )
    assert "full, bank returns at revision 3 (rehearsal), policy withheld" in page
    assert page.count("policy withheld") == 1
