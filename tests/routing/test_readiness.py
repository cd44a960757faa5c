"""Readiness: what each store answers, asked seldom and within a time."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable

import pytest

from retain.errors import Unavailable
from retain.host.clock import ManualClock
from retain.http import Response
from retain.routing import health
from retain.routing.health import KEPT_MS, ROUTER, Readiness
from tests.routing.test_router import request

Probe = Callable[[], Awaitable[object]]


async def _works() -> object:
    return None


async def _fails() -> object:
    raise Unavailable("away", code="d1_unavailable")


async def _hangs() -> object:
    await asyncio.Event().wait()
    return None


async def _asked(readiness: Readiness) -> Response:
    return await ROUTER.handle(readiness, request("GET", "/readyz"))


@pytest.mark.parametrize(
    ("d1", "r2", "status", "stores"),
    [
        (_works, _works, 200, {"d1": "ok", "r2": "ok"}),
        (_works, _fails, 200, {"d1": "ok", "r2": "d1_unavailable"}),
        (_fails, _works, 503, {"d1": "d1_unavailable", "r2": "ok"}),
        (_hangs, _works, 503, {"d1": "no_answer", "r2": "ok"}),
    ],
)
async def test_it_is_ready_when_the_required_stores_answer(
    monkeypatch: pytest.MonkeyPatch, d1: Probe, r2: Probe, status: int, stores: dict[str, str]
) -> None:
    monkeypatch.setattr(health, "PROBE_S", 0.05)
    answer = await _asked(Readiness({"d1": d1, "r2": r2}, ManualClock()))
    assert isinstance(answer.body, str)
    body = json.loads(answer.body)
    assert (answer.status, body["status"], body["stores"]) == (
        status,
        "ready" if status == 200 else "not_ready",
        stores,
    )


async def test_the_stores_are_asked_again_only_after_a_time() -> None:
    asked: list[int] = []

    async def count() -> object:
        asked.append(1)
        return None

    clock = ManualClock()
    readiness = Readiness({"kv": count}, clock)
    for _ in range(3):
        await _asked(readiness)
    clock.advance(KEPT_MS - 1)
    await _asked(readiness)
    assert len(asked) == 1
    clock.advance(1)
    await _asked(readiness)
    assert len(asked) == 2


async def test_while_the_stores_are_asked_again_others_get_the_last_result() -> None:
    let_go = asyncio.Event()
    let_go.set()

    async def slow() -> object:
        await let_go.wait()
        return None

    clock = ManualClock()
    readiness = Readiness({"kv": slow}, clock)
    await _asked(readiness)
    let_go.clear()
    clock.advance(KEPT_MS)
    slow_one = asyncio.create_task(_asked(readiness))
    await asyncio.sleep(0)
    assert (await _asked(readiness)).status == 200
    assert not slow_one.done()
    let_go.set()
    assert (await slow_one).status == 200
