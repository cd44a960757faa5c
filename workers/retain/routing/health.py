"""Whether the Worker runs, and whether it can serve: answered to anyone."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Literal

from retain.errors import RetainError
from retain.http import Response, json_response
from retain.ports import Clock
from retain.routing.requests import PathRequest
from retain.routing.route import Answer, Resource, Route
from retain.routing.router import Router
from retain.schema.database import VERSION
from retain.version import __version__

PROBE_S = 2.0
"""How long a store has to answer a probe, in seconds."""
KEPT_MS = 5_000
"""How long the result of the probes is answered again, in milliseconds: anyone may ask, and each probe is paid for."""
REQUIRED = frozenset({"d1", "kv"})
"""The stores without which nothing is served. Without the others a part of Retain works less, or later."""

Probe = Callable[[], Awaitable[object]]
"""Reads something small from a store. Raises: RetainError when it does not work."""


class Readiness:
    """Whether the stores answer, of one isolate."""

    def __init__(self, probes: Mapping[str, Probe], clock: Clock) -> None:
        self._probes = probes
        self._clock = clock
        self._asked_ms = 0
        self._found: dict[str, str] | None = None

    async def read(self) -> dict[str, str]:
        """Return `ok`, or the code of what is wrong, by store. While stores are asked again, others get the last result."""
        now = self._clock()
        if self._found is None or now >= self._asked_ms + KEPT_MS:
            self._asked_ms = now
            found = await asyncio.gather(*map(_verdict, self._probes.values()))
            self._found = dict(zip(self._probes, found, strict=True))
        return self._found


async def _verdict(probe: Probe) -> str:
    try:
        await asyncio.wait_for(probe(), PROBE_S)
    except RetainError as error:
        return error.code
    except TimeoutError:
        return "no_answer"
    return "ok"


@dataclass(frozen=True, slots=True)
class HealthAnswer:
    """That the Worker runs."""

    status: Literal["ok"]
    version: str


@dataclass(frozen=True, slots=True)
class ReadinessAnswer:
    """Whether the Worker can serve. schema: the version of D1's schema that it knows. stores: `ok` or a code, by store."""

    status: Literal["ready", "not_ready"]
    version: str
    schema: int
    stores: Mapping[str, str]


async def show_health(_: Readiness, __: PathRequest) -> Response:
    """Report that the Worker runs, and its version. Nothing is read."""
    return json_response(asdict(HealthAnswer("ok", __version__)))


async def show_readiness(readiness: Readiness, _: PathRequest) -> Response:
    """Report whether the Worker can serve, and what each store answers: `ok`, a code, or `no_answer`."""
    stores = await readiness.read()
    is_ready = all(stores[name] == "ok" for name in REQUIRED & stores.keys())
    shown = ReadinessAnswer("ready" if is_ready else "not_ready", __version__, VERSION, stores)
    return json_response(asdict(shown), 200 if is_ready else 503)


_READINESS = '`{"status", "version", "schema", "stores"}`'
RESOURCE: Resource[Readiness] = Resource(
    "Health",
    tuple(
        Route(method, path, handler, name=f"{verb}_{path[1:-1]}", guard="anyone", answers=answers)
        for path, handler, answers in (
            ("/healthz", show_health, (Answer(200, '`{"status": "ok", "version"}`', HealthAnswer),)),
            (
                "/readyz",
                show_readiness,
                (
                    Answer(200, f"`ready`: {_READINESS}", ReadinessAnswer),
                    Answer(
                        503,
                        "`not_ready`, with the same fields: D1 or KV does not answer, or the schema is not known",
                        ReadinessAnswer,
                    ),
                ),
            ),
        )
        for method, verb in (("GET", "get"), ("HEAD", "head"))
    ),
)
ROUTER: Router[Readiness] = Router((RESOURCE,), guard="anyone")
