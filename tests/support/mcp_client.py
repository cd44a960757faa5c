"""The official client, against a server in this process or on a port."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Literal

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from retain.errors import RetainError
from retain.http import Request, Response, problem

Mode = Literal["legacy", "2026-07-28"]
MODES: tuple[Mode, ...] = ("legacy", "2026-07-28")
HERE = "http://retain.example/mcp"
Handle = Callable[[Request], Awaitable[Response]]


class Handled(httpx2.AsyncBaseTransport):
    """HTTP that is answered by a function, as the Worker's entrypoint would let it answer."""

    def __init__(self, handle: Handle) -> None:
        self._handle = handle

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        headers = {name.lower(): value for name, value in request.headers.items()}
        body = (await request.aread()).decode()
        incoming = Request(
            request.method, request.url.path, dict(request.url.params), headers, body, request.url.host, "request-1"
        )
        try:
            answer = await self._handle(incoming)
        except RetainError as error:
            answer = problem(error, "request-1")
        content = answer.body.encode() if isinstance(answer.body, str) else answer.body
        return httpx2.Response(answer.status, headers=dict(answer.headers), content=content)


@asynccontextmanager
async def connected(
    url: str, *, mode: Mode, headers: Mapping[str, str] | None = None, handle: Handle | None = None
) -> AsyncIterator[Client]:
    """Connect to an address, or to a function in this process."""
    transport = None if handle is None else Handled(handle)
    async with httpx2.AsyncClient(
        headers=dict(headers or {}), transport=transport, timeout=60, trust_env=False
    ) as http:
        server = streamable_http_client(url, http_client=http)
        async with Client(server, mode=mode, cache=None) as client:
            yield client
