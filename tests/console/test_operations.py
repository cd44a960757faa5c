"""What the console shows of a deployment, part by part: what was given up, keys, deliveries, costs, what is wrong."""

from __future__ import annotations

from collections.abc import Callable

import httpx
import pytest
from playwright.sync_api import Locator, Page, expect

from tests.console.screens import altered
from tests.e2e.calls import recorded_run
from tests.e2e.local_state import LocalState
from tests.e2e.waiting import eventually
from tests.support.browser import Browsing

pytestmark = pytest.mark.workerd

_PARKED = (
    "INSERT INTO error_ledger VALUES (?, ?, 'vectors', ?, ?, NULL, NULL, NULL, NULL, 7, 'parked', 1, ?, NULL, NULL)"
)


@pytest.fixture(scope="module")
def tenant_id(api: httpx.Client) -> str:
    """A tenant in which a run was sent to a webhook, a key was used and another revoked, and a user was erased."""
    tenant = "/admin/tenants/console-operations"
    assert api.put(tenant).status_code == 201
    hook = {"url": "http://127.0.0.1:1/hook", "events": ["run.completed"]}
    webhook = api.post(f"{tenant}/webhooks", json=hook).json()["webhook_id"]
    ended = api.post("/v1/agents/console-operations/sdr/run", json={"input": "hello"}).json()
    recorded_run(api, "console-operations", ended["run_id"])
    eventually(lambda: api.get(f"{tenant}/webhooks/{webhook}/deliveries").json()["deliveries"], bool)
    for name in ("shop", "former"):
        key = api.post(f"{tenant}/keys", json={"name": name, "scopes": ["memory:read"]})
        assert key.status_code == 201, key.text
    assert api.delete(f"{tenant}/keys/{key.json()['key_id']}").is_success
    assert api.put(f"{tenant}/users/bob", json={"name": "Bob"}).is_success
    while api.delete(f"{tenant}/users/bob").status_code == 202:
        pass
    return "console-operations"


@pytest.fixture
def operations(page: Page) -> Callable[[str], Locator]:
    """Return what opens the view and returns a part of it, by its heading."""

    def part(heading: str) -> Locator:
        page.get_by_role("link", name="Operations").click()
        found = page.locator("section.part").filter(has=page.get_by_role("heading", name=heading, exact=True, level=2))
        expect(found).to_be_visible()
        return found

    return part


def test_what_was_given_up_is_replayed_or_dismissed(
    page: Page, state: LocalState, tenant_id: str, operations: Callable[[str], Locator]
) -> None:
    ids = ("a" * 32, "b" * 32)
    with state.d1_transaction() as database:
        for number, error_id in enumerate(ids):
            concern, code = f"01ARZ3NDEKTSV4RRFFQ69G5FA{number}", ("vectorize_unavailable", "no_memory_left")[number]
            database.execute(_PARKED, (error_id, tenant_id, concern, code, 1_700_000_000_000 + number))
    rows = operations("Given up").locator("li")
    expect(rows).to_have_count(2)
    expect(rows.first).to_contain_text("no_memory_left vectors, 7 attempts")
    rows.filter(has_text="no_memory_left").get_by_role("button", name="Dismiss").click()
    expect(rows).to_have_count(1)
    page.route(f"**/admin/errors/{ids[0]}/replay", lambda route: route.fulfill(status=200, json={}))
    with page.expect_request(f"**/admin/errors/{ids[0]}/replay") as asked:
        rows.get_by_role("button", name="Replay").click()
    assert asked.value.method == "POST"
    states = state.d1("SELECT error_id, state FROM error_ledger WHERE tenant_id = ? ORDER BY 1", tenant_id)
    assert [row["state"] for row in states] == ["parked", "dismissed"]


def test_keys_deliveries_receipts_and_costs_are_listed(page: Page, operations: Callable[[str], Locator]) -> None:
    keys = operations("Keys").locator("li")
    expect(keys.filter(has_text="shop")).to_contain_text("valid")
    expect(keys.filter(has_text="shop")).to_contain_text("memory:read")
    expect(keys.filter(has_text="shop")).to_contain_text("never used")
    expect(keys.filter(has_text="former")).to_contain_text("revoked")
    webhooks = operations("Webhooks")
    webhooks.locator("summary").click()
    delivery = webhooks.locator("li")
    expect(delivery).to_contain_text("run.completed")
    expect(delivery).to_contain_text("pending")
    with page.expect_request("**/deliveries/*/replay") as replayed:
        delivery.get_by_role("button", name="Send again").click()
    assert replayed.value.method == "POST"
    receipt = operations("Erasures").locator("li")
    expect(receipt).to_contain_text("of a user")
    expect(receipt).to_contain_text("completed")
    receipt.locator("summary").click()
    expect(receipt.locator("details > div").first).to_be_visible()
    spent = operations("Costs by day (UTC)").locator("li").filter(has_text="sdr")
    expect(spent).to_contain_text("tokens")


def test_limits_that_are_used_up_debts_and_databases_are_shown(
    page: Page, operations: Callable[[str], Locator]
) -> None:
    owed = {"kind": "vectors", "count": 3, "oldest_at_ms": 1}
    page.route("**/debts", altered(lambda found: {**found, "debts": [owed]}))
    page.route("**/quotas", altered(lambda found: {**found, "memories": {"most": 10, "used": 12}}))
    expect(operations("Databases")).to_contain_text("The deployment has one.")
    debts = operations("Still to be done").locator("li")
    expect(debts).to_contain_text("memories that the vector index is owed")
    expect(debts).to_contain_text("the oldest for")
    memories = operations("Limits and quotas").locator("li").filter(has=page.get_by_text("Memories", exact=True))
    expect(memories).to_contain_text("12 of 10")
    expect(memories).to_contain_text("0 left")


def test_what_is_wrong_with_the_deployment_is_said(
    page: Page, browser: Browsing, operations: Callable[[str], Locator]
) -> None:
    stores = {"d1": "failed", "kv": "ok"}
    page.route("**/readyz", altered(lambda found: {**found, "status": "not ready", "stores": stores}, status=503))
    broken = {"problem": "an entry was changed", "broken_at": 7, "cursor": None}
    page.route("**/history/verify*", altered(lambda found: {**found, **broken}))
    wrong = {"phase": 2, "roll_back": True, "obstacles": ["3 days are left"]}
    page.route("**/admin/namespaces", altered(lambda found: {**found, **wrong}))
    expect(operations("Ready").locator(".status.failed")).to_contain_text("not ready")
    expect(operations("Ready").locator(".chip.failure")).to_have_text("d1: failed")
    history = operations("World history")
    history.get_by_role("button", name="Verify").click()
    expect(history).to_contain_text("an entry was changed, at entry 7")
    migration = operations("Migration of keys")
    expect(migration.locator("[aria-current=step]")).to_contain_text("2 writes canonical keys")
    expect(migration).to_contain_text("Roll it back")
    expect(migration).to_contain_text("In the way of the next phase: 3 days are left")
    assert all("503" in error for error in browser.errors), browser.errors
    browser.errors.clear()
