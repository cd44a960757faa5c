"""What an instance answers about its runs and itself, besides a run's report."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import get_args

from retain.agents.calls.fields import Fields
from retain.agents.calls.report import OpenStatus
from retain.agents.calls.requests import ReadPosition
from retain.json_text import Json, JsonObject
from retain.memory.procedures.posterior import Posterior
from retain.outbox import OwedEntries


@dataclass(frozen=True, slots=True)
class RunStreamEvent:
    """One event of a run as it is streamed. id: what a follower resumes after, None for an event without a position."""

    name: str
    data: JsonObject
    id: int | None = None

    def text(self) -> str:
        """Return the event as it is sent. JSON escapes line breaks, so the data is one line."""
        lines = [f"event: {self.name}", f"data: {json.dumps(dict(self.data))}"]
        if self.id is not None:
            lines.insert(0, f"id: {self.id}")
        return "\n".join([*lines, "", ""])

    def to_json(self) -> dict[str, Json]:
        """Return the event as an instance sends it."""
        return {"name": self.name, "data": dict(self.data), "id": self.id}

    @classmethod
    def from_json(cls, content: JsonObject) -> RunStreamEvent:
        """Return the event. Raises: InvalidInput (code `invalid_request`)."""
        fields = Fields(content)
        return cls(fields.text("name"), fields.object("data").content, fields.integer_or_none("id"))


@dataclass(frozen=True, slots=True)
class News:
    """What happened in a run, and the position from which to continue reading. status: the run's."""

    events: tuple[RunStreamEvent, ...]
    position: ReadPosition
    status: str

    @property
    def final(self) -> bool:
        """Whether nothing follows: the run has ended."""
        return self.status not in get_args(OpenStatus)

    def to_json(self) -> dict[str, Json]:
        """Return the news as an instance sends them."""
        return {
            "events": [event.to_json() for event in self.events],
            **self.position.to_json(),
            "status": self.status,
        }

    @classmethod
    def from_json(cls, content: JsonObject) -> News:
        """Return the news. Raises: InvalidInput (code `invalid_request`)."""
        fields = Fields(content)
        events = tuple(RunStreamEvent.from_json(event.content) for event in fields.objects("events"))
        return cls(events, ReadPosition.from_json(content), fields.text("status"))


@dataclass(frozen=True, slots=True)
class Learned:
    """What is believed of a workflow after an outcome, None when the instance does not hold the workflow."""

    posterior: Posterior | None

    def to_json(self) -> dict[str, Json]:
        """Return the belief as an instance sends it."""
        return {"posterior": None if self.posterior is None else _shown(self.posterior)}


@dataclass(frozen=True, slots=True)
class Erased:
    """What was erased. everything: the object no longer knows who it is."""

    everything: bool

    def to_json(self) -> dict[str, Json]:
        """Return it as an instance sends it."""
        return {"everything": self.everything}


@dataclass(frozen=True, slots=True)
class RunSummary:
    """A run in the description of its instance. by: the principal that started it, None where that was not recorded."""

    run_id: str
    status: str
    turn: int
    created_at_ms: int
    updated_at_ms: int
    by: str | None


@dataclass(frozen=True, slots=True)
class QueuedSummary:
    """A queued run in the description of its instance. queue_position: 1 for the next to begin. by: as a run's."""

    run_id: str
    queue_position: int
    queued_at_ms: int
    by: str | None

    def to_json(self) -> dict[str, Json]:
        """Return the run as the HTTP interface shows it."""
        return {
            "run_id": self.run_id,
            "by": self.by,
            "queue_position": self.queue_position,
            "queued_at_ms": self.queued_at_ms,
        }


@dataclass(frozen=True, slots=True)
class LogEntry:
    """An event of a run in the description of its instance."""

    run_id: str
    seq: int
    turn: int
    kind: str
    at_ms: int
    data: JsonObject


@dataclass(frozen=True, slots=True)
class InstanceDescription:
    """An instance: its newest runs and log entries, its queue, its working keys, and what it believes of its workflows.

    owed: what it has that D1 does not have yet.
    """

    instance_id: str
    runs: tuple[RunSummary, ...]
    log: tuple[LogEntry, ...]
    queue: tuple[QueuedSummary, ...]
    working: JsonObject
    procedures: Mapping[str, Mapping[str, Posterior]]
    owed: OwedEntries

    def to_json(self) -> dict[str, Json]:
        """Return the description as the HTTP interface shows it."""
        return {
            "instance_id": self.instance_id,
            "turn_state": [
                {
                    "run_id": run.run_id,
                    "by": run.by,
                    "status": run.status,
                    "turn": run.turn,
                    "created_at_ms": run.created_at_ms,
                    "updated_at_ms": run.updated_at_ms,
                }
                for run in self.runs
            ],
            "queue": [queued.to_json() for queued in self.queue],
            "run_log": [
                {
                    "run_id": entry.run_id,
                    "seq": entry.seq,
                    "turn": entry.turn,
                    "kind": entry.kind,
                    "at_ms": entry.at_ms,
                    "data": entry.data,
                }
                for entry in self.log
            ],
            "working": self.working,
            "procedures": {
                task_type: {name: _shown(belief) for name, belief in beliefs.items()}
                for task_type, beliefs in self.procedures.items()
            },
            "owed": dict(asdict(self.owed)),
        }


@dataclass(frozen=True, slots=True)
class RedeliveredMessage:
    """A message to a webhook that is sent again. delivery: as the log shows it."""

    delivery: JsonObject

    def to_json(self) -> dict[str, Json]:
        """Return the delivery as the HTTP interface shows it."""
        return dict(self.delivery)


def _shown(belief: Posterior) -> dict[str, Json]:
    return {"alpha": belief.alpha, "beta": belief.beta}
