"""An HTTP client that costs little: an HTTP library would take longer than the answers that are measured."""

from __future__ import annotations

import asyncio
from typing import cast

TIMEOUT_S = 120
"""How long one answer may take."""


class Refused(Exception):
    """The answer is not what the benchmark expects, so its time would mean nothing."""


class Client(asyncio.Protocol):
    """One connection to a server on loopback, which stays open. One request at a time."""

    def __init__(self) -> None:
        self._received = bytearray()
        self._answer: asyncio.Future[tuple[int, bytes]] | None = None
        self._transport: asyncio.Transport | None = None

    @classmethod
    async def connect(cls, port: int) -> Client:
        """Return a new connection."""
        _, client = await asyncio.get_running_loop().create_connection(cls, "127.0.0.1", port)
        return client

    @property
    def is_open(self) -> bool:
        """Whether the connection is open, as far as is known."""
        return self._transport is not None and not self._transport.is_closing()

    async def ask(self, request: bytes) -> tuple[int, bytes]:
        """Send a request and return the status and the body. Raises: Refused when the connection breaks; TimeoutError."""
        loop = asyncio.get_running_loop()
        self._answer = loop.create_future()
        if self._transport is None or self._transport.is_closing():
            raise Refused("the server closed the connection")
        self._transport.write(request)
        late = loop.call_later(TIMEOUT_S, self._late)
        try:
            return await self._answer
        finally:
            late.cancel()

    def close(self) -> None:
        """Close the connection."""
        if self._transport is not None:
            self._transport.close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport. Called by the event loop."""
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Take what arrived; the answer is complete with its last byte. Called by the event loop."""
        self._received += data
        found = _complete(self._received)
        if found is not None:
            self._received.clear()
            if self._answer is not None and not self._answer.done():
                self._answer.set_result(found)

    def connection_lost(self, exc: Exception | None) -> None:
        """Fail the request that waits. Called by the event loop."""
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(Refused(f"the connection broke off: {exc}"))

    def _late(self) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(TimeoutError(f"no answer within {TIMEOUT_S} s"))


def _complete(received: bytearray) -> tuple[int, bytes] | None:
    """Return the status and body of a complete answer, None while something is missing."""
    head, end, rest = received.partition(b"\r\n\r\n")
    if not end:
        return None
    status, fields = int(head[9:12]), bytes(head).lower()
    if b"\r\ntransfer-encoding: chunked" in fields:
        content = _joined(bytes(rest))
        return None if content is None else (status, content)
    _, named, length = fields.partition(b"\r\ncontent-length:")
    size = int(length.partition(b"\r\n")[0]) if named else 0
    return (status, bytes(rest)) if len(rest) >= size else None


def _joined(chunks: bytes) -> bytes | None:
    """Return the content of chunks, None while the last one is missing."""
    content: list[bytes] = []
    at = 0
    while (line := chunks.find(b"\r\n", at)) >= 0:
        size = int(chunks[at:line].partition(b";")[0], 16)
        if size == 0:
            return b"".join(content) if chunks.endswith(b"\r\n\r\n") else None
        content.append(chunks[line + 2 : line + 2 + size])
        at = line + 2 + size + 2
    return None
