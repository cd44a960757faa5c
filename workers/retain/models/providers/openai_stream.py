"""A streamed answer in OpenAI's wire format, assembled into the form of an unstreamed one.

Source: https://platform.openai.com/docs/api-reference/chat-streaming
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any, Protocol

from retain.errors import Unavailable, UnusableAnswer
from retain.json_text import read_json
from retain.models.endpoint import WireObject, failure_within, is_failure, read_object
from retain.models.providers.delivery import Delivery
from retain.models.providers.streamed_reasoning import StreamedReasoning
from retain.server_sent_events import ServerSentEvent

DONE = "[DONE]"


class OpenAiStreamAnswer:
    """The part of an answer that has arrived. ended: whether the server has reported that it is complete."""

    def __init__(self, secret: str = "") -> None:
        """secret: the key that was sent, which no error may contain."""
        self.ended = False
        self._secret = secret
        self._content: list[str] = []
        self._refusal: list[str] = []
        self._reasoning = StreamedReasoning()
        self._calls: list[dict[str, Any]] = []
        self._open: dict[int, dict[str, Any]] = {}
        self._finish: str | None = None
        self._usage: object = None

    def take(self, chunk: WireObject) -> str:
        """Add a chunk; return the text it adds to the answer's content.

        Raises: as `failure_within` for a chunk that reports a failure; UnusableAnswer (code `malformed_answer`).
        """
        if is_failure(chunk):
            raise failure_within(chunk, self._secret)
        if chunk.get("usage"):
            self._usage = chunk["usage"]
        choices = chunk.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices else {}
        delta = choice.get("delta") if isinstance(choice, dict) else None
        if not isinstance(delta, dict | None) or not isinstance(choice, dict):
            raise _malformed()
        reason = choice.get("finish_reason")
        if isinstance(reason, str) and reason:  # some servers write "" until the end
            self._finish, self.ended = reason, True
        return self.add(delta or {})

    def add(self, delta: WireObject) -> str:
        """Add a chunk's delta; return its text. Raises: UnusableAnswer (code `malformed_answer`)."""
        content, refusal, calls = (
            text_in(delta.get("content")),
            delta.get("refusal") or "",
            delta.get("tool_calls") or [],
        )
        if content is None or not isinstance(refusal, str) or not isinstance(calls, list):
            raise _malformed()
        for call in calls:
            self._add_call(call)
        self._reasoning.add(delta)
        self._content.append(content)
        self._refusal.append(refusal)
        return content

    def _add_call(self, part: object) -> None:
        function = (part.get("function") or {}) if isinstance(part, dict) else None
        if not isinstance(part, dict) or not isinstance(function, dict):
            raise _malformed()
        index, call_id, name = part.get("index"), part.get("id"), function.get("name")
        place = index if isinstance(index, int) else max(self._open, default=0)
        call = self._open.get(place)
        if call is None or _is_another(call, part, function):
            if not call_id and not name:
                return  # some servers close a call with an empty part
            call = {"id": call_id, "type": "function", "function": {"name": name, "arguments": ""}}
            self._open[place] = call
            self._calls.append(call)
        else:
            call["id"] = call["id"] or call_id
            known = call["function"]
            if not known["name"]:
                known["name"] = name
            elif isinstance(name, str) and name != known["name"] and not known["arguments"]:
                known["name"] += name  # some servers repeat the name in every part, others divide it
        if part.get("extra_content"):
            call["extra_content"] = part["extra_content"]
        arguments = function.get("arguments")
        if isinstance(arguments, dict):  # an object already, not JSON text
            arguments = json.dumps(arguments, ensure_ascii=False)
        if not isinstance(arguments, str | None):
            raise _malformed()
        if arguments and call["function"]["arguments"] == "{}":  # some servers begin with an empty object
            call["function"]["arguments"] = ""
        call["function"]["arguments"] += arguments or ""

    def refused(self) -> str:
        """Return the text of the model's refusal, which is the content when there is no other."""
        return "" if any(self._content) else "".join(self._refusal)

    def whole(self) -> dict[str, Any]:
        """Return the answer in its unstreamed form."""
        message = {
            "role": "assistant",
            "content": "".join(self._content) or self.refused(),
            "tool_calls": self._calls,
            **self._reasoning.whole(),
        }
        return {"choices": [{"index": 0, "message": message, "finish_reason": self._finish}], "usage": self._usage}


async def assembled(events: AsyncIterator[ServerSentEvent], delivery: Delivery, secret: str = "") -> WireObject:
    """Return the whole answer, after passing its text on piece by piece. secret: the key that was sent.

    Raises: as `OpenAiStreamAnswer.take` and the events; Unavailable (code `upstream_unreachable`) when the stream ends
        too early.
    """
    answer = OpenAiStreamAnswer(secret)
    async for event in until_ended(events, answer):
        if event.data == DONE:
            answer.ended = True
            break
        chunk = read_object(event.data)
        if event.name == "error":
            raise failure_within(chunk, secret)
        await delivery.give(answer.take(chunk))
    await delivery.give(answer.refused())
    return answer.whole()


def text_in(content: object) -> str | None:
    """Return the text of a content: of one in parts, that of its texts, without what was thought. None for another shape.

    Source: https://docs.mistral.ai/capabilities/reasoning/
    """
    if not isinstance(content, list):
        return content if isinstance(content, str) else None if content else ""
    texts: list[str] = []
    for part in content:
        text = (part.get("text") if part.get("type") == "text" else "") if isinstance(part, dict) else None
        if not isinstance(text, str):
            return None
        texts.append(text)
    return "".join(texts)


class EndingAnswer(Protocol):
    """An answer that has an end: whether it has arrived."""

    ended: bool


async def until_ended(events: AsyncIterator[ServerSentEvent], answer: EndingAnswer) -> AsyncIterator[ServerSentEvent]:
    """Yield the events of an answer, except empty ones, which keep its connection open.

    One that has ended loses nothing when its connection breaks or stays silent.

    Raises: Unavailable when it ends or breaks before that (code `upstream_unreachable`, or as the events).
    """
    try:
        async for event in events:
            if event.data.strip():
                yield event
    except Unavailable:
        if not answer.ended:
            raise
    if not answer.ended:
        raise Unavailable("the model's server broke off its answer", code="upstream_unreachable")


def _is_another(call: WireObject, part: WireObject, function: WireObject) -> bool:
    """Return whether a part begins another call than the one with its number: some servers number every call 0, or none.

    Then a new id begins a new call; without ids another name does, and the same name after arguments that are complete.
    """
    if call["id"]:
        return bool(part.get("id")) and part["id"] != call["id"]
    known, name = call["function"], function.get("name")
    if not isinstance(known, dict) or not name or not known["name"]:
        return False
    return name != known["name"] or (bool(function.get("arguments")) and _is_complete(known["arguments"]))


def _is_complete(arguments: str) -> bool:
    """Return whether arguments are a whole JSON object."""
    try:
        return arguments.endswith("}") and isinstance(read_json(arguments), dict)
    except ValueError:
        return False


def _malformed() -> UnusableAnswer:
    return UnusableAnswer("the model's server sent a piece of another shape", code="malformed_answer")
