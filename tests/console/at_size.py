"""Drive every screen over a large tenant. `benchmarks/console.py` does it at its full size, and measures it."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from tests.console.screens import Screen, check_widths, opened, violations
from tests.support.large_tenant import LargeTenant

MOST_ROWS = 120
"""The most rows of a timeline that the page holds at once."""
_QUERY = "query=the+customer+wanted+a+discount&agent_type=sdr"


def views(tenant: LargeTenant) -> list[Screen]:
    """Return the views of a large tenant."""
    whole = f".virtual li[aria-setsize='{tenant.steps}']"
    return [
        Screen("runs", "runs", ".runs > li"),
        Screen("runs by text", "runs?text=vase", ".runs > li"),
        Screen("a run, with its delegate", f"runs/{tenant.run_id}", ".nested .step"),
        Screen("a long run, its first events", f"runs/{tenant.long_id}", ".virtual li"),
        Screen("a long run, all of it", f"runs/{tenant.long_id}", whole),
        Screen("memories", "memory?agent_type=sdr", ".memories > li"),
        Screen("memories as of a time", f"memory?agent_type=sdr&as_of_ms={4_000_000_000_000}", ".memories > li"),
        Screen("memories by words", "memory?words=discount", ".memories > li"),
        Screen("a memory", f"memory/{tenant.memory_id}", ".history > li"),
        Screen("recall", f"recall?{_QUERY}", ".recalled > li"),
        Screen("people", "people", ".nothing, .people > li"),
        Screen("evaluations", "evaluations", ".nothing, .evaluations > li"),
        Screen("operations", "operations", ".phases"),
    ]


def drive(page: Page, base_url: str, tenant: LargeTenant) -> None:
    """Open every view, at three widths and with axe; page through lists, and through the long run."""
    for view in views(tenant):
        opened(page, base_url, tenant.tenant_id, view)
        check_widths(page, view)
        assert violations(page) == [], view.name
    _page_on(page, base_url, tenant)
    _scroll_through(page, base_url, tenant)


def _page_on(page: Page, base_url: str, tenant: LargeTenant) -> None:
    page.goto(f"{base_url}/console#/{tenant.tenant_id}/runs")
    newest = page.locator(".runs > li > a").first
    expect(newest).to_be_visible()
    first = newest.get_attribute("href")
    page.get_by_role("link", name="Older").click()
    expect(newest).not_to_have_attribute("href", first or "")
    page.get_by_role("link", name="Newest").click()
    expect(newest).to_have_attribute("href", first or "")
    page.goto(f"{base_url}/console#/{tenant.tenant_id}/memory?agent_type=sdr")
    memory = page.locator(".memories > li > a").first
    expect(memory).to_be_visible()
    first = memory.get_attribute("href")
    page.get_by_role("link", name="Next").click()
    expect(memory).not_to_have_attribute("href", first or "")


def _scroll_through(page: Page, base_url: str, tenant: LargeTenant) -> None:
    """Every part of a long timeline is there when it is scrolled to, and the page never holds all of it."""
    page.goto(f"{base_url}/console#/{tenant.tenant_id}/runs/{tenant.long_id}")
    rows = page.locator(".virtual > li")
    expect(rows.first).to_have_attribute("aria-setsize", str(tenant.steps))
    for share in (0.25, 0.5, 0.75, 1.0):
        page.evaluate(f"scrollTo(0, document.documentElement.scrollHeight * {share})")
        expect(rows.first).to_be_visible()
        assert 0 < rows.count() <= MOST_ROWS
    expect(rows.last).to_have_attribute("aria-posinset", str(tenant.steps))
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    expect(rows).to_have_count(tenant.steps)
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    expect(rows).not_to_have_count(tenant.steps)
    page.get_by_label("Find").fill("no such text")
    expect(page.get_by_text("No row has this text.")).to_be_visible()
    page.get_by_label("Find").fill("delegate")
    expect(page.locator(".virtual .title").first).to_contain_text("Model, turn 1")
