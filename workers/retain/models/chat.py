"""The chat model port: what an agent's loop needs from a language model, whoever serves it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from retain.json_text import JsonObject

Role = Literal["system", "user", "assistant", "tool"]
Cut = Literal["length", "content_filter"]
"""What cut an answer short: the output limit, or the server's filter."""
FinishReason = Literal["stop", "tool_calls", "length", "content_filter"]
OnText = Callable[[str], Awaitable[None]]
"""Takes the next piece of an answer's text, never an empty one, as soon as it arrives."""


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool as the model sees it. parameters: JSON Schema of the arguments."""

    name: str
    description: str
    parameters: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class ToolCall:
    """The model's request to call a tool. id: unique in the run, chosen by the model's server."""

    id: str
    name: str
    arguments: JsonObject


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """One message of the conversation.

    tool_calls: only in the assistant's messages. tool_call_id: only in a tool's; the call that it answers.
    """

    role: Role
    content: str
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens read and written, as the model's server counts them."""

    input_tokens: int = 0
    output_tokens: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(self.input_tokens + other.input_tokens, self.output_tokens + other.output_tokens)


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """What to complete. temperature: None leaves the server's default.

    schema: the JSON Schema of the object that an answer without tool calls must hold as JSON; None for free text.
    """

    messages: Sequence[ChatMessage]
    tools: Sequence[ToolSpec] = ()
    max_output_tokens: int = 1024
    temperature: float | None = None
    schema: Mapping[str, object] | None = None


@dataclass(frozen=True, slots=True)
class ChatReply:
    """What the model answered: text, tool calls, or both.

    usage: of all attempts that were answered. cut: what cut the text short, None when it is complete; an answer
    with tool calls is always complete. structured: the object that the text holds when the request had a schema.
    """

    content: str
    tool_calls: tuple[ToolCall, ...] = ()
    usage: Usage = field(default_factory=Usage)
    cut: Cut | None = None
    structured: JsonObject | None = None

    @property
    def finish_reason(self) -> FinishReason:
        """Why the model stopped; `tool_calls` exactly when it called tools."""
        return self.cut or ("tool_calls" if self.tool_calls else "stop")


class ChatModel(Protocol):
    """A language model that can call tools."""

    @property
    def name(self) -> str:
        """The model's name, as recorded with each run."""
        ...

    async def complete(self, request: ChatRequest, on_text: OnText | None = None) -> ChatReply:
        """Return the model's next message. Has no side effect, so it may be repeated after a failure.

        on_text: streams. It gets the reply's content in pieces, awaited one after the other, before the reply returns;
            together they are the content. What it raises ends the call. Once it was called, the adapter does not retry:
            text is never delivered twice. A caller that asks again must drop the text it got.

        Raises: Unavailable when retrying may help (after the adapter's own retries), code `stream_interrupted` when
            text was already delivered; UpstreamFailed when it will not, among others with code `answer_cut` when the
            answer ended within a tool call, `content_filtered` when the server withheld all of it, and
            `schema_mismatch` when it does not match the request's schema; Misconfigured when the credentials are
            refused.
        """
        ...
