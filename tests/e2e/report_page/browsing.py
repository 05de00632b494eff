"""What the tests of both pages share: the browser, and a page with its complaints."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Page

CHROMIUM = shutil.which("chromium")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
NO_PLAYWRIGHT = "playwright is not installed: pip install playwright"
MARKS = [
    pytest.mark.e2e,
    pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed: apt-get install chromium"),
]


@dataclass
class Tab:
    """A page with what went wrong on it."""

    page: Page
    complaints: list[str] = field(default_factory=list)


Open = Callable[..., Tab]
"""Opens a report at an address within it, with a width and options of the browser."""
