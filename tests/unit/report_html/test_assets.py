from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from policysweep.report.html import assets

FOLDER = Path(assets.__file__).parent


def test_the_bundle_holds_every_module_once_and_no_import() -> None:
    app = assets.app()
    names = [path.stem for path in (FOLDER / "app").glob("*.js")]
    assert names
    for name in names:
        assert app.count(f"const from_{name} = (() => {{") == 1
    assert not re.search(r"^\s*(import|export)\b", app, re.MULTILINE)


def test_modules_come_after_what_they_import() -> None:
    app = assets.app()
    for path in (FOLDER / "app").glob("*.js"):
        for imported in re.findall(r'from "\./(\w+)\.js"', path.read_text(encoding="utf-8")):
            assert app.index(f"const from_{imported} =") < app.index(f"const from_{path.stem} ="), path.name


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_the_bundle_is_valid_javascript(tmp_path: Path) -> None:
    file = tmp_path / "app.mjs"
    file.write_text(assets.app(), encoding="utf-8")
    done = subprocess.run(["node", "--check", file], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_our_scripts_make_no_html_and_no_code_from_text() -> None:
    html = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|createContextualFragment"
    assert not re.search(rf"{html}|\beval\b|new Function", assets.app())


@pytest.mark.parametrize(
    "text", [assets.app(), assets.charts(), assets.styles()], ids=["app", "charts", "styles"]
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
