"""Chat with a model of Workers AI, through its binding.

Models answer in one of two formats, whole or streamed: Workers AI's own, or OpenAI's. Some answer whole when asked to
stream. Source: https://developers.cloudflare.com/workers-ai/features/function-calling/
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol, TypeVar

from retain.errors import Unavailable, UnusableAnswer
from retain.models.chat import ChatMessage, ChatReply, ChatRequest, Cut, OnText
from retain.models.endpoint import WireObject, read_object
from retain.models.providers.delivery import Delivery, deliver
from retain.models.providers.files import openai_content, shown
from retain.models.providers.openai import cut_by, message_to_wire, reply_of, tools_to_wire, usage_from_wire
from retain.models.providers.openai import from_wire as from_openai
from retain.models.providers.openai_stream import DONE, OpenAiStreamAnswer, until_ended
from retain.models.providers.tool_calls import turn_of
from retain.models.retry import Retries, with_retries
from retain.models.workers_ai import AiRunner
from retain.server_sent_events import ServerSentEvent, read_events

Result = TypeVar("Result")

_CUTS: dict[object, Cut] = {"length": "length", "max_tokens": "length", "content_filter": "content_filter"}


class AiStreamer(Protocol):
    """Runs a model of Workers AI that is asked to stream."""

    def __call__(
        self, model: str, inputs: Mapping[str, object], *, silence_ms: int
    ) -> AbstractAsyncContextManager[Mapping[str, object] | AsyncIterator[bytes]]:
        """Enter when the answer begins: give its pieces (server-sent events), or all of it when it does not stream.

        silence_ms: longest wait for the next piece.
        Raises: as `AiRunner`; Unavailable (code `upstream_timeout`, `upstream_unreachable`) from the pieces.
        """
        ...


class WorkersAiChat:
    """Completes with a model of Workers AI. Implements the `ChatModel` port, without checking schemas."""

    def __init__(
        self, run: AiRunner, stream: AiStreamer, retries: Retries, *, model: str, timeout_ms: int = 60_000
    ) -> None:
        """Set the model (such as `@cf/meta/llama-3.3-70b-instruct-fp8-fast`).

        timeout_ms: limit of one attempt; for a stream, of each silence.
        """
        self._run = run
        self._stream = stream
        self._retries = retries
        self._model = model
        self._timeout_ms = timeout_ms

    @property
    def name(self) -> str:
        """Return the model's name."""
        return self._model

    async def complete(self, request: ChatRequest, on_text: OnText | None = None) -> ChatReply:
        """Return the model's next message. Calls without an id get `call_<turn>_<n>`.

        Raises: as the port.
        """
        inputs, turn = to_wire(request), turn_of(request.messages)
        if on_text is None:
            answer = await with_retries(
                lambda: _in_time(self._run(self._model, inputs), self._timeout_ms), self._retries
            )
            return from_wire(answer, turn)

        async def attempt(delivery: Delivery) -> ChatReply:
            opened = self._stream(self._model, {**inputs, "stream": True}, silence_ms=self._timeout_ms)
            begun = await _in_time(opened.__aenter__(), self._timeout_ms)
            try:
                if isinstance(begun, Mapping):
                    return await delivery.give_whole(from_wire(begun, turn))
                return from_wire(await assembled(read_events(begun), delivery), turn)
            finally:
                await opened.__aexit__(None, None, None)

        return await deliver(attempt, on_text, self._retries)


async def _in_time(work: Awaitable[Result], timeout_ms: int) -> Result:
    try:
        async with asyncio.timeout(timeout_ms / 1000):
            return await work
    except TimeoutError as error:
        raise Unavailable("Workers AI did not answer in time", code="upstream_timeout") from error


def to_wire(request: ChatRequest) -> dict[str, object]:
    """Return the model's input. Its content is never null, which the binding refuses."""
    inputs: dict[str, object] = {"messages": _messages(request), "max_tokens": request.max_output_tokens}
    if request.tools:
        inputs["tools"] = tools_to_wire(request)
    if request.temperature is not None:
        inputs["temperature"] = request.temperature
    if request.schema is not None:
        # Source: https://developers.cloudflare.com/workers-ai/features/json-mode/
        inputs["response_format"] = {"type": "json_schema", "json_schema": dict(request.schema)}
    return inputs


def _messages(request: ChatRequest) -> list[dict[str, object]]:
    called = {call.id: call.name for message in request.messages for call in message.tool_calls}

    def wire(message: ChatMessage) -> dict[str, object]:
        named = {"name": called[message.tool_call_id]} if message.tool_call_id in called else {}
        return {**message_to_wire(message, request.contents), "content": _content(message, request.contents), **named}

    return [wire(message) for message in request.messages]


def _content(message: ChatMessage, contents: Mapping[str, bytes]) -> object:
    """Return a message's content: images as OpenAI's format has them, and text alone where there is none.

    A model of Workers AI takes no PDF, and many take no parts.
    Source: https://developers.cloudflare.com/workers-ai/models/llama-4-scout-17b-16e-instruct/
    """
    if any(file.kind == "image" for file in message.attachments):
        return openai_content(message, contents)
    return shown(message, contents)


def from_wire(answer: WireObject, turn: int) -> ChatReply:
    """Return the reply of an answer in either format.

    Raises: as `providers.openai.from_wire`.
    """
    if "choices" in answer:
        return from_openai(answer)
    if not {"response", "tool_calls"} & answer.keys():
        raise UnusableAnswer("Workers AI answered without a response", code="malformed_answer")
    calls = answer.get("tool_calls") or []
    if not isinstance(calls, list):
        raise UnusableAnswer("Workers AI answered with calls of another shape", code="malformed_answer")
    written = [_call(call, f"call_{turn}_{number}") for number, call in enumerate(calls, start=1)]
    cut = cut_by(answer.get("finish_reason"), _CUTS)
    return reply_of(_text(answer.get("response")), written, usage_from_wire(answer.get("usage")), cut)


def _text(response: object) -> str:
    """Return a response's text. If the model answered in JSON, the response is the parsed value instead of text."""
    if response is None:
        return ""
    return response if isinstance(response, str) else json.dumps(response, ensure_ascii=False)


def _call(call: object, call_id: str) -> object:
    """Return a call in OpenAI's format."""
    if not isinstance(call, dict):
        return call
    function = call.get("function")
    function = function if isinstance(function, dict) else call
    arguments = function.get("arguments")
    text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    return {"id": call.get("id") or call_id, "function": {"name": function.get("name"), "arguments": text}}


async def assembled(events: AsyncIterator[ServerSentEvent], delivery: Delivery) -> WireObject:
    """Return the whole answer of a stream, in the stream's format, after passing its text on.

    Raises: as `take` of the format's answer and the events; Unavailable (code `upstream_unreachable`) when the stream
        ends too early.
    """
    answer = _Streamed()
    async for event in until_ended(events, answer.openai):
        if event.data == DONE:
            answer.openai.ended = True
            break
        await delivery.give(answer.take(read_object(event.data)))
    await delivery.give(answer.openai.refused())
    return answer.whole()


class _Streamed:
    """An answer while it arrives. Its first piece shows its format; the last may be in the other and report the usage."""

    def __init__(self) -> None:
        self.openai = OpenAiStreamAnswer()
        self._native: bool | None = None
        self._calls: list[Any] = []
        self._texts: list[str] = []
        self._usage: object = None
        self._finish: object = None

    def take(self, chunk: WireObject) -> str:
        if self._native is None:
            self._native = "choices" not in chunk
        self._usage = chunk.get("usage") or self._usage
        if not self._native or chunk.get("error") or chunk.get("errors"):
            return self.openai.take({"error": chunk["errors"]} if chunk.get("errors") else chunk)
        self._finish = chunk.get("finish_reason") or self._finish
        calls = chunk.get("tool_calls") or []
        if not isinstance(calls, list):
            raise UnusableAnswer("Workers AI sent calls of another shape", code="malformed_answer")
        whole = [call for call in calls if isinstance(call, dict) and "function" not in call]
        self._calls.extend(whole)
        self.openai.add({"tool_calls": [call for call in calls if call not in whole]})
        text = _text(chunk.get("response"))
        self._texts.append(text)
        return text

    def whole(self) -> dict[str, Any]:
        if not self._native:
            return self.openai.whole() | ({"usage": self._usage} if self._usage else {})
        parts = self.openai.whole()["choices"][0]["message"]["tool_calls"]
        return {
            "response": "".join(self._texts),
            "tool_calls": [*self._calls, *parts],
            "usage": self._usage,
            "finish_reason": self._finish,
        }
