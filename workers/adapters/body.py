"""The body of a request while it arrives."""

from __future__ import annotations

import contextlib
import time
from collections.abc import AsyncGenerator

import js
from pyodide.ffi import JsException

from adapters.deadline import within
from retain.errors import InvalidInput, LimitExceeded, Unavailable
from retain.limits.deadlines import BODY_BYTES_PER_MS, BODY_MS
from retain.limits.room import SMALL_BYTES

PIECE_BYTES = 64 * 1024
"""Largest piece of a body that is read at once."""
MAX_DISCARDED_BYTES = 100 * 1024 * 1024
"""Most bytes of an unwanted body that are received, so that its sender reads the answer and not a broken connection."""


class ArrivingBody:
    """Implements `retain.http.Arriving`. limit_bytes: most bytes that are kept."""

    def __init__(self, request: js.Request, limit_bytes: int) -> None:
        self._request = request
        self._limit_bytes = limit_bytes
        self._announced = _announced(request)
        self._is_read = False
        self._reading: AsyncGenerator[bytes, None] | None = None

    @property
    def most_bytes(self) -> int:
        return self._limit_bytes if self._announced is None else self._announced

    def check_length(self) -> None:
        if self._announced is not None and self._announced > self._limit_bytes:
            raise self._too_large()

    async def text(self) -> str:
        if self._announced is not None and self._announced <= SMALL_BYTES:
            # The platform gives no more bytes than were announced. One that stops keeps no room from others.
            self._is_read = True
            try:
                return _decoded((await self._request.arrayBuffer()).to_bytes())
            except JsException as error:
                raise _interrupted() from error
        content = bytearray()
        async for piece in self.pieces():
            content += piece
        return _decoded(content)

    def pieces(self) -> AsyncGenerator[bytes, None]:
        self._reading = self._read()
        return self._reading

    async def _read(self) -> AsyncGenerator[bytes, None]:
        # One buffer serves all pieces: new ones would stay in memory until JavaScript collects them.
        if not self._request.body:
            return
        reader = self._request.body.getReader(mode="byob")
        view, received, waited_ms = js.Uint8Array.new(PIECE_BYTES), 0, 0.0
        try:
            while True:
                began_s = time.monotonic()
                try:
                    left_ms = BODY_MS + received // BODY_BYTES_PER_MS - int(waited_ms)
                    async with within(max(left_ms, 1), "the body", "body_interrupted"):
                        piece = await reader.read(view)
                except (JsException, Unavailable) as error:
                    self._is_read = True
                    raise _interrupted() from error
                waited_ms += (time.monotonic() - began_s) * 1000
                if piece.done:
                    self._is_read = True
                    return
                received += int(piece.value.byteLength)
                if received > self._limit_bytes:
                    raise self._too_large()
                content = piece.value.to_bytes()
                view = js.Uint8Array.new(piece.value.buffer)
                yield content
        finally:
            with contextlib.suppress(JsException):  # a read that nobody waits for any more
                reader.releaseLock()

    async def discard_rest(self) -> None:
        """Receive and discard what was not read, unless it is huge. A sender that gives up meanwhile is not an error."""
        if self._reading is not None:
            await self._reading.aclose()
        if self._is_read or not self._request.body or (self._announced or 0) > MAX_DISCARDED_BYTES:
            return
        self._is_read = True
        rest = ArrivingBody(self._request, MAX_DISCARDED_BYTES)
        with contextlib.suppress(LimitExceeded, Unavailable):
            async for _ in rest.pieces():
                pass

    def _too_large(self) -> LimitExceeded:
        return LimitExceeded("the body is too large", code="body_too_large", limit_bytes=self._limit_bytes)


def _announced(request: js.Request) -> int | None:
    length = request.headers.get("content-length")
    return int(length) if isinstance(length, str) and length.isdecimal() else None


def _decoded(content: bytes | bytearray) -> str:
    """Return a body as text, without a byte order mark.

    The platform would put U+FFFD where the bytes are not UTF-8, and so store another text than was sent.
    Raises: InvalidInput (code `malformed_json`).
    """
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidInput("the body is not UTF-8", code="malformed_json", at_byte=error.start) from error


def _interrupted() -> Unavailable:
    return Unavailable("the body did not arrive completely, or not in time", code="body_interrupted")
