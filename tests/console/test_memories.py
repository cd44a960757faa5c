"""What the console shows of memories, recalls and people, field by field: owners, replaced facts, erasures, settings."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from playwright.sync_api import Page, Route, expect

from tests.console.screens import altered

pytestmark = pytest.mark.workerd

_MEMORIES: dict[str, dict[str, Any]] = {
    "Parcels to Norway take five days.": {"house": "orders"},
    "Contacts in Oslo answer on Fridays.": {"agent_type": "sdr"},
    "Ann has a green bicycle.": {"user_id": "ann"},
    "The office in Lyon opens at nine.": {"metadata": {"checked": True}},
}
_FACT = {"subject": "bob", "predicate": "lives_in"}
_LATER_MS = 600_000
"""Longer than the page continues an erasure."""


@pytest.fixture(scope="module")
def tenant_id(api: httpx.Client) -> str:
    """A tenant with a memory of a house, of an agent, of a user, and of the tenant."""
    assert api.put("/admin/tenants/console-memories").status_code == 201
    for content, owner in _MEMORIES.items():
        _store(api, "console-memories", content=content, **owner)
    return "console-memories"


def _store(api: httpx.Client, tenant_id: str, **memory: Any) -> str:
    answer = api.post(f"/admin/tenants/{tenant_id}/memories", json=memory)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


def _at(page: Page, tenant_id: str, place: str) -> None:
    page.goto(f"{page.url.partition('#')[0]}#/{tenant_id}/{place}")


def test_memories_are_listed_by_house_agent_user_and_filter(page: Page, tenant_id: str) -> None:
    shown = page.locator(".memories > li > a")
    asked = {"House": "orders", "Agent": "sdr", "User": "ann", "Filter (JSON)": '{"checked": true}'}
    for (label, value), content in zip(asked.items(), _MEMORIES, strict=True):
        _at(page, tenant_id, "memory")
        expect(shown).to_have_count(len(_MEMORIES))
        page.get_by_label(label, exact=True).fill(value)
        page.get_by_role("button", name="Show").click()
        expect(shown.filter(has_text=content)).to_be_visible()
        if label != "Agent":  # which also reads what is the tenant's
            expect(shown).to_have_count(1)
    page.get_by_label("Recorded from").fill("2001-02-03T04:05:06")
    page.get_by_role("button", name="Show").click()
    expect(shown).to_have_count(1)
    page.get_by_label("Recorded from").fill("2101-02-03T04:05:06")
    page.get_by_role("button", name="Show").click()
    expect(page.get_by_text("Nothing is remembered here.")).to_be_visible()


def test_a_memory_is_closed_opened_again_and_found_among_the_closed(
    page: Page, api: httpx.Client, tenant: Callable[[], str]
) -> None:
    tenant_id = tenant()
    memory_id = _store(api, tenant_id, content="The office opens at nine.")
    _at(page, tenant_id, f"memory/{memory_id}")
    page.get_by_role("button", name="Close: it is no longer so").click()
    expect(page.get_by_role("button", name="Open again")).to_be_visible()
    page.get_by_role("link", name="Memory", exact=True).click()
    expect(page.get_by_text("Nothing is remembered here.")).to_be_visible()
    page.get_by_label("Closed ones too").check()
    page.get_by_role("button", name="Show").click()
    expect(page.locator(".memories > li")).to_contain_text("closed")
    page.locator(".memories > li > a").click()
    page.get_by_role("button", name="Open again").click()
    expect(page.get_by_role("button", name="Close: it is no longer so")).to_be_visible()
    expect(page.locator(".history > li")).to_have_count(3)


def test_what_replaced_a_fact_is_linked_and_everything_about_its_subject_is_erased_after_it_was_listed(
    page: Page, api: httpx.Client, tenant: Callable[[], str]
) -> None:
    """The first answer says that the erasure continues."""
    tenant_id, answers = tenant(), 0

    def continued(route: Route) -> None:
        nonlocal answers
        answers += 1
        answer = route.fetch()
        if answers > 1:
            return route.fulfill(response=answer)
        found = answer.json()
        return route.fulfill(
            response=answer, json={**found, "retry_after_ms": 1, "receipt": {**found["receipt"], "state": "running"}}
        )

    porto = _store(api, tenant_id, content="Bob lives in Porto.", object="Porto", **_FACT)
    lyon = _store(api, tenant_id, content="Bob lives in Lyon.", object="Lyon", **_FACT)
    _at(page, tenant_id, f"memory/{porto}")
    expect(page.locator(".lanes").get_by_role("link")).to_have_text(["Porto", "Lyon"])
    page.get_by_role("link", name=lyon, exact=True).click()
    expect(page.get_by_label("Content")).to_have_value("Bob lives in Lyon.")
    page.get_by_role("button", name="Erase everything about bob …").click()
    expect(page.get_by_text("2 memories with this subject")).to_be_visible()
    expect(page.locator(".doomed > li")).to_have_text(["Bob lives in Porto.", "Bob lives in Lyon."])
    page.route("**/erase", continued)
    page.get_by_role("button", name="Erase everything about bob", exact=True).click()
    expect(page.get_by_role("status").filter(has_text="completed")).to_be_visible()
    assert answers == 2
    assert api.get(f"/admin/tenants/{tenant_id}/memories?all=true").json()["memories"] == []


def test_an_erasure_that_is_not_complete_says_what_was_done_so_far_and_continues(
    page: Page, api: httpx.Client, tenant: Callable[[], str]
) -> None:
    tenant_id = tenant()
    assert api.put(f"/admin/tenants/{tenant_id}/users/kim", json={"name": "Kim"}).is_success

    def running(route: Route) -> None:
        if route.request.method != "DELETE":
            return route.continue_()
        answer = route.fetch()
        found = answer.json()
        receipt = {**found["receipt"], "state": "running"}
        return route.fulfill(response=answer, json={**found, "retry_after_ms": _LATER_MS, "receipt": receipt})

    _at(page, tenant_id, "people/kim")
    page.route("**/users/kim", running)
    page.get_by_label("User").fill("kim")
    page.get_by_role("button", name="Forget").click()
    receipt = page.locator(".receipt")
    expect(receipt).to_contain_text("running")
    expect(receipt).to_contain_text("continues here for a minute, and then with the scheduled work")
    expect(page.get_by_role("button", name="Forget")).to_be_disabled()


def test_every_field_of_a_recall_is_asked_for_and_an_empty_question_is_not(page: Page, tenant_id: str) -> None:
    recalls: list[Any] = []
    page.on("request", lambda one: recalls.append(one.post_data_json) if one.url.endswith("/recall") else None)
    _at(page, tenant_id, "recall")
    expect(page.get_by_text("Ask something, as an agent would.")).to_be_visible()
    query = page.get_by_label("Query", exact=True)
    page.get_by_role("button", name="Recall").click()
    expect(query).to_be_focused()
    assert query.evaluate("one => one.validity.valueMissing")
    query.fill("   ")
    page.get_by_role("button", name="Recall").click()
    expect(page.get_by_text("Ask something, as an agent would.")).to_be_visible()
    assert recalls == []
    fields = {
        "Query": "the bicycle of ann", "User": "ann", "How many": "3", "Least relevance": "0.01",
        "Valid at": "2101-02-03T04:05:06", "Filter (JSON)": '{"kind": "fact"}',
    }  # fmt: skip
    for label, value in fields.items():
        page.get_by_label(label, exact=True).fill(value)
    page.get_by_role("button", name="Recall").click()
    expect(page.locator(".recalled > li").first).to_contain_text("Ann has a green bicycle.")
    expect(page.locator(".recalled > li").first).to_contain_text(re.compile("found by .*vectors"))
    [asked] = recalls
    assert asked["valid_at_ms"] > 4_000_000_000_000
    wanted = {"query": "the bicycle of ann", "user_id": "ann", "top_k": 3, "min_score": 0.01}
    assert {**asked, **wanted, "filter": {"kind": "fact"}} == asked
    for label, owner, name, found in (
        ("House", "orders", "house", "Parcels to Norway"), ("Agent", "sdr", "agent_type", "Contacts in Oslo"),
    ):  # fmt: skip
        _at(page, tenant_id, "recall")
        page.get_by_label("Query", exact=True).fill(f"{found}?")
        page.get_by_label(label, exact=True).fill(owner)
        page.get_by_role("button", name="Recall").click()
        expect(page.locator(".recalled > li").first).to_contain_text(found)
        assert recalls[-1][name] == owner


def test_a_recall_that_did_without_something_says_so(page: Page, tenant_id: str) -> None:
    page.route("**/memories/recall", altered(lambda found: {**found, "degraded": ["vectors"]}))
    _at(page, tenant_id, "recall?query=parcels")
    expect(page.get_by_text("This recall did without: vectors")).to_be_visible()
