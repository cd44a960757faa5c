"""The log of one instance's runs: the table `run_log` in the object's SQLite."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from retain.agents.calls.answers import LogEntry
from retain.agents.runs.events import RunEvent, from_json
from retain.json_text import read_own_json
from retain.ports import ObjectSql


@dataclass(frozen=True, slots=True)
class Logged:
    """An event in a run's log. seq: its number in the run, from 1."""

    seq: int
    at_ms: int
    event: RunEvent


class RunLog:
    """Reads and writes events. The caller writes each event once, in the order of their numbers."""

    def __init__(self, local: ObjectSql) -> None:
        self._local = local

    def append(
        self,
        run_id: str,
        seq: int,
        turn: int,
        kind: str,
        data: str,
        at_ms: int,
        *,
        progress: bool,
        tenant_id: str,
    ) -> None:
        """Write an event, the run's turn and time, and the entry of the outbox that D1 is owed, in one statement.

        The table's key refuses a number that the log already has. progress: earlier interruptions no longer count.
        """
        self._local.run(
            "INSERT INTO happened VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            run_id,
            seq,
            turn,
            kind,
            data,
            at_ms,
            progress,
            tenant_id,
        )

    def restore(self, run_id: str, *, seq: int, turn: int, kind: str, data: str, at_ms: int) -> None:
        """Write an event that D1 has. The table's key refuses a number that the log already has."""
        self._local.run("INSERT INTO run_log VALUES (?, ?, ?, ?, ?, ?)", run_id, seq, turn, kind, data, at_ms)

    def carry(self, run_id: str, source_id: str, numbers: Sequence[int], at_ms: int) -> None:
        """Begin a run's log with the events of another run that have these numbers, in order, as of a time."""
        self._local.run(
            "INSERT INTO run_log SELECT ?, number.key + 1, event.turn, event.kind, event.data, ? FROM json_each(?) number"
            " JOIN run_log event ON event.run_id = ? AND event.seq = number.value",
            run_id,
            at_ms,
            json.dumps(list(numbers)),
            source_id,
        )

    def events(self, run_id: str, *, after: int = 0) -> list[Logged]:
        """Return the run's events after the number `after`, in order."""
        rows = self._local.run("SELECT * FROM run_log WHERE run_id = ? AND seq > ? ORDER BY seq", run_id, after).rows
        return [
            Logged(int(row["seq"]), row["at_ms"], from_json(row["kind"], read_own_json(row["data"]))) for row in rows
        ]

    def last_seq(self, run_id: str) -> int:
        """Return the number of the run's last event, or 0."""
        [row] = self._local.run("SELECT MAX(seq) AS seq FROM run_log WHERE run_id = ?", run_id).rows
        return int(row["seq"] or 0)

    def between_ms(self, run_id: str, kinds: Sequence[str], now_ms: int) -> int:
        """Return how much time passed between each event of these kinds and the one after it, or now, in total."""
        following = "LEAD(at_ms, 1, ?) OVER (ORDER BY seq)"
        sql = f"SELECT kind, {following} - at_ms AS passed FROM run_log WHERE run_id = ?"  # noqa: S608
        marks = ", ".join("?" * len(kinds))
        [row] = self._local.run(
            f"SELECT COALESCE(SUM(passed), 0) AS passed FROM ({sql}) WHERE kind IN ({marks})",  # noqa: S608
            now_ms,
            run_id,
            *kinds,
        ).rows
        return int(row["passed"])

    def newest(self, limit: int) -> tuple[LogEntry, ...]:
        """Return the newest `limit` events of all runs, newest first."""
        rows = self._local.run("SELECT * FROM run_log ORDER BY at_ms DESC, run_id DESC, seq DESC LIMIT ?", limit).rows
        return tuple(
            LogEntry(row["run_id"], row["seq"], row["turn"], row["kind"], row["at_ms"], read_own_json(row["data"]))
            for row in rows
        )

    def texts(self, run_id: str) -> list[str]:
        """Return the run's events as stored text."""
        rows = self._local.run("SELECT data FROM run_log WHERE run_id = ?", run_id).rows
        return [row["data"] for row in rows]

    def remove(self, run_id: str) -> None:
        """Remove the run's events."""
        self._local.run("DELETE FROM run_log WHERE run_id = ?", run_id)

    def forget_ended(self, before_ms: int) -> None:
        """Remove the events of the runs that had ended by a time. Call it before the runs themselves are removed."""
        ended = "SELECT run_id FROM turn_state WHERE status NOT IN ('running', 'waiting') AND updated_at_ms <= ?"
        self._local.run(f"DELETE FROM run_log WHERE run_id IN ({ended})", before_ms)  # noqa: S608

    def clear(self) -> None:
        """Remove every event."""
        self._local.run("DELETE FROM run_log")
