"""Server-sent events, read from bytes as they arrive.

Source: https://html.spec.whatwg.org/multipage/server-sent-events.html#event-stream-interpretation
"""

from __future__ import annotations

import codecs
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass

from retain.errors import UnusableAnswer

MAX_EVENT_CHARACTERS = 4_000_000
"""Longest event that is collected: many times the size of any model's events."""


@dataclass(frozen=True, slots=True)
class ServerSentEvent:
    """One event. name: its type. id: the stream's last id, "" for none."""

    data: str
    name: str = "message"
    id: str = ""


class EventReader:
    """Reads one stream. The division of the bytes into pieces does not matter. `retry` fields are ignored.

    A field `error`, which llama.cpp wrote until the end of 2025, is the data of an event of that name.
    Source: https://github.com/ggml-org/llama.cpp/issues/14566

    most_characters: of one event.
    """

    def __init__(self, most_characters: int = MAX_EVENT_CHARACTERS) -> None:
        self._most_characters = most_characters
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self._line: list[str] = []
        self._data: list[str] = []
        self._name = ""
        self._id = ""
        self._collected = 0
        self._unfinished = 0
        self._first = True
        self._after_return = False

    def feed(self, piece: bytes) -> Iterator[ServerSentEvent]:
        """Yield the events that end in this piece. An unfinished event is never yielded.

        Raises: UnusableAnswer (code `malformed_answer`) for an event that is too long.
        """
        text = self._decode(piece)
        if not text:
            return
        if self._first:
            self._first = False
            text = text.removeprefix("\ufeff")
        if self._after_return:  # the previous piece ended with CR: this LF belongs to it
            text = text.removeprefix("\n")
        self._after_return = text.endswith("\r")
        *ends, rest = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
        for end in ends:
            self._line.append(end)
            line = "".join(self._line)
            self._line.clear()
            self._unfinished = 0
            event = self._take(line)
            if event is not None:
                yield event
        if rest:
            self._line.append(rest)
            self._unfinished += len(rest)
            self._check_length(self._collected + self._unfinished)

    def _take(self, line: str) -> ServerSentEvent | None:
        if not line:
            return self._dispatch()
        self._collected += len(line) + 1
        self._check_length(self._collected)
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if field in ("data", "error"):
            self._data.append(value)
            self._name = "error" if field == "error" else self._name
        elif field == "event":
            self._name = value
        elif field == "id" and "\0" not in value:
            self._id = value
        return None

    def _dispatch(self) -> ServerSentEvent | None:
        event = ServerSentEvent("\n".join(self._data), self._name or "message", self._id) if self._data else None
        self._data.clear()
        self._name = ""
        self._collected = 0
        return event

    def _check_length(self, characters: int) -> None:
        if characters > self._most_characters:
            raise UnusableAnswer("the server sent an event that is too long", code="malformed_answer")


async def read_events(pieces: AsyncIterator[bytes]) -> AsyncIterator[ServerSentEvent]:
    """Yield the events of a stream. Raises: as `EventReader.feed`, and as the pieces."""
    reader = EventReader()
    async for piece in pieces:
        for event in reader.feed(piece):
            yield event
