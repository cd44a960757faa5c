"""Chat with any server that speaks OpenAI's wire format."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Literal

from retain.errors import UpstreamFailed
from retain.json_text import read_json
from retain.models.chat import ChatReply, ChatRequest, Message, OnText, ToolCall, Usage
from retain.models.openai_endpoint import JsonObject, OpenAiEndpoint

LimitField = Literal["max_completion_tokens", "max_tokens"]


class OpenAiChat:
    """Completes through `POST {base_url}/chat/completions`. Implements the `ChatModel` port."""

    def __init__(
        self, endpoint: OpenAiEndpoint, *, model: str, limit_field: LimitField = "max_completion_tokens"
    ) -> None:
        """Name the model.

        limit_field: how the server calls the limit of output. OpenAI's newer models refuse the older name `max_tokens`,
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
        """Return the model's next message. Text that reached the limit of output is returned as far as it goes.

        Raises: as `OpenAiEndpoint.post` and `from_wire`.
        """
        payload = to_wire(request, model=self._model, limit_field=self._limit_field)
        reply = from_wire(await self._endpoint.post("/chat/completions", payload))
        if on_text is not None and reply.content:
            await on_text(reply.content)
        return reply


def to_wire(request: ChatRequest, *, model: str, limit_field: LimitField) -> dict[str, object]:
    """Return the body of the request."""
    payload: dict[str, object] = {
        "model": model,
        "messages": [_message_to_wire(message) for message in request.messages],
        limit_field: request.max_output_tokens,
    }
    if request.tools:
        payload["tools"] = [
            {
                "type": "function",
                "function": {
                    "name": tool.name,
                    "description": tool.description,
                    "parameters": dict(tool.parameters),
                },
            }
            for tool in request.tools
        ]
    if request.temperature is not None:
        payload["temperature"] = request.temperature
    return payload


def _message_to_wire(message: Message) -> dict[str, object]:
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


def from_wire(answer: JsonObject) -> ChatReply:
    """Return the reply that the answer's first choice holds.

    Raises: UpstreamFailed, code `malformed_tool_call` when a call has no id, no name, or arguments that are not a JSON
        object; `content_filtered` when the server withheld the answer; `malformed_answer` otherwise.
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
    if choice.get("finish_reason") == "content_filter":
        raise UpstreamFailed("the model's server withheld the answer", code="content_filtered")
    return ChatReply(content, tuple(_call_from_wire(call) for call in calls), _usage_from_wire(answer.get("usage")))


def _call_from_wire(call: object) -> ToolCall:
    function = call.get("function") if isinstance(call, Mapping) else None
    if isinstance(call, Mapping) and isinstance(function, Mapping):
        call_id, name, text = call.get("id"), function.get("name"), function.get("arguments")
        if isinstance(call_id, str) and call_id and isinstance(name, str) and name and isinstance(text, str):
            # A call without arguments comes as "" from some servers.
            arguments = _json_object(text or "{}")
            if arguments is not None:
                return ToolCall(call_id, name, arguments)
            raise UpstreamFailed(
                "the model called a tool with arguments that are no JSON object", code="malformed_tool_call", tool=name
            )
    raise UpstreamFailed("the model called a tool without an id or a name", code="malformed_tool_call")


def _json_object(text: str) -> dict[str, object] | None:
    try:
        value = read_json(text)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _usage_from_wire(usage: object) -> Usage:
    def tokens(name: str) -> int:
        value = usage.get(name) if isinstance(usage, Mapping) else None
        return value if isinstance(value, int) else 0

    return Usage(input_tokens=tokens("prompt_tokens"), output_tokens=tokens("completion_tokens"))
