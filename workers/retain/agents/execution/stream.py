"""A run's log as server-sent events.

Every event of the log has its number as id, so that a client that reconnects with `Last-Event-ID` misses nothing. When
one is sent as several, the last one has the id.
Source: https://html.spec.whatwg.org/multipage/server-sent-events.html
"""

from __future__ import annotations

from collections.abc import Iterator

from retain.agents.calls.answers import RunStreamEvent
from retain.agents.calls.report import RunReport
from retain.agents.runs.events import (
    AnswerDropped,
    ApprovalAnswered,
    ApprovalRequested,
    CallRetried,
    CancelRequested,
    ModelAnswered,
    ModelUnavailable,
    RunCancelled,
    RunCompleted,
    RunEvent,
    RunFailed,
    RunForked,
    RunRecovered,
    RunResumed,
    RunSuspended,
    ToolAnswered,
    ToolCalled,
)
from retain.json_text import Json, JsonObject, read_own_json

RETRY_MS = 1_000
"""After how long a browser reconnects when the connection breaks, in milliseconds."""
KEEP_ALIVE = ": still here\n\n"
"""A comment, which clients ignore and which keeps the connection open."""
CLOSING = frozenset({"run.completed", "run.failed", "run.cancelled"})
"""Events after which none follows."""


def shown(seq: int, event: RunEvent, report: RunReport) -> list[RunStreamEvent]:
    """Return what is sent of the log's event number `seq`, without what only the runtime needs.

    report: of the run now; its result once it has ended.
    """
    events = list(_sent(event, report))
    return [
        RunStreamEvent(name, data, seq if number == len(events) else None)
        for number, (name, data) in enumerate(events, start=1)
    ]


def _sent(event: RunEvent, report: RunReport) -> Iterator[tuple[str, JsonObject]]:
    match event:
        case ModelAnswered():
            yield "text.completed", {"turn": event.turn, "text": event.content, "finish_reason": event.finish_reason}
        case AnswerDropped() | CallRetried() | ModelUnavailable() | RunRecovered():
            yield _trouble(event)
        case ToolCalled():
            yield "tool.called", {**_call_of(event), "name": event.name, "arguments": event.arguments}
        case ToolAnswered():
            yield from _answered(event)
        case ApprovalRequested():
            asked: JsonObject = {"name": event.name, "arguments": event.arguments, "expires_at_ms": event.expires_at_ms}
            yield "approval.requested", {**_call_of(event), **asked}
        case ApprovalAnswered():
            answer: JsonObject = {"approved": event.approved, "by": event.by, "reason": event.reason}
            yield "approval.answered", {**_call_of(event), **answer}
        case RunSuspended():
            yield "run.suspended", {**_call_of(event), "waiting_for": event.waiting_for.to_json()}
        case RunResumed():
            yield "run.resumed", {"turn": event.turn} if event.index is None else _call_of(event)
        case RunForked():
            yield "run.forked", {"forked_from": event.run_id, "turns": event.turns}
        case CancelRequested():
            yield "run.cancelling", {"by": event.by, "reason": event.reason}
        case RunCompleted():
            yield "run.completed", report.to_json()
        case RunFailed():
            yield "run.failed", report.to_json()
        case RunCancelled():
            yield "run.cancelled", report.to_json()
        case _:
            return


def _call_of(
    event: ToolCalled | ToolAnswered | ApprovalRequested | ApprovalAnswered | CallRetried | RunSuspended | RunResumed,
) -> dict[str, Json]:
    return {"turn": event.turn, "call": f"{event.turn}.{event.index}"}


def _trouble(event: AnswerDropped | CallRetried | ModelUnavailable | RunRecovered) -> tuple[str, JsonObject]:
    match event:
        case AnswerDropped():
            return "answer.dropped", {"turn": event.turn, "code": event.code, "message": event.message}
        case CallRetried():
            call = {"turn": event.turn} if event.index is None else _call_of(event)
            return "call.retried", {**call, "code": event.code, "delay_ms": event.delay_ms}
        case ModelUnavailable():
            waits: JsonObject = {"retry_at_ms": event.retry_at_ms, "gives_up_at_ms": event.gives_up_at_ms}
            return "model.unavailable", {"turn": event.turn, "code": event.code, **event.server.to_json(), **waits}
        case RunRecovered():
            return "run.recovered", {"turn": event.turn, "times": event.times}


def _answered(event: ToolAnswered) -> Iterator[tuple[str, JsonObject]]:
    if event.recalled:
        records: list[Json] = [{"id": record_id, "score": score} for record_id, score in event.recalled]
        yield "memory.recalled", {**_call_of(event), "records": records}
    if event.name == "store_memory" and not event.failed:
        yield "memory.stored", {**_call_of(event), **read_own_json(event.content)}
    yield "tool.answered", {**_call_of(event), "name": event.name, "failed": event.failed, "content": event.content}
