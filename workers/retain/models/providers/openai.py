"""Chat with any server that speaks OpenAI's wire format."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Literal

from retain.errors import UpstreamFailed
from retain.json_text import Json, read_json
from retain.models.chat import ChatMessage, ChatReply, ChatRequest, Cut, OnText, ToolCall, Usage
from retain.models.openai_endpoint import OpenAiEndpoint, WireObject
from retain.models.providers.delivery import Delivery, deliver
from retain.models.providers.openai_stream import assembled
from retain.models.providers.sse import read_events

LimitField = Literal["max_completion_tokens", "max_tokens"]

_PATH = "/chat/completions"


class OpenAiChat:
    """Completes through `POST {base_url}/chat/completions`. Implements the `ChatModel` port, without checking schemas."""

    def __init__(
        self, endpoint: OpenAiEndpoint, *, model: str, limit_field: LimitField = "max_completion_tokens"
    ) -> None:
        """Set the model.

        limit_field: the server's name for the output limit. OpenAI's newer models refuse the older name `max_tokens`,
            and some other servers know only that one.
            Source: https://platform.openai.com/docs/api-reference/chat/create
        """
        self._endpoint = endpoint
        self._model = model
        self._limit_field = limit_field

    @property
    def name(self) -> str:
        """Return the model's name."""
        return self._model

    async def complete(self, request: ChatRequest, on_text: OnText | None = None) -> ChatReply:
        """Return the model's next message.

        Raises: as `Endpoint.post`, `deliver` and `from_wire`.
        """
        payload = to_wire(request, model=self._model, limit_field=self._limit_field)
        if on_text is None:
            return from_wire(await self._endpoint.post(_PATH, payload))
        # Source: https://platform.openai.com/docs/api-reference/chat/create#chat_create-stream_options
        payload |= {"stream": True, "stream_options": {"include_usage": True}}

        async def attempt(delivery: Delivery) -> ChatReply:
            async with self._endpoint.open(_PATH, payload) as response:
                return from_wire(await assembled(read_events(response.chunks), delivery))

        return await deliver(attempt, on_text, self._endpoint.retries)


def to_wire(request: ChatRequest, *, model: str, limit_field: LimitField) -> dict[str, object]:
    """Return the body of the request."""
    payload: dict[str, object] = {
        "model": model,
        "messages": [message_to_wire(message) for message in request.messages],
        limit_field: request.max_output_tokens,
    }
    if request.tools:
        payload["tools"] = tools_to_wire(request)
    if request.temperature is not None:
        payload["temperature"] = request.temperature
    if request.schema is not None:
        # Not `strict`, which accepts only a part of JSON Schema and refuses the rest.
        # Source: https://platform.openai.com/docs/guides/structured-outputs#supported-schemas
        payload["response_format"] = {
            "type": "json_schema",
            "json_schema": {"name": "answer", "schema": dict(request.schema)},
        }
    return payload


def tools_to_wire(request: ChatRequest) -> list[dict[str, object]]:
    """Return the tools as the request lists them."""
    return [
        {
            "type": "function",
            "function": {"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters)},
        }
        for tool in request.tools
    ]


def message_to_wire(message: ChatMessage) -> dict[str, object]:
    """Return one message as the request holds it."""
    wire: dict[str, object] = {"role": message.role, "content": message.content}
    if message.tool_calls:
        wire["content"] = message.content or None
        wire["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": json.dumps(dict(call.arguments), ensure_ascii=False)},
            }
            for call in message.tool_calls
        ]
    if message.tool_call_id is not None:
        wire["tool_call_id"] = message.tool_call_id
    return wire


_CUTS: dict[object, Cut] = {"length": "length", "content_filter": "content_filter"}


def from_wire(answer: WireObject) -> ChatReply:
    """Return the reply that the answer's first choice holds.

    Raises: UpstreamFailed, code `malformed_tool_call` when a call has no id, no name, or arguments that are not a JSON
        object; `malformed_answer` for another shape; as `reply_of`.
    """
    choices = answer.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    message = choice.get("message") if isinstance(choice, dict) else None
    if not isinstance(choice, dict) or not isinstance(message, dict):
        raise UpstreamFailed("the model's server answered without a message", code="malformed_answer")
    content = message.get("content") or message.get("refusal") or ""
    calls = message.get("tool_calls") or []
    if not isinstance(content, str) or not isinstance(calls, list):
        raise UpstreamFailed("the model's server answered with a message of another shape", code="malformed_answer")
    return reply_of(content, calls, usage_from_wire(answer.get("usage")), _CUTS.get(choice.get("finish_reason")))


def reply_of(content: str, calls: list[object], usage: Usage, cut: Cut | None) -> ChatReply:
    """Return the reply with this text and these calls, given in OpenAI's format.

    Raises: UpstreamFailed, code `answer_cut` when the answer was cut within its calls or before any text,
        `content_filtered` when it was filtered there, `malformed_tool_call`.
    """
    if cut is not None and (calls or not content):  # before the calls are read: a cut call is not JSON
        raise cut_off(cut)
    return ChatReply(content, tuple(_call_from_wire(call) for call in calls), usage, cut)


def cut_off(cut: Cut) -> UpstreamFailed:
    """Return the error for an answer of which nothing complete is left."""
    if cut == "content_filter":
        return UpstreamFailed("the model's server withheld the answer", code="content_filtered")
    return UpstreamFailed("the answer reached its token limit before it was complete", code="answer_cut")


def _call_from_wire(call: object) -> ToolCall:
    function = call.get("function") if isinstance(call, Mapping) else None
    if isinstance(call, Mapping) and isinstance(function, Mapping):
        call_id, name, text = call.get("id"), function.get("name"), function.get("arguments")
        if isinstance(call_id, str) and call_id and isinstance(name, str) and name and isinstance(text, str):
            # Some servers send "" for a call without arguments.
            arguments = _json_object(text or "{}")
            if arguments is not None:
                return ToolCall(call_id, name, arguments)
            raise UpstreamFailed(
                "the model called a tool with arguments that are not a JSON object",
                code="malformed_tool_call",
                tool=name,
            )
    raise UpstreamFailed("the model called a tool without an id or a name", code="malformed_tool_call")


def _json_object(text: str) -> dict[str, Json] | None:
    try:
        value = read_json(text)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def usage_from_wire(usage: object) -> Usage:
    """Return the usage, 0 where it is not reported."""

    def tokens(name: str) -> int:
        value = usage.get(name) if isinstance(usage, Mapping) else None
        return value if isinstance(value, int) else 0

    return Usage(input_tokens=tokens("prompt_tokens"), output_tokens=tokens("completion_tokens"))
