"""The console in a real Chromium, over what real runs left in a tenant of the real workerd."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
from playwright.sync_api import Page, expect

from tests.console.screens import altered
from tests.e2e.calls import recorded_run
from tests.e2e.waiting import eventually
from tests.support.browser import Browsing, browsing
from tools.local_server import LocalServer

pytestmark = pytest.mark.workerd

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


def test_from_a_decision_to_its_reason_are_three_clicks(page: Page) -> None:
    """The first opens the run, the second the recall, with the parts of each candidate's score; the third tries it."""
    page.get_by_role("link", name="refund_decision").click()
    expect(page.get_by_role("heading", name="refund_decision")).to_be_visible()
    page.get_by_text("recall_memory", exact=True).click()
    known = page.locator(".recalled > li").filter(has_text=_KNOWN)
    expect(known.locator(".parts li").first).to_be_visible()
    expect(known.locator(".read")).to_have_text("read")
    expect(known).to_contain_text("found by words")
    page.get_by_role("link", name="Why these?").click()
    expect(page.get_by_label("Query", exact=True)).to_have_value("refund history for sara@example.com")
    expect(page.get_by_role("link", name=_KNOWN)).to_be_visible()
    expect(page.locator(".parts li").first).to_be_visible()


def test_a_delegate_s_steps_are_in_the_timeline_of_the_run_that_asked_it(page: Page) -> None:
    page.get_by_role("link", name="order_triage").click()
    nested = page.get_by_role("list", name="Timeline of refund_decision")
    expect(nested.get_by_text("store_memory", exact=True)).to_be_visible()
    nested.get_by_text("Model, turn 2", exact=True).click()
    nested.get_by_text("Prompt", exact=True).click()
    expect(nested.get_by_text("Customer sara@example.com asks for a refund of order SO-4702.").last).to_be_visible()
    expect(nested.get_by_text("→ recall_memory")).to_be_visible()
    expect(nested.get_by_text("Decline when abuse of refunds by the customer was confirmed.")).to_be_visible()


def test_raw_events_are_one_key_away_and_a_moment_has_an_address(page: Page) -> None:
    page.get_by_role("link", name="refund_decision").click()
    page.get_by_text("store_memory", exact=True).click()
    page.get_by_role("link", name="Link to this moment").click()
    page.reload()
    expect(page.locator("details[open] > summary")).to_contain_text(["store_memory"])
    page.keyboard.press("e")
    expect(page.get_by_text("model_asked").first).to_be_visible()
    page.keyboard.press("e")
    expect(page.get_by_role("heading", name="Timeline")).to_be_visible()


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
    expect(page.locator(".history ins")).to_have_text(", and returned")
    page.get_by_role("button", name="Restore this version").click()
    expect(page.get_by_label("Content")).to_have_value(_KNOWN)
    expect(page.locator(".history del")).to_have_text(", and returned")


def test_what_was_known_at_an_earlier_time_is_shown(page: Page, api: httpx.Client) -> None:
    memories = f"/admin/tenants/{_tenant_of(page)}/memories"
    [first, *_] = api.get(memories).json()["memories"]
    assert api.patch(f"{memories}/{first['id']}", json={"content": "Nothing was refunded."}).is_success
    edited = api.get(f"{memories}/{first['id']}").json()
    before = edited["updated_at_ms"] - 1
    page.get_by_role("link", name="Memory").click()
    expect(page.get_by_role("link", name="Nothing was refunded.")).to_be_visible()
    page.goto(f"{page.url}?as_of_ms={before}")
    page.get_by_role("link", name=_KNOWN).click()
    expect(page.locator(".then")).to_have_text(_KNOWN)
    page.get_by_label("As of", exact=True).press("Home")
    expect(page.get_by_text("It was not known then.")).to_be_visible()
    page.get_by_role("button", name="Back to now").click()
    expect(page.get_by_label("Content")).to_have_value("Nothing was refunded.")


def test_what_a_deletion_removes_is_said_before(page: Page) -> None:
    page.get_by_role("link", name="Memory").click()
    page.get_by_role("link", name=_KNOWN).click()
    page.get_by_role("button", name="Delete …").click()
    expect(page.get_by_text("Removed: this memory")).to_be_visible()
    expect(page.get_by_text("1 event of its history")).to_be_visible()
    page.get_by_role("button", name="Delete", exact=True).click()
    expect(page.get_by_role("heading", name="Memory")).to_be_visible()
    expect(page.get_by_role("link", name=_KNOWN)).to_have_count(0)


def test_memories_are_found_by_words_kind_and_time(page: Page, api: httpx.Client) -> None:
    memories = f"/admin/tenants/{_tenant_of(page)}/memories"
    task = {"content": "Call sara@example.com back.", "kind": "task", "house": "orders"}
    assert api.post(memories, json=task).status_code == 201
    page.get_by_role("link", name="Memory").click()
    rows = page.locator(".memories > li")
    page.get_by_label("Kind").select_option("task")
    page.get_by_role("button", name="Show").click()
    expect(rows).to_have_count(1)
    page.get_by_label("Recorded until").fill("2001-02-03T04:05:06")
    page.get_by_role("button", name="Show").click()
    expect(page.get_by_text("Nothing is remembered here.")).to_be_visible()
    page.get_by_label("Recorded until").fill("")
    page.get_by_label("Words").fill("cracked mug")
    page.get_by_label("Kind").select_option("fact")
    page.get_by_role("button", name="Show").click()
    expect(rows.first).to_contain_text(_KNOWN)
    page.get_by_label("Filter (JSON)").fill("no JSON")
    page.get_by_role("button", name="Show").click()
    expect(page.get_by_role("alert")).to_contain_text("A filter is a JSON object")


def test_what_is_remembered_is_shown_as_text(page: Page) -> None:
    page.get_by_role("link", name="Memory").click()
    page.get_by_role("link", name=_HOSTILE).click()
    expect(page.get_by_label("Content")).to_have_value(_HOSTILE)
    assert page.locator("img").count() == 0
    assert page.title().endswith(" · Retain"), page.title()
    assert "taken" not in page.title()


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
    page.get_by_label("As of", exact=True).press("Home")
    expect(page.get_by_text("No facts were known then.")).to_be_visible()
    page.get_by_role("button", name="Back to now").click()
    expect(lane.get_by_role("link")).to_have_text(["Porto", "Lyon"])
    expect(page.get_by_text("2 memories with their history, 1 conversation")).to_be_visible()
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
    expect(page.get_by_role("img", name="Passed, the oldest run first: 50 %, 50 %")).to_be_visible()
    page.locator(".evaluations").get_by_role("link", name="ann").first.click()
    expect(page.locator(".cases > li > details > summary > b")).to_have_text(["missed", "met"])
    expect(page.get_by_text("2 equal")).to_be_visible()
    page.get_by_label("Compared with").select_option("no other run")
    expect(page.get_by_text("2 equal")).to_have_count(0)
    latest, before = (run["run_id"] for run in api.get(f"{base}/runs").json()["runs"])

    def worse(compared: Any) -> Any:
        changed = {"verdict": "worse", "deltas": {"exact": -0.5}}
        cases = [{**one, **(changed if one["case_id"] == "missed" else {})} for one in compared["cases"]]
        return {**compared, "counts": {"worse": 1, "equal": 1}, "cases": cases}

    def better(earlier: Any) -> Any:
        results = [{**one, "output": f"{one['output']} Have a nice day."} for one in earlier["results"]]
        return {**earlier, "results": results}

    page.route(f"**/evals/runs/{latest}/compare/{before}", altered(worse))
    page.route(re.compile(rf"/evals/runs/{before}(\?|$)"), altered(better))
    page.get_by_label("Compared with").select_option(index=1)
    expect(page.get_by_text("1 worse, 1 equal")).to_be_visible()
    expect(page.locator(".cases .down")).to_have_text("worse")
    page.locator(".cases > li").first.locator("summary").first.click()
    expect(page.locator(".cases > li").first).to_contain_text("(-0.50)")
    expect(page.locator(".cases > li").first.locator("del")).to_have_text(" Have a nice day.")


def test_two_settings_are_compared(page: Page) -> None:
    page.get_by_role("link", name="Recall").click()
    page.get_by_role("link", name="Compare two settings").click()
    page.get_by_label("Query", exact=True).fill("refunds of sara@example.com")
    page.get_by_label("Other query").fill("who is onerror")
    page.get_by_label("Agent").first.fill("refund_decision")
    page.get_by_role("button", name="Recall").click()
    expect(page.get_by_role("heading", level=2)).to_have_text(["A: refunds of sara@example.com", "B: who is onerror"])
    first, other = page.get_by_role("region").all()
    expect(first.locator(".recalled > li").first).to_contain_text("sara@example.com")
    expect(other.locator(".recalled > li").first).to_contain_text("onerror")
    expect(other.locator(".recalled > li").first).to_contain_text("from")


def test_what_was_just_below_says_why_and_a_case_is_added_to_an_evaluation(page: Page) -> None:
    page.get_by_role("link", name="Recall").click()
    page.get_by_label("Query", exact=True).fill("refunds of sara@example.com")
    page.get_by_label("Agent").fill("refund_decision")
    page.get_by_label("How many").fill("1")
    page.get_by_role("button", name="Recall").click()
    below = page.locator(".recalled.below > li")
    expect(below.first).to_contain_text("below the last that is shown")
    page.get_by_label("Least relevance").fill("0.99")
    page.get_by_role("button", name="Recall").click()
    expect(below.last).to_contain_text("is below 0.99")
    page.get_by_text("Add this case to an evaluation").click()
    page.get_by_label("Dataset").fill("refunds")
    page.get_by_role("button", name="Add").click()
    page.get_by_role("link", name="refunds", exact=True).click()
    expect(page.get_by_text("for recall as refund_decision")).to_be_visible()
    page.get_by_role("button", name="Run it").click()
    expect(page.locator(".head .status")).to_have_text("completed")
    expect(page.locator(".cases > li > details > summary")).to_contain_text("refunds-of-sara-example-com")


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
    expect(page.locator("li").filter(has=page.get_by_text("Memories", exact=True))).to_contain_text("left")
    row.get_by_role("button", name="Pause").click()
    expect(row).to_contain_text("paused")
    row.get_by_role("button", name="Resume").click()
    expect(row).to_contain_text("next")
    row.get_by_role("button", name="Delete …").click()
    expect(row).to_contain_text("It begins no more runs")
    row.get_by_role("button", name="Delete", exact=True).click()
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
    expect(page.get_by_text("Nothing is owed")).to_be_visible()
    expect(page.get_by_text("Nothing was erased.")).to_be_visible()
    expect(page.get_by_role("listitem").filter(has_text="0 before")).to_have_attribute("aria-current", "step")
    page.get_by_role("button", name="Verify").click()
    expect(page.get_by_text("whole", exact=True)).to_be_visible()


def _tenant_of(page: Page) -> str:
    return page.url.partition("#/")[2].partition("/")[0]
