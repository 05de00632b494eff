from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from policysweep.report.html import assets

FOLDER = Path(assets.__file__).parent
PAGES = ("main", "stream_main")
"""The script that starts each page."""


def modules(app: str) -> list[str]:
    return re.findall(r"const from_(\w+) = \(\(\) => \{", app)


@pytest.mark.parametrize("start", PAGES)
def test_a_bundle_holds_each_module_once_and_no_import(start: str) -> None:
    app = assets.app(start)
    assert len(set(modules(app))) == len(modules(app))
    assert modules(app)[-1] == start
    assert not re.search(r"^\s*(import|export)\b", app, re.MULTILINE)


def test_every_module_is_part_of_a_page() -> None:
    bundled = {name for start in PAGES for name in modules(assets.app(start))}
    assert bundled == {path.stem for path in (FOLDER / "app").glob("*.js")}


@pytest.mark.parametrize("start", PAGES)
def test_modules_come_after_what_they_import(start: str) -> None:
    order = modules(assets.app(start))
    for name in order:
        source = (FOLDER / "app" / f"{name}.js").read_text(encoding="utf-8")
        for imported in re.findall(r'from "\./(\w+)\.js"', source):
            assert order.index(imported) < order.index(name), name


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
@pytest.mark.parametrize("start", PAGES)
def test_the_bundle_is_valid_javascript(start: str, tmp_path: Path) -> None:
    file = tmp_path / "app.mjs"
    file.write_text(assets.app(start), encoding="utf-8")
    done = subprocess.run(["node", "--check", file], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_our_scripts_make_no_html_and_no_code_from_text() -> None:
    html = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|createContextualFragment"
    for start in PAGES:
        assert not re.search(rf"{html}|\beval\b|new Function", assets.app(start))


@pytest.mark.parametrize(
    "text",
    [*map(assets.app, PAGES), assets.charts(), assets.styles()],
    ids=[*PAGES, "charts", "styles"],
)
def test_inlined_files_cannot_end_their_element_and_keep_their_hash(text: str) -> None:
    assert not re.search(r"</(script|style)|<!--", text, re.IGNORECASE)
    # A browser turns \r\n into \n before it hashes.
    assert "\r" not in text


def test_the_chart_library_carries_its_notices_and_stays_small() -> None:
    charts = assets.charts()
    assert len(charts) < 700_000
    assert "Copyright 2010-2023 Mike Bostock" in charts
    assert "Copyright 2020-2025 Observable, Inc." in charts
    assert charts.count("above copyright notice") >= 3


def test_nothing_is_loaded_from_elsewhere() -> None:
    assert not re.search(r"url\(|@import|https?:", assets.styles())
    assert not re.search(r"\bfetch\(|XMLHttpRequest|WebSocket|https?:", assets.app())


def _colors() -> dict[str, tuple[str, str]]:
    """Light and dark value of each color variable."""
    pairs = re.findall(r"--([\w-]+): light-dark\((#\w{6}), (#\w{6})\)", assets.styles())
    return {name: (light, dark) for name, light, dark in pairs}


def _luminance(color: str) -> float:
    channels = [int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [value / 12.92 if value <= 0.03928 else ((value + 0.055) / 1.055) ** 2.4 for value in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _contrast(first: str, second: str) -> float:
    light, dark = sorted((_luminance(first), _luminance(second)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


OUTCOMES = ("full", "partial", "gift", "replace", "deny", "escalate", "abort", "none")
TEXT = [
    *[(text, ground) for text in ("ink", "dim", "link", "warn") for ground in ("paper", "raised")],
    *[("ink", f"s{grade}") for grade in range(1, 6)],
    *[(f"on-{outcome}", outcome) for outcome in OUTCOMES],
    ("on-banner", "banner"),
]


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize(("text", "ground"), TEXT)
def test_text_has_the_contrast_of_wcag_aa(text: str, ground: str, theme: str) -> None:
    colors, at = _colors(), ("light", "dark").index(theme)
    assert _contrast(colors[text][at], colors[ground][at]) >= 4.5
