"""Those that are compared."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from benchmarks.harness.client import Client, Refused

IDLE_S = 2.0
"""After this time a connection is opened again: workerd closes one that is idle for five seconds."""


class Contestant(Protocol):
    """One of those compared: what it does is one operation, the same for each."""

    @property
    def name(self) -> str:
        """As tables call it."""
        ...

    @property
    def processes(self) -> Mapping[str, Sequence[int]]:
        """The processes that do its work, by role. Several contestants may share one."""
        ...

    async def block(self, connections: int, calls: int) -> list[float]:
        """Do this many operations, so many at once; return the milliseconds of each. Raises: when one of them fails."""
        ...

    async def counters(self) -> Mapping[str, float]:
        """Return counts since it started, such as rows read; the differences are reported per operation."""
        ...


@dataclass(frozen=True, slots=True)
class Call:
    """A request over HTTP. body: text, or a value to send as JSON. expected: the status of its answer."""

    method: str
    path: str
    body: object = None
    headers: Mapping[str, str] = field(default_factory=dict)
    expected: int = 200

    def bytes_for(self, authority: str) -> bytes:
        """Return the request as it is sent to a host and port."""
        body = (
            b"" if self.body is None else (self.body if isinstance(self.body, str) else json.dumps(self.body)).encode()
        )
        given = {"host": authority, **({"content-type": "application/json"} if body else {}), **self.headers}
        lines = [f"{self.method} {self.path} HTTP/1.1", *(f"{name}: {value}" for name, value in given.items())]
        return ("\r\n".join([*lines, f"content-length: {len(body)}"]) + "\r\n\r\n").encode() + body


@dataclass
class HttpContestant:
    """A server that is called over HTTP with connections that stay open.

    next_call: returns the call of the next operation; a constant one is encoded once.
    count: returns counts since the start, where something counts.
    """

    name: str
    port: int
    next_call: Call | Callable[[], Call]
    processes: Mapping[str, Sequence[int]]
    count: Callable[[], Mapping[str, float]] | None = None
    _clients: list[Client] = field(default_factory=list, repr=False)
    _used_at_s: float = field(default=0.0, repr=False)

    async def block(self, connections: int, calls: int) -> list[float]:
        """See the protocol. Raises: Refused for an answer with another status."""
        authority = f"127.0.0.1:{self.port}"
        if time.monotonic() - self._used_at_s > IDLE_S:
            self.close()
        self._clients = [client for client in self._clients if client.is_open]  # a server closes those that were idle
        while len(self._clients) < connections:
            self._clients.append(await Client.connect(self.port))
        constant = self.next_call.bytes_for(authority) if isinstance(self.next_call, Call) else b""
        expected = self.next_call.expected if isinstance(self.next_call, Call) else 0
        times_ms: list[float] = []
        left = iter(range(calls))

        async def one(client: Client) -> None:
            for _ in left:
                sent, wanted = constant, expected
                if not isinstance(self.next_call, Call):
                    call = self.next_call()
                    sent, wanted = call.bytes_for(authority), call.expected
                started_ns = time.perf_counter_ns()
                status, content = await client.ask(sent)
                times_ms.append((time.perf_counter_ns() - started_ns) / 1e6)
                if status != wanted:
                    raise Refused(f"{self.name} answered {status}: {content[:500].decode(errors='replace')}")

        await asyncio.gather(*map(one, self._clients[:connections]))
        self._used_at_s = time.monotonic()
        return times_ms

    async def counters(self) -> Mapping[str, float]:
        """See the protocol."""
        return {} if self.count is None else await asyncio.to_thread(self.count)

    def close(self) -> None:
        """Close the connections."""
        for client in self._clients:
            client.close()
        self._clients.clear()
