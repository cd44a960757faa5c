"""The requests to an instance about its runs and itself, except the request for a run."""

from __future__ import annotations

from dataclasses import dataclass

from retain.agents.calls.fields import Fields
from retain.json_text import Json, JsonObject

BEGINNING = -1
"""The position of a reader that has read nothing of a run."""
MAX_DESCRIBED = 50


@dataclass(frozen=True, slots=True)
class NamedRun:
    """One run of the instance."""

    run_id: str

    def to_json(self) -> dict[str, Json]:
        """Return the request as it is sent."""
        return {"run_id": self.run_id}

    @classmethod
    def from_json(cls, content: JsonObject) -> NamedRun:
        """Return the request. Raises: InvalidInput (code `invalid_request`)."""
        return cls(Fields(content).text("run_id"))


@dataclass(frozen=True, slots=True)
class ForkRequest:
    """Ask for a run that begins with the turns of another one. turns: None to retry one that failed, from its failed step.

    The other fields are as in `RunRequest`.
    """

    run_id: str
    turns: int | None = None
    idempotency_key: str | None = None
    by: str | None = None

    def to_json(self) -> dict[str, Json]:
        """Return the request as it is sent."""
        key: Json = self.idempotency_key
        return {"run_id": self.run_id, "turns": self.turns, "idempotency_key": key, "by": self.by}

    @classmethod
    def from_json(cls, content: JsonObject) -> ForkRequest:
        """Return the request. Raises: InvalidInput (code `invalid_request`)."""
        fields = Fields(content)
        return cls(
            fields.text("run_id"),
            fields.integer_or_none("turns"),
            fields.text_or_none("idempotency_key"),
            fields.text_or_none("by"),
        )


@dataclass(frozen=True, slots=True)
class ReadPosition:
    """How far a follower has read a run.

    after: the id of the last event read, `BEGINNING` before the first. turn, offset: the answer that is being written, and
    how many of its characters were read.
    """

    after: int = BEGINNING
    turn: int = 0
    offset: int = 0

    def to_json(self) -> dict[str, Json]:
        """Return the position as it is sent."""
        return {"after": self.after, "turn": self.turn, "offset": self.offset}

    @classmethod
    def from_json(cls, content: JsonObject) -> ReadPosition:
        """Return the position. Raises: InvalidInput (code `invalid_request`)."""
        fields = Fields(content)
        return cls(fields.integer("after"), fields.integer("turn"), fields.integer("offset"))


@dataclass(frozen=True, slots=True)
class FollowRequest:
    """Ask what happened in a run after a position. wait_s: how long to wait when nothing has happened yet, in seconds."""

    run_id: str
    position: ReadPosition = ReadPosition()
    wait_s: float = 0

    def to_json(self) -> dict[str, Json]:
        """Return the request as it is sent."""
        return {"run_id": self.run_id, **self.position.to_json(), "wait_s": self.wait_s}

    @classmethod
    def from_json(cls, content: JsonObject) -> FollowRequest:
        """Return the request. Raises: InvalidInput (code `invalid_request`)."""
        fields = Fields(content)
        return cls(fields.text("run_id"), ReadPosition.from_json(content), fields.number("wait_s"))


@dataclass(frozen=True, slots=True)
class AnswerRequest:
    """A person's answer to what a run asks. call: `turn.index` of the call, as the question named it."""

    run_id: str
    call: str
    approved: bool
    by: str
    reason: str | None = None

    def to_json(self) -> dict[str, Json]:
        """Return the request as it is sent."""
        return {
            "run_id": self.run_id,
            "call": self.call,
            "approved": self.approved,
            "by": self.by,
            "reason": self.reason,
        }

    @classmethod
    def from_json(cls, content: JsonObject) -> AnswerRequest:
        """Return the request. Raises: InvalidInput (code `invalid_request`)."""
        fields = Fields(content)
        return cls(
            fields.text("run_id"),
            fields.text("call"),
            fields.flag("approved"),
            fields.text("by"),
            fields.text_or_none("reason"),
        )


@dataclass(frozen=True, slots=True)
class CancelRequest:
    """Stop a run. by: who asks for it."""

    run_id: str
    by: str
    reason: str | None = None

    def to_json(self) -> dict[str, Json]:
        """Return the request as it is sent."""
        return {"run_id": self.run_id, "by": self.by, "reason": self.reason}

    @classmethod
    def from_json(cls, content: JsonObject) -> CancelRequest:
        """Return the request. Raises: InvalidInput (code `invalid_request`)."""
        fields = Fields(content)
        return cls(fields.text("run_id"), fields.text("by"), fields.text_or_none("reason"))


@dataclass(frozen=True, slots=True)
class CancelCallRequest:
    """Stop the run with an idempotency key, or keep it from starting."""

    idempotency_key: str
    by: str
    reason: str | None = None

    def to_json(self) -> dict[str, Json]:
        """Return the request as it is sent."""
        return {"idempotency_key": self.idempotency_key, "by": self.by, "reason": self.reason}

    @classmethod
    def from_json(cls, content: JsonObject) -> CancelCallRequest:
        """Return the request. Raises: InvalidInput (code `invalid_request`)."""
        fields = Fields(content)
        return cls(fields.text("idempotency_key"), fields.text("by"), fields.text_or_none("reason"))


@dataclass(frozen=True, slots=True)
class OutcomeRequest:
    """The outcome of a run that followed a workflow. score: 0 (failure) to 1 (success)."""

    run_id: str
    task_type: str
    workflow_id: str
    score: float

    def to_json(self) -> dict[str, Json]:
        """Return the request as it is sent."""
        return {
            "run_id": self.run_id,
            "task_type": self.task_type,
            "workflow_id": self.workflow_id,
            "score": self.score,
        }

    @classmethod
    def from_json(cls, content: JsonObject) -> OutcomeRequest:
        """Return the request. Raises: InvalidInput (code `invalid_request`)."""
        fields = Fields(content)
        return cls(fields.text("run_id"), fields.text("task_type"), fields.text("workflow_id"), fields.number("score"))


@dataclass(frozen=True, slots=True)
class RedeliverRequest:
    """Send a message about a run to a webhook again."""

    run_id: str
    webhook_id: str
    message_id: str

    def to_json(self) -> dict[str, Json]:
        """Return the request as it is sent."""
        return {"run_id": self.run_id, "webhook_id": self.webhook_id, "message_id": self.message_id}

    @classmethod
    def from_json(cls, content: JsonObject) -> RedeliverRequest:
        """Return the request. Raises: InvalidInput (code `invalid_request`)."""
        fields = Fields(content)
        return cls(fields.text("run_id"), fields.text("webhook_id"), fields.text("message_id"))


@dataclass(frozen=True, slots=True)
class DescribeRequest:
    """Show the instance. limit: how many runs and how many log entries, newest first."""

    limit: int = MAX_DESCRIBED

    def to_json(self) -> dict[str, Json]:
        """Return the request as it is sent."""
        return {"limit": self.limit}

    @classmethod
    def from_json(cls, content: JsonObject) -> DescribeRequest:
        """Return the request. Raises: InvalidInput (code `invalid_request`)."""
        return cls(Fields(content).integer("limit", default=MAX_DESCRIBED))


@dataclass(frozen=True, slots=True)
class EraseRequest:
    """Forget everything, or what names `term`. user_id: everything, if the instance serves this user.

    cancel: whether runs that are under way are cancelled when everything is to be forgotten.
    """

    term: str | None = None
    user_id: str | None = None
    cancel: bool = False

    def to_json(self) -> dict[str, Json]:
        """Return the request as it is sent."""
        return {"term": self.term, "user_id": self.user_id, "cancel": self.cancel}

    @classmethod
    def from_json(cls, content: JsonObject) -> EraseRequest:
        """Return the request. Raises: InvalidInput (code `invalid_request`)."""
        fields = Fields(content)
        return cls(fields.text_or_none("term"), fields.text_or_none("user_id"), fields.flag("cancel", False))
