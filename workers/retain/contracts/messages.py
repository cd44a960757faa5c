"""Messages as the text that a chat memory stores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from retain.contracts.opaque import MAX_PIECE_BYTES, opaque_text
from retain.errors import InvalidInput, LimitExceeded
from retain.json_text import MAX_NESTING, read_json, read_own_json
from retain.limits.storage import utf8_bytes
from retain.models.chat import ChatMessage, ToolCall

MAX_SESSION_BYTES = 16 * 1024 * 1024
"""Largest conversation in a database: read and parsed, it must fit into a Worker's 128 MB."""


def message_texts(messages: Sequence[ChatMessage], *, max_message_bytes: int, max_session_bytes: int) -> list[str]:
    """Return each message as JSON, after checking all of them.

    Raises: InvalidInput (code `invalid_chat_message`, with `index`; `unsupported_value`); LimitExceeded (code
        `chat_message_too_large`, `chat_session_too_large`).
    """
    texts = [_text(message, index) for index, message in enumerate(messages)]
    sizes = [utf8_bytes(text) for text in texts]
    for index, size in enumerate(sizes):
        if size > max_message_bytes:
            raise LimitExceeded(
                f"message {index} has {size} bytes as JSON, at most {max_message_bytes} are allowed",
                code="chat_message_too_large",
                limit_bytes=max_message_bytes,
                index=index,
            )
    total = sum(sizes) + len(sizes) + 1
    if total > max_session_bytes:
        raise LimitExceeded(
            f"the conversation has {total} bytes as JSON, at most {max_session_bytes} are allowed",
            code="chat_session_too_large",
            limit_bytes=max_session_bytes,
        )
    return texts


def database_texts(messages: Sequence[ChatMessage]) -> list[str]:
    """Return each message as JSON, within the limits of a database. Raises: as `message_texts`."""
    return message_texts(messages, max_message_bytes=MAX_PIECE_BYTES, max_session_bytes=MAX_SESSION_BYTES)


def message_of(text: str) -> ChatMessage:
    """Return the message that `message_texts` wrote."""
    return message_from(read_own_json(text))


def messages_of(text: str) -> list[ChatMessage]:
    """Return the messages of a whole conversation, a JSON list. Raises: ValueError for a text that is not JSON."""
    stored: Any = read_json(text, levels=2 * MAX_NESTING)  # the list is around messages that may be MAX_NESTING deep
    return [message_from(fields) for fields in stored]


def message_from(fields: Mapping[str, Any]) -> ChatMessage:
    """Return the message whose JSON this is."""
    calls = tuple(ToolCall(**call) for call in fields.get("tool_calls", ()))
    return ChatMessage(**{**fields, "tool_calls": calls})


def _text(message: ChatMessage, index: int) -> str:
    fields = {name: value for name, value in _fields(message).items() if name != "tool_calls"}
    calls = [_fields(call) for call in message.tool_calls]
    try:
        if not isinstance(message.role, str) or not isinstance(message.content, str):
            raise ValueError("role and content must be text")
        text = opaque_text({**fields, "tool_calls": calls} if calls else fields)
        if message_of(text) != message:
            raise ValueError("it would not be read back unchanged")
    except (ValueError, TypeError) as error:
        raise InvalidInput(
            f"message {index} cannot be stored: {error}", code="invalid_chat_message", index=index
        ) from error
    return text


def _fields(value: ChatMessage | ToolCall) -> dict[str, Any]:
    """Return the fields to store: those that only failures have, and those without a value, are absent otherwise."""
    named = {name: getattr(value, name) for name in value.__slots__}
    return {name: field for name, field in named.items() if field is not None and field is not False}
