"""Traces and metrics of the real Worker, as they arrive at a collector."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e.calls import run
from tests.e2e.servers import client_of, serving, staged
from tests.e2e.waiting import eventually
from tests.telemetry.collector import attributes, collecting

pytestmark = pytest.mark.workerd

SECRET = "lupuscanary"


def test_runs_and_memory_arrive_at_the_collector_without_their_texts(migrated_state: Callable[[], Path]) -> None:
    with collecting() as collector:
        variables = {"OTLP_ENDPOINT": collector.origin, "OTLP_HEADERS": "x-key=a%20secret"}
        with (
            staged("traced", variables) as config,
            serving(migrated_state(), config) as server,
            client_of(server) as api,
        ):
            assert api.put("/admin/tenants/acme").status_code == 201
            memories = "/admin/tenants/acme/memories"
            stored = api.post(memories, json={"content": f"The order of {SECRET} is late."}).json()["id"]
            api.post(f"{memories}/recall", json={"query": SECRET})
            api.patch(f"{memories}/{stored}", json={"importance": 0.9})
            api.delete(f"{memories}/{stored}")
            run(api, "acme", "order_triage", f"Order SO-1 of {SECRET} is late.")
            wanted = {"create_memory", "search_memory", "update_memory", "delete_memory", "invoke_agent order_triage"}
            found = eventually(lambda: {span.name: span for span in collector.spans}, lambda one: wanted <= one.keys())
            eventually(lambda: [metric.name for metric in collector.metrics], lambda names: len(names) >= 2)
    for name in ("create_memory", "update_memory", "delete_memory"):
        assert attributes(found[name])["gen_ai.memory.record.id"] == stored
        assert attributes(found[name])["gen_ai.memory.store.id"] == "acme"
    assert attributes(found["search_memory"])["gen_ai.memory.record.count"] == 1
    assert any(name.startswith("chat") for name in found)
    assert collector.headers[0]["x-key"] == "a secret"
    assert not any(SECRET in body for body in collector.bodies)
    assert collector.resources[0]["service.name"] == "retain"
