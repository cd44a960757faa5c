"""Every screen of the console, and what holds of each: no error, nothing wider than the window, no violated rule of axe."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from playwright.sync_api import Page, Route, expect

from tools.paths import ROOT

_AXE = (ROOT / "node_modules" / "axe-core" / "axe.min.js").read_text()
WIDTHS = (360, 800, 1400)


@dataclass(frozen=True)
class Screen:
    """A screen. address: after the tenant's. shown: what is there once it is whole, as a selector of CSS.

    pressed: texts that are clicked after that, one after the other.
    """

    name: str
    address: str
    shown: str
    pressed: Sequence[str] = ()


def opened(page: Page, base_url: str, tenant_id: str, screen: Screen) -> None:
    """Open a screen in a page that was anywhere, and wait until it is whole."""
    page.goto("about:blank")
    page.goto(f"{base_url}/console#/{tenant_id}/{screen.address}")
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    expect(page.locator(screen.shown).first).to_be_visible()
    for text in screen.pressed:
        page.get_by_text(text, exact=True).first.click()
    expect(page.get_by_text("Loading …")).to_have_count(0)
    expect(page.get_by_role("alert")).to_have_count(0)


def check_widths(page: Page, screen: Screen) -> None:
    """Check that an open screen is at no width wider than the window."""
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 800})
        found = page.evaluate("document.documentElement.scrollWidth")
        assert found <= width, (screen.name, width, found)


def violations(page: Page) -> list[str]:
    """Return the rules of axe that the page violates, each with the elements. Source: https://www.deque.com/axe/"""
    if not page.evaluate("'axe' in window"):
        page.evaluate(_AXE)
    found = page.evaluate("axe.run()")["violations"]
    return [f"{rule['id']}: {[node['html'] for node in rule['nodes']]}" for rule in found]


def altered(change: Callable[[Any], Any], *, status: int | None = None) -> Callable[[Route], None]:
    """Return a handler that changes what the server answers: for states that are tested with the server."""

    def handle(route: Route) -> None:
        answer = route.fetch()
        route.fulfill(response=answer, status=answer.status if status is None else status, json=change(answer.json()))

    return handle


_FOCUSED = """() => {
  window.reached = new Set();
  addEventListener("focusin", (event) => window.reached.add(event.target));
  document.activeElement?.blur();
}"""
_UNREACHED = """() => [...document.querySelectorAll("a[href], button, input, select, textarea, summary")]
  .filter((one) => one.checkVisibility() && !one.disabled && !window.reached.has(one))
  .map((one) => one.outerHTML.slice(0, 120))"""
_INVISIBLE = """() => {
  // The button within a field of times has a ring of its own.
  if (document.activeElement.type === "datetime-local") return null;
  const { outlineStyle, outlineWidth } = getComputedStyle(document.activeElement);
  return outlineStyle === "none" || outlineWidth === "0px" ? document.activeElement.outerHTML.slice(0, 120) : null;
}"""
_MOST_TABS, _TABS_AT_ONCE = 400, 10


def check_keyboard(page: Page, screen: Screen) -> None:
    """Walk through an open screen with the tabulator alone: everything that does something is reached, and focus is seen."""
    page.evaluate(_FOCUSED)
    unreached: list[str] = []
    for _ in range(_MOST_TABS // _TABS_AT_ONCE):
        for _ in range(_TABS_AT_ONCE):
            page.keyboard.press("Tab")
        invisible = page.evaluate(_INVISIBLE)
        assert invisible is None or "<body" in invisible, (screen.name, invisible)
        unreached = page.evaluate(_UNREACHED)
        if not unreached:
            return
    raise AssertionError((screen.name, unreached))
