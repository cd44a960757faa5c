"""Which events of a run its fork begins with. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from retain.agents.runs.events import (
    ApprovalAnswered,
    ApprovalRequested,
    CancelRequested,
    ModelAnswered,
    ModelAsked,
    RunEvent,
    ToolAnswered,
    ToolCalled,
)
from retain.agents.runs.run_log import Logged
from retain.agents.runs.run_state import RunState, fold
from retain.agents.tools.delegation import DELEGATE


def carried(log: Sequence[Logged], turns: int | None) -> list[Logged]:
    """Return the events that made the first `turns` turns of a run what they are; None: everything that was achieved.

    Attempts that came to nothing are left out: answers that were dropped, retries, waits, a question that nobody answered. A
    tool call whose outcome is unknown stays: the fork must not make it as if for the first time. A delegated run that was
    under way when the run was cancelled is left out: it was cancelled with it. So is an approval whose call was not made:
    it permits one call, and a run may be retried any number of times.
    """
    kept: list[Logged] = []
    begun: Logged | None = None
    stopped = False
    for logged in log:
        event = logged.event
        if turns is not None and event.turn > turns:
            break
        match event:
            case ModelAsked() | ApprovalRequested():
                begun = logged
            case ModelAnswered() | ApprovalAnswered():
                kept += [logged] if begun is None else [begun, logged]
                begun = None
            case CancelRequested():
                stopped = True
            case ToolAnswered(name=name) if stopped and name == DELEGATE:
                continue
            case ToolCalled() | ToolAnswered():
                kept.append(logged)
    if kept and isinstance(kept[-1].event, ToolCalled) and kept[-1].event.name == DELEGATE:
        kept.pop()
    while kept and isinstance(kept[-1].event, ApprovalRequested | ApprovalAnswered) and not _rejected(kept[-1].event):
        kept.pop()
    return kept


def _rejected(event: RunEvent) -> bool:
    return isinstance(event, ApprovalAnswered) and not event.approved


def whole_turns(state: RunState) -> int:
    """Return after how many turns a run can be forked: turns that called tools, and whose calls were all answered."""
    return sum(1 for turn in state.turns if turn.answer.calls and len(turn.results) == len(turn.answer.calls))


def pending_key(source_id: str, kept: Sequence[Logged], source: RunState) -> str | None:
    """Return the idempotency key of the tool call that is under way after these events of a run, None without one.

    A call that the run itself took over from the run that it was forked from keeps the key of its first attempt.
    """
    pending = fold(logged.event for logged in kept).pending
    if not isinstance(pending, ToolCalled):
        return None
    return source.call_key(pending.turn, pending.index) or f"{source_id}.{pending.turn}.{pending.index}"
