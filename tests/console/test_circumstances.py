"""What the console does in circumstances that nobody plans for: a server that is away, a session that ended, another tab,
names and texts of every kind, a tenant without anything.
"""

from __future__ import annotations

import re
from typing import Any

import httpx
import pytest
from playwright.sync_api import Dialog, Page, Route, expect

from tests.console.screens import Screen, check_widths, opened, violations
from tests.e2e.calls import recorded_run
from tests.e2e.waiting import eventually
from tests.support.browser import Browsing

pytestmark = pytest.mark.workerd

_MAIL = "From: sara@example.com. The vase of order SO-4702 is broken. Refund, please."
_EMPTY = "without-anything"
_VIEWS = ("runs", "people", "memory", "recall", "evaluations", "operations")
_HEBREW = "הלקוחה שרה ביקשה החזר על אגרטל"
_USER = "a+5|b=c.d_e-f@example.com"


@pytest.fixture(scope="module")
def tenant_id(api: httpx.Client) -> str:
    """A tenant in which a delegate stored a memory, and a run waits for an approval."""
    assert api.put("/admin/tenants/circumstances").status_code == 201
    ended = api.post("/v1/agents/circumstances/order_triage/run", json={"input": _MAIL}).json()
    recorded_run(api, "circumstances", ended["run_id"])
    assert api.post("/v1/agents/circumstances/clerk/run", json={"input": "refund AB-1"}).status_code == 202
    return "circumstances"


def _store(api: httpx.Client, tenant_id: str, **memory: Any) -> str:
    answer = api.post(f"/admin/tenants/{tenant_id}/memories", json=memory)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


def test_a_memory_s_source_opens_the_step_that_wrote_it(page: Page, api: httpx.Client, tenant_id: str) -> None:
    memories = api.get(f"/admin/tenants/{tenant_id}/memories", params={"limit": 200}).json()["memories"]
    [stored] = [one for one in memories if one["source"]["origin"] == "agent"]
    page.goto(f"{page.url.partition('#')[0]}#/{tenant_id}/memory/{stored['id']}")
    page.get_by_role("link", name=f"turn {stored['source']['step']} of the run").first.click()
    row = page.locator("details.step[open]")
    expect(row.locator("summary").first).to_contain_text("store_memory")
    expect(row).to_contain_text(stored["id"])
    page.keyboard.press("e")
    expect(page.locator(".virtual").get_by_text(stored["id"]).first).to_be_visible()


def test_instances_are_asked_what_their_outboxes_owe(page: Page, tenant_id: str) -> None:
    """One of them is made to owe something: what instances answer is tested with them."""

    def owing(route: Route) -> None:
        answer = route.fetch()
        owed = {"entries": 3, "attempts": 2, "due_at_ms": 1_800_000_000_000}
        route.fulfill(response=answer, json={**answer.json(), "owed": owed})

    page.get_by_role("link", name="Operations").click()
    page.get_by_role("button", name="Ask the 20 newest").click()
    expect(page.get_by_text(re.compile(r"Nothing is owed by [3-9] instances\."))).to_be_visible()
    expect(page.get_by_text("all that D1 knows")).to_be_visible()
    page.reload()
    page.route(f"**/v1/agents/{tenant_id}/clerk/instances/*", owing)
    page.get_by_role("button", name="Ask the 20 newest").click()
    expect(page.get_by_role("listitem").filter(has_text="3 entries")).to_contain_text("2 attempts so far")


def test_what_was_seen_stays_while_the_server_is_away(page: Page, browser: Browsing) -> None:
    page.get_by_role("link", name="clerk").click()
    question = page.get_by_role("button", name="Approve")
    expect(question).to_be_visible()
    browser.context.set_offline(True)
    expect(page.get_by_text("What is shown is older.")).to_be_visible()
    expect(question).to_be_visible()
    browser.context.set_offline(False)
    expect(page.get_by_text("What is shown is older.")).to_have_count(0)
    assert browser.errors
    browser.errors.clear()


def test_a_session_that_ended_says_so_and_leads_to_the_login(page: Page, browser: Browsing) -> None:
    """Access answers a page's request with its login at another site, or with 401."""
    login = {"location": "https://team.cloudflareaccess.example/login"}
    page.route("**/admin/tenants/*/access", lambda route: route.fulfill(status=302, headers=login))
    page.reload()
    expect(page.get_by_role("alert").first).to_contain_text("session_ended")
    page.unroute_all()
    page.get_by_role("link", name="Sign in again").first.click()
    expect(page.locator(".runs > li").first).to_be_visible()
    browser.errors.clear()


def test_what_another_tab_changed_is_not_overwritten(
    page: Page, browser: Browsing, api: httpx.Client, tenant_id: str
) -> None:
    """The server refuses the edit: it is based on another state."""
    memory = _store(api, tenant_id, content="Parcels take five days.")
    page.goto(f"{page.url.partition('#')[0]}#/{tenant_id}/memory/{memory}")
    content = page.get_by_label("Content")
    content.fill("Parcels take six days.")
    path = f"/admin/tenants/{tenant_id}/memories/{memory}"
    assert api.patch(path, json={"content": "Parcels take nine days."}).is_success
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_role("alert")).to_contain_text("Somebody changed this memory")
    expect(content).to_have_value("Parcels take six days.")
    assert api.get(path).json()["content"] == "Parcels take nine days."
    assert all("409" in error for error in browser.errors), browser.errors
    browser.errors.clear()


def test_what_was_written_and_is_not_saved_is_not_lost(page: Page, api: httpx.Client, tenant_id: str) -> None:
    memory = _store(api, tenant_id, content="Bulky parcels take two days.")
    page.goto(f"{page.url.partition('#')[0]}#/{tenant_id}/memory/{memory}")
    content = page.get_by_label("Content")
    content.press_sequentially(" Since May.")
    page.get_by_role("button", name="Close: it is no longer so").click()
    expect(page.get_by_role("button", name="Open again")).to_be_visible()
    expect(content).to_have_value("Bulky parcels take two days. Since May.")
    asked: list[str] = []

    def stay(dialog: Dialog) -> None:
        asked.append(dialog.type)
        dialog.dismiss()

    page.once("dialog", stay)
    page.evaluate("location.reload()")
    expect(content).to_have_value("Bulky parcels take two days. Since May.")
    assert asked == ["beforeunload"]
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.locator(".history > li")).to_have_count(3)
    page.get_by_role("button", name="Restore").first.click()
    expect(content).to_have_value("Bulky parcels take two days.")
    page.reload()
    expect(content).to_have_value("Bulky parcels take two days.")
    assert asked == ["beforeunload"]


def test_a_time_is_typed_without_errors_on_the_way_and_is_one_step_back(page: Page, tenant_id: str) -> None:
    """The field changes with every key: after the first digit of the year it has the year 2."""
    page.goto(f"{page.url.partition('#')[0]}#/{tenant_id}/memory")
    page.get_by_label("As of this time").focus()
    for key in "01022001":
        page.keyboard.press(key)
        expect(page.get_by_role("status")).to_have_count(0)
        expect(page.get_by_role("alert")).to_have_count(0)
    expect(page).to_have_url(re.compile("as_of_ms=978[345]"))
    page.get_by_label("As of", exact=True).press("ArrowRight")
    expect(page).not_to_have_url(re.compile("as_of_ms=978[345]"))
    page.go_back()
    expect(page).to_have_url(re.compile(r"/memory$"))


def test_every_field_of_a_memory_is_edited_and_shown_as_it_was(page: Page, api: httpx.Client, tenant_id: str) -> None:
    memory = _store(api, tenant_id, content="Kim takes milk.", metadata={"checked": False})
    path = f"/admin/tenants/{tenant_id}/memories/{memory}"
    page.goto(f"{page.url.partition('#')[0]}#/{tenant_id}/memory/{memory}")
    page.get_by_text("Other fields").click()
    fields = page.locator(".fields")
    fields.get_by_label("Kind").select_option("task")
    fields.get_by_label("Subject").fill("kim")
    fields.get_by_label("Importance").fill("0.9")
    fields.get_by_label("Metadata (JSON)").fill("[]")
    page.get_by_role("button", name="Save fields").click()
    expect(page.get_by_role("alert")).to_contain_text("Metadata is a JSON object")
    fields.get_by_label("Metadata (JSON)").fill('{"checked": true}')
    page.get_by_role("button", name="Save fields").click()
    expect(page.locator(".history > li")).to_have_count(2)
    edited = api.get(path).json()
    assert (edited["kind"], edited["subject"], edited["importance"]) == ("task", "kim", 0.9)
    assert edited["metadata"] == {"checked": True}
    page.goto(f"{page.url}?as_of_ms={edited['updated_at_ms'] - 1}")
    expect(page.locator("dl.facts").first).to_contain_text('{"checked":false}')
    expect(page.locator(".history > li").last).to_contain_text("later")
    expect(page.get_by_role("heading", name="Remove")).to_have_count(0)


def test_fields_that_nobody_touched_stay_whatever_the_page_can_show_of_them(
    page: Page, api: httpx.Client, tenant_id: str
) -> None:
    """A field has no line breaks, and no time after the year 275760."""
    kept = {
        "subject": "Kim",
        "predicate": "lives",
        "object": "1 Mill Lane\nPorto",
        "expires_at_ms": 9_007_199_254_740_000,
    }
    memory = _store(api, tenant_id, content="Kim lives in Porto.", **kept)
    page.goto(f"{page.url.partition('#')[0]}#/{tenant_id}/memory/{memory}")
    page.get_by_text("Other fields").click()
    page.locator(".fields").get_by_label("Confidence").fill("0.8")
    page.get_by_role("button", name="Save fields").click()
    expect(page.locator(".history > li")).to_have_count(2)
    edited = api.get(f"/admin/tenants/{tenant_id}/memories/{memory}").json()
    assert {name: edited[name] for name in kept} == kept
    assert edited["confidence"] == 0.8


def test_names_and_texts_of_every_script_and_length_are_shown(page: Page, api: httpx.Client, tenant_id: str) -> None:
    """A four-byte character is not halved where a text is cut, and what is written from right to left is drawn so."""
    long = _store(api, tenant_id, content="a" * 1_999 + "🫖" * 3_000, metadata={"🫖": "🫖" * 100})
    hebrew = _store(api, tenant_id, content=_HEBREW)
    address = page.url.partition("#")[0]
    for memory in (long, hebrew):
        opened(page, address.removesuffix("/console"), tenant_id, Screen("odd", f"memory/{memory}", ".history > li"))
        check_widths(page, Screen("odd", "", ""))
        expect(page.locator(".recalled.near, .nothing").first).to_be_attached()
    assert page.get_by_label("Content").evaluate("one => one.matches(':dir(rtl)')")
    page.get_by_role("link", name="Memory", exact=True).click()
    assert page.get_by_role("link", name=_HEBREW, exact=True).evaluate("one => one.matches(':dir(rtl)')")
    shown = page.locator(".memories .content").filter(has_text="aaaa")
    assert len(shown.inner_text()) < 1_000
    page.set_viewport_size({"width": 360, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


def test_a_user_s_id_and_name_may_have_any_character(page: Page, api: httpx.Client, tenant_id: str) -> None:
    body = {"input": "I live in Porto.", "user": {"id": _USER, "name": _HEBREW}}
    asked = api.post(f"/v1/agents/{tenant_id}/support/run", json=body)
    assert asked.status_code == 200, asked.text
    recorded_run(api, tenant_id, asked.json()["run_id"])
    page.get_by_role("link", name="People").click()
    expect(page.get_by_text(_HEBREW)).to_be_visible()
    page.get_by_role("link", name=_USER).click()
    expect(page.get_by_role("heading", level=1)).to_have_text(_USER)
    page.get_by_role("main").get_by_role("link", name="Runs").click()
    expect(page.locator(".runs > li")).to_have_count(1)


def test_a_fact_s_source_shows_what_the_user_said(page: Page, api: httpx.Client, tenant_id: str) -> None:
    body = {"input": "My favourite colour is green.", "user": {"id": "kim"}}
    run_id = api.post(f"/v1/agents/{tenant_id}/support/run", json=body).json()["run_id"]
    memories = f"/admin/tenants/{tenant_id}/memories"
    learned = eventually(
        lambda: api.get(memories, params={"user_id": "kim"}), lambda found: bool(found.json()["memories"])
    )
    [fact] = learned.json()["memories"]
    page.goto(f"{page.url.partition('#')[0]}#/{tenant_id}/memory/{fact['id']}")
    page.get_by_role("link", name=f"what was asked in the run {run_id}").first.click()
    expect(page.locator("[aria-current=location]")).to_contain_text("My favourite colour is green.")


def test_every_view_of_an_empty_tenant_says_what_would_be_there(page: Page, api: httpx.Client) -> None:
    assert api.put(f"/admin/tenants/{_EMPTY}").status_code == 201
    address = page.url.partition("/console")[0]
    for view in _VIEWS:
        shown = ".phases" if view == "operations" else ".nothing"
        opened(page, address, _EMPTY, Screen(view, view, shown))
        assert violations(page) == [], view
    expect(page).to_have_title("Operations · without-anything · Retain")


def test_a_tenant_that_is_not_listed_is_named(page: Page, api: httpx.Client) -> None:
    """A deployment has more tenants than a list shows: the page reads a list that ends with a cursor."""

    def ends_early(route: Route) -> None:
        answer = route.fetch()
        route.fulfill(response=answer, json={**answer.json(), "cursor": "more"})

    assert api.put("/admin/tenants/not-listed").status_code == 201
    page.route("**/admin/tenants?*", ends_early)
    page.reload()
    field = page.get_by_label("Tenant")
    expect(field).to_have_attribute("list", "tenants")
    field.fill("not-listed")
    field.press("Enter")
    expect(page.get_by_text("There are no such runs.")).to_be_visible()
    assert page.url.endswith("#/not-listed/runs")


def test_two_times_are_compared(page: Page, api: httpx.Client, tenant_id: str) -> None:
    memory = _store(api, tenant_id, content="The office in Lyon opens at nine.")
    path = f"/admin/tenants/{tenant_id}/memories/{memory}"
    assert api.patch(path, json={"content": "The office in Lyon opens at eight."}).is_success
    before = api.get(path).json()["updated_at_ms"] - 1
    query = f"query=office+in+Lyon&compare=true&other_as_of_ms={before}"
    page.goto(f"{page.url.partition('#')[0]}#/{tenant_id}/recall?{query}")
    first, other = page.get_by_role("region").all()
    expect(first.locator(".recalled > li").first).to_contain_text("opens at eight")
    expect(other.locator(".recalled > li").first).to_contain_text("opens at nine")


def test_going_back_is_where_one_was_and_every_place_has_a_title(page: Page) -> None:
    page.set_viewport_size({"width": 800, "height": 220})
    last = page.locator(".runs > li > a").last
    last.scroll_into_view_if_needed()
    left = page.evaluate("scrollY")
    assert left > 0
    last.click()
    expect(page.locator(".virtual")).to_be_visible()
    expect(page.locator("main")).to_be_focused()
    assert page.evaluate("scrollY") == 0
    assert " · circumstances · Retain" in page.title()
    page.go_back()
    expect(last).to_be_visible()
    page.wait_for_function("left => Math.abs(scrollY - left) < 3", arg=left)
