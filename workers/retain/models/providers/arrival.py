"""An answer that was asked for as a stream, and may come whole: some servers ignore `stream`, and proxies answer HTML."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass

from retain.errors import UnusableAnswer

MAX_WHOLE_BYTES = 4_000_000
"""Largest answer that is read whole: many times the size of any model's answer."""
_NOT_AN_EVENT = b"{[<"


@dataclass(frozen=True, slots=True)
class Arrival:
    """A body that begins to arrive. whole: its text when it is no stream of events; otherwise None. pieces: all of it."""

    whole: str | None
    pieces: AsyncIterator[bytes]


async def arrival(chunks: AsyncIterator[bytes]) -> Arrival:
    """Return the body, read whole when its first character cannot begin an event.

    Raises: as the chunks; UnusableAnswer (code `malformed_answer`) when a whole one is too large.
    """
    begun = b""
    async for chunk in chunks:
        begun += chunk
        first = begun.removeprefix(b"\xef\xbb\xbf").lstrip()[:1]
        if first and first in _NOT_AN_EVENT:
            return Arrival(await _rest(begun, chunks), chunks)
        if first:
            break
    return Arrival(None, _joined(begun, chunks))


async def _rest(begun: bytes, chunks: AsyncIterator[bytes]) -> str:
    pieces, size = [begun], len(begun)
    async for chunk in chunks:
        pieces.append(chunk)
        size += len(chunk)
        if size > MAX_WHOLE_BYTES:
            raise UnusableAnswer("the model's server sent an answer that is too long", code="malformed_answer")
    return b"".join(pieces).decode(errors="replace").removeprefix("\ufeff")


async def _joined(begun: bytes, chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    if begun:
        yield begun
    async for chunk in chunks:
        yield chunk
