"""A real Chromium, and what a page of the documentation has its reader do in it.

A block of the language `browser` in a page has a line for each step: `open URL` (a new tab), `return to URL` (a tab that is
open), `fill LABEL: TEXT`, `press BUTTON`, `see TEXT`.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
from playwright.sync_api import BrowserContext, ConsoleMessage, Page, expect, sync_playwright

from tools.chromium import executable, how_to_install

_PATIENCE_MS = 30_000


@dataclass
class Browsing:
    """A reader's browser. errors: what its pages wrote to the console as errors, and what they threw."""

    context: BrowserContext
    errors: list[str] = field(default_factory=list)
    _tab: Page | None = None

    def do(self, line: str) -> None:
        """Do one step. Raises: AssertionError when what is to be seen is not."""
        verb, _, rest = line.partition(" ")
        match verb:
            case "open":
                self._tab = self._opened(rest)
            case "return":
                url = rest.removeprefix("to ")
                self._tab = next(tab for tab in self.context.pages if tab.url == url)
            case "fill":
                label, _, text = rest.partition(": ")
                self.tab.get_by_label(label, exact=True).fill(text)
            case "press":
                self.tab.get_by_role("button", name=rest, exact=True).click()
            case "see":
                expect(self.tab.get_by_text(rest).last).to_be_visible()
            case _:
                raise AssertionError(f"no step of a browser: {line}")

    @property
    def tab(self) -> Page:
        """The page that is looked at."""
        assert self._tab is not None, "no page is open"
        return self._tab

    def _opened(self, url: str) -> Page:
        tab = self.context.new_page()
        tab.on("console", self._note)
        tab.on("pageerror", lambda error: self.errors.append(str(error)))
        tab.goto(url)
        return tab

    def _note(self, message: ConsoleMessage) -> None:
        if message.type == "error":
            self.errors.append(f"{message.text}: {message.location['url']}")


@contextlib.contextmanager
def browsing() -> Iterator[Browsing]:
    """Yield a browser without pages. Without Chromium the test fails in CI, and is skipped elsewhere."""
    path = executable()
    if path is None:
        (pytest.fail if os.environ.get("CI") else pytest.skip)(f"no Chromium: {how_to_install()}")
    expect.set_options(timeout=_PATIENCE_MS)
    # As root, as in containers, Chromium has no sandbox.
    with (
        sync_playwright() as playwright,
        playwright.chromium.launch(executable_path=path, chromium_sandbox=os.geteuid() != 0) as browser,
        browser.new_context() as context,
    ):
        context.set_default_timeout(_PATIENCE_MS)
        browser_of_reader = Browsing(context)
        try:
            yield browser_of_reader
        except Exception as error:
            error.add_note(f"the pages wrote: {browser_of_reader.errors}")
            raise
