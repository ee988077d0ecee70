"""The application served on a port of this machine, and Chromium to look at it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from tests.serving import served
from tests.web.conftest import PASSWORD, House
from tests.web.conftest import house as house  # the fixtures of the pages, on the same application
from tests.web.conftest import password_hash as password_hash

TOP = Path(__file__).resolve().parents[2]
AXE = TOP / "node_modules" / "axe-core" / "axe.min.js"

NARROW = ("target-size", "scrollable-region-focusable", "color-contrast")
"""The rules of axe whose outcome depends on the width of the window, or on the theme."""

STICKS_OUT = """() => [
  document.documentElement.scrollWidth - document.documentElement.clientWidth,
  Math.max(0, ...[...document.querySelectorAll("main .table")].filter(table => !table.closest(".scroll"))
    .map(table => table.scrollWidth - table.parentElement.clientWidth)),
]"""

FLAGS = [
    "--no-sandbox", "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--no-first-run", "--disable-default-apps",
]  # fmt: skip


@dataclass
class Visit:
    """Somebody's window on the application; ``complaints`` is what the browser reported."""

    page: Page
    address: str
    complaints: list[str] = field(default_factory=list)

    def open(self, path: str) -> None:
        """Go to a page."""
        self.page.goto(self.address + path)

    def log_in(self, login: str) -> None:
        """By the form."""
        self.open("/login")
        self.page.fill("#login", login)
        self.page.fill("#password", PASSWORD)
        self.page.get_by_role("button", name="Log in").click()
        self.page.wait_for_url(self.address + "/")

    def search(self, text: str) -> None:
        """Type into the box and press Enter."""
        self.page.fill("#q", text)
        self.page.press("#q", "Enter")

    def faults(self, path: str, *, once: str | None = None) -> list[str]:
        """What is wrong with a page, looked at wide and dark, then narrow and light: axe's rules, and what sticks out.

        ``once``: a selector of what has to be there before.
        """
        self.wear(width=1440, scheme="dark")
        self.open(path)
        if once:
            self.page.wait_for_selector(once)
        wrong = self.axe()
        for width in (1440, 768, 390):
            self.wear(width=width, scheme="light")
            wrong += self.too_wide(width)
        return wrong + self.axe(*NARROW)

    def axe(self, *rules: str) -> list[str]:
        """What axe finds wrong with the page as it stands; with ``rules``, only by these."""
        if not self.page.evaluate("'axe' in window"):
            self.page.evaluate(AXE.read_text())
        only = list(rules) or ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
        found: dict[str, Any] = self.page.evaluate(
            "only => axe.run(document, {runOnly: only, resultTypes: ['violations'], selectors: false, preload: false})",
            only,
        )
        return [f"{one['id']}: {node['html'][:200]}" for one in found["violations"] for node in one["nodes"]]

    def wear(self, *, width: int, scheme: Literal["light", "dark"]) -> None:
        """Show the page as it stands on another screen."""
        self.page.set_viewport_size({"width": width, "height": 900})
        self.page.emulate_media(color_scheme=scheme)

    def overflow(self) -> int:
        """By how many pixels the page is wider than the window."""
        width: int = self.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        return width

    def too_wide(self, width: int) -> list[str]:
        """Whether the page as it stands, or a table in it, is wider than there is room."""
        page, table = self.page.evaluate(STICKS_OUT)
        return [f"{what} by {by} at {width}" for what, by in (("page too wide", page), ("table", table)) if by > 0]


@pytest.fixture(scope="session")
def chromium(requires_program: Callable[[str], str]) -> Iterator[Browser]:
    """The system's Chromium, without a window."""
    path = requires_program("chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def visit(house: House, chromium: Browser) -> Iterator[Callable[..., Visit]]:
    """Open a window: ``visit(width=390, color_scheme="dark")``."""
    with served(house.app) as url:
        contexts = []

        def enter(*, width: int = 1440, **options: Any) -> Visit:
            context = chromium.new_context(
                viewport={"width": width, "height": 900}, timezone_id="Asia/Tokyo", reduced_motion="reduce", **options
            )
            contexts.append(context)
            page = context.new_page()
            page.set_default_timeout(15_000)
            window = Visit(page, url)
            page.on("pageerror", lambda error: window.complaints.append(str(error)))
            page.on(
                "console",
                lambda line: window.complaints.append(line.text) if line.type in ("error", "warning") else None,
            )
            return window

        yield enter
        for context in contexts:
            context.close()
