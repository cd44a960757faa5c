"""An HTTP client on the host: the fetch port over httpx."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from http.cookiejar import CookieJar, DefaultCookiePolicy

import httpx

from retain.errors import InvalidInput, Unavailable
from retain.http import response_too_large
from retain.ports import MAX_RESPONSE_BYTES, MAX_STREAM_BYTES, HttpResponse, StreamedResponse, Until

_TRANSPORT_HEADERS = frozenset({"content-encoding", "content-length", "transfer-encoding"})


class HostFetch:
    """Implements `retain.ports.Fetch`. Bound to the event loop of its first request; `close` frees its connections.

    No cookie is kept between requests. The response body is decoded, and the headers describe the decoded body:
    `content-encoding`, `content-length` and `transfer-encoding` are left out.
    """

    def __init__(self) -> None:
        self._client: httpx.AsyncClient | None = None

    async def __call__(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str],
        body: str | bytes | None,
        timeout_ms: int,
        limit_bytes: int = MAX_RESPONSE_BYTES,
        until: Until | None = None,
    ) -> HttpResponse:
        """Send one request and read the whole response. See the port.

        timeout_ms: for the whole exchange.
        Raises: Unavailable (code `upstream_timeout`, `upstream_unreachable`); UpstreamFailed (code
            `response_too_large`); InvalidInput (code `invalid_url`, `unsupported_value`).
        """
        content = bytearray()
        answered: dict[str, int] = {}
        with _classed(answered):
            client = self._opened()
            request = client.build_request(method, url, headers=dict(headers), content=body)
            async with asyncio.timeout(timeout_ms / 1000):
                answer = await client.send(request, stream=True)
                answered["upstream_status"] = answer.status_code
                try:
                    if "content-encoding" not in answer.headers and _announced(answer) > limit_bytes:
                        raise response_too_large(limit_bytes, **answered)
                    async for piece in answer.aiter_bytes():
                        content += piece
                        if len(content) > limit_bytes:
                            raise response_too_large(limit_bytes, **answered)
                        if until is not None and until(piece):
                            break
                finally:
                    await answer.aclose()
        return HttpResponse(answer.status_code, _received(answer), bytes(content))

    @asynccontextmanager
    async def stream(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str],
        body: str | bytes | None,
        silence_ms: int,
        timeout_ms: int,
        limit_bytes: int = MAX_STREAM_BYTES,
    ) -> AsyncIterator[StreamedResponse]:
        """Send one request and stream the response as it arrives: the port `FetchStream`.

        Raises: as `__call__`, on entering and from the chunks.
        """
        end_s = time.monotonic() + timeout_ms / 1000

        def patience() -> asyncio.Timeout:
            return asyncio.timeout(min(silence_ms / 1000, end_s - time.monotonic()))

        with _classed():
            client = self._opened()
            request = client.build_request(method, url, headers=dict(headers), content=body)
            async with patience():
                answer = await client.send(request, stream=True)

        async def chunks() -> AsyncIterator[bytes]:
            pieces, received = answer.aiter_bytes(), 0
            while True:
                with _classed():
                    try:
                        async with patience():
                            piece = await anext(pieces)
                    except StopAsyncIteration:
                        return
                received += len(piece)
                if received > limit_bytes:
                    raise response_too_large(limit_bytes)
                if piece:
                    yield piece

        try:
            yield StreamedResponse(answer.status_code, _received(answer), chunks())
        finally:
            await answer.aclose()

    async def close(self) -> None:
        """Close the connections. A later request opens new ones."""
        if self._client is not None:
            await self._client.aclose()
            self._client = None

    def _opened(self) -> httpx.AsyncClient:
        if self._client is None:
            no_cookies = CookieJar(DefaultCookiePolicy(allowed_domains=[]))
            self._client = httpx.AsyncClient(
                cookies=no_cookies,
                follow_redirects=False,
                trust_env=False,  # a Worker has no proxy from the environment, and no .netrc with credentials
                timeout=None,  # noqa: S113 -- each request has its own, for the whole exchange
            )
        return self._client


@contextmanager
def _classed(answered: Mapping[str, int] | None = None) -> Iterator[None]:
    """Turn what httpx raises into the port's errors. answered: their details, when an answer has begun."""
    try:
        yield
    except (TimeoutError, httpx.TimeoutException) as error:
        raise Unavailable("the upstream did not answer in time", code="upstream_timeout", **(answered or {})) from error
    except (httpx.InvalidURL, httpx.UnsupportedProtocol) as error:
        raise InvalidInput("the address is not a valid HTTP address", code="invalid_url") from error
    except UnicodeEncodeError as error:
        raise InvalidInput("a header or the body has text that HTTP cannot carry", code="unsupported_value") from error
    except httpx.HTTPError as error:
        raise Unavailable(
            "the upstream did not send a complete response", code="upstream_unreachable", **(answered or {})
        ) from error


def _received(answer: httpx.Response) -> dict[str, str]:
    return {name: value for name, value in answer.headers.items() if name not in _TRANSPORT_HEADERS}


def _announced(answer: httpx.Response) -> int:
    length = answer.headers.get("content-length", "0")
    return int(length) if length.isdecimal() else 0
