"""Tool calls as models write them: a mistake becomes a call with a `problem`, which the model reads as its answer.

Models call tools with arguments that are not JSON, without an id, or with an id twice. The next request repeats the
calls, and servers refuse a request whose calls have no id, the same id, or a name of other characters.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import replace

from retain.json_text import JsonObject, read_json
from retain.models.chat import ChatMessage, ChatReply, ChatRequest, ToolCall
from retain.models.unicode import valid_json, valid_text

UNNAMED = "unnamed"
"""The name of a call without one."""
_SHOWN = 200
"""How much of what the model wrote it reads again, in characters."""
_OTHER = re.compile(r"[^A-Za-z0-9_-]")
_MAX_NAME = 64


def read_call(call_id: object, name: object, arguments: object) -> ToolCall:
    """Return a call. arguments: an object, or its JSON; None, "" or "null" for none. An id that is missing becomes ""."""
    written = call_id if isinstance(call_id, str) else ""
    if not (isinstance(name, str) and name):
        return ToolCall(written, UNNAMED, {}, "the call names no tool")
    found = _arguments(arguments)
    if isinstance(found, str):
        return ToolCall(written, name, {}, found)
    return ToolCall(written, name, found)


def not_a_call() -> ToolCall:
    """Return what stands for a call that has no parts at all."""
    return ToolCall("", UNNAMED, {}, "the call is not an object with a function")


def _arguments(written: object) -> JsonObject | str:
    """Return the arguments, or why they are not a JSON object."""
    if written is None or (isinstance(written, str) and written.strip() in ("", "null")):
        return {}  # some servers send these for a call without arguments
    try:
        value = read_json(written) if isinstance(written, str) else written
        text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    except ValueError:
        text, value = str(written), None
    if isinstance(value, dict):
        return value
    shown = text if len(text) <= _SHOWN else text[:_SHOWN] + "\u2026"
    return f"the arguments are not a JSON object: {shown}"


def turn_of(messages: Iterable[ChatMessage]) -> int:
    """Return the number of the next answer, from 1."""
    return 1 + sum(message.role == "assistant" for message in messages)


def usable(reply: ChatReply, request: ChatRequest) -> ChatReply:
    """Return the reply so that the next request can repeat it.

    Its texts are valid Unicode, its calls have names of the usual characters, and ids that the conversation does not have.
    """
    taken = {call.id for message in request.messages for call in message.tool_calls}
    calls: list[ToolCall] = []
    for call in reply.tool_calls:
        made = _usable_call(call, taken, turn_of(request.messages), len(calls) + 1)
        taken.add(made.id)
        calls.append(made)
    return replace(reply, content=valid_text(reply.content), tool_calls=tuple(calls))


def _usable_call(call: ToolCall, taken: set[str], turn: int, number: int) -> ToolCall:
    call_id = valid_text(call.id)
    while not call_id or call_id in taken:
        call_id = f"call_{turn}_{number}"
        number += 1
    name = _OTHER.sub("_", call.name)[:_MAX_NAME]
    problem = None if call.problem is None else valid_text(call.problem)
    return ToolCall(call_id, name, valid_json(call.arguments), problem, _kept(call.reasoning))


def _kept(reasoning: JsonObject | None) -> JsonObject | None:
    """Return what a call's server wants back, None for nothing, and for numbers that JSON does not have."""
    try:
        json.dumps(reasoning, allow_nan=False)
    except ValueError:
        return None
    return None if reasoning is None else valid_json(reasoning)
