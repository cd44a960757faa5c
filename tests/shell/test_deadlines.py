"""A store that never answers: whoever waits for it gets an answer in time, from every adapter."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from retain.errors import RetainError, Unavailable
from retain.ports import VectorEntry
from tests.host.echo_server import echo_server
from tests.shell.platform import js
from tests.shell.platform.http import Request
from tests.shell.platform.streams import ReadableStream
from tests.shell.worker import Worker, bindings

MEMORIES = "/admin/tenants/acme/memories"
ENTRY = VectorEntry("a", [1.0] * 256, "n", {})
Call = Callable[[Any], Awaitable[object]]

CALLS: dict[str, tuple[str, str, Call, str]] = {
    "KV get": ("kv", "get", lambda p: p.kv.get("k"), "kv_unavailable"),
    "KV put": ("kv", "put", lambda p: p.kv.put("k", "v"), "kv_unavailable"),
    "KV delete": ("kv", "delete", lambda p: p.kv.delete("k"), "kv_unavailable"),
    "KV list": ("kv", "list", lambda p: p.kv.list("k"), "kv_unavailable"),
    "D1 run": ("db", "all", lambda p: p.sql.run("SELECT 1"), "d1_unavailable"),
    "D1 batch": ("db", "batch", lambda p: p.sql.batch([("SELECT 1", ())]), "d1_unavailable"),
    "R2 get": ("cold", "get", lambda p: p.objects.get("k"), "r2_unavailable"),
    "R2 put": ("cold", "put", lambda p: p.objects.put("k", b"v"), "r2_unavailable"),
    "R2 add": ("cold", "put", lambda p: p.objects.add("k", b"v"), "r2_unavailable"),
    "R2 put_stream": ("cold", "put", lambda p: p.objects.put_stream("k", _pieces(), size_bytes=1), "r2_unavailable"),
    "R2 stream": ("cold", "get", lambda p: p.objects.stream("k"), "r2_unavailable"),
    "R2 delete": ("cold", "delete", lambda p: p.objects.delete("k"), "r2_unavailable"),
    "R2 list": ("cold", "list", lambda p: p.objects.list("k"), "r2_unavailable"),
    "Vectorize query": (
        "vectors",
        "query",
        lambda p: p.index.query([1.0] * 256, namespace="n", filter={}, top_k=1),
        "vector_index_unavailable",
    ),
    "Vectorize upsert": ("vectors", "upsert", lambda p: p.index.upsert([ENTRY]), "vector_index_unavailable"),
    "Vectorize get": ("vectors", "getByIds", lambda p: p.index.get_by_ids(["a"]), "vector_index_unavailable"),
    "Vectorize delete": ("vectors", "deleteByIds", lambda p: p.index.delete_by_ids(["a"]), "vector_index_unavailable"),
    "Vectorize describe": ("vectors", "describe", lambda p: p.index.count(), "vector_index_unavailable"),
    "an instance": ("agents", "call", lambda p: p.instances.call("a:b:c", "show", {}), "agent_instance_unavailable"),
    "a run": ("agents", "call", lambda p: p.instances.call("a:b:c", "run", {}), "agent_instance_unavailable"),
    "Workers AI": ("ai", "run", lambda p: p.ai("model", {}), "workers_ai_unavailable"),
}


async def _pieces() -> AsyncIterator[bytes]:
    yield b"v"


async def hanging(*_: object, **__: object) -> object:
    return await asyncio.get_running_loop().create_future()


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let deadlines pass a hundred times as fast."""
    monkeypatch.setattr(js, "pace", 0.01)


@pytest.mark.usefixtures("hurried")
@pytest.mark.parametrize("name", CALLS)
async def test_a_call_that_hangs_ends_with_the_code_of_its_store(
    worker: Worker, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    binding, method, call, code = CALLS[name]
    monkeypatch.setattr(js, "pace", 0.0001 if name in ("a run", "R2 put_stream") else js.pace)
    monkeypatch.setattr(getattr(worker, binding), method, hanging)
    with pytest.raises(Unavailable) as raised:
        async with asyncio.timeout(5):
            await call(bindings.platform_of(worker.env))
    assert raised.value.code == code


async def _stalled() -> AsyncIterator[bytes]:
    yield b"{"
    await hanging()


def _stalling(length: dict[str, str]) -> Request:
    request = Request("POST", f"http://127.0.0.1{MEMORIES}", length, [])
    request.body = ReadableStream(_stalled())
    return request


LENGTHS = pytest.mark.parametrize(
    "length", [{"content-length": "1000000"}, {}], ids=["with a length", "without a length"]
)


@LENGTHS
async def test_a_body_that_does_not_come_holds_up_nobody(worker: Worker, length: dict[str, str]) -> None:
    await worker.tenant()
    stalled = [_stalling(length) for _ in range(3)]  # as much as requests may have together
    sending = [asyncio.create_task(worker.send(one)) for one in stalled]
    async with asyncio.timeout(8):
        while not all(one.body is not None and one.body.received for one in stalled[:2]):
            await asyncio.sleep(0)
        assert (await worker.request("GET", MEMORIES)).status == 200
        short = {"content-length": "20"}
        assert (await worker.request("POST", MEMORIES, {"content": "short"}, headers=short)).status == 201
    for one in sending:
        one.cancel()
    await asyncio.gather(*sending, return_exceptions=True)


@LENGTHS
@pytest.mark.usefixtures("hurried")
async def test_a_body_that_does_not_come_is_given_up(worker: Worker, length: dict[str, str]) -> None:
    await worker.tenant()
    async with asyncio.timeout(5):
        answer = await worker.send(_stalling(length))
    assert (answer.status, answer.content["code"]) == (503, "body_interrupted")


async def test_a_body_that_comes_slowly_but_steadily_is_read(worker: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each piece takes a tenth of what a body may take before it has begun, and all of them longer."""
    await worker.tenant()
    monkeypatch.setattr(js, "pace", 0.01)
    body = b'{"content": "' + b"a b " * 12_000 + b'"}'

    async def pieces() -> AsyncIterator[bytes]:
        for start in range(0, len(body), 4_000):
            await asyncio.sleep(0.01)
            yield body[start : start + 4_000]

    for length in ({"content-length": str(len(body))}, {}):
        request = Request("POST", f"http://127.0.0.1{MEMORIES}", length, [])
        request.body = ReadableStream(pieces())
        assert (await worker.send(request)).status in (200, 201)


async def test_a_call_that_answers_leaves_no_timer(worker: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    timers: list[asyncio.TimerHandle] = []
    set_timeout = js.setTimeout

    def noting(work: Callable[[], None], delay_ms: int) -> asyncio.TimerHandle:
        timers.append(set_timeout(work, delay_ms))
        return timers[-1]

    monkeypatch.setattr("adapters.deadline._timers", lambda: (noting, js.clearTimeout))
    platform = bindings.platform_of(worker.env)
    await platform.kv.get("k")
    worker.db.down = True
    with pytest.raises(RetainError):
        await platform.sql.run("SELECT 1")
    assert len(timers) >= 2
    assert all(timer.cancelled() for timer in timers)


async def test_a_cancellation_inside_a_deadline_stays_one(worker: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker.kv, "get", hanging)
    task = asyncio.ensure_future(bindings.platform_of(worker.env).kv.get("k"))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_cancelled_task_aborts_its_request(worker: Worker) -> None:
    with echo_server() as server:
        options: dict[str, Any] = {"headers": {}, "body": None, "timeout_ms": 60_000}
        task = asyncio.ensure_future(bindings.fetch("GET", f"{server.origin}/silent", **options))
        await asyncio.sleep(0.1)
        assert not js.AbortController.opened[-1].signal.ended.done()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert js.AbortController.opened[-1].signal.ended.done()


@pytest.mark.usefixtures("hurried")
async def test_a_hanging_vector_index_degrades_a_recall_and_a_store_is_owed(
    worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    await worker.tenant()
    await worker.request("POST", MEMORIES, {"content": "Ann prefers e-mail."})
    for method in ("query", "upsert", "describe", "getByIds", "deleteByIds"):
        monkeypatch.setattr(worker.vectors, method, hanging)
    began = time.monotonic()
    stored = await worker.request("POST", MEMORIES, {"content": "Bob prefers a call."})
    assert (stored.status, stored.content["degraded"]) == (201, ["vectors"])
    for query in ("prefers e-mail", "prefers a call"):
        recalled = await worker.request("POST", f"{MEMORIES}/recall", {"query": query, "top_k": 1})
        assert recalled.content["degraded"] == ["vectors"]
        assert query in recalled.content["memories"][0]["content"]
    assert time.monotonic() - began < 5


async def test_a_recall_that_lacks_nothing_says_so(worker: Worker) -> None:
    await worker.tenant()
    stored = await worker.request("POST", MEMORIES, {"content": "Ann prefers e-mail."})
    assert "degraded" not in stored.content
    assert (await worker.request("POST", f"{MEMORIES}/recall", {"query": "Ann"})).content["degraded"] == []
