"""Calls of the tiers, many in one request, for the benchmark."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from retain.items.builder import MemoryBuilder
from retain.items.client import MemoryClient
from retain.items.tiers.sql_warm import SqlWarm
from retain.items.tiers.stores import KvHot, ObjectsCold
from retain.namespace import Namespace
from tests.workerd.inside.platform import bindings

NAMESPACE = Namespace("bench", "default", "s-1")
_KEY = f"{NAMESPACE}:preferences:raw"


async def tier_calls(env: Any, asked: dict[str, Any]) -> Any:
    """Do one kind of call `calls` times, one after the other."""
    hot, cold = KvHot(bindings.WorkersKv(env.KV)), ObjectsCold(bindings.R2(env.COLD))
    warm = SqlWarm(bindings.D1(env.DB), NAMESPACE.tenant_id, bindings.now_ms)
    value = asked["value"]

    def memory(**rules: Any) -> MemoryClient:
        builder = MemoryBuilder(NAMESPACE, bindings.now_ms).with_hot(hot).with_warm(warm).with_cold(cold)
        return builder.with_rules(**rules).build()

    plain = {"promote_on_read": False, "write_through": False}
    calls: dict[str, Callable[[], Awaitable[object]]] = {
        "hot read": lambda: hot.get(_KEY),
        "warm read": lambda: warm.read(_KEY),
        "cold read": lambda: cold.download_text(f"bench/{_KEY}"),
        "hot write": lambda: hot.set(_KEY, value, ttl=900),
        "warm write": lambda: warm.upsert(_KEY, value),
        "cold write": lambda: cold.upload_text(f"bench/{_KEY}", value),
        "get, hot copy": lambda: memory().get("preferences", "hot"),
        "get, hot copy, checked": lambda: memory(hot_reads="checked").get("preferences", "hot"),
        "get, from warm": lambda: memory(**plain).get("preferences", "warm"),
        "get, from cold": lambda: memory(**plain).get("order_history", "one"),
        "put preferences": lambda: memory(**plain).put("preferences", "warm", value),
        "put preferences, write_through": lambda: memory().put("preferences", "hot", value),
        "put order_history": lambda: memory(**plain).put("order_history", "one", value),
    }
    if asked["kind"] != "nothing":
        for _ in range(asked["calls"]):
            await calls[asked["kind"]]()
    return {}
