"""Server-sent events, read line by line.

Source: https://html.spec.whatwg.org/multipage/server-sent-events.html#event-stream-interpretation
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from retain_client.api.models.run_result import RunResult

LAST = frozenset({"run.completed", "run.failed", "run.cancelled"})
"""Events after which none follows."""


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
    """Puts the lines of a stream together. One connection has one reader: an unfinished event ends with it."""

    def __init__(self) -> None:
        self._name = ""
        self._id: str | None = None
        self._data: list[str] = []

    def feed(self, line: str) -> StreamedEvent | None:
        """Take one line without its newline; return the event that it completes, None if it completes none."""
        if not line:
            return self._completed()
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        match field:
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
        return StreamedEvent(name, json.loads("\n".join(lines)), event_id) if lines else None
