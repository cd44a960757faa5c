"""Assembly: each area gets what it works with, and the deployment's settings reach where they act."""

from __future__ import annotations

import base64
import json
import logging
from dataclasses import fields
from typing import Any

import pytest

from retain.agents.instance_ports import InstancePorts
from retain.errors import Misconfigured, NoSuchTool
from retain.gateway.guarded_fetch import GuardedFetch
from retain.gateway.provisioning import credential_entry, new_api_key, tool_entry
from retain.host.crypto import HostCrypto
from retain.memory.scope import Scope
from tests.gateway.setting import config
from tests.host.echo_server import echo_server
from tests.shell.platform.objects import Storage
from tests.shell.worker import KEY, Worker, bindings, root, serving
from tests.support.instances import staged_agents

BINDINGS = {
    "kv": "KV",
    "sql": "DB",
    "objects": "COLD",
    "index": "VECTORIZE",
    "instances": "AGENT_RUNTIME",
    "writers": "TENANT_WRITER",
    "ai": "AI",
}


def parts_of(worker: Worker) -> Any:
    return root.assembly_of(worker.env)


async def test_the_platform_has_a_port_on_each_binding(worker: Worker) -> None:
    platform = parts_of(worker).platform
    assert {field.name for field in fields(platform)} == {*BINDINGS, "crypto", "settings", "rates", "shards"}
    assert platform.shards is None
    uses = [
        (worker.kv, platform.kv.get("key")),
        (worker.db, platform.sql.run("SELECT 1 AS n")),
        (worker.cold, platform.objects.get("key")),
        (worker.vectors, platform.index.dimensions()),
    ]
    await platform.sql.run("SELECT 1")  # reads the schema's version before
    for binding, use in uses:
        binding.calls.clear()
        await use
        assert len(binding.calls) == 1
    worker.ai._answer = lambda model, inputs: {"model": model, **inputs}
    assert await platform.ai("a-model", {"text": "t"}) == {"model": "a-model", "text": "t"}
    assert isinstance(platform.crypto, bindings.WebCrypto)
    assert platform.settings.credentials_key == KEY


async def test_an_isolate_is_assembled_once_and_each_area_once(worker: Worker) -> None:
    parts = parts_of(worker)
    assert parts_of(worker) is parts
    areas = [name for name, value in vars(type(parts)).items() if type(value).__name__ == "cached_property"]
    assert set(areas) == {
        *("readiness", "exporter", "gateway", "access", "admin", "agents", "directory", "instances", "models"),
        *("memory", "items", "lifecycle", "evaluation", "failures", "agent_memory", "webhooks", "protected_resources"),
    }
    for name in areas:
        assert getattr(parts, name) is getattr(parts, name), name
    worker.restart()
    assert parts_of(worker) is not parts


async def test_the_first_request_configures_the_log(worker: Worker, capsys: pytest.CaptureFixture[str]) -> None:
    parts_of(worker)
    logging.getLogger("retain.anything").info("shown", extra={"api_key": "secret"})
    [line] = capsys.readouterr().out.splitlines()
    assert (json.loads(line)["message"], json.loads(line)["api_key"]) == ("shown", "[redacted]")


async def test_an_instance_works_with_the_isolate_s_ports_and_its_own_storage() -> None:
    async with serving(MEMORY_PII_FIELDS="iban, passport") as worker:
        parts, storage = parts_of(worker), Storage()
        ports: InstancePorts = parts.instances.ports(storage)
        platform, directory = parts.platform, parts.directory
        ports.local.run("CREATE TABLE t (v)")
        await ports.alarm.set(7)
        assert storage.rows("SELECT name FROM sqlite_master") == [("t",)]
        assert (storage.alarm_ms, await ports.alarm.get()) == (7, 7)
        same = {"sql": platform.sql, "kv": platform.kv, "index": platform.index, "instances": platform.instances}
        same |= {"catalogue": directory.catalogue, "clock": bindings.now_ms}
        same |= {"time_zones": bindings.time_zones, "background": bindings.in_background}
        assert {name: getattr(ports, name) for name in same} == same
        assert isinstance(ports.fetch, GuardedFetch)
        assert ports.fetch is parts.instances.ports(storage).fetch
        assert ports.embedder() is parts.models.embedder
        assert ports.reranker() is parts.models.reranker is None
        assert tuple(ports.pii_fields) == ("iban", "passport")
        assert await ports.stubs("acme") is None
        storage.connection.close()


async def test_a_table_that_was_not_staged_is_a_problem_of_the_deployment(worker: Worker) -> None:
    with pytest.raises(Misconfigured) as raised:
        bindings.staged_bytes("no-such-table.bin")
    assert raised.value.code == "not_staged"
    assert "no-such-table.bin was not staged" in raised.value.message


async def test_a_tenant_s_gateway_tools_are_called_through_the_proxy(worker: Worker) -> None:
    with echo_server() as server:
        tool = tool_entry("acme", "quote", config(f"{server.origin}/echo", idempotent=True), allow_loopback=True)
        credential = await credential_entry(HostCrypto(), base64.b64decode(KEY), "acme", "quote", "upstream")
        for stored in (tool, credential):
            await stored.write(worker.kv.store)
        ports = parts_of(worker).instances.ports(Storage())
        [proxied] = await ports.gateway_tools("acme", ("quote",))
        assert (proxied.spec.name, proxied.spec.description) == ("quote", "Create an order.")
        assert proxied.spec.parameters["required"] == ["order_id"]
        assert proxied.idempotent
        status, body = await proxied.upstream({"order_id": "A-1"}, "key-1")
        echoed = json.loads(body)
        assert (status, json.loads(echoed["body"])) == (200, {"order_id": "A-1"})
        assert echoed["headers"]["idempotency-key"] == "key-1"
        assert await ports.gateway_tools("acme", ()) == []
        with pytest.raises(NoSuchTool):
            await ports.gateway_tools("acme", ("quote", "never_was"))


async def test_the_tools_of_an_agent_are_read_in_one_call_of_kv(
    worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = tuple(f"tool_{number}" for number in range(40))
    for name in names:
        await tool_entry("acme", name, config(description=f"Do {name}.")).write(worker.kv.store)
    trips: list[object] = []
    read = worker.kv.get

    async def get(key: Any) -> object:
        trips.append(key)
        return await read(key)

    monkeypatch.setattr(worker.kv, "get", get)
    tools = await parts_of(worker).instances.ports(Storage()).gateway_tools("acme", names)
    assert [tool.spec.name for tool in tools] == list(names)
    assert len(trips) == 1


async def test_a_key_of_the_gateway_that_was_sealed_with_the_previous_secret_still_opens() -> None:
    old = base64.b64encode(bytes(32)).decode()
    with echo_server() as server:
        async with serving(PREVIOUS_CREDENTIALS_KEY=old) as worker:
            tool = tool_entry("acme", "quote", config(f"{server.origin}/echo"), allow_loopback=True)
            credential = await credential_entry(HostCrypto(), bytes(32), "acme", "quote", "upstream")
            key = new_api_key("acme", ["*"], now_ms=worker.clock())
            for stored in (tool, credential, key.entry):
                await stored.write(worker.kv.store)
            headers = {"authorization": f"Bearer {key.api_key}"}
            answer = await worker.request("POST", "/api/v1/tools/quote", {"order_id": "A-1"}, headers=headers)
            assert answer.status == 200, answer.body
            assert int(answer.headers["server-timing"].split("dur=")[1].split(",")[0]) == 0


async def test_items_are_sealed_with_the_memory_key_and_the_previous_one_opens_them() -> None:
    old = base64.b64encode(bytes(32)).decode()
    person = '{"email": "ann@shop.example"}'
    path = "/admin/tenants/acme/items/shop/s-1/preferences/ann"
    async with serving(MEMORY_KEY=old) as worker:
        await worker.tenant()
        await worker.request("PUT", path, {"value": person})
        [row] = await worker.rows("SELECT value FROM memory_items")
        assert "ann@" not in row["value"]
        worker.env.MEMORY_KEY, worker.env.PREVIOUS_MEMORY_KEY = KEY, old
        worker.restart()
        assert (await worker.request("GET", path)).content["value"] == person
        answer = await worker.request("POST", "/admin/tenants/acme/items/reseal")
        assert answer.content == {"resealed": 1, "left": 0, "unreadable": 0}
        worker.env.PREVIOUS_MEMORY_KEY = ""
        worker.restart()
        assert (await worker.request("GET", path)).content["value"] == person


async def test_the_fields_of_pii_and_the_placements_are_the_deployment_s() -> None:
    placements = json.dumps({"preferences": {"tier": "cold", "prefix": "elsewhere/", "latency_ms": 5000}})
    async with serving(MEMORY_PII_FIELDS="iban", MEMORY_PLACEMENTS=placements) as worker:
        await worker.tenant()
        base = "/admin/tenants/acme/items/shop/s-1"
        refused = await worker.request("PUT", f"{base}/cart/one", {"value": '{"iban": "CH1"}'})
        assert (refused.status, refused.content["code"]) == (400, "pii_outside_warm")
        stored = await worker.request("PUT", f"{base}/cart/two", {"value": '{"email": "a@b.example"}'})
        assert stored.status == 200
        placed = await worker.request("PUT", f"{base}/preferences/one", {"value": "v"})
        assert placed.content["tier"] == "cold", placed.content


LEGACY = {
    "MEMORY_NAMESPACE_WRITE_CANONICAL": "true",
    "MEMORY_NAMESPACE_COMPAT_READ": "true",
    "MEMORY_NAMESPACE_LEGACY_PATTERNS": json.dumps(
        [{"template": "{tenantId}:{sessionId}:{memoryKind}:{entityId}", "service": "crm"}]
    ),
}
ROW = "INSERT INTO memory_items (tenant_id, key, value, version) VALUES ('acme', ?, ?, 1)"


async def test_legacy_keys_are_read_sealed_copied_counted_and_erased() -> None:
    async with serving(**LEGACY) as worker:
        await worker.tenant()
        for number, value in enumerate(("zero", '{"email": "a@b.example"}', "two")):
            await worker.rows(ROW, f"acme:s1:conversation:t{number}", value)
        await worker.rows(
            "INSERT INTO namespace_migration (id, phase, baseline, since_ms, revision) VALUES (1, 2, 0.99, 1, 2)"
        )
        await worker.rows("INSERT INTO namespace_cycles (phase, opened_by, opened_at_ms) VALUES (2, 'phase 2', 1)")
        items = "/admin/tenants/acme/items/crm/s1/conversation"
        for number, value in enumerate(("zero", '{"email": "a@b.example"}')):
            read = await worker.request("GET", f"{items}/t{number}")
            assert (read.status, read.content["value"]) == (200, value)
        copied = await worker.request("POST", "/admin/namespaces/backfill", {})
        while copied.status == 202:
            copied = await worker.request("POST", "/admin/namespaces/backfill", {})
        assert copied.status == 200, copied.body
        assert {source["tier"] for source in copied.content["backfill"]} == {"warm", "cold"}
        rows = await worker.rows("SELECT key, value FROM memory_items WHERE namespace_key = 'crm:acme:s1' ORDER BY key")
        assert [row["key"] for row in rows] == [f"crm:acme:s1:conversation:t{number}" for number in range(3)]
        assert (rows[0]["value"], rows[2]["value"]) == ("zero", "two")
        assert "a@b.example" not in rows[1]["value"]
        worker.clock.advance(3_600_000)
        await worker.request("GET", f"{items}/t0")
        await worker.settled()
        shown = (await worker.request("GET", "/admin/namespaces")).content
        assert (shown["phase"], shown["flags"]) == (2, {"write_canonical": True, "compat_read": True, "fit": True})
        assert await worker.rows("SELECT * FROM namespace_reads") != []


async def test_an_administrator_s_routes_share_the_isolate_s_parts(worker: Worker) -> None:
    parts = parts_of(worker)
    context, directory = parts.admin, parts.directory
    assert (context.tenants, context.sql) == (directory.tenants, parts.platform.sql)
    assert (context.stores, context.clock) == (parts.lifecycle.stores, bindings.now_ms)
    assert context.background is bindings.in_background
    assert [await context.agents.house_of("acme", agent) for agent in ("refund_decision", "sdr")] == ["orders", None]
    agents = parts.agents
    assert (agents.tenants, agents.agents, agents.agents.catalogue) == (
        directory.tenants,
        directory.agents,
        directory.catalogue,
    )
    assert (agents.instances, agents.sql) == (parts.platform.instances, parts.platform.sql)


async def test_an_agent_that_shares_its_users_says_so() -> None:
    texts = {"description": "d", "instructions": "i"}
    sharing = {"type": "poet", **texts, "memory_config": {"long_term_enabled": True, "user": "shared"}}
    async with serving(agents=staged_agents(sharing, {"type": "clerk", **texts})) as worker:
        context = parts_of(worker).admin
        views = [await context.view("acme", agent, None, "ann") for agent in ("poet", "clerk")]
        assert [Scope("acme", user_id="ann") in view.also for view in views] == [True, False]


async def test_an_administrator_reads_no_hot_copy_that_is_older_than_d1(worker: Worker) -> None:
    await worker.tenant()
    path, key = "/admin/tenants/acme/items/shop/s-1/cart/active", "shop:acme:s-1:cart:active"
    await worker.request("PUT", path, {"value": "old"})
    stale = await worker.kv.store.get(key)
    assert stale is not None
    await worker.request("PUT", path, {"value": "new"})
    await worker.kv.store.put(key, stale)
    worker.restart()
    assert (await worker.request("GET", path)).content["value"] == "new"


async def test_the_stores_of_a_tenant_are_the_platform_s(worker: Worker) -> None:
    parts = parts_of(worker)
    stores, platform = parts.lifecycle.stores, parts.platform
    names = ("sql", "kv", "objects", "index", "instances")
    assert [getattr(stores, name) for name in names] == [getattr(platform, name) for name in names]
    assert stores.embedder() is parts.models.embedder
    assert stores.clock is bindings.now_ms
    assert stores.sealer is parts.lifecycle.sealer
    assert {table.name for table in stores.tables} >= {"memory_records", "memory_items", "agent_runs"}
    assert not stores.namespacing().patterns


async def test_work_in_the_background_that_fails_is_logged(worker: Worker, capsys: pytest.CaptureFixture[str]) -> None:
    parts_of(worker)

    async def failing(error: Exception) -> None:
        raise error

    for error in (Misconfigured("m", code="not_staged"), ValueError("v")):
        bindings.in_background(failing(error))
        await worker.settled()
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(line["message"], line["level"], line.get("code")) for line in lines] == [
        ("background work failed", "error", "not_staged"),
        ("background work failed", "error", None),
    ]
    assert "ValueError" in lines[1]["exception"]
    assert lines[0]["logger"] == "retain.bindings"
