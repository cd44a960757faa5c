"""Messages as front ends send them: the whole conversation each time, of which a run needs what was said last."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from pydantic import JsonValue

from retain.agents.calls.asked_files import AskedFile
from retain.agents.calls.run_request import PriorMessage
from retain.agents.front_ends.parts import FILE_PARTS, ContentPart, file_of, unread
from retain.errors import InvalidInput

MAX_PRIOR_MESSAGES = 100
"""Most messages of a conversation that a client keeps which a run reads: the newest."""
MAX_PRIOR_BYTES = 128 * 1024
"""Most of them, in bytes of UTF-8."""


Content = str | Sequence[ContentPart] | Mapping[str, JsonValue] | None
ReadMessage = tuple[str, Content]
"""A message: its role, and what it says."""


def newest_question(messages: Sequence[ReadMessage]) -> str:
    """Return what the user said after the last answer; several messages as paragraphs.

    Raises: InvalidInput (code `no_user_message`, `unsupported_content`).
    """
    begin = _end_of_past(messages)
    texts = [text_of(content, begin + n) for n, (role, content) in enumerate(messages[begin:]) if role == "user"]
    if not any(text.strip() for text in texts) and not newest_files(messages):
        raise InvalidInput("the last message must be one of the user, with text or a file", code="no_user_message")
    return "\n\n".join(filter(None, texts))


def newest_files(messages: Sequence[ReadMessage]) -> list[AskedFile]:
    """Return the files that the user sent after the last answer. Raises: as `files_of`."""
    begin = _end_of_past(messages)
    asked = [files_of(content, begin + n) for n, (role, content) in enumerate(messages[begin:]) if role == "user"]
    return [file for files in asked for file in files]


def earlier_messages(messages: Sequence[ReadMessage]) -> tuple[list[PriorMessage], list[list[AskedFile]]]:
    """Return what user and agent said before, oldest first, as much of the end of it as a run takes, and each one's files.

    Raises: InvalidInput (code `unsupported_content`); as `files_of`.
    """
    kept: list[PriorMessage] = []
    files: list[list[AskedFile]] = []
    room = MAX_PRIOR_BYTES
    for number, (role, content) in reversed(list(enumerate(messages[: _end_of_past(messages)]))):
        if role not in ("user", "assistant"):
            continue
        text = text_of(content, number)
        room -= len(text.encode("utf-8", "replace"))
        if room < 0 or len(kept) == MAX_PRIOR_MESSAGES:
            break
        sent = files_of(content, number) if role == "user" else []
        if text.strip() or sent:
            speaker: Literal["user", "assistant"] = "user" if role == "user" else "assistant"
            kept.append(PriorMessage(speaker, text))
            files.append(sent)
    return kept[::-1], files[::-1]


def text_of(content: Content, number: int) -> str:
    """Return the text of a message. number: its position. Raises: InvalidInput (code `unsupported_content`)."""
    if content is None or isinstance(content, str):
        return content or ""
    parts = [] if isinstance(content, Mapping) else content
    for part in parts:
        if part.type not in FILE_PARTS and (part.type not in ("text", "refusal") or part.text is part.refusal is None):
            raise unread(part, number)
    return "".join(part.text or part.refusal or "" for part in parts)


def files_of(content: Content, number: int) -> list[AskedFile]:
    """Return the files of a message. number: its position.

    Raises: InvalidInput (code `unsupported_content`, `invalid_attachment`, `invalid_id`).
    """
    parts = [] if content is None or isinstance(content, str | Mapping) else content
    return [file_of(part, number) for part in parts if part.type in FILE_PARTS]


def _end_of_past(messages: Sequence[ReadMessage]) -> int:
    """Return how many messages come before what the user said last."""
    answered = [number for number, (role, _) in enumerate(messages) if role in ("assistant", "tool")]
    return answered[-1] + 1 if answered else 0
