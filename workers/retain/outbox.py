"""The outbox of one instance: what it owes to D1, kept in its own SQLite until D1 has it.

An entry holds the name of a statement and its values, so the next version of the code understands entries that this
one wrote. Every statement is idempotent: an entry that D1 has and that was not yet deleted here is written again
without effect. Entries are written in the order in which they were added.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import count, takewhile
from types import MappingProxyType
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
ROWS = 24
"""How many entries one statement adds: a statement takes 100 values."""
MOST_CHARACTERS = 500_000
"""How much text of entries one statement for several rows of D1 takes."""
_NUL = "\\u0000"
"""SQLite ends a text that it takes out of JSON at this character, but keeps it in a value that is bound."""
MAX_REFUSALS = 5
"""How often D1 may refuse an entry sent alone before it is put aside as failed."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class OwedStatement:
    """A statement owed to D1. A subclass has a field for each parameter of its SQL, in the SQL's order.

    NAME: what an entry is stored under. Deployed outboxes hold entries, so a statement's name and fields must
        not change.
    SQL: the statement, which is idempotent.
    ALONE: False for a statement that inserts one row and neither needs another such row nor is needed by one: entries of
        such kinds that follow each other are written by one statement for each kind.
    """

    NAME: ClassVar[str]
    SQL: ClassVar[str]
    ALONE: ClassVar[bool] = True

    def values(self) -> tuple[SqlValue, ...]:
        """Return the statement's values in order."""
        return tuple(getattr(self, field.name) for field in fields(self))


def statements_of(*kinds: type[OwedStatement]) -> dict[str, str]:
    """Return the SQL of the statements by name."""
    return {kind.NAME: kind.SQL for kind in kinds}


def grouped_of(*kinds: type[OwedStatement]) -> dict[str, str]:
    """Return by name the SQL that inserts several rows at once, of the kinds that have one: from a JSON array of arrays."""
    return {kind.NAME: _for_several(kind.SQL) for kind in kinds if not kind.ALONE}


def _for_several(sql: str) -> str:
    """Return an INSERT of one row of VALUES as an INSERT of the rows of a JSON array."""
    head, _, values = sql.partition("VALUES")
    places = count()
    named = re.sub(r"\?(\d*)", lambda mark: f"(one.value ->> {int(mark[1]) - 1 if mark[1] else next(places)})", values)
    return f"{head}SELECT {named.strip()[1:-1]} FROM json_each(?) one"  # noqa: S608


@dataclass(frozen=True, slots=True)
class OwedEntries:
    """What an outbox owes to D1. attempts: of its oldest entry. due_at_ms: when that is written next; None without any."""

    entries: int
    attempts: int
    due_at_ms: int | None


class Outbox:
    """Entries of one instance on their way to D1.

    statements: SQL by name; every one idempotent. grouped: as `grouped_of`.
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
        grouped: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """answered: called with what D1 returned to an entry, in the event loop turn in which the entry is removed."""
        self._local = local
        self._remote = remote
        self._statements = statements
        self._clock = clock
        self._instance_key = instance_key
        self._answered = answered
        self._grouped = grouped
        self._one_at_a_time = asyncio.Lock()
        self._additions = 0
        self._added_elsewhere = False
        self._empty_at: int | None = None

    def add(self, tenant_id: str, *owed: OwedStatement) -> None:
        """Append entries. They commit with the other writes of the same event loop turn."""
        self._additions += 1
        now = self._clock()
        for start in range(0, len(owed), ROWS):
            some = owed[start : start + ROWS]
            values = [value for one in some for value in (tenant_id, one.NAME, json.dumps(one.values()), now)]
            rows = ", ".join(["(?, ?, ?, ?)"] * len(some))
            self._local.run(f"INSERT INTO outbox (tenant_id, statement, parameters, due_at_ms) VALUES {rows}", *values)  # noqa: S608

    def added_elsewhere(self) -> None:
        """Record that another statement wrote an entry into the table: the next flush writes it, whenever that is due."""
        self._added_elsewhere = True

    @property
    def _is_empty(self) -> bool:
        """Whether it is known without a query that there is no entry: it had none, and `add` added none since."""
        return self._empty_at == self._additions

    def next_due_ms(self) -> int | None:
        """Return when the oldest entry is due, or None when there is none that `add` or a failed flush knows of."""
        if self._is_empty:
            return None
        row = self._local.run("SELECT due_at_ms FROM outbox ORDER BY entry_id LIMIT 1").rows
        return int(row[0]["due_at_ms"]) if row else None

    def owed(self) -> OwedEntries:
        """Return how much is owed, and how far its oldest entry is."""
        if self._is_empty and not self._added_elsewhere:
            return OwedEntries(0, 0, None)
        oldest = (
            "SELECT attempts, due_at_ms, (SELECT COUNT(*) FROM outbox) AS entries FROM outbox ORDER BY entry_id LIMIT 1"
        )
        rows = self._local.run(oldest).rows
        return OwedEntries(**{name: int(value) for name, value in rows[0].items()}) if rows else OwedEntries(0, 0, None)

    async def flush(self) -> bool:
        """Write what is owed, oldest first; return True when nothing is left.

        Does not raise when D1 fails: entries stay, with a later due time. A second call while one is under way
        waits for it, so that what was owed before the call is in D1 when it returns True.
        """
        async with self._one_at_a_time:
            if self._added_elsewhere:
                self._additions, self._added_elsewhere = self._additions + 1, False
            while not self._is_empty:
                additions = self._additions
                rows = self._local.run("SELECT * FROM outbox ORDER BY entry_id LIMIT ?", BATCH).rows
                if not rows:
                    self._empty_at = additions
                    return True
                known = list(takewhile(lambda row: row["statement"] in self._statements, rows))
                if not known:  # written by a newer version of the code, before a rollback to this one
                    self._postpone(
                        int(rows[0]["entry_id"]), Misconfigured("no such statement", code="unknown_statement")
                    )
                    return False
                first, last = int(known[0]["entry_id"]), int(known[-1]["entry_id"])
                try:
                    results = await self._remote.batch(self._together(known))
                except Unavailable as error:
                    self._postpone(first, error)
                    return False
                except RetainError:
                    if not await self._flush_singly(known):
                        return False
                    continue
                for result in results:
                    if result.rows:
                        self._answered(result.rows)
                self._cross_out(first, last)
                if last == int(rows[-1]["entry_id"]) and len(rows) < BATCH:
                    self._empty_at = additions
            return True

    async def discard(self) -> None:
        """Drop what is owed, after any write under way, so that nothing arrives once this has returned."""
        async with self._one_at_a_time:
            self._local.run("DELETE FROM outbox")
            self._empty_at, self._added_elsewhere = self._additions, False

    def _together(self, rows: Sequence[Row]) -> list[Statement]:
        """Return the statements of entries: one for each, and one for the entries of each kind that may be grouped."""
        statements: list[Statement] = []
        groups: dict[str, list[str]] = {}
        characters = 0
        for row in rows:
            name, parameters = row["statement"], row["parameters"]
            may_be_grouped = name in self._grouped and _NUL not in parameters
            if not may_be_grouped or characters + len(parameters) > MOST_CHARACTERS:
                statements += self._groups(groups)
                groups, characters = {}, 0
            if may_be_grouped:
                groups.setdefault(name, []).append(parameters)
                characters += len(parameters)
            else:
                statements.append(self._statement(name, parameters))
        return statements + self._groups(groups)

    def _groups(self, groups: Mapping[str, Sequence[str]]) -> list[Statement]:
        return [
            (self._grouped[name], (f"[{','.join(several)}]",))
            if len(several) > 1
            else self._statement(name, several[0])
            for name, several in groups.items()
        ]

    def _statement(self, name: str, parameters: str) -> Statement:
        return self._statements[name], tuple(read_own_json(parameters))

    async def _flush_singly(self, rows: Sequence[Row]) -> bool:
        """Find the entry that D1 refuses; put it aside after `MAX_REFUSALS` so that it does not block the others."""
        for entry in rows:
            entry_id = int(entry["entry_id"])
            sql, values = self._statement(entry["statement"], entry["parameters"])
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
