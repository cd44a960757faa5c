"""What the victim has, byte for byte, and whether anything of it is missing or more."""

from __future__ import annotations

import re
import sqlite3
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

Rows = Mapping[str, Counter[tuple[object, ...]]]
"""The rows of each table, as `<store>/<table>`."""
_SEPARATORS = re.compile(r"[:/|]")
_NOT_DATA = re.compile(r"sqlite_sequence|d1_migrations|_cf_.*")


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
class Evidence:
    """All rows, taken while the victim was the only tenant, and in which of their columns its name is."""

    rows: Rows
    places: frozenset[tuple[str, int, int]]
    """Table, column, and which part of the value, between separators, is the victim's name."""
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


def _kind(place: tuple[str, int, int]) -> tuple[str, int, int]:
    """Return the place without which Durable Object it is in."""
    table, column, part = place
    return (table.rpartition("/")[2] if table.startswith("do:") else table, column, part)


def _places(rows: Rows, victim: str) -> Iterable[tuple[str, int, int]]:
    for table, some in rows.items():
        for row in some:
            for column, value in enumerate(row):
                for part, text in enumerate(_parts(value)):
                    if text == victim:
                        yield table, column, part


def _with(
    rows: Iterable[tuple[object, ...]], places: set[tuple[str, int, int]], victim: str
) -> list[tuple[object, ...]]:
    """Return the first rows that have the victim's name in one of these places."""
    where = {(column, part) for _, column, part in places}
    return [row for row in rows if any(_named(row, column, part, victim) for column, part in where)][:3]


def _named(row: tuple[object, ...], column: int, part: int, victim: str) -> bool:
    texts = _parts(row[column]) if column < len(row) else []
    return part < len(texts) and texts[part] == victim


def _parts(value: object) -> list[str]:
    if isinstance(value, bytes):
        value = value[:200].decode("utf-8", "replace")
    return _SEPARATORS.split(value[:200]) if isinstance(value, str) else []


def _shown(row: tuple[object, ...]) -> str:
    return repr(row)[:300]
