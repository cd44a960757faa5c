"""The migration on the real workerd: legacy rows in D1, requests meanwhile, and the command."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from retain.cli.namespaces import main
from tests.e2e.local_state import LocalState
from tests.e2e.servers import client_of, serving, staged

pytestmark = pytest.mark.workerd

PATTERN = {"template": "{tenantId}:{sessionId}:{memoryKind}:{entityId}", "service": "crm"}
FLAGS = {
    "MEMORY_NAMESPACE_WRITE_CANONICAL": "true",
    "MEMORY_NAMESPACE_COMPAT_READ": "true",
    "MEMORY_NAMESPACE_LEGACY_PATTERNS": json.dumps([PATTERN]),
}
ITEMS = "/admin/tenants/acme/items/crm/s1/conversation"


def _seed(state: LocalState) -> None:
    """Store what an earlier phase 1 would have left: sixty legacy rows, and the record of phase 2."""
    with state.d1_transaction() as database:
        for number in range(60):
            key = f"acme:s1:conversation:t{number}"
            database.execute(
                "INSERT INTO memory_items (tenant_id, key, value, version) VALUES ('acme', ?, ?, 1)",
                (key, f"legacy {number}"),
            )
        database.execute(
            "INSERT INTO namespace_migration (id, phase, baseline, since_ms, revision) VALUES (1, 2, 0.99, 1, 2)"
        )
        database.execute("INSERT INTO namespace_cycles (phase, opened_by, opened_at_ms) VALUES (2, 'phase 2', 1)")


def test_a_deployment_migrates_while_it_answers(
    migrated_state: Callable[[], Path], capsys: pytest.CaptureFixture[str]
) -> None:
    state = LocalState(migrated_state())
    _seed(state)

    def canonical() -> dict[str, tuple[str | None, int]]:
        rows = state.d1("SELECT key, value, deleted FROM memory_items WHERE namespace_key = 'crm:acme:s1'")
        return {row["key"].rpartition(":")[2]: (row["value"], row["deleted"]) for row in rows}

    with staged("namespaces", FLAGS) as config, serving(state.root, config) as server, client_of(server) as api:
        assert api.put("/admin/tenants/acme").status_code == 201
        read = api.get(f"{ITEMS}/t1")
        assert (read.status_code, read.json()["value"]) == (200, "legacy 1")
        assert canonical() == {"t1": ("legacy 1", 0)}  # repaired by the read
        assert api.put(f"{ITEMS}/t2", json={"value": "new"}).status_code == 200
        assert api.delete(f"{ITEMS}/t3").json() == {"deleted": True}
        assert main(["backfill", "--url", server.base_url]) == 0
        assert "57 copied, 2 present" in capsys.readouterr().out
        found = canonical()
        assert len(found) == 60
        assert (found["t0"], found["t2"], found["t3"]) == (("legacy 0", 0), ("new", 0), (None, 1))
        assert api.get(f"{ITEMS}/t3").status_code == 404
        assert api.get(f"{ITEMS}/t2").json()["value"] == "new"
        assert main(["release", "1.0", "--url", server.base_url]) == 0
        assert main(["advance", "3", "--url", server.base_url]) == 1
        assert "not_ready" in capsys.readouterr().err
        assert main(["rollback", "1", "--url", server.base_url]) == 0
        assert canonical() == found
