"""Assembly: what each part is given besides its ports, and how often it calls them."""

from __future__ import annotations

import json
from importlib import import_module
from typing import Any

import pytest

from retain.errors import Misconfigured
from retain.gateway.provisioning import tool_entry
from retain.memory.scope import Scope, View
from retain.namespace import Namespace
from tests.gateway.setting import config
from tests.host.echo_server import echo_server
from tests.shell.platform.objects import Storage
from tests.shell.test_wiring import parts_of
from tests.shell.worker import Worker, serving

steps_of: Any = import_module("assembly.scheduled").steps_of
SCRATCH = "eval-01hzzzzzzzzzzzzzzzzzzzzzzz-1"


async def test_a_memory_sees_what_its_view_names(worker: Worker) -> None:
    scope, also = Scope("acme", "sdr"), Scope("acme", user_id="ann")
    assert parts_of(worker).memory.semantic(scope, View(scope, (also,))).view.also == (also,)
    assert parts_of(worker).memory.semantic(scope).view == View(scope)


async def test_items_are_promoted_and_an_agent_reads_hot_copies_within_its_session(worker: Worker) -> None:
    rules = parts_of(worker).items.client(Namespace("shop", "acme", "s-1"))._rules
    assert (rules.read_fallback, rules.promote_on_read, rules.write_through) == (True, True, True)
    assert rules.hot_reads == "session"


async def test_the_stores_read_the_legacy_patterns_of_the_settings() -> None:
    async with serving(MEMORY_NAMESPACE_LEGACY_PATTERNS="not JSON") as worker:
        with pytest.raises(Misconfigured):
            parts_of(worker).lifecycle.stores.namespacing()


async def test_an_instance_of_a_scratch_tenant_has_the_stubs_of_its_case(worker: Worker) -> None:
    stubs = {"ship": {"description": "Ships.", "answers": [{"answer": "sent"}]}}
    insert = (
        "INSERT INTO eval_scratches (scratch_id, tenant_id, run_id, position, stubs, at_ms) VALUES (?, ?, ?, 1, ?, 1)"
    )
    await worker.rows(insert, SCRATCH, "acme", "run", json.dumps(stubs))
    ports = parts_of(worker).instances.ports(Storage())
    await parts_of(worker).platform.sql.run("SELECT 1")  # reads the schema's version before
    worker.db.calls.clear()
    found = await ports.stubs(SCRATCH)
    assert found is not None
    assert found.answer("ship", {}) == (200, b"sent")
    assert len(worker.db.calls) == 1


async def test_a_tool_is_described_by_one_read_of_kv_and_called_by_two(worker: Worker) -> None:
    with echo_server() as server:
        tool = tool_entry("acme", "quote", config(f"{server.origin}/echo", auth={"kind": "none"}), allow_loopback=True)
        await tool.write(worker.kv.store)
        ports = parts_of(worker).instances.ports(Storage())
        worker.kv.calls.clear()
        [proxied] = await ports.gateway_tools("acme", ("quote",))
        described = len(worker.kv.calls)
        assert (await proxied.upstream({"order_id": "A-1"}, "key-1"))[0] == 200
        assert (described, len(worker.kv.calls) - described) == (1, 2)
        worker.kv.calls.clear()
        status, body = (
            await parts_of(worker).admin.replaying()._ports.call_tool("acme", "quote", {"order_id": "A-1"}, "key-2")
        )
        assert (status, json.loads(body)["headers"]["idempotency-key"], len(worker.kv.calls)) == (200, "key-2", 2)


async def test_a_replayed_step_of_the_brief_is_done_once(worker: Worker) -> None:
    parts = parts_of(worker)
    await parts.platform.sql.run("SELECT 1")  # reads the schema's version before
    worker.db.calls.clear()
    await steps_of(parts)["erasures"]()
    once = len(worker.db.calls)
    await parts.admin.replaying()._ports.step("erasures")
    assert len(worker.db.calls) == 2 * once > 0
