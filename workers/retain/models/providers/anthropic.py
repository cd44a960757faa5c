"""Chat with Anthropic's Messages API.

Source: https://docs.claude.com/en/api/messages
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from retain.errors import UnusableAnswer
from retain.models.chat import ChatMessage, ChatReply, ChatRequest, Cut, OnText, Usage, spent
from retain.models.embedded import EmbeddedContents, WriteContent, as_base64
from retain.models.endpoint import Endpoint, WireObject, read_whole
from retain.models.providers.anthropic_stream import assembled
from retain.models.providers.arrival import arrival
from retain.models.providers.delivery import Delivery, deliver
from retain.models.providers.files import anthropic_blocks
from retain.models.providers.openai import counted, cut_by, cut_off, schema_in_words
from retain.models.providers.tool_calls import read_call
from retain.server_sent_events import read_events

VERSION = "2023-06-01"
"""The API's version. Source: https://docs.claude.com/en/api/versioning"""

BLANK = "(no text)"
"""What stands for a blank input."""

_PATH = "/messages"
_THOUGHTS = "thinking_blocks"
"""The blocks that the server wants to read again, unchanged, with the calls that followed them.

Source: https://platform.claude.com/docs/build-with-claude/thinking-tool-workflows
"""
_CUTS: dict[object, Cut] = {
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "content_filter",
}
"""Source: https://docs.claude.com/en/api/handling-stop-reasons"""


class AnthropicEndpoint(Endpoint):
    """See `Endpoint`. base_url: such as `https://api.anthropic.com/v1`."""

    def credentials(self) -> dict[str, str]:
        """Return the API's version and the key."""
        return {"anthropic-version": VERSION} | ({"x-api-key": self.api_key} if self.api_key else {})


class AnthropicChat:
    """Completes through `POST {base_url}/messages`. Implements the `ChatModel` port, without checking schemas."""

    def __init__(self, endpoint: AnthropicEndpoint, *, model: str) -> None:
        self._endpoint = endpoint
        self._model = model

    @property
    def name(self) -> str:
        """Return the model's name."""
        return self._model

    async def complete(self, request: ChatRequest, on_text: OnText | None = None) -> ChatReply:
        """Return the model's next message.

        Raises: as `Endpoint.post`, `deliver` and `from_wire`.
        """
        contents = EmbeddedContents()
        payload = to_wire(request, model=self._model, write=contents.mark)
        if on_text is None:
            return from_wire(await self._endpoint.post(_PATH, payload, contents))

        async def attempt(delivery: Delivery) -> ChatReply:
            async with self._endpoint.open(_PATH, {**payload, "stream": True}, contents) as response:
                arriving = await arrival(response.chunks)
                if arriving.whole is not None:
                    return await delivery.give_whole(from_wire(read_whole(arriving.whole, self._endpoint.api_key)))
                events = read_events(arriving.pieces)
                return from_wire(await assembled(events, delivery, self._endpoint.api_key))

        return await deliver(attempt, on_text, self._endpoint.retries)


def to_wire(request: ChatRequest, *, model: str, write: WriteContent = as_base64) -> dict[str, object]:
    """Return the body of the request. write: how images and PDFs are written.

    All system messages go into `system`, the format's only field for them. A schema is requested in words there,
    since only some models support `output_config`, and only for a part of JSON Schema.
    Source: https://docs.claude.com/en/docs/build-with-claude/structured-outputs
    """
    system = [message.content for message in request.messages if message.role == "system" and message.content]
    if request.schema is not None:
        system.append(schema_in_words(request.schema))
    payload: dict[str, object] = {
        "model": model,
        "messages": _turns(request, write),
        "max_tokens": request.max_output_tokens,
    }
    if system:
        payload["system"] = "\n\n".join(system)
    if request.tools:
        payload["tools"] = [
            {"name": tool.name, "description": tool.description, "input_schema": dict(tool.parameters)}
            for tool in request.tools
        ]
    if request.temperature is not None:
        payload["temperature"] = request.temperature
    return payload


def _turns(request: ChatRequest, write: WriteContent) -> list[dict[str, object]]:
    """Return the conversation as alternating user and assistant turns, with one turn's tool results in one message.

    The server refuses a conversation without messages, and one that begins with the assistant: a blank input has words.
    """
    turns: list[tuple[str, list[dict[str, object]]]] = []
    for message in request.messages:
        if message.role == "system":
            continue
        role = "assistant" if message.role == "assistant" else "user"
        blocks = _blocks(message, request.contents, write)
        if not blocks:
            continue
        if turns and turns[-1][0] == role:
            turns[-1][1].extend(blocks)
        else:
            turns.append((role, blocks))
    if not turns or turns[0][0] == "assistant":
        turns.insert(0, ("user", [{"type": "text", "text": BLANK}]))
    return [{"role": role, "content": blocks} for role, blocks in turns]


def _blocks(message: ChatMessage, contents: Mapping[str, bytes], write: WriteContent) -> list[dict[str, object]]:
    if message.role == "tool":
        result: dict[str, object] = {
            "type": "tool_result",
            "tool_use_id": message.tool_call_id or "",
            "content": message.content,
        }
        return [{**result, "is_error": True} if message.failed else result]
    thoughts = (message.tool_calls[0].reasoning or {}).get(_THOUGHTS) if message.tool_calls else None
    thought = [dict(one) for one in thoughts if isinstance(one, Mapping)] if isinstance(thoughts, list) else []
    # The server refuses blank texts.
    texts: list[dict[str, object]] = [{"type": "text", "text": message.content}] if message.content.strip() else []
    return [*thought, *anthropic_blocks(message, contents, write), *texts] + [
        {"type": "tool_use", "id": call.id, "name": call.name, "input": dict(call.arguments)}
        for call in message.tool_calls
    ]


def from_wire(answer: WireObject) -> ChatReply:
    """Return the reply that the answer's blocks hold, ignoring blocks of other types, except thoughts before calls.

    Raises: UnusableAnswer (code `malformed_answer`) for another shape; as `cut_off` when nothing complete is left.
    """
    usage = _usage(answer.get("usage"))
    blocks = answer.get("content")
    if not isinstance(blocks, list) or not all(isinstance(block, dict) for block in blocks):
        raise _malformed("the model's server answered without content", usage)
    texts = [block.get("text") for block in blocks if block.get("type") == "text"]
    uses = [block for block in blocks if block.get("type") == "tool_use"]
    if not all(isinstance(text, str) for text in texts):
        raise _malformed("the model's server answered with text of another shape", usage)
    content = "".join(text for text in texts if isinstance(text, str))
    cut = cut_by(answer.get("stop_reason"), _CUTS)
    if cut is not None and (uses or not content.strip()):
        raise cut_off(cut, usage)
    calls = [read_call(use.get("id"), use.get("name"), use.get("input")) for use in uses]
    thoughts = [block for block in blocks if block.get("type") in ("thinking", "redacted_thinking")]
    if calls and thoughts:
        calls[0] = replace(calls[0], reasoning={_THOUGHTS: thoughts})
    return ChatReply(content, tuple(calls), usage, cut)


def _malformed(message: str, usage: Usage) -> UnusableAnswer:
    return UnusableAnswer(message, code="malformed_answer", **spent(usage))


def _usage(usage: object) -> Usage:
    """Return the usage. `input_tokens` leaves out what the cache supplied or stored, which the model read nevertheless.

    What the cache stored counts as read without it: Retain asks for no cache, so that only a gateway in between can.
    Source: https://docs.claude.com/en/docs/build-with-claude/prompt-caching#tracking-cache-performance
    """
    cached = counted(usage, "cache_read_input_tokens")
    read = cached + sum(counted(usage, name) for name in ("input_tokens", "cache_creation_input_tokens"))
    return Usage(read, counted(usage, "output_tokens"), cached)
