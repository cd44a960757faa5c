"""Requests and responses, as `js` has them, and `fetch` over real HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from typing import Any

import httpx

from tests.shell.platform.ffi import Buffer, JsException, array_of, bytes_of, jsnull, options_of
from tests.shell.platform.streams import ReadableStream


class Headers:
    """Headers; their names are in lower case."""

    def __init__(self, values: Iterable[tuple[str, str]] = ()) -> None:
        self._values = {name.lower(): value for name, value in values}

    def get(self, name: str) -> object:
        """Return a header, or null."""
        return self._values.get(name.lower(), jsnull)

    def set(self, name: str, value: str) -> None:
        """Set a header. Raises: JsException for what HTTP does not carry."""
        if not isinstance(value, str) or not value.isascii() or "\n" in value:
            raise JsException("invalid header value", "TypeError")
        self._values[name.lower()] = value

    def keys(self) -> Iterator[str]:
        """Yield the names."""
        return iter(sorted(self._values))

    def __iter__(self) -> Iterator[list[str]]:
        """Yield pairs, as JavaScript does."""
        return iter([[name, value] for name, value in sorted(self._values.items())])


class Request:
    """A request that arrives at the Worker. pieces: how its body arrives; None for a request without one."""

    def __init__(self, method: str, url: str, headers: Mapping[str, str], pieces: list[bytes] | None) -> None:
        self.method = method
        self.url = url
        self.headers = Headers(headers.items())
        self.body = None if pieces is None else ReadableStream(_arriving(pieces))

    async def arrayBuffer(self) -> Buffer:
        """Return the whole body."""
        pieces = []
        while self.body is not None and (piece := await self.body.take(None)) is not None:
            pieces.append(piece)
        return Buffer(b"".join(pieces))


class Response:
    """A response. body: null, a text, a buffer or a stream."""

    def __init__(self, body: Any, status: int, headers: Headers) -> None:
        if status in (204, 304) and body is not None:
            raise JsException("a response with a null body status cannot have a body", "TypeError")
        self.status = status
        self.headers = headers
        self.body = body

    @classmethod
    def new(cls, body: object, options: object) -> Response:
        """Return a response of the Worker. Raises: JsException for a header that HTTP does not carry."""
        given = options_of(options)
        headers = Headers()
        for name, value in options_of(given["headers"]).items():
            headers.set(name, value)
        if not (body is None or isinstance(body, str | Buffer | ReadableStream)):
            raise JsException("a body is a text, a buffer or a stream", "TypeError")
        return cls(body, given["status"], headers)

    async def arrayBuffer(self) -> Buffer:
        """Return the whole body."""
        pieces = []
        while isinstance(self.body, ReadableStream) and (piece := await self.body.take(None)) is not None:
            pieces.append(piece)
        return Buffer(b"".join(pieces))


class AbortSignal:
    """Ends a request. ended: what it ends with."""

    def __init__(self) -> None:
        self.ended: asyncio.Future[JsException] = asyncio.get_running_loop().create_future()

    def end(self, error: JsException) -> None:
        """End the requests that have the signal."""
        if not self.ended.done():
            self.ended.set_result(error)

    @classmethod
    def timeout(cls, ms: int) -> AbortSignal:
        """Return a signal that ends after a time."""
        signal = cls()
        late = JsException("the operation was aborted due to timeout", "TimeoutError")
        asyncio.get_running_loop().call_later(ms / 1000, signal.end, late)
        return signal

    @classmethod
    def any(cls, signals: object) -> AbortSignal:
        """Return a signal that ends with the first of others."""
        signal = cls()
        for one in array_of(signals):
            one.ended.add_done_callback(lambda ended: signal.end(ended.result()))
        return signal


class AbortController:
    """Ends requests by hand."""

    opened: list[AbortController] = []  # noqa: RUF012

    def __init__(self) -> None:
        self.signal = AbortSignal()

    @classmethod
    def new(cls) -> AbortController:
        """Return a controller."""
        cls.opened.append(cls())
        return cls.opened[-1]

    def abort(self) -> None:
        """End the requests with its signal."""
        self.signal.end(JsException("the operation was aborted", "AbortError"))


_clients: set[httpx.AsyncClient] = set()


async def close_connections() -> None:
    """Close the connections of responses that nobody read completely."""
    while _clients:
        await _clients.pop().aclose()


async def fetch(url: str, options: object) -> Response:
    """Send a request and return its response as soon as that begins. Raises: JsException."""
    given = options_of(options)
    if given["redirect"] != "manual":
        raise JsException("the shell follows no redirects", "TypeError")
    signal: AbortSignal = given["signal"]
    client = httpx.AsyncClient(follow_redirects=False, trust_env=False, timeout=None)
    _clients.add(client)
    try:
        request = client.build_request(
            given["method"], url, headers=options_of(given["headers"]), content=given.get("body")
        )
        answer = await _ended_by(signal, client.send(request, stream=True))
    except (httpx.HTTPError, httpx.InvalidURL, UnicodeEncodeError) as error:
        raise JsException(str(error), "TypeError") from None
    body = None if answer.status_code in (204, 304) else ReadableStream(_pieces(answer, signal))
    return Response(body, answer.status_code, Headers(answer.headers.items()))


async def _pieces(answer: httpx.Response, signal: AbortSignal) -> AsyncIterator[bytes]:
    arriving = answer.aiter_bytes()
    while True:
        try:
            piece = await _ended_by(signal, _next(arriving))
        except httpx.HTTPError as error:
            raise JsException(str(error), "TypeError") from None
        if piece is None:
            return
        yield piece


async def _next(arriving: AsyncIterator[bytes]) -> bytes | None:
    async for piece in arriving:
        return piece
    return None


async def _ended_by(signal: AbortSignal, work: Any) -> Any:
    task = asyncio.ensure_future(work)
    try:
        await asyncio.wait({task, signal.ended}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
        raise signal.ended.result()
    finally:
        if not task.done():
            task.cancel()
            await asyncio.wait({task})


async def _arriving(pieces: list[bytes]) -> AsyncIterator[bytes]:
    for piece in pieces:
        await asyncio.sleep(0)
        if piece == BROKEN:
            raise JsException("the sender went away")
        yield piece


BROKEN = b"\0the sender goes away"
"""A piece at which the sender of a request goes away."""


def body_of(response: Response) -> bytes | None:
    """Return the body of a response of the Worker that is not streamed."""
    match response.body:
        case None:
            return None
        case str():
            return response.body.encode()
        case _:
            return bytes_of(response.body)
