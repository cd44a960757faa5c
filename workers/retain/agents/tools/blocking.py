"""Requests of synchronous HTTP libraries in function tools: sent by the tool's own guarded client while the tool waits.

The adapter (`adapters/blocking_http.py`) gives the libraries something to send with, and waits without blocking anything
else in the isolate. What may be sent, and for how long, is decided here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from retain.errors import Misconfigured
from retain.ports import Fetch, HttpResponse

DEFAULT_TIMEOUT_MS = 30_000
"""How long a request may take whose library sets no time."""
WATCH_S = 0.5
"""How often a request that waits checks whether its call was given up."""
_OWN_HEADERS = frozenset(
    ("accept-encoding", "connection", "content-length", "expect", "host", "keep-alive", "te", "transfer-encoding")
)
"""Headers of the connection, which belongs to the platform. It decodes what it asks for, and nothing else."""

_client: ContextVar[Fetch | None] = ContextVar("retain_blocking_client", default=None)


@contextmanager
def blocking_requests(client: Fetch) -> Iterator[None]:
    """Let synchronous libraries send requests by this client inside the block."""
    token = _client.set(client)
    try:
        yield
    finally:
        _client.reset(token)


def blocking_request(
    method: str, url: str, headers: Mapping[str, str], body: str | bytes | None, timeout_ms: int | None
) -> Coroutine[Any, Any, HttpResponse]:
    """Return the request as a coroutine, for the adapter to wait for. Redirects are not followed: libraries do that.

    timeout_ms: None or 0 for DEFAULT_TIMEOUT_MS.
    Raises: Misconfigured (code `blocking_request`) outside a call of a function tool. The coroutine raises as
        `retain.gateway.guarded_fetch`, and CancelledError as soon as the call was given up.
    """
    client = _client.get()
    call = asyncio.current_task()
    if client is None or call is None:
        raise Misconfigured("a synchronous request can be sent only by a function tool's call", code="blocking_request")
    sent = {name.lower(): value for name, value in headers.items() if name.lower() not in _OWN_HEADERS}
    asked = client(method.upper(), url, headers=sent, body=body, timeout_ms=timeout_ms or DEFAULT_TIMEOUT_MS)
    return _watched(call, asked)


async def _watched(call: asyncio.Task[Any], asked: Coroutine[Any, Any, HttpResponse]) -> HttpResponse:
    """Return the answer. The call's own task cannot be interrupted while it waits inside a library, so it is watched."""
    request = asyncio.ensure_future(asked)
    try:
        while not call.cancelling():
            done, _ = await asyncio.wait((request,), timeout=WATCH_S)
            if done:
                return request.result()
        raise asyncio.CancelledError("the call was given up")
    finally:
        request.cancel()
