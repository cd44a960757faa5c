"""Work on a tenant's settings and evaluations, and scheduled work, that is interrupted."""

from __future__ import annotations

from collections import Counter
from urllib.parse import quote

from retain.admin.catching_up import CATCH_UP
from retain.admin.maintenance import BRIEF
from tests.e2e.puppet import order
from tests.kills.of_memory import stored
from tests.kills.place import Place, Things

_CART = "/admin/tenants/{tenant}/items/shop/s-1/cart/one"
_EVALS = "/admin/tenants/{tenant}/evals"


def configured(place: Place) -> None:
    """Set a tenant's limits, a quota, a role and a user's profile."""
    place.ask("PUT", "/admin/tenants/{tenant}", {"max_memories_per_user": 500})
    place.ask("PUT", "/admin/tenants/{tenant}/quotas", {"memories": 1000})
    place.ask("PUT", "/admin/tenants/{tenant}/roles/email:ann@example.com", {"role": "viewer"})
    place.ask("PUT", "/admin/tenants/{tenant}/users/ann", {"name": "Ann"})


def settings(place: Place) -> Things:
    """Return what a tenant's settings are."""
    return {
        "limits": place.counted("SELECT max_memories_per_user FROM tenants WHERE tenant_id = ?"),
        "quotas": place.counted("SELECT memories FROM quotas WHERE tenant_id = ?"),
        "roles": place.counted("SELECT subject, role FROM role_grants WHERE tenant_id = ?"),
        "users": place.counted("SELECT user_id, name FROM users WHERE tenant_id = ?"),
    }


def evaluated(place: Place) -> None:
    """Store a dataset, and run its cases."""
    cases = [{"id": name, "input": order(say=name), "expected": {"contains": [name]}} for name in ("one", "two")]
    place.ask("PUT", f"{_EVALS}/datasets/first", {"target": {"agent": "sdr"}, "cases": cases})
    begun = place.ask("POST", f"{_EVALS}/runs", {"dataset": "first"}, key="evaluation")
    place.finish("POST", f"{_EVALS}/runs/{begun['run']['run_id']}")


def results(place: Place) -> Things:
    """Return what is found of an evaluation: each case once, and nothing in the tenants that it worked in."""
    listed = place.ask("GET", f"{_EVALS}/runs")["runs"]
    shown = [place.ask("GET", f"{_EVALS}/runs/{run['run_id']}") for run in listed]
    return {
        "evaluations": Counter(run["state"] for run in listed),
        "results": Counter(f"{one['case_id']} {one['outcome']}" for run in shown for one in run["results"]),
        "left to erase": place.counted("SELECT 'scratch' FROM eval_scratches WHERE tenant_id = ?"),
    }


def owing(place: Place) -> None:
    """Store records, and let the index be owed their vectors, and KV a removal, as after a failure that was long ago."""
    stored(place)
    for user in ("ann", "bob"):
        place.ask("PUT", _CART, {"value": f"of {user}", "user_id": user})
    with place.state.d1_transaction() as database:
        database.execute("UPDATE memory_item_earlier_users SET noted_at_ms = 1 WHERE tenant_id = ?", (place.tenant,))
        database.execute(
            "UPDATE memory_outbox SET state = 'owed', writers = 1, at_ms = 1, due_at_ms = 1 WHERE tenant_id = ?",
            (place.tenant,),
        )


def caught_up(place: Place) -> None:
    """Do what the deployment does every five minutes."""
    place.ask("GET", f"/cdn-cgi/handler/scheduled?cron={quote(CATCH_UP)}")


def briefed(place: Place) -> None:
    """Do the daily work of the deployment."""
    place.ask("GET", f"/cdn-cgi/handler/scheduled?cron={quote(BRIEF)}")


def debts(place: Place) -> Things:
    """Return what is found of records, what the index and KV are still owed, and the item that KV has a copy of."""
    owed = "SELECT 'vectors' FROM memory_outbox WHERE tenant_id = ? AND state = 'owed'"
    copies = "SELECT user_id FROM memory_item_earlier_users WHERE tenant_id = ?"
    value = place.request("GET", _CART).json()["value"]
    return {
        **place.memories(),
        "owed": place.counted(owed) + place.counted(copies),
        "item": Counter([value]),
    }
