"""Streams of bytes, as `js` has them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass

from tests.shell.platform.ffi import Buffer, JsException, bytes_of


@dataclass
class Piece:
    """What a reader read: a value, or the end."""

    done: bool
    value: Buffer


class ReadableStream:
    """Pieces that arrive. It can be read once. received: how many bytes of them were read."""

    def __init__(self, pieces: AsyncIterator[bytes]) -> None:
        self._pieces = pieces
        self._kept = b""
        self.locked = False
        self.cancelled = False
        self.received = 0

    def getReader(self, *, mode: str = "default") -> Reader:
        """Lock the stream for one reader."""
        if self.locked:
            raise JsException("the stream is locked", "TypeError")
        self.locked = True
        return Reader(self, mode)

    async def cancel(self) -> None:
        """Abandon the stream."""
        self.cancelled = True

    async def take(self, most: int | None) -> bytes | None:
        """Return the next bytes, at most so many, or None at the end."""
        if not self._kept:
            try:
                self._kept = await anext(self._pieces)
            except StopAsyncIteration:
                return None
        taken, self._kept = (self._kept, b"") if most is None else (self._kept[:most], self._kept[most:])
        self.received += len(taken)
        return taken


class Reader:
    """Reads a stream. mode: "byob" reads into a buffer that the caller brings."""

    def __init__(self, stream: ReadableStream, mode: str) -> None:
        self._stream = stream
        self._mode = mode

    async def read(self, view: Buffer | None = None) -> Piece:
        """Return the next piece."""
        if (view is not None) != (self._mode == "byob"):
            raise JsException("a buffer is for a reader of mode byob", "TypeError")
        piece = await self._stream.take(None if view is None else len(bytes_of(view)))
        if piece is None:
            return Piece(True, Buffer(b""))
        return Piece(False, Buffer(piece) if view is None else View(piece, len(view.content)))

    async def cancel(self) -> None:
        """Abandon the stream."""
        self._stream.cancelled = True

    def releaseLock(self) -> None:
        """Let the stream be read by another reader."""
        self._stream.locked = False


class View(Buffer):
    """A part of a buffer that a reader filled. The buffer under it keeps its size."""

    def __init__(self, content: bytes, size: int) -> None:
        super().__init__(content)
        self._size = size

    @property
    def buffer(self) -> Buffer:
        return Buffer(bytes(self._size))


class TransformStream:
    """What is written at one end is read at the other."""

    def __init__(self) -> None:
        self._queue: asyncio.Queue[bytes | JsException | None] = asyncio.Queue(1)
        self.readable = ReadableStream(self._pieces())
        self.writable = self

    @classmethod
    def new(cls) -> TransformStream:
        """Return an empty one."""
        return cls()

    def getWriter(self) -> TransformStream:
        """Return the end at which is written."""
        return self

    async def write(self, chunk: object) -> None:
        """Write one piece, when the other end has room. Raises: JsException when it was abandoned."""
        await self._put(bytes_of(chunk))

    async def close(self) -> None:
        """End the stream."""
        await self._put(None)

    async def abort(self, reason: str) -> None:
        """Break the stream off: who reads it gets the reason as an error."""
        await self._put(JsException(reason))

    async def _put(self, what: bytes | JsException | None) -> None:
        if self.readable.cancelled:
            raise JsException("the reader went away", "AbortError")
        await self._queue.put(what)

    async def _pieces(self) -> AsyncIterator[bytes]:
        while (piece := await self._queue.get()) is not None:
            if isinstance(piece, JsException):
                raise piece
            yield piece


class FixedLengthStream(TransformStream):
    """The same for so many bytes: more are refused, and fewer break it off."""

    def __init__(self, length: int = 0) -> None:
        super().__init__()
        self._left = length

    @classmethod
    def new(cls, length: int = 0) -> FixedLengthStream:
        """Return an empty one."""
        return cls(length)

    async def write(self, chunk: object) -> None:
        """Write one piece. Raises: JsException for one that is too long."""
        self._left -= len(bytes_of(chunk))
        if self._left < 0:
            raise JsException("more bytes than the stream has", "TypeError")
        await super().write(chunk)

    async def close(self) -> None:
        """End the stream, which breaks off if it is not complete."""
        if self._left:
            await self.abort("fewer bytes than the stream has")
            raise JsException("fewer bytes than the stream has", "TypeError")
        await super().close()
