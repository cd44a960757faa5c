"""The contract suites on the platform's adapters."""

from __future__ import annotations

import pkgutil
import traceback
from importlib import import_module
from typing import Any

import tests.ports
from retain.items.tiers.sql_warm import SqlWarm
from retain.items.tiers.stores import KvHot, ObjectsCold
from tests.ports import cases
from tests.workerd.inside.platform import bindings

IN_OBJECT = ("object_sql",)
"""Suites whose port belongs to one Durable Object. Each case gets an object of its own."""


def listing() -> list[list[str]]:
    """Return every case that was staged, as pairs of suite and case."""
    names = sorted(module.name for module in pkgutil.iter_modules(tests.ports.__path__))
    return [[suite, case] for suite in names for case in cases(import_module(f"tests.ports.{suite}"))]


async def run(suite: str, case: str, ports: tuple[Any, ...]) -> dict[str, Any]:
    """Run one case; return whether it passed, and its traceback if not."""
    try:
        await cases(import_module(f"tests.ports.{suite}"))[case](*ports)
    except Exception:  # noqa: BLE001 -- the host's test shows it
        return {"passed": False, "error": traceback.format_exc()}
    return {"passed": True, "error": ""}


def worker_ports(suite: str, env: Any, asked: dict[str, Any]) -> tuple[Any, ...]:
    """Return what the suite's cases take. asked: the request's content, with `origin` for the suites of fetching."""
    match suite:
        case "kv":
            return (bindings.WorkersKv(env.KV),)
        case "sql":
            return (bindings.D1(env.DB),)
        case "objects":
            return (bindings.R2(env.COLD),)
        case "vector_index":
            return (bindings.Vectorize(env.VECTORIZE),)
        case "crypto":
            return (bindings.WebCrypto(),)
        case "time_zones":
            return (bindings.time_zones,)
        case "hot_memory":
            return (KvHot(bindings.WorkersKv(env.KV)),)
        case "warm_memory" | "catalogue":
            return (SqlWarm(bindings.D1(env.DB), "acme", bindings.now_ms),)
        case "cold_memory":
            return (ObjectsCold(bindings.R2(env.COLD)),)
        case "fetch":
            return (bindings.fetch, asked["origin"])
        case "fetch_stream":
            return (bindings.fetch_stream, asked["origin"])
    raise LookupError(f"there is no adapter for the suite {suite}")


def object_ports(suite: str, storage: Any) -> tuple[Any, ...]:
    """Return what the cases of a suite of `IN_OBJECT` take."""
    assert suite in IN_OBJECT
    return (bindings.DurableSql(storage),)
