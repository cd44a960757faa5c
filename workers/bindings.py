"""The platform behind Retain's ports: `env` is unpacked here, once, into a frozen dataclass.

The adapters are in `adapters/`. Before it calls, each refuses what the platform's documented limits forbid
(`retain.limits.storage`), because local simulators enforce few of them, and some with an uninformative error.

Bindings take and return Python values; work passed to waitUntil must be a future, or it is lost.
Source: https://developers.cloudflare.com/workers/languages/python/
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import js

from adapters.databases import D1, DurableAlarm, DurableSql
from adapters.services import DurableInstances, DurableWriters, PlatformRates, WorkersAi
from adapters.stores import R2, WorkersKv
from adapters.vectorize import Vectorize
from adapters.web import WebCrypto, fetch, fetch_stream, time_zones
from retain import errors
from retain.attachments.objects import StreamedObjects
from retain.limits.rates import Rates, Unlimited
from retain.limits.vector_filter import declared
from retain.ports import (
    AgentInstances,
    Crypto,
    Kv,
    PropertyType,
    RateLimiter,
    Sql,
    TenantWriters,
    VectorIndex,
)
from retain.schema.database import KnownSchemaSql
from retain.settings import NAMES as SETTING_NAMES
from retain.settings import Settings, read_settings
from retain.tenants.attribution import AttributedSql
from workers import wait_until

if TYPE_CHECKING:
    from cloudflare_bindings import Env, RateLimit

    from retain.shards.shards import Shards

__all__ = [
    "D1",
    "R2",
    "DurableAlarm",
    "DurableInstances",
    "DurableSql",
    "DurableWriters",
    "Platform",
    "Vectorize",
    "WebCrypto",
    "WorkersAi",
    "WorkersKv",
    "fetch",
    "fetch_stream",
    "in_background",
    "now_ms",
    "platform_of",
    "prepare_libraries",
    "staged_bytes",
    "staged_text",
    "time_zones",
]

_log = logging.getLogger("retain.bindings")


def now_ms() -> int:
    """Return the current time in epoch milliseconds. It advances only while waiting, and never goes back.

    Not `time.time()`: in workerd that advances a millisecond per call within an event loop turn, and falls back after
    it.
    Source: https://github.com/cloudflare/workerd/blob/main/src/pyodide/internal/builtin_wrappers.ts (monotonicDateNow)
    """
    return int(js.Date.now())


def in_background(work: Coroutine[Any, Any, None]) -> None:
    """Run the coroutine to completion after the answer was sent; log its failure."""

    async def guarded() -> None:
        try:
            await work
        except errors.RetainError as error:
            _log.error("background work failed", extra={"code": error.code})
        except Exception:  # noqa: BLE001 -- nobody else hears of it
            _log.exception("background work failed")

    wait_until(asyncio.ensure_future(guarded()))


def prepare_libraries() -> None:
    """Make synchronous HTTP libraries usable in calls of function tools. Idempotent; imports none of them."""
    from adapters.blocking_http import prepare_libraries  # only for agents with function tools

    prepare_libraries()


@dataclass(frozen=True, slots=True)
class Platform:
    """Everything that a request may use, as ports. Made once per isolate; the settings hold the secrets.

    shards: the databases, where there are several: then `sql` and `index` are those of the place (`retain.shards.place`).
    """

    kv: Kv
    sql: Sql
    objects: StreamedObjects
    index: VectorIndex
    instances: AgentInstances
    writers: TenantWriters
    ai: WorkersAi
    crypto: Crypto
    settings: Settings
    rates: Rates
    shards: Shards | None = None


def platform_of(env: Env) -> Platform:
    """Unpack `env`. Raises: Misconfigured for an invalid setting."""
    variables = {name: value for name in SETTING_NAMES if isinstance(value := getattr(env, name, None), str)}
    settings = read_settings(variables)
    kv = WorkersKv(env.KV)
    filters = declared(settings.vector_filters)
    sql: Sql = KnownSchemaSql(D1(env.DB))
    index: VectorIndex = Vectorize(env.VECTORIZE, filters)
    shards = None
    if getattr(env, "DB_1", None) is not None:
        from retain.shards.shards import Shards

        shards = Shards.of(_shards_of(env, sql, index, filters), kv, now_ms)
        sql, index = shards.sql, shards.index
    return Platform(
        kv=kv,
        sql=AttributedSql(sql),
        objects=R2(env.COLD),
        index=index,
        instances=DurableInstances(env.AGENT_RUNTIME),
        writers=DurableWriters(env.TENANT_WRITER),
        ai=WorkersAi(env),
        crypto=WebCrypto(),
        settings=settings,
        rates=Rates(*(_limiter(getattr(env, name, None)) for name in ("CALLER_RATE", "TENANT_RATE"))),
        shards=shards,
    )


def _shards_of(
    env: Env, sql: Sql, index: VectorIndex, filters: Mapping[str, PropertyType]
) -> dict[str, tuple[Sql, VectorIndex]]:
    """Return the databases with their indexes: DB and VECTORIZE, DB_1 and VECTORIZE_1, … without a gap.

    Raises: Misconfigured (code `invalid_setting`) for a database without its index.
    """
    shards = {"DB": (sql, index)}
    while (database := getattr(env, name := f"DB_{len(shards)}", None)) is not None:
        vectors = getattr(env, f"VECTORIZE_{len(shards)}", None)
        if vectors is None:
            raise errors.Misconfigured(f"the database {name} has no vector index of its own", code="invalid_setting")
        shards[name] = (KnownSchemaSql(D1(database)), Vectorize(vectors, filters))
    return shards


def _limiter(binding: RateLimit | None) -> RateLimiter:
    return Unlimited() if binding is None else PlatformRates(binding)


def staged_text(name: str) -> str:
    """Return a text file that staging put next to this module."""
    return Path(__file__).with_name(name).read_text()


def staged_bytes(name: str) -> bytes:
    """Return a file that staging put next to this module. Raises: Misconfigured when it was not staged."""
    try:
        return Path(__file__).with_name(name).read_bytes()
    except FileNotFoundError as error:
        raise errors.Misconfigured(f"{name} was not staged with the Worker", code="not_staged") from error
