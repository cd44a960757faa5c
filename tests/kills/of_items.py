"""Work on items that is interrupted."""

from __future__ import annotations

import json
from collections import Counter

from tests.kills.place import Place, Things

KINDS = ("cart", "preferences", "system_logs")
"""One data type for each tier."""
PATTERN = {"template": "{tenantId}:{sessionId}:{memoryKind}:{entityId}", "service": "crm"}
FLAGS = {
    "MEMORY_NAMESPACE_WRITE_CANONICAL": "true",
    "MEMORY_NAMESPACE_COMPAT_READ": "true",
    "MEMORY_NAMESPACE_LEGACY_PATTERNS": json.dumps([PATTERN]),
}
"""The variables of a deployment whose keys are being migrated: phase 2."""
_SHOP = "/admin/tenants/{tenant}/items/shop/s-1"
_LEGACY = "/admin/tenants/{tenant}/items/crm/s1/conversation"


def put(place: Place) -> None:
    """Write one item into each tier, replace one, and read them, so that hot copies are made."""
    for kind in KINDS:
        for value in ("first", "second"):
            place.ask("PUT", f"{_SHOP}/{kind}/one", {"value": json.dumps({"kind": kind, "value": value})})
        place.ask("GET", f"{_SHOP}/{kind}/one")


def removed(place: Place) -> None:
    """Remove the items from every tier."""
    for kind in KINDS:
        place.ask("DELETE", f"{_SHOP}/{kind}/one")


def items(place: Place) -> Things:
    """Return what a client reads, which objects of items are missing, and which no row knows.

    An object that no item points to is swept later, if a row knows it.
    """
    read: list[str] = []
    for kind in KINDS:
        answer = place.request("GET", f"{_SHOP}/{kind}/one")
        read.append(f"{kind} {answer.json()['value']}" if answer.is_success else f"{kind} {answer.status_code}")
    objects = {key for key in place.state.r2("") if f":{place.tenant}:" in key}
    pointed = place.rows("SELECT object_key FROM memory_items WHERE tenant_id = ? AND object_key > '' AND NOT deleted")
    known = {row["object_key"] for row in place.rows("SELECT object_key FROM memory_item_objects WHERE tenant_id = ?")}
    missing = ["missing" for row in pointed if row["object_key"] not in objects]
    return {"items": Counter(read), "objects": Counter(missing + ["unknown"] * len(objects - known))}


def migrating(state_of: Place) -> None:
    """Put four values under legacy keys, as a program would that knows nothing of canonical ones."""
    with state_of.state.d1_transaction() as database:
        for number in range(4):
            row = (state_of.tenant, f"{state_of.tenant}:s1:conversation:t{number}", f"legacy {number}")
            database.execute("INSERT INTO memory_items (tenant_id, key, value, version) VALUES (?, ?, ?, 1)", row)
        database.execute(
            "INSERT OR IGNORE INTO namespace_migration (id, phase, baseline, since_ms, revision)"
            " VALUES (1, 2, 0.99, 1, 2)"
        )
        database.execute(
            "INSERT OR IGNORE INTO namespace_cycles (cycle, phase, opened_by, opened_at_ms) VALUES (1, 2, 'phase 2', 1)"
        )


def migrated(place: Place) -> None:
    """Read, write and remove values under legacy keys, copy the rest to canonical ones, and record a release."""
    place.ask("GET", f"{_LEGACY}/t0")
    place.ask("PUT", f"{_LEGACY}/t1", {"value": "new"})
    place.ask("DELETE", f"{_LEGACY}/t2")
    place.ask("POST", "/admin/namespaces/backfill", {"again": True})
    place.finish("POST", "/admin/namespaces/backfill", {})
    place.ask("POST", "/admin/namespaces/releases", {"release": place.tenant})


def under_keys(place: Place) -> Things:
    """Return what is under the canonical and the legacy keys."""
    return {
        "items": place.counted(
            "SELECT key, value, deleted FROM memory_items WHERE tenant_id = ? AND namespace_key LIKE 'crm:%'"
        ),
        "releases": place.counted("SELECT opened_by FROM namespace_cycles WHERE opened_by = ?"),
    }
