"""What the victim has, byte for byte, and whether anything of it is missing or more."""

from __future__ import annotations

import re
import sqlite3
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import islice

Place = tuple[str, int, "Part"]
"""Table, column, and where in the value."""
Rows = Mapping[str, Counter[tuple[object, ...]]]
"""The rows of each table, as `<store>/<table>`."""
_SEPARATORS = re.compile(r"([:/|])")
_NOT_DATA = re.compile(r"sqlite_sequence|d1_migrations|vector_writes|_cf_.*")


def rows_of(store: str, database: sqlite3.Connection) -> Rows:
    """Return every row of a database. Full-text tables are read as such, not in the tables that they are made of."""
    tables = database.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table'").fetchall()
    virtual = [name for name, sql in tables if sql.upper().startswith("CREATE VIRTUAL")]
    numbered = [name for name, sql in tables if name in virtual and "vocab" not in sql]  # rows of others have no number
    hidden = {f"{name}_{part}" for name in virtual for part in ("data", "idx", "content", "docsize", "config")}
    return {
        f"{store}/{name}": Counter(database.execute(f'SELECT rowid, * FROM "{name}"'))
        if name in numbered
        else Counter(database.execute(f'SELECT * FROM "{name}"'))
        for name, _ in tables
        if name not in hidden and not _NOT_DATA.fullmatch(name)
    }


@dataclass(frozen=True)
class Part:
    """Where in a value a name is: how many separators are before it, and those next to it, "" at the value's ends.

    `order:team-b:desk` and a user `order|team-b|desk` have it in different places: only the first is made by Retain.
    """

    number: int
    before: str
    after: str


@dataclass(frozen=True)
class Evidence:
    """All rows, taken while the victim was the only tenant, and in which of their columns its name is."""

    rows: Rows
    places: frozenset[Place]
    """Where the victim's name is."""
    victim: str

    @classmethod
    def taken(cls, rows: Rows, victim: str) -> Evidence:
        """Remember what is there."""
        return cls(rows, frozenset(_places(rows, victim)), victim)

    def changes(self, rows: Rows) -> list[str]:
        """Return what of the victim is no longer there, and what is there that was not, each in a line."""
        found: list[str] = []
        for table, before in self.rows.items():
            now = rows.get(table, Counter())
            found += [f"{table} lacks {_shown(row)}" for row in before - now]
        kinds = {_kind(place) for place in self.places}
        for table, now in rows.items():
            more = now - self.rows.get(table, Counter())
            new = {place for place in _places({table: more}, self.victim) if _kind(place) in kinds}
            if new:
                found += [
                    f"{table} has a new row of the victim: {_shown(row)}" for row in _with(more, new, self.victim)
                ]
        return found


def _kind(place: Place) -> Place:
    """Return the place without which Durable Object it is in."""
    table, column, part = place
    return (table.rpartition("/")[2] if table.startswith("do:") else table, column, part)


def _places(rows: Rows, victim: str) -> Iterable[Place]:
    for table, some in rows.items():
        for row in some:
            for column, value in enumerate(row):
                for part in _named(value, victim):
                    yield table, column, part


def _with(rows: Iterable[tuple[object, ...]], places: set[Place], victim: str) -> list[tuple[object, ...]]:
    """Return the first rows that have the victim's name in one of these places."""
    where = {(column, part) for _, column, part in places}
    having = (
        row
        for row in rows
        if any((column, part) in where for column, value in enumerate(row) for part in _named(value, victim))
    )
    return list(islice(having, 3))


def _named(value: object, victim: str) -> Iterable[Part]:
    """Yield each place in a value that has the victim's name, whole, between separators."""
    if isinstance(value, bytes):
        value = value[:200].decode("utf-8", "replace")
    if not isinstance(value, str) or victim not in value[:200]:
        return
    pieces = ["", *_SEPARATORS.split(value[:200]), ""]
    for number, text in enumerate(pieces[1:-1:2]):
        if text == victim:
            yield Part(number, pieces[2 * number], pieces[2 * number + 2])


def _shown(row: tuple[object, ...]) -> str:
    return repr(row)[:300]
