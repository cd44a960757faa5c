"""Run events: what happens in a run, as values, and their JSON form in `run_log`.

A side effect has two events: one before it (`ModelAsked`, `ToolCalled`) and one after it (`ModelAnswered`,
`ToolAnswered`). If a crash leaves only the first, the resumed run knows what may have happened. What comes from outside is
an event as well: a person's answer (`ApprovalAnswered`), a cancellation (`CancelRequested`).
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from retain.agents.calls.run_request import RunReference
from retain.errors.codes import Code, ForeignCode
from retain.json_text import JsonObject
from retain.models.chat import ToolCall


@dataclass(frozen=True, slots=True)
class ModelAsked:
    """The model is about to be asked for this turn. cut: turns that no longer fit, of which it reads a summary."""

    turn: int
    cut: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class ModelAnswered:
    """The model answered: text, tool calls, or both."""

    turn: int
    content: str
    calls: tuple[ToolCall, ...]
    input_tokens: int
    output_tokens: int


@dataclass(frozen=True, slots=True)
class ToolCalled:
    """The turn's tool call number `index` is about to be made."""

    turn: int
    index: int
    name: str
    arguments: JsonObject


@dataclass(frozen=True, slots=True)
class ToolAnswered:
    """A tool call ended.

    content: what the model reads. failed: the tool reported an error. recalled: ids and scores of the records in
    the answer. summary: what an episode holds instead of `content`, so that recalled text is not remembered again.
    tokens, delegations: what a delegate and its own delegates spent of the run's budget.
    """

    turn: int
    index: int
    name: str
    content: str
    failed: bool = False
    recalled: tuple[tuple[str, float], ...] = ()
    summary: str | None = None
    tokens: int = 0
    delegations: int = 0


@dataclass(frozen=True, slots=True)
class ApprovalRequested:
    """A person is asked whether tool call number `index` may be made. Unanswered, it is rejected at `expires_at_ms`."""

    turn: int
    index: int
    name: str
    arguments: JsonObject
    expires_at_ms: int


@dataclass(frozen=True, slots=True)
class ApprovalAnswered:
    """Somebody answered. by: the name from Cloudflare Access; `expiry` when nobody answered in time."""

    turn: int
    index: int
    approved: bool
    by: str
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class RunSuspended:
    """A tool call cannot end yet: the run that it delegated to waits. times: earlier suspensions of this call."""

    turn: int
    index: int
    waiting_for: RunReference
    times: int = 0


@dataclass(frozen=True, slots=True)
class RunResumed:
    """The suspended tool call will be repeated, with its key."""

    turn: int
    index: int


@dataclass(frozen=True, slots=True)
class CancelRequested:
    """Somebody asked the run to stop. It stops before its next side effect."""

    turn: int
    by: str
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class RunCompleted:
    """The run ended with an answer."""

    turn: int
    output: str


@dataclass(frozen=True, slots=True)
class RunFailed:
    """The run ended without an answer."""

    turn: int
    code: Code | ForeignCode
    message: str


@dataclass(frozen=True, slots=True)
class RunCancelled:
    """The run was stopped."""

    turn: int
    by: str
    reason: str | None = None


Closing = RunCompleted | RunFailed | RunCancelled
RunEvent = (
    ModelAsked
    | ModelAnswered
    | ToolCalled
    | ToolAnswered
    | ApprovalRequested
    | ApprovalAnswered
    | RunSuspended
    | RunResumed
    | CancelRequested
    | Closing
)

KINDS: dict[str, type[RunEvent]] = {
    "model_asked": ModelAsked,
    "model_answered": ModelAnswered,
    "tool_called": ToolCalled,
    "tool_answered": ToolAnswered,
    "approval_requested": ApprovalRequested,
    "approval_answered": ApprovalAnswered,
    "run_suspended": RunSuspended,
    "run_resumed": RunResumed,
    "cancel_requested": CancelRequested,
    "run_completed": RunCompleted,
    "run_failed": RunFailed,
    "run_cancelled": RunCancelled,
}
_NAMES = {kind: name for name, kind in KINDS.items()}


def kind_of(event: RunEvent) -> str:
    """Return the event's kind as stored."""
    return _NAMES[type(event)]


def to_json(event: RunEvent) -> JsonObject:
    """Return the event's data as JSON, without its kind."""
    return asdict(event)


def from_json(kind: str, data: JsonObject) -> RunEvent:
    """Return the event of this kind with this data: the inverse of `kind_of` and `to_json`."""
    fields: dict[str, Any] = dict(data)
    if kind == "model_asked":
        fields["cut"] = tuple(fields.get("cut", ()))
    if kind == "model_answered":
        fields["calls"] = tuple(ToolCall(**call) for call in fields["calls"])
    if kind == "tool_answered":
        fields["recalled"] = tuple((record_id, score) for record_id, score in fields["recalled"])
    if kind == "run_suspended":
        fields["waiting_for"] = RunReference.from_json(fields["waiting_for"])
    return KINDS[kind](**fields)
