"""Chat with any server that speaks OpenAI's wire format."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Literal

from retain.errors import Unavailable, UnusableAnswer, UpstreamFailed
from retain.models.chat import ChatMessage, ChatReply, ChatRequest, Cut, OnText, ToolCall, Usage, spent
from retain.models.embedded import EmbeddedContents, WriteContent, as_base64
from retain.models.endpoint import read_whole
from retain.models.openai_endpoint import OpenAiEndpoint, WireObject
from retain.models.providers.arrival import arrival
from retain.models.providers.delivery import Delivery, deliver
from retain.models.providers.files import openai_content
from retain.models.providers.openai_stream import assembled, text_in
from retain.models.providers.tool_calls import not_a_call, read_call
from retain.server_sent_events import read_events

LimitField = Literal["max_completion_tokens", "max_tokens"]
"""The server's name for the output limit.

OpenAI's newer models refuse `max_tokens`. Mistral refuses the newer name, and Ollama does not read it.
Source: https://platform.openai.com/docs/api-reference/chat/create
Source: https://docs.mistral.ai/api/endpoint/chat
Source: https://github.com/ollama/ollama/blob/main/docs/api/openai-compatibility.mdx
"""

MAX_TOKENS = 10**9
"""More tokens than any model reads: a larger number is not a count."""

_PATH = "/chat/completions"
_REFUSED = (400, 422)
"""The statuses of a request that has something which the server does not take."""
_OPENAI = re.compile(
    r"https?://(([^/]+\.)?openai\.(azure\.)?com|[^/]+\.(services\.ai|cognitiveservices)\.azure\.com"
    r"|gateway\.ai\.cloudflare\.com/v1/[^/]+/[^/]+/(azure-)?openai)([:/].*)?",
    re.IGNORECASE,
)
"""The addresses of OpenAI's models: its own, Azure's, and those of AI Gateway that lead to them."""


class OpenAiChat:
    """Completes through `POST {base_url}/chat/completions`. Implements the `ChatModel` port, without checking schemas."""

    def __init__(self, endpoint: OpenAiEndpoint, *, model: str) -> None:
        """Set the model."""
        self._endpoint = endpoint
        self._model = model
        self._limit_field = limit_field_at(endpoint.base_url)
        self._of_openai = self._limit_field == "max_completion_tokens"
        self._takes_schemas = True
        self._takes_stream_options = True

    @property
    def name(self) -> str:
        """Return the model's name."""
        return self._model

    async def complete(self, request: ChatRequest, on_text: OnText | None = None) -> ChatReply:
        """Return the model's next message. A server that refuses a part of the request is asked in another way.

        Raises: as `Endpoint.post`, `deliver` and `from_wire`.
        """
        while True:
            try:
                return await self._complete(request, on_text)
            except UpstreamFailed as error:
                if not self._adapts_to(error, request):
                    raise

    def _adapts_to(self, error: UpstreamFailed, request: ChatRequest) -> bool:
        """Return whether the server is asked in another way from now on, after it refused a request.

        Where another server leads to a newer model of OpenAI's, that says which name of the limit it wants. Some servers
        refuse schemas, as DeepSeek's, or `stream_options`, as Mistral's, which reports the usage unasked.
        """
        named = f"{error.details}"
        if self._limit_field == "max_tokens" and "max_completion_tokens" in named:
            self._limit_field = "max_completion_tokens"
            return True
        if self._takes_stream_options and "stream_options" in named:
            self._takes_stream_options = False
            return True
        if self._sends_schema(request) and error.details.get("status") in _REFUSED:
            self._takes_schemas = False
            return True
        return False

    def _sends_schema(self, request: ChatRequest) -> bool:
        """Return whether a schema goes into the request's field for it, and not into its words.

        Next to tools, OpenAI's servers alone take it for what it is: a rule for the answer after the calls. With vLLM and
        Ollama the model can call no tool then, and llama.cpp and Groq refuse both.
        Source: https://github.com/vllm-project/vllm/issues/39929, https://github.com/ollama/ollama/issues/8095
        """
        return request.schema is not None and self._takes_schemas and (self._of_openai or not request.tools)

    async def _complete(self, request: ChatRequest, on_text: OnText | None) -> ChatReply:
        contents = EmbeddedContents()
        request = request if self._sends_schema(request) else with_schema_in_words(request)
        payload = to_wire(request, model=self._model, limit_field=self._limit_field, write=contents.mark)
        if on_text is None:
            return from_wire(await self._endpoint.post(_PATH, payload, contents))
        payload["stream"] = True
        if self._takes_stream_options:
            # Source: https://platform.openai.com/docs/api-reference/chat/create#chat_create-stream_options
            payload["stream_options"] = {"include_usage": True}

        async def attempt(delivery: Delivery) -> ChatReply:
            async with self._endpoint.open(_PATH, payload, contents) as response:
                arriving = await arrival(response.chunks)
                if arriving.whole is not None:
                    return await delivery.give_whole(from_wire(read_whole(arriving.whole, self._endpoint.api_key)))
                events = read_events(arriving.pieces)
                return from_wire(await assembled(events, delivery, self._endpoint.api_key))

        return await deliver(attempt, on_text, self._endpoint.retries)


def limit_field_at(base_url: str) -> LimitField:
    """Return what the server at this address calls the output limit: the older name, which most know, except at OpenAI's."""
    return "max_completion_tokens" if _OPENAI.fullmatch(base_url) else "max_tokens"


def schema_in_words(schema: Mapping[str, object]) -> str:
    """Return the instruction to answer by a schema."""
    written = json.dumps(dict(schema), ensure_ascii=False)
    return f"Answer with one JSON object and nothing else. It must match this JSON Schema:\n{written}"


def with_schema_in_words(request: ChatRequest) -> ChatRequest:
    """Return the request with its schema, if it has one, at the end of its instructions.

    Models that were made for one system message at the beginning refuse another.
    """
    if request.schema is None:
        return request
    words, messages = schema_in_words(request.schema), list(request.messages)
    if messages and messages[0].role == "system":
        words = f"{messages.pop(0).content}\n\n{words}"
    return replace(request, messages=[ChatMessage("system", words), *messages], schema=None)


def to_wire(
    request: ChatRequest, *, model: str, limit_field: LimitField, write: WriteContent = as_base64
) -> dict[str, object]:
    """Return the body of the request. write: how images and PDFs are written."""
    payload: dict[str, object] = {
        "model": model,
        "messages": [message_to_wire(message, request.contents, write) for message in request.messages],
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
    """Return the tools as the request lists them.

    OpenAI refuses the schema of an object without properties, which tools of MCP servers have that take nothing.
    Source: https://github.com/openai/openai-agents-python/issues/449
    """
    return [
        {
            "type": "function",
            "function": {
                "name": tool.name,
                "description": tool.description,
                "parameters": {"type": "object", "properties": {}, **tool.parameters},
            },
        }
        for tool in request.tools
    ]


def message_to_wire(
    message: ChatMessage, contents: Mapping[str, bytes], write: WriteContent = as_base64
) -> dict[str, object]:
    """Return one message as the request holds it. contents: of its attachments. write: how images and PDFs are written."""
    wire: dict[str, object] = {"role": message.role, "content": openai_content(message, contents, write)}
    if message.tool_calls:
        wire["content"] = message.content or None
        wire["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": json.dumps(dict(call.arguments), ensure_ascii=False)},
                **_named(call.reasoning, _WITH_A_CALL),
            }
            for call in message.tool_calls
        ]
        wire |= _named(message.tool_calls[0].reasoning, _WITH_AN_ANSWER)
    if message.tool_call_id is not None:
        wire["tool_call_id"] = message.tool_call_id
    return wire


_WITH_A_CALL = ("extra_content",)
_WITH_AN_ANSWER = ("reasoning_content", "reasoning_details")
"""What servers refuse an answer with calls without, when they read it again: Gemini, DeepSeek and OpenRouter.

Source: https://ai.google.dev/gemini-api/docs/thought-signatures (`extra_content`)
Source: https://api-docs.deepseek.com/guides/thinking_mode
Source: https://openrouter.ai/docs/guides/best-practices/reasoning-tokens
"""
_CUTS: dict[object, Cut] = {"length": "length", "model_length": "length", "content_filter": "content_filter"}
"""Source: https://docs.mistral.ai/api/endpoint/chat (`model_length`: that of the model's context)"""
_BROKEN_OFF = ("error", "insufficient_system_resource")
"""Why an answer ended that its server could not finish.

Source: https://openrouter.ai/docs/api/reference/overview#finish-reason
Source: https://api-docs.deepseek.com/api/create-chat-completion
"""


def from_wire(answer: WireObject) -> ChatReply:
    """Return the reply that the answer's first choice holds.

    Raises: UnusableAnswer (code `malformed_answer`) for another shape; Unavailable (code `model_unavailable`) for one that
        its server could not finish; as `reply_of`.
    """
    usage = usage_from_wire(answer.get("usage"))
    choices = answer.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    reason = choice.get("finish_reason") if isinstance(choice, dict) else None
    if reason in _BROKEN_OFF:
        raise Unavailable("the model's server could not finish its answer", code="model_unavailable", **spent(usage))
    cut = cut_by(reason, _CUTS)
    message = choice.get("message") if isinstance(choice, dict) else None
    if message is None and cut is not None:  # as of Gemini, when it withholds the answer
        raise cut_off(cut, usage)
    if not isinstance(choice, dict) or not isinstance(message, dict):
        raise _malformed("the model's server answered without a message", usage)
    written = text_in(message.get("content"))
    content = None if written is None else written or message.get("refusal") or ""
    calls = message.get("tool_calls") or []
    if not isinstance(content, str) or not isinstance(calls, list):
        raise _malformed("the model's server answered with a message of another shape", usage)
    reply = reply_of(content, calls, usage, cut)
    reasoning = _named(message, _WITH_AN_ANSWER)
    if not reply.tool_calls or not reasoning:
        return reply
    first, *others = reply.tool_calls
    first = replace(first, reasoning={**(first.reasoning or {}), **reasoning})
    return replace(reply, tool_calls=(first, *others))


def _malformed(message: str, usage: Usage) -> UnusableAnswer:
    return UnusableAnswer(message, code="malformed_answer", **spent(usage))


def reply_of(content: str, calls: list[object], usage: Usage, cut: Cut | None) -> ChatReply:
    """Return the reply with this text and these calls, given in OpenAI's format.

    Raises: as `cut_off` when the answer was cut within its calls or before any text.
    """
    if cut is not None and (calls or not content.strip()):  # before the calls are read: a cut call is not JSON
        raise cut_off(cut, usage)
    return ChatReply(content, tuple(_call_from_wire(call) for call in calls), usage, cut)


def cut_off(cut: Cut, usage: Usage) -> UpstreamFailed:
    """Return the error for an answer of which nothing complete is left.

    UnusableAnswer (code `answer_cut`) for one that reached its limit: asked to be brief, the model may end the next in
    time. UpstreamFailed (code `content_filtered`) for one that was withheld.
    """
    if cut == "content_filter":
        return UpstreamFailed("the model's server withheld the answer", code="content_filtered", **spent(usage))
    message = "the answer reached its token limit before it was complete"
    return UnusableAnswer(message, code="answer_cut", **spent(usage))


def _call_from_wire(call: object) -> ToolCall:
    function = call.get("function") if isinstance(call, Mapping) else None
    if not isinstance(call, Mapping) or not isinstance(function, Mapping):
        return not_a_call()
    read = read_call(call.get("id"), function.get("name"), function.get("arguments"))
    reasoning = _named(call, _WITH_A_CALL)
    return replace(read, reasoning=reasoning) if reasoning else read


def _named(found: object, names: Iterable[str]) -> dict[str, Any]:
    """Return the members of an object that have one of these names, except empty ones."""
    return {name: found[name] for name in names if found.get(name)} if isinstance(found, Mapping) else {}


def usage_from_wire(usage: object) -> Usage:
    """Return the usage, 0 where it is not reported.

    What a model thought counts as written. xAI and Gemini leave it out of `completion_tokens`, but not out of the sum.
    Source: https://platform.openai.com/docs/guides/prompt-caching#requirements (`prompt_tokens_details`)
    Source: https://docs.x.ai/docs/key-information/consumption-and-rate-limits (`total_tokens`)
    """
    details = usage.get("prompt_tokens_details") if isinstance(usage, Mapping) else None
    read = counted(usage, "prompt_tokens")
    wrote = max(counted(usage, "completion_tokens"), counted(usage, "total_tokens") - read)
    return Usage(read, wrote, min(read, counted(details, "cached_tokens")))


def counted(usage: object, name: str) -> int:
    """Return a number of tokens; 0 for what is not a count."""
    value = usage.get(name) if isinstance(usage, Mapping) else None
    is_count = isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MAX_TOKENS
    return value if is_count and isinstance(value, int) else 0


def cut_by(reason: object, cuts: Mapping[object, Cut]) -> Cut | None:
    """Return what cut the answer that ended for this reason. cuts: by the server's name for it.

    Gemini adds to the name, as in `content_filter: PROHIBITED_CONTENT`.
    """
    return cuts.get(reason.partition(":")[0]) if isinstance(reason, str) else None
