"""The report of a run: its standing while it is open, its result once it has ended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from retain.agents.calls.fields import Fields
from retain.agents.calls.run_request import RunReference
from retain.errors import InvalidInput, RetainError
from retain.json_text import Json, JsonObject

OpenStatus = Literal["queued", "running", "waiting"]
EndStatus = Literal["completed", "failed", "cancelled"]
CallOutcome = Literal["done", "failed", "unknown"]


@dataclass(frozen=True, slots=True)
class ApprovalAwaited:
    """The run waits for a person's answer about a call. call: `turn.index`. The call is rejected at `expires_at_ms`."""

    call: str
    tool: str
    arguments: JsonObject
    expires_at_ms: int

    def to_json(self) -> dict[str, Json]:
        """Return what the run waits for, as JSON."""
        return {
            "kind": "approval",
            "call": self.call,
            "tool": self.tool,
            "arguments": dict(self.arguments),
            "expires_at_ms": self.expires_at_ms,
        }


@dataclass(frozen=True, slots=True)
class DelegateAwaited:
    """The run waits for the end of a delegate's run, which itself waits. call: `turn.index`."""

    call: str
    run: RunReference

    def to_json(self) -> dict[str, Json]:
        """Return what the run waits for, as JSON."""
        return {"kind": "delegate", "call": self.call, **self.run.to_json()}


@dataclass(frozen=True, slots=True)
class ServerReport:
    """What a model's server reported of its failure, as far as it did.

    status: of HTTP. upstream_code, upstream_message: its own code and words, without secrets. retry_after_ms: how long it
    asks to wait.
    """

    status: int | None = None
    upstream_code: str | None = None
    upstream_message: str | None = None
    retry_after_ms: int | None = None

    @classmethod
    def of(cls, error: RetainError) -> ServerReport:
        """Return what the error's details have of it."""
        return cls.read(Fields({name: error.details.get(name) for name in _REPORTED}))

    @classmethod
    def read(cls, fields: Fields) -> ServerReport:
        """Return the report among the fields of an object. Raises: InvalidInput (code `invalid_request`)."""
        return cls(
            fields.integer_or_none("status"),
            fields.text_or_none("upstream_code"),
            fields.text_or_none("upstream_message"),
            fields.integer_or_none("retry_after_ms"),
        )

    def to_json(self) -> dict[str, Json]:
        """Return the fields that are known."""
        known: dict[str, Json] = {name: getattr(self, name) for name in _REPORTED}
        return {name: value for name, value in known.items() if value is not None}


UNREPORTED = ServerReport()
"""A server that reported nothing, or had nothing to do with it."""
_REPORTED = ("status", "upstream_code", "upstream_message", "retry_after_ms")


@dataclass(frozen=True, slots=True)
class ModelAwaited:
    """The run waits for the model's server, and asks it again at `retry_at_ms`. At `gives_up_at_ms` it asks a last time."""

    code: str
    message: str
    retry_at_ms: int
    gives_up_at_ms: int
    server: ServerReport = UNREPORTED

    def to_json(self) -> dict[str, Json]:
        """Return what the run waits for, as JSON."""
        return {
            "kind": "model",
            "code": self.code,
            "message": self.message,
            **self.server.to_json(),
            "retry_at_ms": self.retry_at_ms,
            "gives_up_at_ms": self.gives_up_at_ms,
        }


Awaited: TypeAlias = ApprovalAwaited | DelegateAwaited | ModelAwaited


@dataclass(frozen=True, slots=True)
class RunStanding:
    """An open run. awaited: what a waiting run waits for. cancelling: it stops before its next side effect.

    queue_position: of a queued run, 1 for the next to begin. by: the principal that started it.
    """

    run_id: str
    instance_id: str
    status: OpenStatus
    awaited: Awaited | None = None
    cancelling: bool = False
    queue_position: int | None = None
    by: str | None = None

    @property
    def ended(self) -> bool:
        """Whether the run has ended."""
        return False

    def to_json(self) -> dict[str, Json]:
        """Return the standing as the interface shows it."""
        shown: dict[str, Json] = {"run_id": self.run_id, "instance_id": self.instance_id, "status": self.status}
        if self.by is not None:
            shown["by"] = self.by
        if self.cancelling:
            shown["cancelling"] = True
        if self.awaited is not None:
            shown["waiting_for"] = self.awaited.to_json()
        if self.queue_position is not None:
            shown["queue_position"] = self.queue_position
        return shown


@dataclass(frozen=True, slots=True)
class RunUsage:
    """What a run spent. delegated_tokens, delegations: by its delegates and theirs.

    cached_input_tokens: those of the input tokens that the cache of the model's server supplied.
    """

    input_tokens: int
    output_tokens: int
    delegated_tokens: int = 0
    delegations: int = 0
    cached_input_tokens: int = 0

    @property
    def tokens(self) -> int:
        """All tokens that the run and its delegates read and wrote."""
        return self.input_tokens + self.output_tokens + self.delegated_tokens

    def to_json(self) -> dict[str, Json]:
        """Return the usage as the interface shows it."""
        return {
            "input_tokens": self.input_tokens,
            "output_tokens": self.output_tokens,
            "delegated_tokens": self.delegated_tokens,
            "delegations": self.delegations,
            "cached_input_tokens": self.cached_input_tokens,
        }


@dataclass(frozen=True, slots=True)
class RunMemory:
    """How much of the agent's memory a run read."""

    episodes_used: int
    records_used: int
    messages_used: int = 0

    def to_json(self) -> dict[str, Json]:
        """Return the counts as the interface shows them."""
        return {
            "messages_used": self.messages_used,
            "episodes_used": self.episodes_used,
            "records_used": self.records_used,
        }


@dataclass(frozen=True, slots=True)
class RunError:
    """Why a run ended without an answer. by: who cancelled it. server: what the model's server reported."""

    code: str
    message: str
    by: str | None = None
    server: ServerReport = UNREPORTED

    def to_json(self) -> dict[str, Json]:
        """Return the error as the interface shows it."""
        shown: dict[str, Json] = {"code": self.code, "message": self.message, **self.server.to_json()}
        return shown if self.by is None else {**shown, "by": self.by}


@dataclass(frozen=True, slots=True)
class FollowedWorkflow:
    """The workflow that a run follows."""

    task_type: str
    workflow_id: str

    def to_json(self) -> dict[str, Json]:
        """Return the workflow as it is logged and shown."""
        return {"task_type": self.task_type, "workflow_id": self.workflow_id}

    @classmethod
    def from_json(cls, content: JsonObject) -> FollowedWorkflow:
        """Return the workflow. Raises: InvalidInput (code `invalid_request`)."""
        fields = Fields(content)
        return cls(fields.text("task_type"), fields.text("workflow_id"))


@dataclass(frozen=True, slots=True)
class BegunCall:
    """A tool call that a cancelled run began. call: `turn.index`. outcome: `unknown` when its result is not known."""

    call: str
    tool: str
    outcome: CallOutcome

    def to_json(self) -> dict[str, Json]:
        """Return the call as the interface shows it."""
        return {"call": self.call, "tool": self.tool, "outcome": self.outcome}


@dataclass(frozen=True, slots=True)
class RunResult:
    """An ended run.

    steps: model calls and tool calls made. begun: the tool calls of a cancelled run, otherwise None. by: the principal that
    started it.
    """

    run_id: str
    instance_id: str
    status: EndStatus
    output: str | None
    steps: int
    usage: RunUsage
    memory: RunMemory
    procedure: FollowedWorkflow | None = None
    error: RunError | None = None
    begun: tuple[BegunCall, ...] | None = None
    finish_reason: str | None = None
    by: str | None = None

    @property
    def ended(self) -> bool:
        """Whether the run has ended."""
        return True

    def to_json(self) -> dict[str, Json]:
        """Return the result as the interface shows it."""
        shown: dict[str, Json] = {
            "run_id": self.run_id,
            "instance_id": self.instance_id,
            "status": self.status,
            **({} if self.by is None else {"by": self.by}),
            "output": self.output,
            **({} if self.finish_reason is None else {"finish_reason": self.finish_reason}),
            "steps": self.steps,
            "usage": self.usage.to_json(),
            "memory": self.memory.to_json(),
        }
        if self.procedure is not None:
            shown["procedure"] = self.procedure.to_json()
        if self.error is not None:
            shown["error"] = self.error.to_json()
        if self.begun is not None:
            shown["done"] = [call.to_json() for call in self.begun]
        return shown

    @classmethod
    def from_json(cls, content: JsonObject) -> RunResult:
        """Return the result from its `to_json` form. Raises: InvalidInput (code `invalid_request`)."""
        fields = Fields(content)
        usage, memory = fields.object("usage"), fields.object("memory")
        procedure, error = fields.object_or_none("procedure"), fields.object_or_none("error")
        status = fields.text("status")
        return cls(
            run_id=fields.text("run_id"),
            instance_id=fields.text("instance_id"),
            status=_end_status(status),
            output=fields.text_or_none("output"),
            steps=fields.integer("steps"),
            usage=RunUsage(
                usage.integer("input_tokens"),
                usage.integer("output_tokens"),
                usage.integer("delegated_tokens", default=0),
                usage.integer("delegations", default=0),
                usage.integer("cached_input_tokens", default=0),
            ),
            memory=RunMemory(
                memory.integer("episodes_used"), memory.integer("records_used"), memory.integer("messages_used", 0)
            ),
            procedure=None if procedure is None else FollowedWorkflow.from_json(procedure.content),
            error=None
            if error is None
            else RunError(
                error.text("code"), error.text("message"), error.text_or_none("by"), ServerReport.read(error)
            ),
            begun=tuple(_begun(call) for call in fields.objects("done")) if "done" in content else None,
            finish_reason=fields.text_or_none("finish_reason"),
            by=fields.text_or_none("by"),
        )


RunReport: TypeAlias = RunStanding | RunResult
"""A run as it is reported."""


def report_from_json(content: JsonObject) -> RunReport:
    """Return the report from its `to_json` form. Raises: InvalidInput (code `invalid_request`)."""
    fields = Fields(content)
    status = fields.text("status")
    known: Mapping[str, OpenStatus] = {name: name for name in get_args(OpenStatus)}
    if status not in known:
        return RunResult.from_json(content)
    awaited = fields.object_or_none("waiting_for")
    return RunStanding(
        run_id=fields.text("run_id"),
        instance_id=fields.text("instance_id"),
        status=known[status],
        awaited=None if awaited is None else _awaited(awaited),
        cancelling=fields.flag("cancelling", default=False),
        queue_position=fields.integer_or_none("queue_position"),
        by=fields.text_or_none("by"),
    )


def _awaited(fields: Fields) -> Awaited:
    if fields.text("kind") == "model":
        return ModelAwaited(
            fields.text("code"),
            fields.text("message"),
            fields.integer("retry_at_ms"),
            fields.integer("gives_up_at_ms"),
            ServerReport.read(fields),
        )
    if fields.text("kind") == "delegate":
        return DelegateAwaited(fields.text("call"), RunReference.from_json(fields.content))
    arguments = fields.object("arguments").content
    return ApprovalAwaited(fields.text("call"), fields.text("tool"), arguments, fields.integer("expires_at_ms"))


def _end_status(status: str) -> EndStatus:
    known: Mapping[str, EndStatus] = {name: name for name in get_args(EndStatus)}
    if status not in known:
        raise InvalidInput(f"a run has no status {status}", code="invalid_request")
    return known[status]


def _begun(fields: Fields) -> BegunCall:
    outcomes: Mapping[str, CallOutcome] = {name: name for name in get_args(CallOutcome)}
    return BegunCall(fields.text("call"), fields.text("tool"), outcomes.get(fields.text("outcome"), "unknown"))
