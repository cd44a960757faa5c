"""The client's side of the protocol: the tools of somebody else's server, whose every answer is distrusted and bounded.

Both eras are spoken (`retain.mcp.messages`): a server is first asked by a request of 2026-07-28 what it speaks, and one that
does not understand is greeted with `initialize`.
Source: https://modelcontextprotocol.io/specification/2026-07-28/basic/transports and
https://modelcontextprotocol.io/specification/2025-11-25/basic/transports
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Protocol

from retain.errors import Unavailable, UpstreamFailed
from retain.json_text import JsonObject, NestedTooDeeply, read_json
from retain.mcp.messages import ENVELOPE_VERSIONS, HANDSHAKE_VERSIONS, envelope_of
from retain.mcp.parameter_headers import header_value, headers_of, is_valid
from retain.mcp.tools import McpTool
from retain.ports import MAX_RESPONSE_BYTES, HttpResponse, Until
from retain.server_sent_events import EventReader, ServerSentEvent
from retain.version import __version__

MAX_PAGES = 20
"""How many pages of a server's list are read."""
MAX_DESCRIPTION_CHARACTERS = 4096
"""How much of a tool's description the model reads."""
MAX_SCHEMA_BYTES = 16 * 1024
"""Longest schema of a tool's arguments, as JSON; a tool with a longer one is not offered."""
_SELF = {"name": "retain", "version": __version__}
_ACCEPT = "application/json, text/event-stream"
_SESSION = "mcp-session-id"
_VERSION = "mcp-protocol-version"
_MAX_SESSION_CHARACTERS = 1024
_GREETED = ("2024-11-05", *HANDSHAKE_VERSIONS)
"""Versions that a server may answer `initialize` with. The first is older than this transport; its tools are the same."""
_UNSUPPORTED, _NO_METHOD, _NOT_A_REQUEST = -32022, -32601, -32600
_NO_VERDICT = (401, 403, 429, 502, 503, 504)
"""Statuses that say nothing about what a server speaks."""
_HINTS = ("readOnlyHint", "idempotentHint", "destructiveHint", "openWorldHint")


class SendMessage(Protocol):
    """Sends one message to one server."""

    async def __call__(
        self, message: JsonObject, headers: Mapping[str, str], key: str | None, until: Until | None
    ) -> HttpResponse:
        """Return the answer, whatever its status. key: the idempotency key of a call. until: as of `Fetch`.

        Raises: RetainError, as the proxy does.
        """
        ...


@dataclass(frozen=True, slots=True)
class _Agreement:
    """What a server and Retain speak. headers: of each message. enveloped: whether each carries version and capabilities."""

    headers: Mapping[str, str]
    enveloped: bool = False


_STATELESS = _Agreement({_VERSION: ENVELOPE_VERSIONS[-1]}, enveloped=True)
_UNKNOWN = _Agreement({})


class McpClient:
    """One server of one tenant. Keeps what was agreed with it, and agrees again when the server no longer accepts that."""

    def __init__(self, deliver: SendMessage) -> None:
        self._deliver = deliver
        self._agreed: _Agreement | None = None
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
                    if tool is not None and (self._agreed is not _STATELESS or is_valid(tool.input_schema)):
                        found[tool.name] = tool
            if not isinstance(following, str) or following == cursor or len(found) == len(names):
                break
            cursor = following
        return list(found.values())

    async def call(self, name: str, arguments: JsonObject, key: str, schema: Mapping[str, object]) -> str:
        """Call a tool once and return its answer as text. schema: of its arguments, as the server lists it.

        Raises: as `tools`; UpstreamFailed (code `upstream_failed`) also for a call that the server reports as failed.
        """
        answer = await self._ask("tools/call", {"name": name, "arguments": dict(arguments)}, key, schema)
        if answer.get("resultType", "complete") != "complete":
            raise _failed("it asks for input, which Retain does not give")
        text = _text(answer)
        if answer.get("isError") is True:
            raise UpstreamFailed(f"the tool's server reports: {text[:2_000]}", code="upstream_failed")
        return text

    async def _ask(
        self, method: str, params: JsonObject, key: str | None = None, schema: Mapping[str, object] | None = None
    ) -> JsonObject:
        """Return a method's result. What was agreed earlier and is refused now is agreed again, once."""
        is_known = self._agreed is not None
        agreed = self._agreed or await self._agree()
        response, number = await self._send(agreed, method, params, key, schema)
        of_others = response.status in (401, 403) and _SESSION in agreed.headers
        if is_known and (of_others or response.status in (400, 404)):
            # It may have forgotten the session, which may also be of the credential before, or speak something else by now.
            self._agreed = None
            if _is_unread(response, number):
                response, number = await self._send(await self._agree(), method, params, key, schema)
        return _result(response, number)

    async def _agree(self) -> _Agreement:
        """Find out what the server speaks. Raises: as `tools`."""
        response, number = await self._send(_STATELESS, "server/discover", {})
        if response.status in _NO_VERDICT:
            _check_status(response.status)
        answer = _answer(response, number) or {}
        found, refused = answer.get("result"), answer.get("error")
        versions = found.get("supportedVersions") if isinstance(found, dict) else None
        if isinstance(versions, list) and ENVELOPE_VERSIONS[-1] in versions:
            self._agreed = _STATELESS
            return self._agreed
        if isinstance(refused, dict) and refused.get("code") == _UNSUPPORTED:
            more = refused.get("data")
            versions = more.get("supported") if isinstance(more, dict) else None
            if isinstance(versions, list) and not any(version in versions for version in _GREETED):
                raise _failed("it speaks no version of the protocol that Retain speaks")
        self._agreed = await self._introduced()
        return self._agreed

    async def _introduced(self) -> _Agreement:
        introduction: JsonObject = {"protocolVersion": HANDSHAKE_VERSIONS[-1], "capabilities": {}, "clientInfo": _SELF}
        response, number = await self._send(_UNKNOWN, "initialize", introduction)
        version = _result(response, number).get("protocolVersion")
        if not isinstance(version, str) or version not in _GREETED:
            raise _failed("it speaks no version of the protocol that Retain speaks")
        headers = {_VERSION: version}
        session = response.headers.get(_SESSION)
        if session is not None:
            if not (session.isascii() and session.isprintable() and 0 < len(session) <= _MAX_SESSION_CHARACTERS):
                raise _failed("its session's id is not printable ASCII of a bounded length")
            headers[_SESSION] = session
        noted = await self._deliver(
            {"jsonrpc": "2.0", "method": "notifications/initialized"}, {"accept": _ACCEPT, **headers}, None, None
        )
        _check_status(noted.status)
        return _Agreement(headers)

    async def _send(
        self,
        agreed: _Agreement,
        method: str,
        params: JsonObject,
        key: str | None = None,
        schema: Mapping[str, object] | None = None,
    ) -> tuple[HttpResponse, int]:
        """Send a request. schema: of the arguments of a call. Return the response and the request's id."""
        self._sent = number = self._sent + 1
        headers = {"accept": _ACCEPT, **agreed.headers}
        if agreed.enveloped:
            headers["mcp-method"] = method
            params = {**params, "_meta": envelope_of(ENVELOPE_VERSIONS[-1], _SELF)}
            arguments = params.get("arguments")
            if isinstance(arguments, dict):  # of a call
                headers |= {"mcp-name": header_value(str(params["name"])), **headers_of(schema or {}, arguments)}
        message: JsonObject = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        return await self._deliver(message, headers, key, _until_answered(number)), number


def _is_unread(response: HttpResponse, number: int) -> bool:
    """Return whether a server refused a message before it carried it out: asking again then repeats nothing.

    Servers of every version answer a call that failed with its id, and some with such a status.
    """
    refused = (_answer(response, number) or {}).get("error")
    code = refused.get("code") if isinstance(refused, dict) else None
    return code in (_UNSUPPORTED, _NO_METHOD, _NOT_A_REQUEST, None)


def _check_status(status: int) -> None:
    if status == 429 or status >= 500:
        raise Unavailable(f"the tools' server answered {status}", code="upstream_status", upstream_status=status)
    if not 200 <= status < 300:
        raise UpstreamFailed(f"the tools' server answered {status}", code="upstream_status", upstream_status=status)


def _result(response: HttpResponse, number: int) -> JsonObject:
    """Return the result in a response. Raises: as `McpClient.tools`."""
    refused = _answer(response, number) if 400 <= response.status < 500 and response.status != 429 else None
    if refused is None or not isinstance(refused.get("error"), dict):
        _check_status(response.status)
    try:
        message = refused or _read(response, number)
    except NestedTooDeeply as error:
        raise _failed(f"its answer is {error}") from error
    except ValueError as error:
        raise _failed("it did not answer JSON") from error
    if message is None:
        raise _failed("it did not answer the request")
    result, refusal = message.get("result"), message.get("error")
    if isinstance(result, dict):
        return result
    reason = refusal.get("message") if isinstance(refusal, dict) else None
    raise _failed(f"it refused the request: {str(reason)[:500]}")


def _answer(response: HttpResponse, number: int) -> JsonObject | None:
    """Return the message that answers the request, None where there is none that can be read."""
    try:
        return _read(response, number)
    except ValueError:
        return None


def _read(response: HttpResponse, number: int) -> JsonObject | None:
    """Return the one JSON message, or the one of a stream, with the request's id. What a stream has besides is ignored.

    Raises: NestedTooDeeply; another ValueError if it is not JSON.
    """
    if not (response.headers.get("content-type") or "").lower().startswith("text/event-stream"):
        text = response.body.decode("utf-8-sig")
        return _answering(read_json(text), number) if text else None
    ended = response.body + b"\n\n"  # some servers leave out the end of the last event
    messages = (_message(event, number) for event in EventReader(len(ended)).feed(ended))
    return next((message for message in messages if message is not None), None)


def _until_answered(number: int) -> Until:
    """Return what notices in a stream of events that it has the answer: some servers leave the stream open after it."""
    reader, is_whole = EventReader(MAX_RESPONSE_BYTES), None

    def until(piece: bytes) -> bool:
        nonlocal is_whole
        if is_whole is None:
            is_whole = piece.lstrip().startswith(b"{")  # one message, which the end of the body completes
        try:
            return not is_whole and any(_message(event, number) is not None for event in reader.feed(piece))
        except NestedTooDeeply:
            return True

    return until


def _message(event: ServerSentEvent, number: int) -> JsonObject | None:
    """Return the message of an event if it answers the request with this id, else None. Pings and the like have none.

    Raises: NestedTooDeeply.
    """
    if event.name != "message":
        return None
    try:
        return _answering(read_json(event.data), number)
    except NestedTooDeeply:  # it may be the answer
        raise
    except ValueError:
        return None


def _answering(message: object, number: int) -> JsonObject | None:
    """Return a message if it answers the request with this id, else None. Some servers return the id as text."""
    if isinstance(message, dict) and message.get("id") in (number, str(number)) and "method" not in message:
        return message
    return None


def _tool(entry: Mapping[str, object]) -> McpTool | None:
    """Return a listed tool, or None for one whose schema is not an object's, is too long, or is not JSON."""
    schema, description, hints = entry.get("inputSchema"), entry.get("description"), entry.get("annotations")
    if not isinstance(schema, dict) or schema.get("type") != "object":
        return None
    try:
        size = len(json.dumps(schema, allow_nan=False))
    except ValueError:  # a number that no model's server would read
        return None
    if size > MAX_SCHEMA_BYTES:
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
    """Return the texts of an answer, or its structured content where it has none, and how many parts have no text."""
    content = answer.get("content")
    parts = [part for part in content if isinstance(part, dict)] if isinstance(content, list) else []
    texts = [text for part in parts if (text := _text_of(part)) is not None]
    left_out = len(parts) - len(texts)
    if not texts and "structuredContent" in answer:
        try:
            texts = [json.dumps(answer["structuredContent"], ensure_ascii=False, allow_nan=False)]
        except ValueError as error:
            raise _failed("its answer has a number that JSON does not have") from error
    if left_out:
        texts.append(f"({left_out} parts that are not text were left out)")
    return "\n".join(texts)


def _text_of(part: Mapping[str, object]) -> str | None:
    """Return the text of a part, which may be in a resource that it embeds; None for one without text."""
    holder = {"text": part, "resource": part.get("resource")}.get(str(part.get("type")))
    text = holder.get("text") if isinstance(holder, Mapping) else None
    return text if isinstance(text, str) else None


def _failed(problem: str) -> UpstreamFailed:
    return UpstreamFailed(f"the tools' server: {problem}", code="upstream_failed")
