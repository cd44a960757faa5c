"""Every screen of the console over what the demo and its neighbours leave: at three widths, in light and dark, with axe."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from typing import Literal

import httpx
import pytest
from playwright.sync_api import Page, expect

from tests.console import sample
from tests.console.screens import check_keyboard, check_widths, opened, violations
from tests.support.browser import Browsing, browsing
from tools.console import console_files
from tools.local_server import LocalServer

pytestmark = [pytest.mark.workerd, pytest.mark.timeout(300)]  # the first test fills the tenant

TENANT = "screens"
SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
FIRST_VIEW_BYTES = 100_000
_LONG_WORD = "Donaudampfschifffahrtsgesellschaftskapitän" * 12


@pytest.fixture(scope="module")
def filled(server: LocalServer, api: httpx.Client) -> LocalServer:
    """The server, with the demo in a tenant, and words that are longer than a phone is wide."""
    sample.fill(server.base_url, TENANT)
    memory = {"content": _LONG_WORD, "agent_type": "sdr", "metadata": {"long": _LONG_WORD}}
    assert api.post(f"/admin/tenants/{TENANT}/memories", json=memory).is_success
    return server


@pytest.fixture(scope="module")
def browser() -> Iterator[Browsing]:
    """A browser; no screen may write an error to its console."""
    with browsing() as opened_browser:
        yield opened_browser
        assert opened_browser.errors == []


@pytest.fixture
def page(browser: Browsing, filled: LocalServer) -> Page:
    browser.do(f"open {filled.base_url}/console#/{TENANT}")
    return browser.tab


def test_no_screen_fails_is_wider_than_the_window_or_violates_a_rule_of_accessibility(
    page: Page, filled: LocalServer, api: httpx.Client
) -> None:
    for screen in sample.screens(api, TENANT):
        opened(page, filled.base_url, TENANT, screen)
        check_widths(page, screen)
        for scheme in SCHEMES:
            page.emulate_media(color_scheme=scheme)
            assert violations(page) == [], (screen.name, scheme)
    page.evaluate("document.querySelector('main').append(document.createElement('img'))")
    assert [violation.partition(":")[0] for violation in violations(page)] == ["image-alt"]
    page.evaluate("document.querySelector('main').style.width = '3000px'")
    with pytest.raises(AssertionError):
        check_widths(page, screen)


def test_the_page_is_used_with_the_keyboard_alone(page: Page) -> None:
    page.keyboard.press("Tab")
    expect(page.get_by_text("To the content")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()
    run = page.get_by_role("link", name="refund_decision").first
    expect(run).to_be_visible()
    for _ in range(80):
        if run.evaluate("one => one === document.activeElement"):
            break
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    recall = page.locator("summary").filter(has_text="recall_memory")
    expect(recall).to_be_visible()
    recall.focus()
    page.keyboard.press("Enter")
    expect(page.locator(".recalled > li").first).to_be_visible()


def test_everything_of_every_screen_is_reached_with_the_keyboard(
    page: Page, filled: LocalServer, api: httpx.Client
) -> None:
    page.set_viewport_size({"width": 1400, "height": 800})
    for screen in sample.screens(api, TENANT):
        opened(page, filled.base_url, TENANT, screen)
        check_keyboard(page, screen)
    page.evaluate("document.querySelector('main a[href], main button').tabIndex = -1")
    with pytest.raises(AssertionError):
        check_keyboard(page, screen)


def test_the_first_view_is_small_and_asks_nobody_else(page: Page, filled: LocalServer) -> None:
    """The bundle, the styles and the page, as they are compressed."""
    assert sum(len(gzip.compress(content)) for content in console_files().values()) < FIRST_VIEW_BYTES
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.reload()
    expect(page.locator(".runs > li").first).to_be_visible()
    assert {url for url in asked if not url.startswith((filled.base_url, "data:"))} == set()
    answer = httpx.get(f"{filled.base_url}/console")
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy


def test_a_failure_is_said_with_its_code(page: Page, filled: LocalServer, browser: Browsing) -> None:
    page.goto(f"{filled.base_url}/console#/{TENANT}/runs/01ARZ3NDEKTSV4RRFFQ69G5FAV")
    expect(page.get_by_role("alert")).to_contain_text("no_such_run")
    page.goto(f"{filled.base_url}/console#/nobody-has-this-one/runs")
    expect(page.get_by_role("alert")).to_contain_text("unknown_tenant")
    page.close()  # it would ask for the tenant again, and fail again
    assert all("404" in error for error in browser.errors), browser.errors
    browser.errors.clear()


@pytest.mark.parametrize("width", [1280, 1100, 390])
def test_nothing_is_cut_that_has_room(page: Page, filled: LocalServer, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    page.goto(f"{filled.base_url}/console#/{TENANT}/runs")
    waiting = page.get_by_text("waits for an approval of issue_refund").first
    expect(waiting).to_be_visible()
    assert waiting.evaluate("one => one.scrollWidth <= one.clientWidth")
    times = page.locator("input[type=datetime-local]")
    assert times.evaluate_all(_NARROWER_THAN_NEEDED) == []
    page.goto(f"{filled.base_url}/console#/{TENANT}/people/ann")
    expect(page.locator(".ends")).to_be_visible()
    assert page.locator(".lanes .bar, .ends").evaluate_all(_LEFT_EDGES) == 1
    assert page.locator(".facts dt").evaluate_all("all => new Set(all.map((one) => one.clientHeight)).size") == 1


_NARROWER_THAN_NEEDED = """all => all.map((one) => {
  const shown = one.offsetWidth;
  one.style.width = "max-content";
  return [shown, one.offsetWidth];
}).filter(([shown, needed]) => shown < needed)"""
_LEFT_EDGES = "all => new Set(all.map((one) => Math.round(one.getBoundingClientRect().left))).size"
