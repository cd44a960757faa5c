"""The chat model port: what an agent's loop needs from a language model, whoever serves it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from retain.errors import RetainError
from retain.json_text import JsonObject
from retain.models.attached import Attached

Role = Literal["system", "user", "assistant", "tool"]
Cut = Literal["length", "content_filter"]
"""What cut an answer short: the output limit, or the server's filter."""
FinishReason = Literal["stop", "tool_calls", "length", "content_filter"]
_COUNTS = ("input_tokens", "output_tokens", "cached_input_tokens")
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
    """The model's request to call a tool.

    id: unique in the conversation. problem: why the call cannot be made, with the beginning of what the model wrote;
    then `arguments` is empty. None for a call that can be made. reasoning: what its server wants to read again with the
    call, in that server's format: what the model thought, with the first call of an answer, and the model's name as
    `model`; None for nothing.
    """

    id: str
    name: str
    arguments: JsonObject
    problem: str | None = None
    reasoning: JsonObject | None = None


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """One message of the conversation.

    tool_calls: only in the assistant's messages. tool_call_id, failed: only in a tool's; the call that it answers, and
    whether the tool reported an error.
    """

    role: Role
    content: str
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    failed: bool = False

    @property
    def attachments(self) -> tuple[Attached, ...]:
        """The files that the user brought with it."""
        return ()


@dataclass(frozen=True, slots=True)
class MessageWithFiles(ChatMessage):
    """A message of the user that brings files; their content is in the request."""

    attachments: tuple[Attached, ...] = ()


def message_with(role: Role, content: str, files: Sequence[Attached]) -> ChatMessage:
    """Return a message, with files if there are any."""
    return MessageWithFiles(role, content, attachments=tuple(files)) if files else ChatMessage(role, content)


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens read and written, as the model's server counts them.

    cached_input_tokens: those of the tokens read that its cache supplied, a part of `input_tokens`.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cached_input_tokens: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cached_input_tokens + other.cached_input_tokens,
        )


def spent(usage: Usage) -> dict[str, int]:
    """Return the details of an error that tell what a failed answer cost."""
    return {name: getattr(usage, name) for name in _COUNTS}


def usage_of(error: RetainError) -> Usage:
    """Return what the answer that failed with this error cost, as far as its server reported it."""
    counts = (error.details.get(name) for name in _COUNTS)
    return Usage(*(count if isinstance(count, int) else 0 for count in counts))


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """What to complete. temperature: None leaves the server's default.

    schema: the JSON Schema of the object that an answer without tool calls must hold as JSON; None for free text.
    contents: of the messages' attachments, by their ids; one that is missing was deleted.
    """

    messages: Sequence[ChatMessage]
    tools: Sequence[ToolSpec] = ()
    max_output_tokens: int = 1024
    temperature: float | None = None
    schema: Mapping[str, object] | None = None
    contents: Mapping[str, bytes] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class ChatReply:
    """What the model answered: text, tool calls, both, or nothing.

    Its texts are valid Unicode. A call that cannot be made is among the calls, with its `problem`. usage: of all
    attempts that were answered. cut: what cut the text short, None when it is complete; an answer with tool calls is
    always complete. structured: the object that the text holds when the request had a schema.
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

        Raises: Unavailable when retrying may help (after the adapter's own retries); StreamInterrupted, a subclass,
            when text was already delivered; UnusableAnswer when the answer cannot be used, and another may be usable:
            code `answer_cut` when it ended within a tool call or before any text, `malformed_answer` when it is not in
            the format; UpstreamFailed when asking again will not help, among others with code `content_filtered` when
            the server withheld the answer, and `schema_mismatch` when it does not match the request's schema;
            Misconfigured when the credentials are refused. An error's details have what the answer cost (`usage_of`).
        """
        ...
