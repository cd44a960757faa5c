"""A real MCP server with some tools, made with the official package, on loopback."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import uvicorn
from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import ToolAnnotations
from pydantic import Field
from starlette.responses import PlainTextResponse


@contextmanager
def shop(
    *, json_response: bool, stateless: bool, modern: bool = True, left_open: bool = False
) -> Iterator[tuple[str, list[str]]]:
    """Serve some tools on loopback; give the address and the authorization of each request.

    modern: whether it speaks 2026-07-28 as well, which servers made earlier refuse by its header.
    left_open: whether a stream of events stays open after its last event, until the client closes it.
    """
    server = MCPServer("shop")

    @server.tool(annotations=ToolAnnotations(read_only_hint=True))
    def search(words: Annotated[str, Field(json_schema_extra={"x-mcp-header": "Words"})]) -> dict[str, str]:
        """Find an article."""
        return {"found": words}

    @server.tool()
    def refuse() -> str:
        """Fail."""
        raise ToolError("sold out")

    @server.tool()
    def large() -> str:
        """Answer too much."""
        return "x" * 1_048_576

    app, seen = server.streamable_http_app(json_response=json_response, stateless_http=stateless), list[str]()

    async def noting(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            headers = dict(scope["headers"])
            seen.append(headers.get(b"authorization", b"").decode())
            if not modern and headers.get(b"mcp-protocol-version") == b"2026-07-28":
                await PlainTextResponse("Bad Request: Unsupported protocol version", 400)(scope, receive, send)
                return

        await app(scope, receive, _unended(receive, send) if left_open else send)

    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()  # before the thread serves: a call that comes first waits, and is not refused
        running = uvicorn.Server(uvicorn.Config(noting, log_level="error"))
        thread = threading.Thread(target=running.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}/mcp", seen
        finally:
            running.should_exit = True
            thread.join()


def _unended(receive: Any, send: Any) -> Any:
    """Return what sends an answer, and ends a stream of events when the client has closed it."""
    is_stream = False

    async def sending(message: Any) -> None:
        nonlocal is_stream
        if message["type"] == "http.response.start":
            is_stream = dict(message["headers"])[b"content-type"].startswith(b"text/event-stream")
        if not is_stream or message["type"] != "http.response.body" or message.get("more_body"):
            await send(message)
            return
        await send({**message, "more_body": True})
        while (await receive())["type"] != "http.disconnect":
            pass

    return sending
