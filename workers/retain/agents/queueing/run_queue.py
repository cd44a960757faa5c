"""The queue of one instance: the table `queued_runs` in the object's SQLite, with a row for each run that has not begun.

The order is that of the runs' ids. The object reads the table once and then knows what is in it, without the requests.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property

from retain.agents.calls.run_request import RunRequest
from retain.agents.runs.run_table import KnownRun
from retain.identifiers import id_after, new_id
from retain.json_text import read_own_json
from retain.ports import ObjectSql


@dataclass(frozen=True, slots=True)
class QueuePlace:
    """A run in the queue, without its request. at_ms: when it was queued. by: the principal that queued it."""

    run_id: str
    idempotency_key: str | None
    digest: str
    user_id: str | None
    at_ms: int
    by: str | None


@dataclass(frozen=True, slots=True)
class QueuedRun:
    """A run in the queue. at_ms: when it was queued."""

    run_id: str
    request: RunRequest
    at_ms: int


class RunQueue:
    """Reads and writes the rows of queued runs. Nothing here reaches D1."""

    def __init__(self, local: ObjectSql) -> None:
        self._local = local
        self._last_id: str | None = None

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, run_id: str) -> bool:
        return run_id in self._places

    @cached_property
    def _places(self) -> dict[str, QueuePlace]:
        rows = self._local.run(
            "SELECT run_id, idempotency_key, request_hash, json_extract(request, '$.user.id') AS user_id, at_ms,"
            " json_extract(request, '$.by') AS started_by FROM queued_runs ORDER BY run_id"
        ).rows
        places = (
            QueuePlace(
                row["run_id"],
                row["idempotency_key"],
                row["request_hash"],
                row["user_id"],
                int(row["at_ms"]),
                row["started_by"],
            )
            for row in rows
        )
        return {place.run_id: place for place in places}

    def next_id(self) -> str:
        """Return the id of a new run, which is after every id of the instance: its conversation is in their order."""
        if self._last_id is None:
            sql = "SELECT MAX(run_id) AS last FROM (SELECT run_id FROM turn_state UNION ALL SELECT run_id FROM queued_runs)"
            self._last_id = self._local.run(sql).rows[0]["last"]
        self._last_id = new_id() if self._last_id is None else id_after(new_id(), self._last_id)
        return self._last_id

    def places(self) -> tuple[QueuePlace, ...]:
        """Return the runs in the queue, the next to begin first."""
        return tuple(self._places.values())

    def position(self, run_id: str) -> int | None:
        """Return the run's position, 1 for the next to begin; None when it is not in the queue."""
        return next((number for number, one in enumerate(self._places, start=1) if one == run_id), None)

    def started_by(self, run_id: str) -> str | None:
        """Return the principal that queued the run; None when nobody is known to have."""
        place = self._places.get(run_id)
        return None if place is None else place.by

    def asked_with(self, idempotency_key: str) -> KnownRun | None:
        """Return the queued run that was requested with this key, or None."""
        found = (place for place in self._places.values() if place.idempotency_key == idempotency_key)
        return next((KnownRun(place.run_id, place.digest) for place in found), None)

    def add(self, queued: QueuedRun) -> None:
        """Write the row of a run."""
        request = queued.request
        place = QueuePlace(
            queued.run_id, request.idempotency_key, request.digest, request.user_id, queued.at_ms, request.by
        )
        places = {**self._places, place.run_id: place}
        self._local.run(
            "INSERT INTO queued_runs (run_id, idempotency_key, request_hash, request, at_ms) VALUES (?, ?, ?, ?, ?)",
            place.run_id,
            place.idempotency_key,
            place.digest,
            json.dumps(request.to_json()),
            place.at_ms,
        )
        self._places = dict(sorted(places.items()))

    def remove(self, run_id: str) -> bool:
        """Remove the run's row; return whether it had one."""
        if run_id not in self._places:
            return False
        self._local.run("DELETE FROM queued_runs WHERE run_id = ?", run_id)
        self._places = {name: place for name, place in self._places.items() if name != run_id}
        return True

    def read(self, run_id: str) -> QueuedRun | None:
        """Return a run with its request, None when it is not in the queue."""
        place = self._places.get(run_id)
        if place is None:
            return None
        return QueuedRun(run_id, RunRequest.from_json(read_own_json(self.text(run_id))), place.at_ms)

    def text(self, run_id: str) -> str:
        """Return a run's request as it is stored."""
        [row] = self._local.run("SELECT request FROM queued_runs WHERE run_id = ?", run_id).rows
        return str(row["request"])
