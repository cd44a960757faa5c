"""Files of earlier messages and runs: which of them a run's model reads again, and how the others are named.

Pure.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from retain.attachments.attachment import MAX_SENT_BYTES
from retain.memory.conversations.thread import PastMessage
from retain.models.attached import Attached, FileKind, with_lines
from retain.models.chat import ChatMessage, message_with

Place = tuple[int, str]
"""A file of a message: the message's position, and the file's id."""


def past_messages(
    messages: Sequence[PastMessage],
    attached: Sequence[Attached],
    accepts: Collection[FileKind],
    most: int,
    room: int,
    bytes_per_token: float,
) -> list[ChatMessage]:
    """Return earlier messages as the model reads them, the newest files that fit with their content, each once.

    attached: the files of the input, which are sent in any case. accepts: what the agent takes now, which may be less than
    when the message was sent. most: how many. room: in tokens. bytes_per_token: of text.
    """
    known, left = {file.id for file in attached}, MAX_SENT_BYTES - sum(file.bytes for file in attached)
    files: set[Place] = set()
    for position, file in _newest_first(messages):
        if len(files) == most:
            break
        tokens = file.tokens(bytes_per_token)
        if file.id and file.id not in known and file.kind in accepts and file.bytes <= left and tokens <= room:
            files.add((position, file.id))
            known.add(file.id)
            left, room = left - file.bytes, room - tokens
    return [
        _read_again(message, {one for at, one in files if at == position}) for position, message in enumerate(messages)
    ]


def only_accepted(message: ChatMessage, accepts: Collection[FileKind]) -> ChatMessage:
    """Return a message with those of its files that the agent takes now; the others are named."""
    named = [file for file in message.attachments if file.kind not in accepts]
    if not named:
        return message
    taken = [file for file in message.attachments if file.kind in accepts]
    return message_with(message.role, with_lines(message.content, named), taken)


def _newest_first(messages: Sequence[PastMessage]) -> Iterator[tuple[int, Attached]]:
    for position, message in reversed(list(enumerate(messages))):
        for file in reversed(message.attachments):
            yield position, file


def _read_again(message: PastMessage, files: Collection[str]) -> ChatMessage:
    again = tuple(file for file in message.attachments if file.id in files)
    named = [file for file in message.attachments if file.id not in files]
    return message_with(message.role, with_lines(message.content, named), again)
