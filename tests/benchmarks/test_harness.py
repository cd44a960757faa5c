"""The harness of benchmarks: a client that waits for whole answers, contestants in turn, and processes that are counted."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import cast

import pytest

from benchmarks.harness.client import Client, Refused
from benchmarks.harness.contestant import Call, HttpContestant
from benchmarks.harness.interleaving import Plan, measure
from benchmarks.harness.processes import usage_of, with_descendants


@asynccontextmanager
async def answering(*pieces: bytes) -> AsyncIterator[int]:
    """Serve answers that arrive in these pieces, each after a turn of the event loop; yield the port."""

    served: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        served.add(cast("asyncio.Task[None]", asyncio.current_task()))
        with suppress(asyncio.IncompleteReadError):
            while await reader.readuntil(b"\r\n\r\n"):
                for piece in pieces:
                    writer.write(piece)
                    await writer.drain()
                    await asyncio.sleep(0)
        writer.close()
        await writer.wait_closed()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        await asyncio.gather(*served)  # they end when the clients have closed their connections


@pytest.mark.parametrize(
    "pieces",
    [
        pytest.param([b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello"], id="whole"),
        pytest.param([b"HTTP/1.1 200 OK\r\nContent-Le", b"ngth: 5\r\n\r\nhel", b"lo"], id="in pieces"),
        pytest.param(
            [b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3", b"\r\nllo\r\n0\r\n\r\n"],
            id="chunked",
        ),
    ],
)
async def test_the_client_waits_for_the_whole_answer(pieces: Sequence[bytes]) -> None:
    async with answering(*pieces) as port:
        client = await Client.connect(port)
        for _ in range(2):
            assert await client.ask(b"GET / HTTP/1.1\r\n\r\n") == (200, b"hello")
        client.close()


async def test_an_answer_with_another_status_ends_the_benchmark() -> None:
    async with answering(b"HTTP/1.1 503 Busy\r\ncontent-length: 4\r\n\r\nbusy") as port:
        contestant = HttpContestant("server", port, Call("GET", "/"), {})
        with pytest.raises(Refused, match="server answered 503: busy"):
            await contestant.block(2, 4)
        contestant.close()


async def test_each_block_has_as_many_operations_as_asked_for() -> None:
    async with answering(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n") as port:
        contestant = HttpContestant("server", port, lambda: Call("GET", "/"), {})
        assert len(await contestant.block(3, 10)) == 10
        contestant.close()


@dataclass
class Noted:
    """A contestant that notes when it is called."""

    name: str
    order: list[str]
    processes: Mapping[str, Sequence[int]] = field(default_factory=lambda: {"own": [os.getpid()]})

    async def block(self, connections: int, calls: int) -> list[float]:
        self.order.append(self.name)
        return [float(connections)] * calls

    async def counters(self) -> Mapping[str, float]:
        return {"blocks": self.order.count(self.name)}


async def test_contestants_are_called_in_turn_and_each_begins_a_round() -> None:
    order: list[str] = []
    series = await measure([Noted(name, order) for name in "abc"], 2, Plan(rounds=3, calls=5, warm_up=1))
    assert "".join(order) == "abc" + "abc" + "bca" + "cab"
    assert [len(series[name].blocks) for name in "abc"] == [3, 3, 3]
    assert [block.counted for block in series["a"].blocks] == [{"blocks": 1}] * 3


def test_processes_are_counted_with_what_they_started() -> None:
    script = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'input()']); input()"
    child = subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE)
    try:
        while len(found := with_descendants(child.pid)) < 2:
            assert child.poll() is None
        assert found[0] == child.pid
        used = usage_of(found)
        assert used.cpu_ms > 0
        assert used.resident_bytes > 0
        assert usage_of([0]).cpu_ms == 0
    finally:
        child.communicate(b"\n\n")
