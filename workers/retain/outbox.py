"""The outbox of one instance: what it owes to D1, kept in its own SQLite until D1 has it.

An entry holds the name of a statement and its values, so the next version of the code understands entries that this
one wrote. Every statement is idempotent: an entry that D1 has and that was not yet deleted here is written again
without effect. Entries are written in the order in which they were added.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import takewhile
from typing import ClassVar

from retain.errors import Misconfigured, RetainError, Unavailable
from retain.json_text import read_own_json
from retain.ledgers.errors import Trouble, park
from retain.ports import Clock, ObjectSql, Row, Sql, SqlValue, Statement

SCHEMA = """
CREATE TABLE IF NOT EXISTS outbox (
  entry_id INTEGER PRIMARY KEY AUTOINCREMENT,
  tenant_id TEXT NOT NULL,
  statement TEXT NOT NULL,
  parameters TEXT NOT NULL,
  attempts INTEGER NOT NULL DEFAULT 0,
  due_at_ms INTEGER NOT NULL
)
"""
BATCH = 50
MAX_REFUSALS = 5
"""How often D1 may refuse an entry sent alone before it is put aside as failed."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class OwedStatement:
    """A statement owed to D1. A subclass has a field for each parameter of its SQL, in the SQL's order.

    NAME: what an entry is stored under. Deployed outboxes hold entries, so a statement's name and fields must
        not change.
    SQL: the statement, which is idempotent.
    """

    NAME: ClassVar[str]
    SQL: ClassVar[str]

    def values(self) -> tuple[SqlValue, ...]:
        """Return the statement's values in order."""
        return tuple(getattr(self, field.name) for field in fields(self))


def statements_of(*kinds: type[OwedStatement]) -> dict[str, str]:
    """Return the SQL of the statements by name."""
    return {kind.NAME: kind.SQL for kind in kinds}


class Outbox:
    """Entries of one instance on their way to D1.

    statements: SQL by name; every one idempotent.
    instance_key: the namespace key of the instance, for entries that are put aside.
    """

    def __init__(
        self,
        local: ObjectSql,
        remote: Sql,
        statements: Mapping[str, str],
        clock: Clock,
        instance_key: str,
        answered: Callable[[Sequence[Row]], None] = lambda _: None,
    ) -> None:
        """answered: called with what D1 returned to an entry, in the event loop turn in which the entry is removed."""
        self._local = local
        self._remote = remote
        self._statements = statements
        self._clock = clock
        self._instance_key = instance_key
        self._answered = answered
        self._one_at_a_time = asyncio.Lock()

    def add(self, tenant_id: str, owed: OwedStatement) -> None:
        """Append an entry. It commits with the other writes of the same event loop turn."""
        self._local.run(
            "INSERT INTO outbox (tenant_id, statement, parameters, due_at_ms) VALUES (?, ?, ?, ?)",
            tenant_id,
            owed.NAME,
            json.dumps(owed.values()),
            self._clock(),
        )

    def next_due_ms(self) -> int | None:
        """Return when the oldest entry is due, or None when there is no entry."""
        row = self._local.run("SELECT due_at_ms FROM outbox ORDER BY entry_id LIMIT 1").rows
        return int(row[0]["due_at_ms"]) if row else None

    async def flush(self) -> bool:
        """Write what is owed, oldest first; return True when nothing is left.

        Does not raise when D1 fails: entries stay, with a later due time. A second call while one is under way
        waits for it, so that what was owed before the call is in D1 when it returns True.
        """
        async with self._one_at_a_time:
            while True:
                rows = self._local.run("SELECT * FROM outbox ORDER BY entry_id LIMIT ?", BATCH).rows
                if not rows:
                    return True
                known = list(takewhile(lambda row: row["statement"] in self._statements, rows))
                if not known:  # written by a newer version of the code, before a rollback to this one
                    self._postpone(
                        int(rows[0]["entry_id"]), Misconfigured("no such statement", code="unknown_statement")
                    )
                    return False
                entries = [
                    (int(row["entry_id"]), self._statement(row["statement"], row["parameters"])) for row in known
                ]
                try:
                    results = await self._remote.batch([statement for _, statement in entries])
                except Unavailable as error:
                    self._postpone(entries[0][0], error)
                    return False
                except RetainError:
                    if not await self._flush_singly(entries):
                        return False
                    continue
                for result in results:
                    self._answered(result.rows)
                self._cross_out(entries[0][0], entries[-1][0])

    async def discard(self) -> None:
        """Drop what is owed, after any write under way, so that nothing arrives once this has returned."""
        async with self._one_at_a_time:
            self._local.run("DELETE FROM outbox")

    def _statement(self, name: str, parameters: str) -> Statement:
        return self._statements[name], tuple(read_own_json(parameters))

    async def _flush_singly(self, entries: list[tuple[int, Statement]]) -> bool:
        """Find the entry that D1 refuses; put it aside after `MAX_REFUSALS` so that it does not block the others."""
        for entry_id, (sql, values) in entries:
            try:
                self._answered((await self._remote.run(sql, *values)).rows)
            except RetainError as error:
                self._postpone(entry_id, error)
                row = self._local.run("SELECT * FROM outbox WHERE entry_id = ?", entry_id).rows[0]
                if isinstance(error, Unavailable) or row["attempts"] < MAX_REFUSALS:
                    return False
                if not await self._put_aside(row, error):
                    return False
            self._cross_out(entry_id, entry_id)
        return True

    async def _put_aside(self, row: Row, error: RetainError) -> bool:
        """Move a refused entry to where the daily brief counts it; return False when D1 does not accept it now."""
        try:
            await self._remote.run(
                "INSERT OR IGNORE INTO outbox_failures VALUES (?, ?, ?, ?, ?, ?, ?)",
                self._instance_key,
                row["entry_id"],
                row["tenant_id"],
                row["statement"],
                row["parameters"],
                f"{error.code}: {error.message}",
                self._clock(),
            )
        except RetainError as failure:
            _log.warning("outbox entry not put aside", extra={"entry_id": row["entry_id"], "code": failure.code})
            return False
        _log.error("outbox entry put aside", extra={"entry_id": row["entry_id"], "code": error.code})
        await park(self._remote, self._trouble(row, error))
        return True

    def _trouble(self, row: Row, error: RetainError) -> Trouble:
        agent_type, tenant_id, instance_id = self._instance_key.split(":", 2)
        return Trouble(
            "outbox",
            f"{self._instance_key}#{row['entry_id']}",
            error.code,
            self._clock(),
            tenant_id,
            agent_type,
            instance_id,
            attempts=row["attempts"],
        )

    def _cross_out(self, first: int, last: int) -> None:
        self._local.run("DELETE FROM outbox WHERE entry_id BETWEEN ? AND ?", first, last)

    def _postpone(self, entry_id: int, error: RetainError) -> None:
        """Try again after 1 s, 2 s, 4 s … at most 5 minutes."""
        row = self._local.run("SELECT attempts FROM outbox WHERE entry_id = ?", entry_id).rows[0]
        attempts = int(row["attempts"]) + 1
        due = self._clock() + min(1000 * 2 ** (attempts - 1), 300_000)
        self._local.run("UPDATE outbox SET attempts = ?, due_at_ms = ? WHERE entry_id = ?", attempts, due, entry_id)
        _log.warning("outbox waits", extra={"entry_id": entry_id, "attempts": attempts, "code": error.code})
