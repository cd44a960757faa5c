"""The client's side of the protocol: the tools of somebody else's server, whose every answer is distrusted and bounded.

Source: https://modelcontextprotocol.io/specification/2025-11-25/basic/transports
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from retain.errors import Unavailable, UpstreamFailed
from retain.json_text import JsonObject, read_json
from retain.mcp.messages import HANDSHAKE_VERSIONS
from retain.mcp.tools import McpTool
from retain.ports import HttpResponse
from retain.version import __version__

MAX_PAGES = 20
"""How many pages of a server's list are read."""
MAX_DESCRIPTION_CHARACTERS = 4096
"""How much of a tool's description the model reads."""
MAX_SCHEMA_BYTES = 16 * 1024
"""Longest schema of a tool's arguments, as JSON; a tool with a longer one is not offered."""
_ACCEPT = "application/json, text/event-stream"
_SESSION = "mcp-session-id"
_VERSION = "mcp-protocol-version"
_MAX_SESSION_CHARACTERS = 1024
_HINTS = ("readOnlyHint", "idempotentHint", "destructiveHint", "openWorldHint")


class SendMessage(Protocol):
    """Sends one message to one server."""

    async def __call__(self, message: JsonObject, headers: Mapping[str, str], key: str | None) -> HttpResponse:
        """Return the answer, whatever its status. key: the idempotency key of a call.

        Raises: RetainError, as the proxy does.
        """
        ...


class McpClient:
    """One server of one tenant. Keeps the session that the server gave, and begins another when it has ended."""

    def __init__(self, deliver: SendMessage) -> None:
        self._deliver = deliver
        self._headers: dict[str, str] | None = None
        self._sent = 0

    async def tools(self, names: Collection[str]) -> list[McpTool]:
        """Return those of the server's tools that have one of these names and are within the bounds, each once.

        Reads pages until every name is found, `MAX_PAGES` at most.
        Raises: Unavailable or UpstreamFailed (code `upstream_status`, `upstream_failed`), and as `SendMessage`.
        """
        found: dict[str, McpTool] = {}
        cursor: str | None = None
        for _ in range(MAX_PAGES):
            page = await self._ask("tools/list", {} if cursor is None else {"cursor": cursor})
            listed, following = page.get("tools"), page.get("nextCursor")
            if not isinstance(listed, list):
                raise _failed("its list of tools is not a list")
            for entry in listed:
                if isinstance(entry, dict) and entry.get("name") in names and entry["name"] not in found:
                    tool = _tool(entry)
                    if tool is not None:
                        found[tool.name] = tool
            if not isinstance(following, str) or following == cursor or len(found) == len(names):
                break
            cursor = following
        return list(found.values())

    async def call(self, name: str, arguments: JsonObject, key: str) -> str:
        """Call a tool once and return its answer as text.

        Raises: as `tools`; UpstreamFailed (code `upstream_failed`) also for a call that the server reports as failed.
        """
        answer = await self._ask("tools/call", {"name": name, "arguments": dict(arguments)}, key)
        text = _text(answer)
        if answer.get("isError") is True:
            raise UpstreamFailed(f"the tool's server reports: {text[:2_000]}", code="upstream_failed")
        return text

    async def _ask(self, method: str, params: JsonObject, key: str | None = None) -> JsonObject:
        """Return a method's result. A session that the server no longer knows (404) is begun again, once."""
        again = self._headers is not None
        headers = self._headers or await self._begin()
        response, number = await self._send(method, params, headers, key)
        if response.status == 404 and again and _SESSION in headers:
            # The server refused the message before it looked at it: asking again repeats nothing.
            self._headers = None
            response, number = await self._send(method, params, await self._begin(), key)
        return _result(response, number)

    async def _begin(self) -> dict[str, str]:
        client = {"name": "retain", "version": __version__}
        version = HANDSHAKE_VERSIONS[-1]
        introduction: JsonObject = {"protocolVersion": version, "capabilities": {}, "clientInfo": client}
        response, number = await self._send("initialize", introduction, {}, None)
        agreed = _result(response, number).get("protocolVersion")
        if not isinstance(agreed, str) or agreed not in HANDSHAKE_VERSIONS:
            raise _failed("it speaks no version of the protocol that Retain speaks")
        headers = {_VERSION: agreed}
        session = response.headers.get(_SESSION)
        if session is not None:
            if not (session.isascii() and session.isprintable() and 0 < len(session) <= _MAX_SESSION_CHARACTERS):
                raise _failed("its session's id is not printable ASCII of a bounded length")
            headers[_SESSION] = session
        noted = await self._deliver(
            {"jsonrpc": "2.0", "method": "notifications/initialized"}, {"accept": _ACCEPT, **headers}, None
        )
        _check_status(noted.status)
        self._headers = headers
        return headers

    async def _send(
        self, method: str, params: JsonObject, headers: Mapping[str, str], key: str | None
    ) -> tuple[HttpResponse, int]:
        self._sent = number = self._sent + 1
        message: JsonObject = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        return await self._deliver(message, {"accept": _ACCEPT, **headers}, key), number


def _check_status(status: int) -> None:
    if status == 429 or status >= 500:
        raise Unavailable(f"the tools' server answered {status}", code="upstream_status", upstream_status=status)
    if not 200 <= status < 300:
        raise UpstreamFailed(f"the tools' server answered {status}", code="upstream_status", upstream_status=status)


def _result(response: HttpResponse, number: int) -> JsonObject:
    """Return the result in a response: one JSON message, or the one of a stream that has this id."""
    _check_status(response.status)
    kind = response.headers.get("content-type") or ""
    try:
        text = response.body.decode()
        texts = _events(text) if kind.startswith("text/event-stream") else [text]
        messages = [read_json(each) for each in texts if each]
    except ValueError as error:
        raise _failed("it did not answer JSON") from error
    for message in messages:
        if isinstance(message, dict) and message.get("id") == number and "method" not in message:
            result, refused = message.get("result"), message.get("error")
            if isinstance(result, dict):
                return result
            reason = refused.get("message") if isinstance(refused, dict) else None
            raise _failed(f"it refused the request: {str(reason)[:500]}")
    raise _failed("it did not answer the request")


def _events(text: str) -> Sequence[str]:
    """Return the data of each server-sent event."""
    events: list[str] = []
    for block in text.replace("\r\n", "\n").replace("\r", "\n").split("\n\n"):
        lines = [line[5:].removeprefix(" ") for line in block.split("\n") if line.startswith("data:")]
        events.append("\n".join(lines))
    return events


def _tool(entry: Mapping[str, object]) -> McpTool | None:
    """Return a listed tool, or None for one whose schema is not an object's, or is too long."""
    schema, description, hints = entry.get("inputSchema"), entry.get("description"), entry.get("annotations")
    if not isinstance(schema, dict) or schema.get("type") != "object":
        return None
    if len(json.dumps(schema)) > MAX_SCHEMA_BYTES:
        return None
    given = hints if isinstance(hints, dict) else {}
    shown = _printable(description) if isinstance(description, str) else ""
    declared = {name: given[name] for name in _HINTS if isinstance(given.get(name), bool)}
    return McpTool(str(entry["name"]), shown or "(no description)", schema, declared)


def _printable(text: str) -> str:
    """Return a description's beginning without control and invisible format characters."""
    cut = text[:MAX_DESCRIPTION_CHARACTERS]
    return "".join(each for each in cut if each == "\n" or unicodedata.category(each) not in ("Cc", "Cf", "Cs", "Co"))


def _text(answer: Mapping[str, object]) -> str:
    """Return the texts of an answer, or its structured content where it has none."""
    content = answer.get("content")
    parts = [part for part in content if isinstance(part, dict)] if isinstance(content, list) else []
    texts = [text for part in parts if part.get("type") == "text" and isinstance(text := part.get("text"), str)]
    if not texts and "structuredContent" in answer:
        texts = [json.dumps(answer["structuredContent"], ensure_ascii=False)]
    left_out = sum(1 for part in parts if part.get("type") != "text")
    if left_out:
        texts.append(f"({left_out} parts that are not text were left out)")
    return "\n".join(texts)


def _failed(problem: str) -> UpstreamFailed:
    return UpstreamFailed(f"the tools' server: {problem}", code="upstream_failed")
