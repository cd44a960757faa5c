"""Sends a request again where that is right, below everything that the generated functions do."""

from __future__ import annotations

from typing import Any

import httpx

from retain_client.asynchronous.pause import sleep
from retain_client.errors import INVALID_REQUEST, NO_ANSWER, RetainError, is_refusal, refusal, retry_after_s
from retain_client.retries import Retries, repeatable
from retain_client.server_events import is_stream

_INVALID = (httpx.LocalProtocolError, httpx.UnsupportedProtocol)
_NEVER_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)


class AsyncHttpClient(httpx.AsyncClient):
    """Sends what can be sent."""

    def build_request(self, *given: Any, **named: Any) -> httpx.Request:
        """Return a request. Raises: RetainError (code `invalid_request`) for what fits into none."""
        try:
            return super().build_request(*given, **named)
        except (httpx.InvalidURL, ValueError) as error:
            raise RetainError(f"it cannot be sent: {error}; nothing was sent", code=INVALID_REQUEST) from error


class AsyncRetryingTransport(httpx.AsyncBaseTransport):
    """Repeats what failed or was refused for now. inner: what sends."""

    def __init__(self, inner: httpx.AsyncBaseTransport, retries: Retries) -> None:
        self._inner = inner
        self._retries = retries

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Return the answer. Raises: RetainError (code `no_answer`) when there is none."""
        again = repeatable(request.method, request.url.path, has_key="idempotency-key" in request.headers)
        attempt = 0
        while True:
            attempt += 1
            try:
                response = await self._inner.handle_async_request(request)
                if not is_stream(response.headers):  # an answer is one whose body arrived, too
                    await response.aread()
            except _INVALID:  # its message may have a header's value, which may be the key
                raise RetainError("the request is not valid for HTTP, and was not sent", code=NO_ANSWER) from None
            except (httpx.TransportError, httpx.DecodingError) as error:
                pause = self._retries.after_failure(attempt, sent=not isinstance(error, _NEVER_SENT), again=again)
                if pause is None:
                    raise RetainError(str(error) or type(error).__name__, code=NO_ANSWER) from error
            else:
                after = retry_after_s(response.headers)
                pause = self._retries.after_answer(attempt, response.status_code, after, again=again)
                if pause is None:
                    return response
                await response.aclose()
            await sleep(pause)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._inner.aclose()


async def raise_refusal(response: httpx.Response) -> None:
    """Raises: RetainError when Retain, or something before it, refused the request."""
    if is_refusal(response.status_code, response.headers):
        await response.aread()
        raise refusal(response.status_code, response.headers, response.content)
