"""Dashboards: generated, about metrics that exist, of use to somebody on call."""

from __future__ import annotations

import json
from typing import Any

import pytest

from scripts.generate_dashboards import BOARDS, FOLDER, built

from .queries import panel_queries, panels, rules
from .series import exposed, named

PANELS = list(panels())
each_panel = pytest.mark.parametrize(
    "panel", [panel for _, panel in PANELS], ids=[name for name, _ in PANELS]
)


def test_the_files_are_those_that_the_generator_makes() -> None:
    assert {file.stem for file in FOLDER.glob("*.json")} == set(BOARDS)
    for name, board in BOARDS.items():
        assert (FOLDER / f"{name}.json").read_text("utf-8") == built(board), "run `make dashboards`"


@pytest.mark.parametrize("query", [query for _, query in panel_queries("1m")])
def test_queries_use_metrics_that_exist(query: str) -> None:
    assert named(query)
    assert named(query) <= exposed()


@each_panel
def test_a_panel_says_what_it_shows_and_in_what_unit(panel: dict[str, Any]) -> None:
    assert panel["title"]
    assert panel["description"].endswith(".")
    assert panel["fieldConfig"]["defaults"]["unit"]


@each_panel
def test_a_panel_asks_the_data_source_that_the_reader_chose(panel: dict[str, Any]) -> None:
    asked = [
        panel["datasource"],
        *(target.get("datasource", panel["datasource"]) for target in panel["targets"]),
    ]
    assert {source["uid"] for source in asked} == {"${datasource}"}


@pytest.mark.parametrize("name", BOARDS)
def test_a_dashboard_names_no_host(name: str) -> None:
    text = (FOLDER / f"{name}.json").read_text("utf-8")
    assert "://" not in text
    variables = {each["name"]: each["type"] for each in json.loads(text)["templating"]["list"]}
    assert variables["datasource"] == "datasource"


@each_panel
def test_a_panel_links_to_alerts_that_exist(panel: dict[str, Any]) -> None:
    known = {f"${{runbook_base}}docs/operating.md#{rule['alert'].lower()}" for rule in rules("alert")}
    assert {link["url"] for link in panel.get("links") or ()} <= known


def test_panels_do_not_lie_on_one_another() -> None:
    for name in BOARDS:
        seen: set[tuple[int, int]] = set()
        for panel in json.loads((FOLDER / f"{name}.json").read_text("utf-8"))["panels"]:
            at = panel["gridPos"]
            cells = {(at["x"] + dx, at["y"] + dy) for dx in range(at["w"]) for dy in range(at["h"])}
            assert not cells & seen, f"{name}: {panel['title']}"
            assert at["x"] + at["w"] <= 24
            seen |= cells


@pytest.mark.parametrize("name", BOARDS)
def test_variables_ask_for_metrics_that_exist(name: str) -> None:
    variables = json.loads((FOLDER / f"{name}.json").read_text("utf-8"))["templating"]["list"]
    for variable in variables:
        if variable["type"] == "query":
            assert named(variable["query"]) <= exposed()
