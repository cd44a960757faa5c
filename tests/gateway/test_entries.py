"""What the gateway keeps of KV: for how long a revoked key works, and that a forged one learns and costs nothing more."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from retain.errors import Misconfigured, NotFound, Unauthenticated
from retain.gateway.credentials import credential_name
from retain.gateway.entries import MAX_CHARACTERS, REMEMBERED_KEYS, Entries, ToolEntries
from retain.gateway.keys import stored_name
from retain.gateway.provisioning import MAX_CONFIG_BYTES
from retain.gateway.proxy import prepare_tool, read_tool
from retain.gateway.tool_config import tool_name_in_kv
from retain.host.clock import ManualClock
from tests.gateway.setting import TENANT, TOOL, CountingKv, Setting, config, echoed, request

KEPT_MS = 5_000


async def test_a_warm_isolate_reads_nothing_while_it_keeps_what_kv_answered_and_then_all_at_once(
    setting: Setting,
) -> None:
    await setting.add_tool()
    api_key = await setting.add_key()
    gateway = setting.gateway(kept_ms=KEPT_MS)
    await gateway.handle(request(api_key))
    for passed_ms, calls in ((KEPT_MS - 1, []), (1, [3]), (KEPT_MS - 1, [])):
        setting.clock.advance(passed_ms)
        setting.kv.calls.clear()
        assert (await gateway.handle(request(api_key))).status == 200
        assert setting.kv.calls == calls


async def test_a_revoked_key_works_in_a_warm_isolate_for_as_long_as_it_is_kept_and_no_longer(setting: Setting) -> None:
    await setting.add_tool()
    api_key = await setting.add_key()
    gateway = setting.gateway(kept_ms=KEPT_MS)
    await gateway.handle(request(api_key))
    await setting.kv.delete(stored_name(api_key))
    for _ in range(3):  # calls do not prolong it
        setting.clock.advance(KEPT_MS // 4)
        assert (await gateway.handle(request(api_key))).status == 200
    setting.clock.advance(KEPT_MS // 4)
    for _ in range(2):
        with pytest.raises(Unauthenticated):
            await gateway.handle(request(api_key))
    with pytest.raises(Unauthenticated):
        await setting.gateway(kept_ms=KEPT_MS).handle(request(api_key))


async def test_a_key_that_expires_stops_working_on_time_although_it_is_kept(setting: Setting) -> None:
    await setting.add_tool()
    api_key = await setting.add_key(lifetime_ms=1_000)
    gateway = setting.gateway(kept_ms=KEPT_MS)
    await gateway.handle(request(api_key))
    setting.clock.advance(1_000)
    with pytest.raises(Unauthenticated):
        await gateway.handle(request(api_key))


async def test_a_changed_tool_and_credential_are_used_as_soon_as_the_earlier_ones_are_too_old(setting: Setting) -> None:
    await setting.add_tool()
    api_key = await setting.add_key()
    gateway = setting.gateway(kept_ms=KEPT_MS)
    await gateway.handle(request(api_key))
    await setting.add_tool("/echo/second", version=2)
    await setting.add_credential("another-secret")
    assert echoed(await gateway.handle(request(api_key)))["target"] == "/echo"
    setting.clock.advance(KEPT_MS)
    seen = echoed(await gateway.handle(request(api_key)))
    assert (seen["target"], seen["headers"]["authorization"]) == ("/echo/second", "Bearer another-secret")


async def test_what_is_missing_is_not_kept(setting: Setting) -> None:
    api_key = await setting.add_key()
    gateway = setting.gateway(kept_ms=KEPT_MS)
    for _ in range(2):
        with pytest.raises(NotFound):
            await gateway.handle(request(api_key))
    await setting.add_tool()
    await setting.kv.delete(credential_name(TENANT, TOOL))
    with pytest.raises(Misconfigured):
        await gateway.handle(request(api_key))
    await setting.add_credential()
    assert (await gateway.handle(request(api_key))).status == 200


async def test_a_forged_key_that_names_a_tenant_costs_one_read_and_none_of_the_tenants_entries(
    setting: Setting,
) -> None:
    await setting.add_tool()
    gateway = setting.gateway(kept_ms=KEPT_MS)
    await gateway.handle(request(await setting.add_key()))
    for forged in (f"retain_{TENANT}_forged", f"retain_{TENANT}_forged"):
        setting.kv.reads.clear()
        with pytest.raises(Unauthenticated):
            await gateway.handle(request(forged))
        assert setting.kv.reads == [stored_name(forged)]


async def test_a_key_is_read_with_the_tools_of_its_own_tenant_alone(setting: Setting) -> None:
    await setting.add_tool()
    await setting.add_tool("/echo/globex", tenant="globex")
    keys = {tenant: await setting.add_key(tenant=tenant) for tenant in (TENANT, "globex")}
    gateway = setting.gateway()
    for _ in range(2):
        for tenant, target in ((TENANT, "/echo"), ("globex", "/echo/globex")):
            setting.kv.reads.clear()
            assert echoed(await gateway.handle(request(keys[tenant])))["target"] == target
            others = setting.kv.reads[1:]
            assert others == [tool_name_in_kv(tenant, TOOL), credential_name(tenant, TOOL)]


async def test_entries_that_were_read_for_another_tool_are_not_used() -> None:
    kv = CountingKv(ManualClock(0))
    entries = Entries(kv, ManualClock(0), 0)
    read = ToolEntries("globex", TOOL, "config of globex", "sealed")
    assert await entries.tool(TENANT, TOOL, read) == ToolEntries(TENANT, TOOL, None, None)
    assert await entries.tool("globex", TOOL, read) is read


async def test_what_is_kept_is_bounded() -> None:
    clock = ManualClock(0)
    kv = CountingKv(clock)
    entries = Entries(kv, clock, KEPT_MS)
    large = MAX_CHARACTERS // 4
    for number in range(6):
        entries.keep_tool(ToolEntries(TENANT, f"tool_{number}", "x" * large, None))
    for number in range(6):
        await entries.tool(TENANT, f"tool_{number}", None)
    assert kv.calls == [2, 2]  # the two that were dropped
    for number in range(REMEMBERED_KEYS + 1):
        entries.keep_key(f"gateway_key:{number}", "{}", TENANT)
    clock.advance(KEPT_MS)
    for number, calls in ((0, [1]), (REMEMBERED_KEYS, [3])):
        kv.calls.clear()
        await entries.key(f"gateway_key:{number}", TOOL)
        assert kv.calls == calls


@pytest.mark.parametrize(("read", "most"), [(read_tool, 2 * 2**20), (prepare_tool, 2**20)])
def test_what_was_read_of_configurations_is_kept_by_their_size(read: Callable[..., object], most: int) -> None:
    """An isolate has 128 MB. What is read takes six times the memory of its text, and a compiled schema fifteen times."""
    texts = [json.dumps(config(description=f"Tool {number}.", parameters={"type": "object"})) for number in range(1000)]
    first = read(texts[0], allow_loopback=False)
    for text in texts:
        read(text, allow_loopback=False)
    assert read(texts[0], allow_loopback=False) is first
    for number in range(most // MAX_CONFIG_BYTES + 1):
        filled = {"type": "object", "title": f"{number:>{MAX_CONFIG_BYTES - 1000}}"}
        read(json.dumps(config(parameters=filled)), allow_loopback=False)
    again = read(texts[0], allow_loopback=False)
    assert (getattr(again, "config", again), again is first) == (getattr(first, "config", first), False)
