"""Every screen of the console, and what holds of each: no error, nothing wider than the window, no violated rule of axe."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from playwright.sync_api import Page, expect

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
