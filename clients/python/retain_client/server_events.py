"""Server-sent events, read as they arrive.

Source: https://html.spec.whatwg.org/multipage/server-sent-events.html#event-stream-interpretation
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from retain_client.api.models.run_result import RunResult
from retain_client.values import json_object

LAST = frozenset({"run.completed", "run.failed", "run.cancelled"})
"""Events after which none follows."""
_LINE_END = re.compile(r"\r\n|\n|\r(?!\Z)")  # the LF of a CR at the end may arrive later


def is_stream(headers: Mapping[str, str]) -> bool:
    """Return whether an answer is a stream of events."""
    return headers.get("content-type", "").startswith("text/event-stream")


@dataclass(frozen=True, slots=True)
class StreamedEvent:
    """One event of a run. name: as docs/agents.md of the server lists them. id: its position; None where it has none."""

    name: str
    data: dict[str, Any]
    id: str | None = None

    @property
    def is_last(self) -> bool:
        """Whether the run has ended with it."""
        return self.name in LAST

    @property
    def result(self) -> RunResult | None:
        """The run's result; None if this is not the last event."""
        return RunResult.from_dict(self.data) if self.is_last else None


class EventReader:
    """Puts the pieces of a stream together. One connection has one reader: an unfinished event ends with it.

    heard: whether there was an event, or a comment, with which the server says that the run continues without one.
    """

    def __init__(self) -> None:
        self.heard = False
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")("replace")
        self._rest = ""
        self._name = ""
        self._id: str | None = None
        self._data: list[str] = []

    def feed(self, piece: bytes) -> list[StreamedEvent]:
        """Take a piece; return the events that it completes. Raises: ValueError for one whose data is not an object."""
        *lines, self._rest = _LINE_END.split(self._rest + self._decoder.decode(piece))
        return [event for line in lines if (event := self._take(line)) is not None]

    def _take(self, line: str) -> StreamedEvent | None:
        if not line:
            return self._completed()
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        match field:
            case "":
                self.heard = True
            case "event":
                self._name = value
            case "id":
                self._id = value
            case "data":
                self._data.append(value)
        return None

    def _completed(self) -> StreamedEvent | None:
        name, lines, event_id = self._name, self._data, self._id
        self._name, self._data, self._id = "", [], None
        self.heard = self.heard or bool(lines)
        return StreamedEvent(name, json_object("\n".join(lines)), event_id) if lines else None
