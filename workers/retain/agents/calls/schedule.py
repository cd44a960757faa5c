"""One schedule: what runs, when, and the outcome of the last time."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Literal, get_args

from retain.agents.calls.fields import Fields
from retain.agents.calls.run_request import RunRequest
from retain.agents.calls.timing import Timing
from retain.errors import InvalidInput
from retain.json_text import Json, JsonObject, read_own_json
from retain.ports import Row

ScheduleState = Literal["active", "paused", "ended"]
"""ended: it is never due again."""
STATES: tuple[ScheduleState, ...] = get_args(ScheduleState)


@dataclass(frozen=True, slots=True)
class NewSchedule:
    """A schedule to create. request: of its runs; its idempotency key is that of the creation."""

    request: RunRequest
    timing: Timing

    @property
    def digest(self) -> str:
        """A hash that differs for another schedule with the same idempotency key."""
        timing = self.timing
        asked = [self.request.digest, timing.cron, timing.timezone, timing.at_ms]
        return hashlib.sha256(json.dumps(asked).encode()).hexdigest()

    def to_json(self) -> dict[str, Json]:
        """Return the request as it is sent."""
        timing = self.timing
        asked: dict[str, Json] = {"cron": timing.cron, "timezone": timing.timezone, "at_ms": timing.at_ms}
        return {"request": self.request.to_json(), **asked}

    @classmethod
    def from_json(cls, content: JsonObject) -> NewSchedule:
        """Return the request. Raises: InvalidInput (code `invalid_request`)."""
        fields = Fields(content)
        timing = Timing(fields.text_or_none("cron"), fields.text_or_none("timezone"), fields.integer_or_none("at_ms"))
        return cls(RunRequest.from_json(fields.object("request").content), timing)


@dataclass(frozen=True, slots=True)
class NamedSchedule:
    """A schedule of the instance, and the state that it is given; None to leave it as it is."""

    schedule_id: str
    state: ScheduleState | None = None

    def to_json(self) -> dict[str, Json]:
        """Return the request as it is sent."""
        return {"schedule_id": self.schedule_id, "state": self.state}

    @classmethod
    def from_json(cls, content: JsonObject) -> NamedSchedule:
        """Return the request. Raises: InvalidInput (code `invalid_request`)."""
        fields = Fields(content)
        state = fields.text_or_none("state")
        return cls(fields.text("schedule_id"), None if state is None else _state(state))


@dataclass(frozen=True, slots=True)
class Schedule:
    """A schedule as the object and D1 keep it. Times: epoch milliseconds.

    next_at_ms: when its next run is to begin; None while it is paused, and when it has ended. due_at_ms: when that is
    tried, which is later after a try that failed; of one that has ended, when it is forgotten. last_at_ms: when the last run
    was planned.
    last_error: the code with which the last run was refused; None when it began.
    """

    schedule_id: str
    request: RunRequest
    timing: Timing
    state: ScheduleState
    next_at_ms: int | None
    due_at_ms: int | None
    last_run_id: str | None
    last_at_ms: int | None
    last_error: str | None
    created_at_ms: int
    updated_at_ms: int

    @property
    def digest(self) -> str:
        """As `NewSchedule.digest`."""
        return NewSchedule(self.request, self.timing).digest

    def to_json(self) -> dict[str, Json]:
        """Return the schedule as HTTP answers have it, without what names its instance."""
        request, timing = self.request, self.timing
        return {
            "schedule_id": self.schedule_id,
            "user_id": request.user_id,
            "state": self.state,
            "cron": timing.cron,
            "timezone": timing.timezone,
            "at_ms": timing.at_ms,
            "next_at_ms": self.next_at_ms,
            "last_run_id": self.last_run_id,
            "last_at_ms": self.last_at_ms,
            "last_error": self.last_error,
            "input": request.input,
            "metadata": request.metadata,
            "by": request.by,
            "created_at_ms": self.created_at_ms,
        }

    @classmethod
    def of_row(cls, row: Row) -> Schedule:
        """Return the schedule of a row of the object or of D1."""
        return cls(
            schedule_id=row["schedule_id"],
            request=RunRequest.from_json(read_own_json(row["request"])),
            timing=Timing(row["cron"], row["timezone"], _number(row["at_ms"])),
            state=_state(row["state"]),
            next_at_ms=_number(row["next_at_ms"]),
            due_at_ms=_number(row["due_at_ms"]),
            last_run_id=row["last_run_id"],
            last_at_ms=_number(row["last_at_ms"]),
            last_error=row["last_error"],
            created_at_ms=int(row["created_at_ms"]),
            updated_at_ms=int(row["updated_at_ms"]),
        )


def _state(name: str) -> ScheduleState:
    for state in STATES:
        if state == name:
            return state
    raise InvalidInput("a schedule has no such state", code="invalid_request")


def _number(value: int | None) -> int | None:
    return None if value is None else int(value)
