"""What every model's answer gets: it can be repeated in the next request, and matches the schema if there is one."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache

from retain.errors import InvalidInput, RetainError, SchemaMismatch
from retain.json_schema import Check, compile_schema
from retain.json_text import RepeatedName, read_own_json, read_strict_json
from retain.models.chat import ChatMessage, ChatModel, ChatReply, ChatRequest, OnText, ToolCall, spent, usage_of
from retain.models.providers.delivery import AnswerText, without_thought
from retain.models.providers.openai import cut_off
from retain.models.providers.tool_calls import usable

KEPT = 8
"""Of how many schemas an isolate keeps the check: to compile one takes as long as many answers take to be checked."""
_FENCED = re.compile(r"\s*```(?:json)?\s*\n(.*?)\n?\s*```\s*", re.DOTALL)


class CheckedChat:
    """Implements the `ChatModel` port over an adapter that takes answers as they come."""

    def __init__(self, model: ChatModel) -> None:
        self._model = model

    @property
    def name(self) -> str:
        """Return the model's name."""
        return self._model.name

    async def complete(self, request: ChatRequest, on_text: OnText | None = None) -> ChatReply:
        """Return the model's next message.

        If an answer does not match the schema, the model is asked once more, with the path and the rule that it breaks.
        The text is therefore delivered in one piece, once it matches. An answer with tool calls is not checked.

        Raises: as the port; InvalidInput (code `invalid_schema`).
        """
        if request.schema is None:
            return await self._answered(request, on_text)
        check = _compiled(request.schema)
        first = await self._answered(request)
        if first.tool_calls:
            return await _given(first, on_text)
        try:
            return await _given(_matching(first, check), on_text)
        except SchemaMismatch as mismatch:
            again = [*request.messages, ChatMessage("assistant", first.content), ChatMessage("user", _repair(mismatch))]
        try:
            second = await self._answered(replace(request, messages=again))
        except RetainError as error:
            error.details = {**error.details, **spent(first.usage + usage_of(error))}
            raise
        second = replace(second, usage=first.usage + second.usage)
        return await _given(second if second.tool_calls else _matching(second, check), on_text)

    async def _answered(self, request: ChatRequest, on_text: OnText | None = None) -> ChatReply:
        request = replace(request, messages=[_without_foreign_thoughts(one, self.name) for one in request.messages])
        if on_text is None:
            return _usable(await self._model.complete(request), request, self.name)
        answer, listener = AnswerText(), on_text

        async def pass_on(piece: str) -> None:
            await _pass_on(answer.take(piece), listener)

        reply = _usable(await self._model.complete(request, pass_on), request, self.name)
        await _pass_on(answer.end(), listener)
        return reply


def _without_foreign_thoughts(message: ChatMessage, model: str) -> ChatMessage:
    """Return a message without what another model thought, which the run had before.

    Servers refuse what they do not know.
    """
    if all(call.reasoning is None or call.reasoning.get("model") == model for call in message.tool_calls):
        return message
    return replace(message, tool_calls=tuple(replace(call, reasoning=None) for call in message.tool_calls))


async def _pass_on(text: str, on_text: OnText) -> None:
    if text:
        await on_text(text)


def _usable(reply: ChatReply, request: ChatRequest, model: str) -> ChatReply:
    """Return the reply as `usable` does, without what the model thought, except what its server wants back.

    Raises: as `cut_off` when nothing else is in it.
    """
    reply = usable(replace(reply, content=without_thought(reply.content)), request)
    if any(call.reasoning is not None for call in reply.tool_calls):
        reply = replace(reply, tool_calls=tuple(_marked(call, model) for call in reply.tool_calls))
    if reply.cut is not None and not reply.content.strip():
        raise cut_off(reply.cut, reply.usage)
    return reply


def _marked(call: ToolCall, model: str) -> ToolCall:
    return call if call.reasoning is None else replace(call, reasoning={"model": model, **call.reasoning})


async def _given(reply: ChatReply, on_text: OnText | None) -> ChatReply:
    if on_text is not None and reply.content:
        await on_text(reply.content)
    return reply


def _compiled(schema: Mapping[str, object]) -> Check:
    try:
        return _check_of(json.dumps(dict(schema)))
    except ValueError as error:
        raise InvalidInput(f"the schema: {error}", code="invalid_schema") from error


@lru_cache(maxsize=KEPT)
def _check_of(schema: str) -> Check:
    """Return the check of a schema, given as JSON: every answer of a run has the same. Raises: as `compile_schema`."""
    return compile_schema(read_own_json(schema))


def _matching(reply: ChatReply, check: Check) -> ChatReply:
    """Return the reply with the object that it holds, without any code fence around it.

    Raises: UpstreamFailed, code `schema_mismatch` with the `path` and the `problem`; as `cut_off` for a cut answer.
    """
    if reply.cut is not None:
        raise cut_off(reply.cut, reply.usage)
    fenced = _FENCED.fullmatch(reply.content)
    text = fenced[1] if fenced else reply.content
    try:
        value = read_strict_json(text)  # what is answered can be read by others, and stored
    except RepeatedName as error:
        raise _mismatch(reply, "", str(error)) from None
    except ValueError:
        raise _mismatch(reply, "", "it is not JSON") from None  # the cause quotes the text
    if not isinstance(value, dict):
        raise _mismatch(reply, "", "it is not a JSON object")
    violation = check(value)
    if violation is not None:
        raise _mismatch(reply, violation.path, violation.problem)
    return replace(reply, content=text, structured=value)


def _mismatch(reply: ChatReply, path: str, problem: str) -> SchemaMismatch:
    return SchemaMismatch(
        "the model's answer does not match the requested schema",
        path=path,
        problem=problem,
        input_tokens=reply.usage.input_tokens,
        output_tokens=reply.usage.output_tokens,
        cached_input_tokens=reply.usage.cached_input_tokens,
    )


def _repair(mismatch: SchemaMismatch) -> str:
    place = f"At {mismatch.details['path']}: " if mismatch.details["path"] else ""
    return (
        f"This answer does not match the JSON Schema. {place}{mismatch.details['problem']}. "
        "Answer again, with the whole JSON object and nothing else."
    )
