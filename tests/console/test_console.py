"""The console in a real Chromium, over what real runs left in a tenant of the real workerd."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Literal

import httpx
import pytest
from playwright.sync_api import Page, expect

from tests.e2e.calls import recorded_run
from tests.e2e.waiting import eventually
from tests.support.browser import Browsing, browsing
from tools.local_server import LocalServer
from tools.paths import ROOT

pytestmark = pytest.mark.workerd

AXE = ROOT / "node_modules" / "axe-core" / "axe.min.js"
WIDTHS = (360, 800, 1400)
_QUERY = "query=refund&other=money&agent_type=refund_decision"
_MAIL = "From: sara@example.com. The vase of order SO-4702 is broken. Refund, please."
_HOSTILE = """<img src=x onerror="document.title='taken'">"""
_KNOWN = "Refund approved for sara@example.com: order SO-4411, cracked mug"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browsing]:
    """A browser for all screens; none of them may write an error to its console."""
    with browsing() as opened:
        yield opened
        assert opened.errors == []


@pytest.fixture
def page(browser: Browsing, server: LocalServer, api: httpx.Client, tenant: Callable[[], str]) -> Page:
    """The console of a tenant in which one agent asked another, and a run waits for an approval."""
    tenant_id = tenant()
    seeded = {
        "tenant": tenant_id,
        "agent_type": "refund_decision",
        "memories": [{"content": _KNOWN}, {"content": _HOSTILE}],
    }
    assert api.post("/admin/seed-memory", json=seeded).status_code == 201
    ended = api.post(f"/v1/agents/{tenant_id}/order_triage/run", json={"input": _MAIL}).json()
    recorded_run(api, tenant_id, ended["run_id"])
    assert api.post(f"/v1/agents/{tenant_id}/clerk/run", json={"input": "refund AB-1"}).status_code == 202
    browser.do(f"open {server.base_url}/console#/{tenant_id}")
    return browser.tab


def test_from_a_decision_to_its_reason(page: Page) -> None:
    page.get_by_role("link", name="refund_decision").click()
    expect(page.get_by_role("heading", name="refund_decision")).to_be_visible()
    page.get_by_text("recall_memory", exact=True).click()
    page.get_by_role("link", name="Why these?").click()
    expect(page.get_by_role("link", name=_KNOWN)).to_be_visible()
    expect(page.locator(".parts li").first).to_be_visible()


def test_an_approval_is_answered_in_place(page: Page) -> None:
    page.get_by_role("link", name="clerk").click()
    page.get_by_role("button", name="Approve").click()
    expect(page.locator(".status.completed")).to_be_visible()


def test_a_cancelled_run_is_retried_and_asked_again_in_place(page: Page) -> None:
    page.get_by_role("link", name="clerk").click()
    page.get_by_role("button", name="Cancel").click()
    page.get_by_role("button", name="Retry").click()
    expect(page.get_by_text("Continues")).to_be_visible()
    page.get_by_role("button", name="Approve").click()
    expect(page.locator(".status.completed")).to_be_visible()
    page.get_by_text("Model, turn 2", exact=True).click()
    first = page.url
    page.get_by_role("button", name="Ask again from here").click()
    expect(page).not_to_have_url(first)
    expect(page.get_by_text("run forked", exact=True)).to_be_visible()
    expect(page.get_by_text("Model, turn 1, before", exact=True)).to_be_visible()


def test_a_memory_is_changed_and_its_history_has_both_texts(page: Page) -> None:
    page.get_by_role("link", name="Memory").click()
    page.get_by_role("link", name=_KNOWN).click()
    page.get_by_label("Content").fill(f"{_KNOWN}, and returned")
    page.get_by_role("button", name="Save").click()
    expect(page.locator(".history del")).to_have_text(_KNOWN)
    expect(page.locator(".history ins")).to_have_text(f"{_KNOWN}, and returned")


def test_what_is_remembered_is_shown_as_text(page: Page) -> None:
    page.get_by_role("link", name="Memory").click()
    page.get_by_role("link", name=_HOSTILE).click()
    expect(page.get_by_label("Content")).to_have_value(_HOSTILE)
    assert page.locator("img").count() == 0
    assert page.title() == "Retain"


def test_runs_are_searched_and_an_empty_list_says_so(page: Page) -> None:
    page.get_by_label("Status").select_option("failed")
    page.get_by_label("Text").fill("vase")
    with page.expect_response("**/runs?*") as refreshed:
        pass  # the list is live
    refreshed.value.finished()
    page.get_by_role("button", name="Search").click()
    expect(page.get_by_text("There are no such runs.")).to_be_visible()
    assert "status=failed&text=vase" in page.url


def test_a_person_s_facts_are_lanes_and_forgetting_leaves_a_receipt(page: Page, api: httpx.Client) -> None:
    tenant_id = _tenant_of(page)
    for text in ("I live in Porto.", "I moved to Lyon."):
        body = {"input": text, "instance_id": "chat", "user": {"id": "ann", "name": "Ann"}}
        assert api.post(f"/v1/agents/{tenant_id}/support/run", json=body).status_code == 200
    memories = f"/admin/tenants/{tenant_id}/memories?user_id=ann"
    eventually(lambda: api.get(memories).json()["memories"], lambda found: [one["object"] for one in found] == ["Lyon"])
    page.get_by_role("link", name="People").click()
    page.get_by_role("link", name="ann").click()
    lane = page.locator(".lanes > li")
    expect(lane.locator("b")).to_have_text("lives in")
    expect(lane.get_by_role("link")).to_have_text(["Porto", "Lyon"])
    expect(page.get_by_role("button", name="Forget")).to_be_disabled()
    page.get_by_label("User").fill("ann")
    page.get_by_role("button", name="Forget").click()
    expect(page.get_by_role("status").filter(has_text="completed")).to_be_visible()
    assert api.get(memories).json()["memories"] == []


def test_an_evaluation_shows_what_failed_first_and_the_run_before(page: Page, api: httpx.Client) -> None:
    base = f"/admin/tenants/{_tenant_of(page)}/evals"
    expected: dict[str, dict[str, object]] = {
        "met": {"excludes": ["no such text"]},
        "missed": {"exact": "no such text"},
    }
    cases = [{"id": name, "input": "Good morning!", "expected": what} for name, what in expected.items()]
    dataset = {"target": {"agent": "sdr"}, "cases": cases}
    assert api.put(f"{base}/datasets/ann", json=dataset).is_success
    for _ in range(2):
        answer = api.post(f"{base}/runs", json={"dataset": "ann"})
        while answer.status_code == 202:
            answer = api.post(f"{base}/runs/{answer.json()['run']['run_id']}")
        assert answer.status_code == 200, answer.text
    page.get_by_role("link", name="Evaluations").click()
    page.get_by_role("link", name="ann").first.click()
    expect(page.locator(".cases b")).to_have_text(["missed", "met"])
    expect(page.get_by_text("Compared with")).to_be_visible()


def test_two_queries_are_compared(page: Page) -> None:
    page.get_by_role("link", name="Recall").click()
    page.get_by_label("Query", exact=True).fill("refunds of sara@example.com")
    page.get_by_label("Compared with another query").fill("broken cups")
    page.get_by_label("Agent").fill("refund_decision")
    page.get_by_role("button", name="Recall").click()
    expect(page.get_by_role("heading", level=2)).to_have_text(["refunds of sara@example.com", "broken cups"])
    expect(page.get_by_role("region").first.get_by_role("link").first).to_be_visible()


def test_a_schedule_is_paused_resumed_and_deleted(page: Page, api: httpx.Client) -> None:
    tenant_id = _tenant_of(page)
    planned = {
        "agent_type": "sdr",
        "input": "Which contacts answered?",
        "cron": "0 9 1 1 *",
        "timezone": "Europe/Lisbon",
    }
    assert api.post(f"/admin/tenants/{tenant_id}/schedules", json=planned).status_code == 201
    assert api.put(f"/admin/tenants/{tenant_id}/quotas", json={"memories": 1_000}).is_success
    page.get_by_role("link", name="Operations").click()
    row = page.locator("li").filter(has_text="0 9 1 1 * (Europe/Lisbon)")
    expect(row).to_contain_text("next")
    expect(page.locator("li").filter(has_text="Memories")).to_contain_text("left")
    row.get_by_role("button", name="Pause").click()
    expect(row).to_contain_text("paused")
    row.get_by_role("button", name="Resume").click()
    expect(row).to_contain_text("next")
    page.once("dialog", lambda dialog: dialog.accept())
    row.get_by_role("button", name="Delete").click()
    expect(page.get_by_text("Nothing is scheduled.")).to_be_visible()


def test_what_is_near_a_memory_is_shown_with_it(page: Page, api: httpx.Client) -> None:
    other = {
        "content": "Refund declined for sara@example.com: order SO-4412, scratched mug",
        "agent_type": "refund_decision",
    }
    assert api.post(f"/admin/tenants/{_tenant_of(page)}/memories", json=other).status_code == 201
    page.get_by_role("link", name="Memory").click()
    page.get_by_role("link", name=_KNOWN).click()
    expect(page.get_by_role("heading", name="Near it")).to_be_visible()
    expect(page.locator(".recalled a").first).to_have_text(other["content"])


def test_operations_say_that_the_deployment_is_ready(page: Page) -> None:
    page.get_by_role("link", name="Operations").click()
    expect(page.get_by_text("ready, version")).to_be_visible()
    expect(page.get_by_text("scripted/refund_decision")).to_be_visible()
    page.get_by_role("button", name="Verify").click()
    expect(page.locator("pre").last).to_contain_text('"problem": null')


@pytest.mark.parametrize("width", WIDTHS)
def test_no_screen_is_wider_than_the_window(page: Page, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 800})
    for view in ("Runs", "People", "Memory", "Recall", "Evaluations", "Operations"):
        page.get_by_role("link", name=view, exact=True).click()
        expect(page.get_by_role("heading", name=view, exact=True)).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth") <= width, view


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_screen_violates_a_rule_of_accessibility(page: Page, scheme: Literal["light", "dark"]) -> None:
    page.emulate_media(color_scheme=scheme)
    for address in ("runs", "people", "memory", f"recall?{_QUERY}", "evaluations", "operations"):
        page.goto(f"{page.url.partition('#')[0]}#/{_tenant_of(page)}/{address}")
        assert _violations(page) == [], address
    for view, name in (("Runs", "refund_decision"), ("Memory", _KNOWN)):
        page.get_by_role("link", name=view, exact=True).click()
        page.get_by_role("link", name=name).click()
        for summary in page.locator("summary").all():
            summary.click()
        assert _violations(page) == [], view
    page.evaluate("document.body.append(document.createElement('img'))")
    assert [violation.partition(":")[0] for violation in _violations(page)] == ["image-alt", "region"]


def _tenant_of(page: Page) -> str:
    return page.url.partition("#/")[2].partition("/")[0]


def _violations(page: Page) -> list[str]:
    """Return the rules of axe that the page violates, each with the elements. Source: https://www.deque.com/axe/"""
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    expect(page.get_by_text("Loading …")).to_have_count(0)
    page.evaluate(AXE.read_text())
    found = page.evaluate("axe.run()")["violations"]
    return [f"{rule['id']}: {[node['html'] for node in rule['nodes']]}" for rule in found]
