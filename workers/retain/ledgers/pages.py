"""Pages of a ledger: conditions, an order that an index has, and a cursor that names the last entry."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from retain.errors import InvalidInput
from retain.json_text import read_strict_json
from retain.ports import Row, Sql, SqlValue, Statement

Entry = TypeVar("Entry")
MAX_CURSOR_CHARACTERS = 2_048


@dataclass(frozen=True, slots=True)
class Look:
    """What a page shows. order: columns that together identify a row. conditions: in SQL, with their values in `values`."""

    table: str
    order: tuple[str, ...]
    newest_first: bool = False
    conditions: tuple[str, ...] = ()
    values: tuple[SqlValue, ...] = ()

    def where(self, condition: str, *values: SqlValue) -> Look:
        """Return the look with one more condition."""
        return replace(self, conditions=(*self.conditions, condition), values=(*self.values, *values))

    def equal(self, wanted: Mapping[str, SqlValue]) -> Look:
        """Return the look at rows with these values in these columns; None stands for any value."""
        look = self
        for column, value in wanted.items():
            look = look if value is None else look.where(f"{column} = ?", value)
        return look

    def between(self, column: str, since_ms: int | None, until_ms: int | None) -> Look:
        """Return the look at rows from one time up to, and without, another."""
        look = self if since_ms is None else self.where(f"{column} >= ?", since_ms)
        return look if until_ms is None else look.where(f"{column} < ?", until_ms)

    def in_order(self, rows: Sequence[Row]) -> list[Row]:
        """Return rows in the order."""
        return sorted(rows, key=lambda row: [row[column] for column in self.order], reverse=self.newest_first)

    def statement(self, limit: int, after: tuple[SqlValue, ...] | None) -> Statement:
        """Return the statement for up to `limit` rows after the one with these values in the columns of the order."""
        look, step, way = self, *(("<", " DESC") if self.newest_first else (">", ""))
        if after is not None:
            look = self.where(f"({', '.join(self.order)}) {step} ({', '.join('?' * len(after))})", *after)
        where = f" WHERE {' AND '.join(look.conditions)}" if look.conditions else ""
        order = ", ".join(f"{column}{way}" for column in self.order)
        return f"SELECT * FROM {self.table}{where} ORDER BY {order} LIMIT ?", (*look.values, limit)  # noqa: S608


@dataclass(frozen=True, slots=True)
class EntryPage(Generic[Entry]):
    """Entries of a ledger. cursor: of the next page, None at the end."""

    entries: list[Entry]
    cursor: str | None


async def entry_page(
    sql: Sql, look: Look, limit: int, cursor: str | None, read: Callable[[Row], Entry]
) -> EntryPage[Entry]:
    """Return a page. Raises: InvalidInput (code `invalid_cursor`); Unavailable."""
    after = None if cursor is None else _position(cursor, len(look.order))
    statement, values = look.statement(limit + 1, after)
    rows = look.in_order((await sql.run(statement, *values)).rows)  # of several databases, each in order
    more = len(rows) > limit
    following = json.dumps([rows[limit - 1][column] for column in look.order]) if more else None
    return EntryPage([read(row) for row in rows[:limit]], following)


def _position(cursor: str, columns: int) -> tuple[SqlValue, ...]:
    try:
        position = read_strict_json(cursor[:MAX_CURSOR_CHARACTERS])
    except ValueError:
        position = None
    if (
        not isinstance(position, list)
        or len(position) != columns
        or any(isinstance(value, bool) or not isinstance(value, str | int) for value in position)
        or any(isinstance(value, int) and abs(value) >= 2**53 for value in position)
    ):
        raise InvalidInput("the cursor is not valid", code="invalid_cursor")
    return tuple(position)
