"""The chat model port: what an agent's loop asks of a language model, whoever serves it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

Role = Literal["system", "user", "assistant", "tool"]


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool as the model sees it. parameters: JSON Schema of the arguments."""

    name: str
    description: str
    parameters: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ToolCall:
    """The model's wish to call a tool. id: unique in the run, chosen by the model's server."""

    id: str
    name: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Message:
    """One message of the conversation.

    tool_calls: only in the assistant's. tool_call_id: only in a tool's, names the call it answers.
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
    """What to complete. temperature: None leaves the server's default."""

    messages: Sequence[Message]
    tools: Sequence[ToolSpec] = ()
    max_output_tokens: int = 1024
    temperature: float | None = None


@dataclass(frozen=True, slots=True)
class ChatReply:
    """What the model answered: text, tool calls, or both."""

    content: str
    tool_calls: tuple[ToolCall, ...] = ()
    usage: Usage = field(default_factory=Usage)


class ChatModel(Protocol):
    """A language model that can call tools."""

    @property
    def name(self) -> str:
        """The model's name, as recorded with each run."""
        ...

    async def complete(self, request: ChatRequest) -> ChatReply:
        """Return the model's next message. Has no side effect, so it may be repeated after a failure.

        Raises: Unavailable when retrying may help (after the adapter's own retries); UpstreamFailed when it will not;
            Misconfigured when the credentials are refused.
        """
        ...
