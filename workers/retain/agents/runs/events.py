"""Run events: what happens in a run, as values, and their JSON form in `run_log`.

A side effect has two events: one before it (`ModelAsked`, `ToolCalled`) and one after it (`ModelAnswered`,
`ToolAnswered`). If a crash leaves only the first, the resumed run knows what may have happened. What comes from outside is
an event as well: a person's answer (`ApprovalAnswered`), a cancellation (`CancelRequested`), what another run had achieved
(`RunForked`), and what went wrong on the way: an answer that cannot be used (`AnswerDropped`), a server that is down
(`ModelUnavailable`), a crash (`RunRecovered`).
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, is_dataclass
from typing import Any

from retain.agents.calls.report import UNREPORTED, ServerReport
from retain.agents.calls.run_request import RunReference
from retain.errors.codes import Code, ForeignCode
from retain.json_text import JsonObject
from retain.models.chat import FinishReason, ToolCall


@dataclass(frozen=True, slots=True)
class ModelAsked:
    """The model is about to be asked for this turn. cut: turns that no longer fit, of which it reads a summary.

    messages_cut: how many of the messages before the run's input no longer fit.
    """

    turn: int
    cut: tuple[int, ...] = ()
    messages_cut: int = 0


@dataclass(frozen=True, slots=True)
class ModelAnswered:
    """The model answered: text, tool calls, or both. finish_reason: None in logs of version 0.1.

    cached_input_tokens: those of the input tokens that the cache of its server supplied.
    """

    turn: int
    content: str
    calls: tuple[ToolCall, ...]
    input_tokens: int
    output_tokens: int
    finish_reason: FinishReason | None = None
    cached_input_tokens: int = 0


@dataclass(frozen=True, slots=True)
class AnswerDropped:
    """The model's answer cannot be used, or broke off. It cost what it cost all the same.

    text: what followers of the run have read of it.
    """

    turn: int
    code: Code | ForeignCode
    message: str
    input_tokens: int = 0
    output_tokens: int = 0
    text: str = ""
    cached_input_tokens: int = 0


@dataclass(frozen=True, slots=True)
class CallRetried:
    """A call failed and is repeated after `delay_ms`. index: of the tool call, None for a call of the model."""

    turn: int
    index: int | None
    code: str
    delay_ms: int
    server: ServerReport = UNREPORTED


@dataclass(frozen=True, slots=True)
class ModelUnavailable:
    """The model's server does not answer. The run waits and asks again at `retry_at_ms`; `gives_up_at_ms` is its last time.

    times: earlier waits of this outage.
    """

    turn: int
    code: Code | ForeignCode
    message: str
    retry_at_ms: int
    gives_up_at_ms: int
    times: int = 0
    server: ServerReport = UNREPORTED


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
    tokens, delegations: what a delegate and its own delegates spent of the run's budget. traceback: of an error that the
    tool did not foresee, for the operator; the model does not read it.
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
    traceback: str | None = None


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
    """The suspended tool call is repeated, with its key. index: None when the model is asked again."""

    turn: int
    index: int | None


@dataclass(frozen=True, slots=True)
class RunRecovered:
    """The run was interrupted and continues from its last step. times: interruptions since it last made progress."""

    turn: int
    times: int


@dataclass(frozen=True, slots=True)
class RunForked:
    """The events before this one are those of another run of the instance, which this run continues.

    run_id: of that run. turns: how many of its turns are whole. call_key: the key of the tool call that was under way.
    """

    turn: int
    run_id: str
    turns: int
    call_key: str | None = None


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
    """The run ended without an answer. server: what the model's server reported, if it was the reason."""

    turn: int
    code: Code | ForeignCode
    message: str
    server: ServerReport = UNREPORTED


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
    | AnswerDropped
    | CallRetried
    | ModelUnavailable
    | ToolCalled
    | ToolAnswered
    | ApprovalRequested
    | ApprovalAnswered
    | RunSuspended
    | RunResumed
    | RunRecovered
    | RunForked
    | CancelRequested
    | Closing
)

KINDS: dict[str, type[RunEvent]] = {
    "model_asked": ModelAsked,
    "model_answered": ModelAnswered,
    "answer_dropped": AnswerDropped,
    "call_retried": CallRetried,
    "model_unavailable": ModelUnavailable,
    "tool_called": ToolCalled,
    "tool_answered": ToolAnswered,
    "approval_requested": ApprovalRequested,
    "approval_answered": ApprovalAnswered,
    "run_suspended": RunSuspended,
    "run_resumed": RunResumed,
    "run_recovered": RunRecovered,
    "run_forked": RunForked,
    "cancel_requested": CancelRequested,
    "run_completed": RunCompleted,
    "run_failed": RunFailed,
    "run_cancelled": RunCancelled,
}
_NAMES = {kind: name for name, kind in KINDS.items()}
_LEFT_OUT_AT_0 = ("messages_cut", "cached_input_tokens")


def made_progress(event: RunEvent) -> bool:
    """Return whether a run achieved something before this event: earlier interruptions did not stop it."""
    return not isinstance(event, ModelAsked | ToolCalled | CallRetried | RunRecovered)


def kind_of(event: RunEvent) -> str:
    """Return the event's kind as stored."""
    return _NAMES[type(event)]


def name_of(kind: type[RunEvent]) -> str:
    """Return the kind of these events as stored."""
    return _NAMES[kind]


def to_json(event: RunEvent) -> JsonObject:
    """Return the event's data as JSON, without its kind."""
    data = {name: _plain(getattr(event, name)) for name in event.__slots__}  # `asdict` copies every argument as well
    for name in _LEFT_OUT_AT_0:
        if data.get(name) == 0:
            del data[name]
    return data


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(_plain, value))
    if isinstance(value, ToolCall):
        call = asdict(value)
        return call if value.reasoning is not None else {name: call[name] for name in call if name != "reasoning"}
    return asdict(value) if is_dataclass(value) and not isinstance(value, type) else value


def from_json(kind: str, data: JsonObject) -> RunEvent:
    """Return the event of this kind with this data: the inverse of `kind_of` and `to_json`.

    Fields that a version added have defaults, so that logs of earlier versions are read.
    """
    fields: dict[str, Any] = dict(data)
    if kind == "model_asked":
        fields["cut"] = tuple(fields.get("cut", ()))
    if kind == "model_answered":
        fields["calls"] = tuple(ToolCall(**call) for call in fields["calls"])
    if kind == "tool_answered":
        fields["recalled"] = tuple((record_id, score) for record_id, score in fields["recalled"])
    if kind == "run_suspended":
        fields["waiting_for"] = RunReference.from_json(fields["waiting_for"])
    if "server" in fields:
        fields["server"] = ServerReport(**fields["server"])
    return KINDS[kind](**fields)
