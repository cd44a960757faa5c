"""A Worker on a database whose schema it does not know: what needs D1 is refused, and continues once it is known."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from retain.schema.database import VERSION
from tests.e2e.local_state import LocalState
from tests.e2e.servers import client_of, one_database, serving, staged

pytestmark = pytest.mark.workerd

RUN = "/v1/agents/schema/order_triage/run"


@one_database
def test_a_schema_that_the_worker_does_not_know_stops_what_needs_d1_and_nothing_else(
    migrated_state: Callable[[], Path],
) -> None:
    root = migrated_state()
    state = LocalState(root)
    with state.d1_transaction() as database:
        database.execute("DELETE FROM schema_versions")
    with staged("schema") as config, serving(root, config) as server, client_of(server) as api:
        refused = [api.put("/admin/tenants/schema"), api.post(RUN, json={"input": "hello"})]
        assert [(answer.status_code, answer.json()["code"]) for answer in refused] == [(503, "schema_outdated")] * 2
        assert state.d1("SELECT * FROM tenants WHERE tenant_id = 'schema'") == []
        assert api.get("/healthz").status_code == 200
        assert api.post("/api/v1/tools/create_order", json={}).json()["code"] == "missing_api_key"
        readiness = api.get("/readyz")
        assert (readiness.status_code, readiness.json()["stores"]) == (
            503,
            {"d1": "schema_outdated", "kv": "ok", "r2": "ok", "vectorize": "ok"},
        )
        with state.d1_transaction() as database:
            database.execute("INSERT INTO schema_versions VALUES (?, ?)", (VERSION + 1, VERSION + 1))
        assert api.put("/admin/tenants/schema").json()["code"] == "schema_unknown"
        with state.d1_transaction() as database:
            database.execute("UPDATE schema_versions SET usable_from = ?", (VERSION,))
        assert api.put("/admin/tenants/schema").status_code == 201
        assert api.put("/admin/tenants/schema").status_code == 200


def test_a_server_whose_stores_answer_is_ready(migrated_state: Callable[[], Path]) -> None:
    with staged("ready") as config, serving(migrated_state(), config) as server, client_of(server) as api:
        readiness = api.get("/readyz")
        assert (readiness.status_code, readiness.json()["status"], readiness.json()["schema"]) == (
            200,
            "ready",
            VERSION,
        )
        assert set(readiness.json()["stores"].values()) == {"ok"}
        assert api.head("/readyz").content == b""
