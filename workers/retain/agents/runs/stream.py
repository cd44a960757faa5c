"""A run's log as server-sent events.

Every event of the log has the id of its place, so that a client which comes back with `Last-Event-ID` misses nothing. An
event that says several things ends with the one that bears the id.
Source: https://html.spec.whatwg.org/multipage/server-sent-events.html
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from retain.agents.runs.events import (
    ApprovalAnswered,
    ApprovalRequested,
    CancelRequested,
    ModelAnswered,
    RunCancelled,
    RunCompleted,
    RunEvent,
    RunFailed,
    RunResumed,
    RunSuspended,
    ToolAnswered,
    ToolCalled,
)

RETRY_MS = 1_000
"""After how long a browser comes back when the connection breaks."""
KEEP_ALIVE = ": still here\n\n"
"""A comment, which clients ignore and which keeps the connection open."""
CLOSING = frozenset({"run.completed", "run.failed", "run.cancelled"})
"""Events after which nothing comes."""


@dataclass(frozen=True, slots=True)
class RunStreamEvent:
    """One event. id: None for one that cannot be come back to."""

    name: str
    data: Mapping[str, Any]
    id: int | None = None

    def text(self) -> str:
        """Return it as it is sent. JSON escapes line ends, so the data is one line."""
        lines = [f"event: {self.name}", f"data: {json.dumps(dict(self.data))}"]
        if self.id is not None:
            lines.insert(0, f"id: {self.id}")
        return "\n".join([*lines, "", ""])

    def to_json(self) -> dict[str, Any]:
        """Return it for the way from the instance to whoever streams."""
        return {"name": self.name, "data": dict(self.data), "id": self.id}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> RunStreamEvent:
        """Return the event that `to_json` made JSON of."""
        return cls(stored["name"], stored["data"], stored["id"])


def shown(seq: int, event: RunEvent, result: Mapping[str, Any] | None) -> list[RunStreamEvent]:
    """Return what is sent of the log's event number `seq`; nothing of what only the runtime needs.

    result: of the run, once it has ended.
    """
    events = list(_said(event, result or {}))
    return [
        RunStreamEvent(name, data, seq if number == len(events) else None)
        for number, (name, data) in enumerate(events, start=1)
    ]


def _said(event: RunEvent, result: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    match event:
        case ModelAnswered():
            yield "text.completed", {"turn": event.turn, "text": event.content}
        case ToolCalled():
            yield "tool.called", {**_place(event), "name": event.name, "arguments": event.arguments}
        case ToolAnswered():
            yield from _answered(event)
        case ApprovalRequested():
            asked = {"name": event.name, "arguments": event.arguments, "expires_at_ms": event.expires_at_ms}
            yield "approval.requested", {**_place(event), **asked}
        case ApprovalAnswered():
            answer = {"approved": event.approved, "by": event.by, "reason": event.reason}
            yield "approval.answered", {**_place(event), **answer}
        case RunSuspended():
            yield "run.suspended", {**_place(event), "waiting_for": event.waiting_for}
        case RunResumed():
            yield "run.resumed", _place(event)
        case CancelRequested():
            yield "run.cancelling", {"by": event.by, "reason": event.reason}
        case RunCompleted():
            yield "run.completed", result
        case RunFailed():
            yield "run.failed", result
        case RunCancelled():
            yield "run.cancelled", result
        case _:
            return


def _place(
    event: ToolCalled | ToolAnswered | ApprovalRequested | ApprovalAnswered | RunSuspended | RunResumed,
) -> dict[str, Any]:
    return {"turn": event.turn, "call": f"{event.turn}.{event.index}"}


def _answered(event: ToolAnswered) -> Iterator[tuple[str, Mapping[str, Any]]]:
    if event.recalled:
        records = [{"id": record_id, "score": score} for record_id, score in event.recalled]
        yield "memory.recalled", {**_place(event), "records": records}
    if event.name == "store_memory" and not event.failed:
        yield "memory.stored", {**_place(event), **json.loads(event.content)}
    yield "tool.answered", {**_place(event), "name": event.name, "failed": event.failed, "content": event.content}
