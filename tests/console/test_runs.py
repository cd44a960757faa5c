"""What the console shows of runs, field by field: filters, the live list, marks in the timeline, what each role may do."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from typing import Any

import httpx
import pytest
from playwright.sync_api import Locator, Page, expect

from tests.console.screens import altered
from tests.e2e.calls import recorded_run
from tests.support.browser import Browsing
from tools.local_server import LocalServer

pytestmark = pytest.mark.workerd

_MAIL = "From: sara@example.com. The vase of order SO-4702 is broken. Refund, please."
_ZONE, _OFFSET = "Australia/Eucla", timezone(timedelta(hours=8, minutes=45))
_HOUR_MS = 3_600_000


@pytest.fixture(scope="module")
def tenant_id(api: httpx.Client) -> str:
    """A tenant with runs of four agents: one asked another, one of the user ann waits for an approval."""
    assert api.put("/admin/tenants/console-runs").status_code == 201
    agents = "/v1/agents/console-runs"
    for agent, asked in (("order_triage", _MAIL), ("sdr", "hello")):
        ended = api.post(f"{agents}/{agent}/run", json={"input": asked}).json()
        recorded_run(api, "console-runs", ended["run_id"])
    waiting = {"input": "refund AB-1", "instance_id": "desk", "user": {"id": "ann"}}
    assert api.post(f"{agents}/clerk/run", json=waiting).status_code == 202
    return "console-runs"


def _runs(api: httpx.Client, tenant_id: str) -> list[Any]:
    found: list[Any] = api.get(f"/admin/agents/{tenant_id}/runs").json()["runs"]
    return found


def _of(api: httpx.Client, tenant_id: str, agent_type: str) -> str:
    return next(str(run["run_id"]) for run in _runs(api, tenant_id) if run["agent_type"] == agent_type)


def _at(page: Page, tenant_id: str, place: str) -> None:
    page.goto(f"{page.url.partition('#')[0]}#/{tenant_id}/{place}")


def _step(page: Page, title: str) -> Locator:
    return page.locator("summary").filter(has_text=title).first


def test_runs_are_filtered_by_agent_user_text_and_status(page: Page, tenant_id: str) -> None:
    shown = page.locator(".runs > li > a > b")
    everything = ["clerk", "sdr", "refund_decision", "order_triage"]
    for label, value, agents in (("Agent", "sdr", ["sdr"]), ("User", "ann", ["clerk"]), ("Text", "AB-1", ["clerk"])):
        page.get_by_label(label, exact=True).fill(value)
        page.get_by_role("button", name="Search").click()
        expect(shown).to_have_text(agents)
        page.get_by_label(label, exact=True).fill("")
        page.get_by_role("button", name="Search").click()
        expect(shown).to_have_text(everything)
    page.get_by_role("link", name="What waits for somebody").click()
    expect(shown).to_have_text(["clerk"])
    expect(page.locator(".runs > li")).to_contain_text("waits for an approval of issue_refund")
    page.get_by_role("link", name="All runs").click()
    expect(shown).to_have_text(everything)
    page.get_by_label("Status").select_option("completed")
    page.get_by_role("button", name="Search").click()
    expect(shown).to_have_text(everything[1:])


def test_times_are_of_the_browser_s_zone_and_days_of_utc(
    browser: Browsing, server: LocalServer, api: httpx.Client, tenant_id: str
) -> None:
    newest = _runs(api, tenant_id)[0]["created_at_ms"]
    local = datetime.fromtimestamp(newest / 1000, _OFFSET)
    assert browser.context.browser is not None
    with browser.context.browser.new_context(timezone_id=_ZONE, locale="en-GB") as context:
        page = context.new_page()
        page.goto(f"{server.base_url}/console#/{tenant_id}")
        expect(page.locator(".zone")).to_have_text(_ZONE)
        expect(page.locator(".runs time").first).to_contain_text(f"{local:%H:%M:%S}")
        for label, name, moment, found in (
            ("From", "since_ms", local + timedelta(seconds=1), 0),
            ("From", "since_ms", local, 1),
            ("Until", "until_ms", local - timedelta(hours=1), 0),
        ):
            page.goto(f"{server.base_url}/console#/{tenant_id}/runs?agent_type=clerk")
            expect(page.get_by_label("Agent", exact=True)).to_have_value("clerk")
            page.get_by_label(label, exact=True).fill(f"{moment:%Y-%m-%dT%H:%M:%S}")
            page.get_by_role("button", name="Search").click()
            page.wait_for_url(f"**{name}={int(moment.timestamp()) * 1000}*")
            expect(page.locator(".runs > li")).to_have_count(found)
        page.get_by_role("link", name="Operations").click()
        expect(page.get_by_role("heading", name="Costs by day (UTC)")).to_be_visible()
        for counted in ("Runs today (UTC)", "Tokens today (UTC)"):
            expect(page.get_by_text(counted)).to_be_visible()


def test_the_list_is_live_and_a_page_in_a_hidden_tab_asks_nothing(
    page: Page, api: httpx.Client, tenant: Callable[[], str]
) -> None:
    tenant_id = tenant()
    page.clock.install()
    _at(page, tenant_id, "runs")
    page.reload()
    expect(page.get_by_text("There are no such runs.")).to_be_visible()
    assert api.post(f"/v1/agents/{tenant_id}/sdr/run", json={"input": "hello"}).status_code == 200
    expect(page.locator(".runs > li")).to_have_count(1)
    page.evaluate("Object.defineProperty(document, 'hidden', { configurable: true, get: () => true })")
    page.clock.run_for(10_000)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    assert api.post(f"/v1/agents/{tenant_id}/sdr/run", json={"input": "hello"}).status_code == 200
    page.clock.run_for(120_000)
    assert asked == []
    expect(page.locator(".runs > li")).to_have_count(1)
    page.evaluate("delete document.hidden; document.dispatchEvent(new Event('visibilitychange'))")
    expect(page.locator(".runs > li")).to_have_count(2)


def _eventful(found: Any) -> Any:
    """Make of a run's events those of one that was interrupted, waited for an hour, and no longer fitted its context."""
    events: list[Any] = []
    begun_ms = found["events"][0]["at_ms"]
    for number, event in enumerate(found["events"]):
        data = event["data"]
        event["at_ms"] = begun_ms + number * 1_000 + (_HOUR_MS if event["turn"] > 1 else 0)
        if event["turn"] == 2:
            if event["kind"] == "model_asked":
                data |= {"cut": [1], "messages_cut": 3}
            if event["kind"] == "model_answered":
                data |= {"input_tokens": 1_200, "cached_input_tokens": 200, "finish_reason": "stop"}
                event["cost"] = {"value": 0.0123, "currency": "USD"}
        events.append(event)
        if event["kind"] == "model_asked" and event["turn"] == 1:
            repeated = {"turn": 1, "index": None, "code": "upstream_unavailable", "delay_ms": 5}
            events.append({**event, "kind": "call_retried", "data": repeated})
        if event["kind"] == "tool_called" and event["turn"] == 1:
            events += [{**event, "kind": "run_recovered", "data": {"turn": 1, "times": 1}}, event]
    return {**found, "events": [{**event, "seq": number} for number, event in enumerate(events, start=1)]}


def _cut(run: Any) -> Any:
    read = {"cut": {"episodes": 2}, "left_out": [{"id": "01ARZ3NDEKTSV4RRFFQ69G5FAV", "score": 0.2}]}
    return {**run, "input": {**run["input"], **read}}


def test_what_was_repeated_interrupted_folded_and_cut_is_marked(page: Page, api: httpx.Client, tenant_id: str) -> None:
    run_id = _of(api, tenant_id, "refund_decision")
    page.route(f"**/runs/{run_id}/events?*", altered(_eventful))
    page.route(f"**/runs/{run_id}", altered(_cut))
    _at(page, tenant_id, f"runs/{run_id}")
    expect(_step(page, "Model, turn 1").locator(".mark")).to_have_text("1 retry")
    expect(_step(page, "recall_memory").locator(".mark")).to_have_text("interrupted")
    expect(_step(page, "Resumed after a crash")).to_be_visible()
    expect(page.locator(".scale .fold").filter(has_text="⋯ 60 min")).to_be_visible()
    expect(page.get_by_text("Cut: 2 of episodes, as they did not fit: earlier turns come last")).to_be_visible()
    expect(page.locator(".found b.cut")).to_have_text("did not fit")
    _step(page, "Model, turn 1").click()
    expect(page.get_by_text("Repeated after 5 ms: upstream_unavailable")).to_be_visible()
    _step(page, "Model, turn 2").click()
    second = page.locator("details.step").filter(has_text="Model, turn 2")
    for text in (
        "1,200 tokens read (200 from a cache)", "0.0123 USD", "ended by stop",
        "Cut: turn 1 no longer fit the context", "Cut: 3 messages before the input",
    ):  # fmt: skip
        expect(second).to_contain_text(text)
    _step(page, "store_memory").click()
    stored = page.locator("details.step").filter(has=page.locator("summary", has_text="store_memory"))
    expect(stored.get_by_role("heading", name="Arguments")).to_be_visible()
    expect(stored.get_by_text("Answer", exact=True)).to_be_visible()


def test_why_these_takes_the_filter_of_the_call_along(page: Page, api: httpx.Client, tenant_id: str) -> None:
    def filtered(found: Any) -> Any:
        for event in found["events"]:
            if event["kind"] == "tool_called" and event["data"]["name"] == "recall_memory":
                event["data"]["arguments"]["filter"] = {"kind": "fact"}
        return found

    run_id = _of(api, tenant_id, "refund_decision")
    page.route(f"**/runs/{run_id}/events?*", altered(filtered))
    _at(page, tenant_id, f"runs/{run_id}")
    with page.expect_request("**/memories/recall") as first:
        _step(page, "recall_memory").click()
    with page.expect_request("**/memories/recall") as second:
        page.get_by_role("link", name="Why these?").click()
    expect(page.get_by_label("Filter (JSON)")).to_have_value('{"kind":"fact"}')
    asked: list[Any] = [request.value.post_data_json for request in (first, second)]
    for name in ("query", "filter", "agent_type", "as_of_ms", "top_k"):
        assert asked[0][name] == asked[1][name], name
    assert asked[0]["filter"] == {"kind": "fact"}


def test_an_approval_is_rejected_in_place(page: Page, api: httpx.Client, tenant: Callable[[], str]) -> None:
    tenant_id, asked = tenant(), {"input": "refund AB-2", "instance_id": "desk"}
    run_id = api.post(f"/v1/agents/{tenant_id}/clerk/run", json=asked).json()["run_id"]
    _at(page, tenant_id, f"runs/{run_id}")
    expect(page.locator(".question pre")).to_contain_text("AB-2")
    page.get_by_role("button", name="Reject").click()
    expect(page.locator(".status.completed")).to_be_visible()
    expect(page.get_by_label("Answered")).to_contain_text("It was rejected.")


def test_what_a_role_does_not_allow_is_not_offered(page: Page, api: httpx.Client, tenant_id: str) -> None:
    def looking(access: Any) -> Any:
        reads = [one for one in access["operations"] if one.partition("_")[0] in ("get", "list", "recall", "verify")]
        return {**access, "role": "viewer", "operations": reads}

    stored = {"content": "Parcels take five days.", "subject": "parcels"}
    memory_id = api.post(f"/admin/tenants/{tenant_id}/memories", json=stored).json()["id"]
    page.route("**/admin/tenants/*/access", altered(looking))
    page.reload()
    expect(page.locator(".who")).to_have_text("viewer")
    for place, there in (
        (f"runs/{_of(api, tenant_id, 'clerk')}", "Timeline"),
        (f"runs/{_of(api, tenant_id, 'sdr')}", "Timeline"),
        (f"memory/{memory_id}", "Near it"),
        ("people/ann", "Facts over time"),
    ):
        _at(page, tenant_id, place)
        expect(page.get_by_role("heading", name=there)).to_be_visible()
        expect(page.get_by_role("main").get_by_role("button")).to_have_count(0)
    expect(page.get_by_role("heading", name="Forget")).to_have_count(0)


def test_the_versions_of_an_agent_are_reached_from_its_run_and_one_is_defined_again(
    page: Page, api: httpx.Client, tenant: Callable[[], str]
) -> None:
    tenant_id = tenant()
    agent = f"/admin/tenants/{tenant_id}/agents/guide"
    guide = {"description": "Answers guests.", "instructions": "Be brief.", "model": {"script": "sdr"}}
    assert api.put(agent, json=guide).status_code == 201
    run_id = api.post(f"/v1/agents/{tenant_id}/guide/run", json={"input": "hello"}).json()["run_id"]
    recorded_run(api, tenant_id, run_id)
    assert api.put(agent, json={**guide, "instructions": "Be kind."}).status_code == 200
    _at(page, tenant_id, f"runs/{run_id}")
    page.get_by_role("link", name="guide, version 1").click()
    expect(page.locator(".versions > li > details[open] > summary")).to_contain_text(["Version 1"])
    expect(page.locator(".definition")).to_contain_text("Be brief.")
    _step(page, "Version 2").click()
    expect(page.locator(".definition del")).to_have_text("brief")
    expect(page.locator(".definition ins")).to_have_text("kind")
    page.get_by_role("button", name="Define as in version 1 …").click()
    expect(page.get_by_text("It becomes version 3")).to_be_visible()
    page.get_by_role("button", name="Define as in version 1", exact=True).click()
    expect(page.locator(".versions > li")).to_have_count(3)
    expect(_step(page, "Version 3")).to_contain_text("as in version 1")
    assert api.get(agent).json()["definition"]["instructions"] == "Be brief."
    assert api.delete(agent).status_code == 204
    page.reload()
    expect(page.get_by_text("It was deleted")).to_be_visible()
    expect(_step(page, "Version 4")).to_contain_text("deleted")
    _at(page, tenant_id, "operations")
    page.locator("li").filter(has_text="of the repository").get_by_role("link", name="sdr").click()
    expect(page.get_by_text("It is of the repository")).to_be_visible()
    expect(page.locator(".definition")).to_contain_text('"instructions"')
