"""Requests, responses and problems: HTTP as plain values, with no platform in them."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from retain import errors
from retain.application_keys.origins import CallingPage
from retain.application_keys.scope import KeyScope
from retain.application_keys.tokens import BoundUser
from retain.json_text import RepeatedName, read_strict_json
from retain.limits.rates import Rates
from retain.limits.room import Lease
from retain.ports import HeldBody
from retain.roles.role import Authority

MAX_BODY_BYTES = 1_048_576
"""Largest request body accepted, in bytes."""


class Arriving(Protocol):
    """A body of which nothing has been read. It is read once, whole or in pieces, and never further than its limit."""

    @property
    def most_bytes(self) -> int:
        """How many bytes it has: those that the sender announces, or the limit."""
        ...

    def check_length(self) -> None:
        """Raises: LimitExceeded (code `body_too_large`) when the sender announces more than the limit."""
        ...

    async def text(self) -> str:
        """Return the whole.

        Raises: InvalidInput (code `malformed_json`) when it is not UTF-8; LimitExceeded (code `body_too_large`); Unavailable
            (code `body_interrupted`).
        """
        ...

    def pieces(self) -> AsyncGenerator[bytes, None]:
        """Yield it piece by piece. Raises: LimitExceeded; Unavailable, as `text`."""
        ...


@dataclass(frozen=True, slots=True)
class Request:
    """One request.

    path: percent-encoded, without the query. headers: names in lower case. body: the whole text, "" when there is none.
    query: its parameters. repeated: the names of those that it has more than once, of which `query` has the last value.
    arriving: the body instead, as long as it has not been read.
    caller: who is asking, as Cloudflare Access names them, or `key:` and the id of an application's key; "" where nobody
    was asked for. principal: the caller as `retain.roles.principals` names them. authority: what the caller may do; None
    where nobody was asked for. scopes: of an application's key, None for any other caller. bound: for whom a
    token of an application's user speaks, None for any other caller. rates: what is counted for the
    tenant; None for nothing. lease: what it takes of the isolate's memory; None where nobody counts. page: the page that
    sent it, if one did.
    """

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: str
    host: str
    request_id: str
    arriving: Arriving | None = None
    caller: str = ""
    principal: str = ""
    authority: Authority | None = None
    scopes: Sequence[KeyScope] | None = None
    bound: BoundUser | None = None
    rates: Rates | None = None
    repeated: Sequence[str] = ()
    lease: Lease | None = None
    page: CallingPage = field(default_factory=CallingPage)

    async def received(self, *, streamed: bool) -> Request:
        """Return the request with its body read, or ready to be read in pieces when it is `streamed`.

        Raises: as `Arriving.text`.
        """
        if self.arriving is None:
            return self
        self.arriving.check_length()
        return self if streamed else replace(self, body=await self.arriving.text(), arriving=None)

    async def pieces(self) -> AsyncIterator[bytes]:
        """Yield the body piece by piece, whether it is whole or arriving."""
        if self.arriving is None:
            yield self.body.encode("utf-8", "surrogatepass")
        else:
            async for piece in self.arriving.pieces():
                yield piece

    def json(self) -> Any:
        """Return the parsed body.

        Raises: InvalidInput (code `malformed_json`), also for a body nested too deeply to be read safely, one with two
            members of one name in an object, and for what no store can hold.
        """
        try:
            return read_strict_json(self.body)
        except RepeatedName as error:
            raise errors.InvalidInput(f"the body is not valid JSON: {error}", code="malformed_json") from error
        except ValueError as error:
            raise errors.InvalidInput("the body is not valid JSON", code="malformed_json") from error


@dataclass(frozen=True, slots=True)
class Response:
    """One response. body: text, or bytes sent unchanged. stream: pieces of text sent after the body, in time.

    content: the body instead, piece by piece, so that it need not be in memory. held: what holds the body instead.
    """

    status: int
    body: str | bytes
    headers: Mapping[str, str] = field(default_factory=dict)
    stream: AsyncIterator[str] | None = None
    content: AsyncIterator[bytes] | None = None
    held: HeldBody | None = None


def response_too_large(limit_bytes: int, **details: int) -> errors.UpstreamFailed:
    """Return the error for a server's answer with more bytes than are read."""
    message = f"the server answered with more than {limit_bytes} bytes"
    return errors.UpstreamFailed(message, code="response_too_large", limit_bytes=limit_bytes, **details)


def idempotency_key(request: Request) -> str | None:
    """Return the header `idempotency-key`, or None. Raises: InvalidInput (code `invalid_idempotency_key`)."""
    key = request.headers.get("idempotency-key")
    # The platform puts U+FFFD where a header is not UTF-8: different keys would be equal.
    if key is not None and (not 1 <= len(key.encode()) <= 255 or "\ufffd" in key):
        raise errors.InvalidInput("an idempotency key has 1 to 255 bytes of UTF-8", code="invalid_idempotency_key")
    return key


def json_response(value: object, status: int = 200) -> Response:
    """Return the value as a JSON response."""
    return Response(status, json.dumps(value, separators=(",", ":")), {"content-type": "application/json"})


_STATUS: tuple[tuple[type[errors.RetainError], int, str], ...] = (
    (errors.LimitExceeded, 413, "Limit exceeded"),
    (errors.MethodNotAllowed, 405, "Method not allowed"),
    (errors.InvalidInput, 400, "Invalid input"),
    (errors.Unauthenticated, 401, "Unauthenticated"),
    (errors.Forbidden, 403, "Forbidden"),
    (errors.NotFound, 404, "Not found"),
    (errors.Conflict, 409, "Conflict"),
    (errors.RateLimited, 429, "Too many requests"),
    (errors.QuotaExceeded, 507, "Quota exceeded"),
    (errors.UpstreamFailed, 502, "Upstream failed"),
    (errors.Unavailable, 503, "Unavailable"),
    (errors.Misconfigured, 500, "Misconfigured"),
)


def status_of(error: errors.RetainError) -> int:
    """Return the HTTP status of an error."""
    return _status(error)[0]


def _status(error: errors.RetainError) -> tuple[int, str]:
    return next(((s, t) for kind, s, t in _STATUS if isinstance(error, kind)), (500, "Internal error"))


def _retry_after_s(error: errors.RetainError) -> int:
    """Return after how many whole seconds the error asks to retry."""
    seconds, ms = error.details.get("retry_after_s"), error.details.get("retry_after_ms")
    if isinstance(seconds, int):
        return seconds
    return -(-ms // 1000) if isinstance(ms, int) else 1


def problem(error: errors.RetainError, request_id: str) -> Response:
    """Return the error as `application/problem+json`.

    Source: https://www.rfc-editor.org/rfc/rfc9457
    """
    status, title = _status(error)
    body = {
        **error.details,
        "type": "about:blank",
        "title": title,
        "status": status,
        "detail": error.message,
        "code": error.code,
        "request_id": request_id,
    }
    headers = {"content-type": "application/problem+json"}
    allowed = error.details.get("allowed")
    if isinstance(error, errors.MethodNotAllowed) and isinstance(allowed, list):
        headers["allow"] = ", ".join(allowed)
    if isinstance(error, errors.RateLimited) or "retry_after_s" in error.details:
        headers["retry-after"] = str(_retry_after_s(error))
    return Response(status, json.dumps(body), headers)
