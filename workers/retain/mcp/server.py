"""Answer one MCP request: a pure translation between the protocol and the tools of one caller."""

from __future__ import annotations

import json
from collections.abc import Mapping

from retain.errors import InvalidInput, NoSuchTool, RetainError
from retain.http import Request, Response, status_of
from retain.mcp.messages import (
    ENVELOPE_VERSIONS,
    HANDSHAKE_VERSIONS,
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    McpError,
    RpcMessage,
    accepted,
    id_of,
    read_message,
    refusal,
    result,
)
from retain.mcp.tasks import EXTENSION, McpTask, McpTasks, is_of_tasks, shown_task, takes_tasks, task_answer
from retain.mcp.tools import McpAnswer, McpTool, McpTools
from retain.version import __version__

TWICE_CHARACTERS = 256 * 1024
"""Longest answer that is sent as text and as data: a longer one would take twice the memory."""
LIST_TTL_MS = 60_000
"""How long a client may treat a list of tools as current: as long as KV may lag."""
PROBLEM = "retain/problem"
"""The name under which the metadata of a failed call has what went wrong, as data."""


async def answer(
    request: Request, tools: McpTools, name: str, instructions: str, tasks: McpTasks | None = None
) -> Response:
    """Return the answer to a request's message. The caller has refused requests from pages of other origins.

    name, instructions: how the server introduces itself. tasks: the tools once more, if their calls may become tasks.
    A violation of the protocol is answered as a JSON-RPC error, a tool's failure as a failed call.
    Raises: what listing the tools raises.
    """
    try:
        message = read_message(request)
    except McpError as error:
        return refusal(error, id_of(request), enveloped="mcp-method" in request.headers)
    if message is None or message.id is None:
        return accepted()
    try:
        return result(message, await _respond(message, tools, tasks, name, instructions))
    except McpError as error:
        return refusal(error, message.id, enveloped=message.enveloped)


async def _respond(
    message: RpcMessage, tools: McpTools, tasks: McpTasks | None, name: str, instructions: str
) -> Mapping[str, object]:
    capabilities: dict[str, object] = {"tools": {}}
    if tasks is not None and message.enveloped:
        capabilities["extensions"] = {EXTENSION: {}}
    introduction = {"capabilities": capabilities, "instructions": instructions}
    server = {"name": name, "version": __version__}
    match message.method:
        case "initialize" if not message.enveloped:
            asked = message.params.get("protocolVersion")
            version = asked if asked in HANDSHAKE_VERSIONS else HANDSHAKE_VERSIONS[-1]
            return {"protocolVersion": version, "serverInfo": server, **introduction}
        case "server/discover" if message.enveloped:
            meta = {"_meta": {"io.modelcontextprotocol/serverInfo": server}}
            versions = {"supportedVersions": [*ENVELOPE_VERSIONS, *HANDSHAKE_VERSIONS]}
            return {**introduction, **versions, **meta, "ttlMs": LIST_TTL_MS, "cacheScope": "private"}
        case "ping":
            return {}
        case "tools/list":
            return await _list(message, tools)
        case "tools/call":
            return await _call(message, tools, tasks)
        case _ if is_of_tasks(message):
            found = await task_answer(message, tasks)
            return _shown_task(found, message) if isinstance(found, McpTask) else found
        case other:
            raise McpError(METHOD_NOT_FOUND, f"there is no method '{other}'")


async def _list(message: RpcMessage, tools: McpTools) -> Mapping[str, object]:
    cursor = message.params.get("cursor")
    if cursor is not None and not isinstance(cursor, str):
        raise McpError(INVALID_PARAMS, "the cursor must be a text", reason="invalid_cursor")
    try:
        page = await tools.page(cursor)
    except InvalidInput as error:
        raise McpError(INVALID_PARAMS, error.message, reason="invalid_cursor") from error
    listed: dict[str, object] = {"tools": [_shown(tool) for tool in page.tools]}
    if page.cursor is not None:
        listed["nextCursor"] = page.cursor
    return {**listed, "ttlMs": LIST_TTL_MS, "cacheScope": "private"} if message.enveloped else listed


def _shown(tool: McpTool) -> Mapping[str, object]:
    shown = {"name": tool.name, "description": tool.description, "inputSchema": _object_schema(tool.input_schema)}
    more = {"outputSchema": tool.output_schema, "annotations": tool.hints}
    return shown | {name: dict(value) for name, value in more.items() if value}


def _object_schema(schema: Mapping[str, object]) -> Mapping[str, object]:
    """Return an equal schema that has properties, all objects.

    Clients refuse a whole list where one is `true` or `false`, and OpenAI's models a tool without any.
    Source: https://modelcontextprotocol.io/specification/2025-11-25/schema#tool
    Source: https://github.com/openai/openai-agents-python/issues/449
    """
    properties = schema.get("properties", {})
    if not isinstance(properties, Mapping):
        return dict(schema)
    shown = {
        name: ({} if part else {"not": {}}) if isinstance(part, bool) else part for name, part in properties.items()
    }
    return {**schema, "properties": shown}


async def _call(message: RpcMessage, tools: McpTools, tasks: McpTasks | None) -> Mapping[str, object]:
    name, arguments = message.params.get("name"), message.params.get("arguments") or {}
    if not isinstance(name, str) or not isinstance(arguments, dict):
        raise McpError(INVALID_PARAMS, "name must be a text and arguments an object")
    try:
        if tasks is not None and takes_tasks(message):
            return {**_shown_task(await tasks.start(name, arguments), message), "resultType": "task"}
        given = await tools.call(name, arguments)
    except NoSuchTool as error:
        raise McpError(INVALID_PARAMS, f"there is no tool '{name}'", reason="no_such_tool") from error
    except RetainError as error:
        return _failed(error)
    return _called(given, message)


def _called(given: McpAnswer, message: RpcMessage) -> Mapping[str, object]:
    """Return the result of a call: as text, and as data for clients that know data; a long one only once."""
    if given.refusal is not None:
        return _failed(given.refusal, given.text)
    if given.structured is None or not message.reads_data:
        return {"content": [_text(given.text)], "isError": False}
    text = given.text if len(given.text) <= TWICE_CHARACTERS else "The answer is in structuredContent."
    return {"content": [_text(text)], "structuredContent": given.structured, "isError": False}


def _shown_task(task: McpTask, message: RpcMessage) -> dict[str, object]:
    return shown_task(task, None if task.answer is None else _called(task.answer, message))


def _failed(error: RetainError, own_words: str = "") -> Mapping[str, object]:
    """Return a failed call: the code, the message and each detail in a line of text for the model, and all of it as data.

    The data is metadata: clients hold structured content to the tool's output schema, of a failed call too.
    own_words: what the tool's server answered.
    """
    reported = {**error.details, "status": status_of(error), "code": error.code, "detail": error.message}
    details = [f"{name}: {_shown_detail(value)}" for name, value in reported.items() if name not in ("code", "detail")]
    content = [_text("\n".join((f"{error.code}: {error.message}", *details)))]
    if own_words:
        content.append(_text(own_words))
    return {"content": content, "isError": True, "_meta": {PROBLEM: reported}}


def _shown_detail(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _text(text: str) -> Mapping[str, object]:
    return {"type": "text", "text": text}
