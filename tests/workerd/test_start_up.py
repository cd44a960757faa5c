"""Invariant 9: no work at import. What an isolate loads at its start is paid for by every first request."""

from __future__ import annotations

import pytest

from tests.workerd.server import TestWorker

pytestmark = pytest.mark.workerd

HEAVY = ("pydantic", "pydantic_core", "jwt", "annotated_types", "typing_inspection")
LATER = ("retain.agents", "retain.admin", "retain.models", "retain.memory.semantic")
OF_A_CALL = ("retain.gateway.proxy", "fastjsonschema", "ulid", "retain.routing.health")


def _below(modules: list[str], *packages: str) -> list[str]:
    return [module for module in modules if module.startswith(packages) and module.split(".")[0] != "tests"]


def test_the_entry_module_loads_what_a_call_of_a_tool_needs_and_no_other_area_or_heavy_library(
    worker: TestWorker,
) -> None:
    loaded = worker.get("/loaded")["entry"]
    assert "durable_objects.agent_runtime" in loaded
    assert _below(loaded, *HEAVY) == []
    assert _below(loaded, *LATER) == []
    assert set(OF_A_CALL) <= set(loaded), "the first call of a tool, and the first `GET /healthz`, load nothing"


def test_the_proxy_needs_no_heavy_library(worker: TestWorker) -> None:
    loaded = worker.get("/loaded")["proxy"]
    assert "retain.gateway.proxy" in loaded
    assert _below(loaded, *HEAVY) == []
    assert _below(loaded, "retain.agents", "retain.admin", "retain.models", "retain.memory.semantic") == []


def test_an_isolate_that_wrangler_serves_takes_what_was_compiled_before(worker: TestWorker) -> None:
    loaded = worker.get("/loaded")
    assert loaded["later_is_left"], "the proxy needs what the main module's imports compile, and no more"
    assert loaded["precompiled"]


def test_pydantic_looks_for_no_plugins(worker: TestWorker) -> None:
    assert worker.get("/plugins") == {"looked": False}
