"""What the console says when answers are late, lost or only a part: nothing is said to be absent that was not looked for."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any
from uuid import uuid4

import httpx
import pytest
from playwright.sync_api import Locator, Page, Request, Route, expect

from tests.console.screens import altered
from tests.e2e.calls import recorded_run
from tests.e2e.local_state import LocalState
from tests.e2e.waiting import eventually
from tests.support.browser import Browsing

pytestmark = pytest.mark.workerd

_TENANT = "late-answers"
_PARKED = (
    "INSERT INTO error_ledger VALUES (?, ?, 'vectors', ?, 'no_memory_left', NULL, NULL, NULL, NULL, 7, 'parked', 1, ?,"
    " NULL, NULL)"
)
_OLDER_MESSAGE = (
    "INSERT INTO conversation_messages VALUES (?, ?, 'support', 'chat', ?, 'user', 'older', 1, 'ann', 0, NULL)"
)
_DRAWN = "new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)))"


@pytest.fixture(scope="module")
def tenant_id(api: httpx.Client) -> str:
    """A tenant with a memory, and a run that waits for an approval."""
    assert api.put(f"/admin/tenants/{_TENANT}").status_code == 201
    _store(api, content="Tea is served at four.")
    _store(api, content="Vases are sent in two boxes.")
    assert api.post(f"/v1/agents/{_TENANT}/clerk/run", json={"input": "refund AB-1"}).status_code == 202
    return _TENANT


def _store(api: httpx.Client, **memory: Any) -> str:
    answer = api.post(f"/admin/tenants/{_TENANT}/memories", json=memory)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


def _go(page: Page, address: str) -> None:
    page.goto(f"{page.url.partition('#')[0]}#/{_TENANT}/{address}")


def _fails(route: Route) -> None:
    route.fulfill(
        status=500, content_type="application/problem+json", body='{"code": "internal", "detail": "It broke."}'
    )


def _held(page: Page, url: str, wanted: Callable[[Request], bool] = lambda request: True) -> list[Route]:
    """Return the list to which requests are added instead of being sent."""
    held: list[Route] = []

    def hold(route: Route) -> None:
        if wanted(route.request):
            held.append(route)
        else:
            route.continue_()

    page.route(url, hold)
    return held


def _arrived(page: Page, held: list[Route], count: int) -> list[Route]:
    """Return the requests that are held, once there are so many."""
    return eventually(lambda: held if page.evaluate("true") else [], lambda found: len(found) == count)


@pytest.mark.parametrize("view", ["runs?status=failed", "memory?kind=task"])
def test_an_empty_page_of_a_list_that_continues_is_not_the_end_of_it(page: Page, view: str) -> None:
    name = "runs" if view.startswith("runs") else "memories"
    page.route(f"**/{name}?*", altered(lambda answer: {**answer, name: [], "cursor": "1.01ARZ3NDEKTSV4RRFFQ69G5FAV"}))
    _go(page, view)
    expect(page.get_by_text("Nothing was found so far.")).to_be_visible()
    expect(page.get_by_role("link", name=re.compile("Older|Next"))).to_be_visible()


def test_the_prompt_of_a_late_run_has_the_messages_that_it_read(
    page: Page, api: httpx.Client, state: LocalState, browser: Browsing
) -> None:
    """And what cannot be read is not said to be deleted."""
    with state.d1_transaction() as database:
        runs = [f"01A{number:023}" for number in range(210)]
        database.executemany(_OLDER_MESSAGE, [(f"{run}.0", _TENANT, run) for run in runs])
    body, facts = {"instance_id": "chat", "user": {"id": "ann"}}, f"/admin/tenants/{_TENANT}/memories"
    for text in ("I live in Porto.", "I work as a nurse."):
        run = api.post(f"/v1/agents/{_TENANT}/support/run", json={**body, "input": text}).json()["run_id"]
        recorded_run(api, _TENANT, run)
        eventually(lambda: api.get(facts, params={"user_id": "ann"}).json()["memories"], bool)
    _go(page, f"runs/{run}")
    page.get_by_text("Model, turn 1", exact=True).click()
    page.get_by_text("Prompt", exact=True).click()
    messages = page.locator(".messages > li")
    expect(messages.filter(has_text="I live in Porto.").filter(has_text="the conversation")).to_be_visible()
    page.route(f"**/tenants/{_TENANT}/memories/*", _fails)
    page.reload()
    page.get_by_text("Model, turn 1", exact=True).click()
    page.get_by_text("Prompt", exact=True).click()
    expect(page.locator(".prompt").get_by_role("alert")).to_contain_text("It broke.")
    browser.errors.clear()


def test_a_case_is_added_to_a_dataset_that_could_not_be_listed_before(
    page: Page, api: httpx.Client, browser: Browsing
) -> None:
    """What is put replaces a dataset, with the cases that it has."""
    dataset = f"/admin/tenants/{_TENANT}/evals/datasets/recall"
    case = {"id": "first", "input": "tea", "memories": [{"id": "m1", "content": "Tea."}]}
    body = {"target": {"recall": {}}, "cases": [{**case, "expected": {"memories": {"relevant": ["m1"], "k": 1}}}]}
    assert api.put(dataset, json=body).is_success
    page.route("**/evals/datasets?*", _fails)
    _go(page, "recall?query=tea")
    page.get_by_text("Add this case to an evaluation").click()
    page.get_by_label("Case").fill("second")
    page.get_by_role("button", name="Add").click()
    expect(page.get_by_role("alert")).to_contain_text("It broke.")
    page.unroute_all()
    page.get_by_role("button", name="Add").click()
    expect(page.get_by_text("Added to")).to_be_visible()
    assert [one["id"] for one in api.get(dataset).json()["cases"]] == ["first", "second"]
    browser.errors.clear()


def test_retry_that_is_pressed_twice_begins_one_run(page: Page, api: httpx.Client, tenant: Callable[[], str]) -> None:
    tenant_id = tenant()
    assert api.post(f"/v1/agents/{tenant_id}/clerk/run", json={"input": "refund AB-1"}).status_code == 202
    page.goto(f"{page.url.partition('#')[0]}#/{tenant_id}/runs")
    page.get_by_role("link", name="clerk").click()
    page.get_by_role("button", name="Cancel").click()
    held = _held(page, "**/retry")
    retry = page.get_by_role("button", name="Retry")
    retry.click()
    retry.click()
    for route in _arrived(page, held, 2):
        route.continue_()
    expect(page.get_by_text("Continues")).to_be_visible()
    runs = eventually(lambda: api.get(f"/admin/agents/{tenant_id}/runs").json()["runs"], lambda found: len(found) > 1)
    assert len(runs) == 2


@pytest.fixture
def two_errors(state: LocalState, tenant_id: str) -> None:
    """Two errors of the tenant. They are written before the page opens: meanwhile the server waits."""
    with state.d1_transaction() as database:
        for number in range(2):
            unique = uuid4().hex
            database.execute(_PARKED, (unique, tenant_id, f"01{unique[:24].upper()}", 1_700_000_000_000 + number))


@pytest.fixture
def given_up(two_errors: None, page: Page) -> Locator:
    """The rows of two errors in Operations."""
    _go(page, "operations")
    rows = page.locator("section.part", has=page.get_by_role("heading", name="Given up")).locator("li")
    expect(rows).to_have_count(2)
    return rows


def test_two_rows_that_are_settled_at_once_are_both_gone(given_up: Locator, page: Page) -> None:
    held = _held(page, "**/dismiss")
    for dismiss in given_up.get_by_role("button", name="Dismiss").all():
        dismiss.click()
    first, second = _arrived(page, held, 2)
    first.continue_()
    expect(given_up).to_have_count(1)
    second.continue_()
    expect(given_up).to_have_count(0)


def test_a_list_stays_while_it_is_read_again_after_an_action(given_up: Locator, page: Page) -> None:
    held = _held(page, "**/admin/errors?*")
    given_up.get_by_role("button", name="Dismiss").first.click()
    [again] = _arrived(page, held, 1)
    page.evaluate(_DRAWN)
    expect(given_up).to_have_count(2)
    again.continue_()
    expect(given_up).to_have_count(1)
    page.unroute_all()
    given_up.get_by_role("button", name="Dismiss").click()
    expect(given_up).to_have_count(0)


def test_what_is_open_of_an_evaluation_under_way_stays_open(page: Page, api: httpx.Client) -> None:
    """It is read again each second, and its cases stay where they are."""
    base = f"/admin/tenants/{_TENANT}/evals"
    case = {"id": "greeting", "input": "Good morning!", "expected": {"excludes": ["no such text"]}}
    assert api.put(f"{base}/datasets/morning", json={"target": {"agent": "sdr"}, "cases": [case]}).is_success
    answer = api.post(f"{base}/runs", json={"dataset": "morning"})
    while answer.status_code == 202:
        answer = api.post(f"{base}/runs/{answer.json()['run']['run_id']}")
    run_id = answer.json()["run"]["run_id"]
    reads: list[object] = []

    def under_way(answer: dict[str, Any]) -> dict[str, Any]:
        reads.append(answer)
        return {**answer, "state": "running"}

    page.route(f"**/evals/runs/{run_id}*", altered(under_way))
    _go(page, f"evaluations/{run_id}")
    page.get_by_text("greeting").click()
    expect(page.get_by_text("What it did")).to_be_visible()
    read = len(reads)
    eventually(lambda: len(reads) if page.evaluate("true") else 0, lambda count: count >= read + 6)
    expect(page.get_by_text("What it did")).to_be_visible()


def test_an_answer_to_an_earlier_query_compares_nothing(page: Page) -> None:
    """What a setting recalls is compared with what is shown of the other one, not with what came last."""
    held = _held(page, "**/memories/recall", lambda request: '"query":"vases"' in (request.post_data or ""))
    _go(page, "recall?query=vases&compare=true&other_query=tea")
    notes = page.get_by_role("region", name="Setting B").locator(".recalled:not(.below) .number")
    expect(notes.first).to_be_visible()
    assert "only here" not in notes.first.inner_text()
    [earlier] = _arrived(page, held, 1)
    page.get_by_label("Query", exact=True).fill("tea")
    page.get_by_role("button", name="Recall").click()
    expect(notes.first).to_contain_text("=")
    with page.expect_response("**/memories/recall"):
        earlier.continue_()
    page.evaluate(_DRAWN)
    assert all("=" in note for note in notes.all_inner_texts())


def test_a_fact_at_a_time_is_found_however_many_memories_there_are(page: Page, api: httpx.Client) -> None:
    """Pages of a filtered list of a time may be empty, with a cursor: as those of a tenant with thousands are."""
    fact = {"subject": "kim", "predicate": "lives_in"}
    first = _store(api, content="Kim lives in Oslo.", object="Oslo", **fact)
    path = f"/admin/tenants/{_TENANT}/memories/{first}"
    at_ms = api.get(path).json()["recorded_at_ms"]
    _store(api, content="Kim lives in Lyon.", object="Lyon", **fact)
    page.route("**/memories?*as_of_ms*", lambda route: route.fulfill(json={"memories": [], "cursor": "1100"}))
    _go(page, f"memory/{first}?as_of_ms={at_ms}")
    lanes = page.locator(".lanes .fact")
    expect(lanes).to_have_count(1)
    expect(lanes).to_contain_text("Oslo")
    expect(lanes).to_contain_text("to now")


def test_what_was_read_of_a_run_stays_when_it_cannot_be_read_after_an_answer(page: Page, browser: Browsing) -> None:
    page.get_by_role("link", name="clerk").click()
    expect(page.get_by_role("button", name="Approve")).to_be_visible()
    page.route("**/reject*", lambda route: route.fulfill(json={}))
    page.route("**/resume*", lambda route: route.fulfill(json={}))
    page.route(f"**/agents/{_TENANT}/runs/*", _fails)
    page.get_by_role("button", name="Reject").click()
    expect(page.get_by_text("What is shown is older.")).to_be_visible()
    expect(page.get_by_role("button", name="Approve")).to_be_visible()
    page.unroute_all()
    expect(page.get_by_text("What is shown is older.")).to_have_count(0)
    browser.errors.clear()


def test_who_goes_elsewhere_while_the_page_is_first_drawn_arrives_there(page: Page) -> None:
    page.add_init_script("addEventListener('DOMContentLoaded', () => (location.hash += '/people'), { once: true })")
    page.reload()
    expect(page.get_by_role("heading", name="People")).to_be_visible()


def test_an_answer_without_readiness_is_an_error(page: Page, browser: Browsing) -> None:
    page.route("**/readyz", _fails)
    _go(page, "operations")
    ready: Locator = page.locator("section.part", has=page.get_by_role("heading", name="Ready"))
    expect(ready.get_by_role("alert")).to_contain_text("It broke.")
    browser.errors.clear()


def test_a_field_of_agents_suggests_the_first_of_many(page: Page) -> None:
    """Of a thousand agents it asks for no other page."""
    asked: list[str] = []
    agent: dict[str, object] = {
        "description": "",
        "house": None,
        "delegates": [],
        "source": "repository",
        "version": None,
    }

    def first(route: Route) -> None:
        asked.append(route.request.url)
        listed = [{**agent, "agent_type": f"agent_{number}_{len(asked)}"} for number in range(200)]
        route.fulfill(json={"agents": listed, "cursor": f"agent_{len(asked)}"})

    page.wait_for_load_state("networkidle")  # the page before asks for all agents
    page.route(re.compile(rf"/v1/agents/{_TENANT}(\?|$)"), first)
    _go(page, "memory")
    expect(page.locator("#agents-agent_type option")).to_have_count(200)
    assert len(asked) <= 2


def test_agents_after_the_first_hundred_are_listed(page: Page) -> None:
    named: dict[str, object] = {
        "description": "",
        "house": None,
        "delegates": [],
        "source": "repository",
        "version": None,
    }

    def pages(route: Route) -> None:
        first = "cursor" not in route.request.url
        listed = [
            {**named, "agent_type": f"agent_{number:03}"} for number in (range(200) if first else range(200, 230))
        ]
        route.fulfill(json={"agents": listed, "cursor": "agent_199" if first else None})

    page.route(re.compile(rf"/v1/agents/{_TENANT}(\?|$)"), pages)
    _go(page, "operations")
    expect(page.get_by_role("link", name="agent_", exact=False)).to_have_count(230)


def test_long_names_break_instead_of_the_page(page: Page, api: httpx.Client) -> None:
    user, subject = "u" * 128, "s" * 200
    assert api.put(f"/admin/tenants/{_TENANT}/users/{user}", json={"name": "N" * 100}).is_success
    memory = _store(api, content="x" * 300, subject=subject, predicate="is", object="o" * 200)
    page.set_viewport_size({"width": 360, "height": 800})
    for address, shown in (
        (f"people/{user}", page.get_by_role("button", name="Forget")),
        (f"memory/{memory}", page.get_by_role("button", name="Erase everything about")),
        (f"recall?compare=true&query={'q' * 200}", page.get_by_role("heading", name="A: q")),
    ):
        _go(page, address)
        expect(shown).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth") <= 360, address
