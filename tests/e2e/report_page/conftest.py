"""A browser for the tests of a module, which names its reports in a fixture `site`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from .browsing import CHROMIUM, FLAGS, Open, Tab

if TYPE_CHECKING:
    from playwright.sync_api import Browser


@pytest.fixture(scope="module")
def browser(site: object) -> Iterator[Browser]:
    """Reports are written before the browser starts, whose driver holds the event loop."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        yield started
        started.close()


@pytest.fixture(name="tabs", scope="module")
def tabs_fixture(browser: Browser) -> Iterator[dict[str, Tab]]:
    """Open tabs by report, width and options: tests share them, since a view is what its address says."""
    found: dict[str, Tab] = {}
    yield found
    for tab in found.values():
        tab.page.context.close()


@pytest.fixture(name="open_")
def open_fixture(browser: Browser, tabs: dict[str, Tab]) -> Iterator[Open]:
    """Open a report at an address within it; afterwards no page must have had anything to complain about."""

    def open_page(path: Path, place: str = "", width: int = 1280, **options: str) -> Tab:
        key = f"{path} {width} {options}"
        if key not in tabs:
            context = browser.new_context(viewport={"width": width, "height": 900}, **options)  # type: ignore[arg-type]  # options of new_context, passed through
            context.set_default_timeout(10_000)
            tab = tabs[key] = Tab(context.new_page())
            tab.page.on("console", lambda message: tab.complaints.append(message.text))
            tab.page.on("pageerror", lambda error: tab.complaints.append(str(error)))
        tabs[key].page.goto(f"file://{path}{place or '#'}")
        return tabs[key]

    yield open_page
    complaints = [complaint for tab in tabs.values() for complaint in tab.complaints]
    assert complaints == []
