"""Messages as front ends send them: the whole conversation each time, of which a run needs what was said last."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from pydantic import BaseModel, ConfigDict, JsonValue

from retain.agents.calls.run_request import PriorMessage
from retain.errors import InvalidInput

MAX_PRIOR_MESSAGES = 100
"""Most messages of a conversation that a client keeps which a run reads: the newest."""
MAX_PRIOR_BYTES = 128 * 1024
"""Most of them, in bytes of UTF-8."""


class ContentPart(BaseModel):
    """A part of a message. Only text has a meaning here."""

    model_config = ConfigDict(extra="ignore", strict=True)
    type: str
    text: str | None = None
    refusal: str | None = None


Content = str | Sequence[ContentPart] | Mapping[str, JsonValue] | None
ReadMessage = tuple[str, Content]
"""A message: its role, and what it says."""


def newest_question(messages: Sequence[ReadMessage]) -> str:
    """Return what the user said after the last answer; several messages as paragraphs.

    Raises: InvalidInput (code `no_user_message`, `unsupported_content`).
    """
    begin = _end_of_past(messages)
    texts = [text_of(content, begin + n) for n, (role, content) in enumerate(messages[begin:]) if role == "user"]
    if not any(text.strip() for text in texts):
        raise InvalidInput("the last message must be one of the user, with text", code="no_user_message")
    return "\n\n".join(texts)


def earlier_messages(messages: Sequence[ReadMessage]) -> list[PriorMessage]:
    """Return what user and agent said before, oldest first, as much of the end of it as a run takes.

    Raises: InvalidInput (code `unsupported_content`).
    """
    kept: list[PriorMessage] = []
    room = MAX_PRIOR_BYTES
    for number, (role, content) in reversed(list(enumerate(messages[: _end_of_past(messages)]))):
        if role not in ("user", "assistant"):
            continue
        text = text_of(content, number)
        room -= len(text.encode("utf-8", "replace"))
        if room < 0 or len(kept) == MAX_PRIOR_MESSAGES:
            break
        if text.strip():
            speaker: Literal["user", "assistant"] = "user" if role == "user" else "assistant"
            kept.append(PriorMessage(speaker, text))
    return kept[::-1]


def text_of(content: Content, number: int) -> str:
    """Return the text of a message. number: its position. Raises: InvalidInput (code `unsupported_content`)."""
    if content is None or isinstance(content, str):
        return content or ""
    parts = [] if isinstance(content, Mapping) else content
    for part in parts:
        if part.type not in ("text", "refusal") or (part.text is None and part.refusal is None):
            raise InvalidInput(
                f"messages have text only: a part of the type {part.type[:40]} is not read here",
                code="unsupported_content",
                param=f"messages[{number}].content",
            )
    return "".join(part.text or part.refusal or "" for part in parts)


def _end_of_past(messages: Sequence[ReadMessage]) -> int:
    """Return how many messages come before what the user said last."""
    answered = [number for number, (role, _) in enumerate(messages) if role in ("assistant", "tool")]
    return answered[-1] + 1 if answered else 0
