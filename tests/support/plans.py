"""How SQLite plans each statement that the product runs in host tests: by an index, inside one tenant, and not all of it.

Every table of D1 with a column `tenant_id` has rows of tenants. A statement never reads such a table whole, and finds its
rows by the tenant, or by an id that leads to them from a row that was found by the tenant. A statement that is given ids,
and has no limit, does not read all rows of the tenant. `excused_plans` has the statements that may do otherwise.
"""

from __future__ import annotations

import re
import sqlite3
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from types import FrameType

import retain.host.sql
from retain.host.connection import execute, open_database
from retain.ports import SqlResult, SqlValue
from tests.support.excused_plans import ONE_EACH, may_cross_tenants, may_follow_id, may_read_whole
from tools.paths import ROOT

_IDS = frozenset(
    {"attachment_id", "audit_id", "decision_id", "episode_id", "error_id", "event_id", "hash", "id", "job_id"}
    | {"key_id", "message_id", "move_id", "number", "object_key", "receipt_id", "record_id", "rowid", "run_id"}
    | {"schedule_id", "scratch_id", "upload_id", "vector_id"}
)
"""Columns whose values each belong to one tenant."""
_TENANTS = frozenset({"tenant_id", "instance_key", "namespace_key"})
"""Columns that name the tenant, alone or with what is in it."""
_STEP = re.compile(
    r"(?P<how>SCAN|SEARCH) (?P<label>\w+)(?: USING (?P<automatic>AUTOMATIC )?(?:PARTIAL )?(?:COVERING )?"
    r"(?:INDEX (?P<index>\w+)|(?:INTEGER )?PRIMARY KEY))?(?: \((?P<by>.*)\))?"
)
_PART = re.compile(r"(?:CO-ROUTINE|MATERIALIZE) (\w+)")
_HINTS = re.compile(
    r"\bINDEXED BY \w+|\bNOT INDEXED\b|\+\s*(?=(?:\w+\.)?tenant_id\b)"
    r"|(?<=ON CONFLICT)\s*\([^)]*\)(?:\s*WHERE\b.*?(?=\bDO\b))?",
    re.IGNORECASE | re.DOTALL,
)
"""What only the real schema has an index for, or what keeps the planner from taking one."""
_GIVEN = re.compile(
    r"^(?!.* LIMIT ).*(?:\bIN \(SELECT (?:\w+\.)?value(?: ->> 0)? FROM json_each\(|\bjson_each\(\?\d*\) \w+ JOIN\b)"
)
"""A statement that is given ids or other keys. The planner takes an index of the tenant for it if there is any, since it
does not know how many rows a tenant has. `+tenant_id`, CROSS JOIN or INDEXED BY keep it from that.
"""


class UnplannedRead(AssertionError):
    """A statement reads a table of tenants' rows whole, or rows of more than one tenant."""


@dataclass(frozen=True, slots=True)
class Step:
    """A step of a plan that reads rows of tenants. by: what an index finds them by. whole: whether it reads all of them."""

    text: str
    table: str
    by: str
    whole: bool

    @property
    def of_tenant(self) -> bool:
        """Whether the tenant is among what finds the rows."""
        return any(f"{column}=?" in self.by for column in _TENANTS)

    @property
    def of_id(self) -> bool:
        """Whether an id finds them."""
        return self.by.partition("=?")[0] in _IDS


class Plans:
    """A copy of the schema of a database, and a bare one in which only the tenant and ids find rows.

    There the tenant is the key of each table, so that the planner takes it wherever it is a condition, and an id only
    elsewhere. That a tenant has more than one row does not matter: both are empty and only asked for plans. The database
    itself is not: a plan must not change what a test sees.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._whole, self._bare = _in_memory(), _in_memory()
        self._bare.execute("PRAGMA automatic_index = OFF")
        self._tables: list[str] = []
        self._partial: set[str] = set()
        for kind, name, sql in connection.execute(_SCHEMA).fetchall():
            columns = {column: type_ for _, column, type_, *_ in connection.execute(f"PRAGMA table_info({name})")}
            if kind == "table" and "tenant_id" in columns:
                self._tables.append(name)
                self._partial.update(index[1] for index in connection.execute(f"PRAGMA index_list({name})") if index[4])
                self._copy(name, columns if "WITHOUT ROWID" in sql else {**columns, "rowid": "INTEGER"})
            elif kind != "index":
                self._bare.execute(sql)
            self._whole.execute(sql)
        self._named = re.compile(rf"\b({'|'.join(self._tables)})\b(?:\s+(?:AS\s+)?(\w+))?")

    def _copy(self, table: str, columns: Mapping[str, str]) -> None:
        typed = ", ".join(f"{name} {type_}" for name, type_ in columns.items())
        self._bare.execute(f"CREATE TABLE {table} ({typed}, PRIMARY KEY (tenant_id)) WITHOUT ROWID")
        for column in sorted((_IDS | _TENANTS).intersection(columns)):
            self._bare.execute(f"CREATE INDEX {table}_by_{column} ON {table} ({column})")

    def faults(self, sql: str, parameters: int) -> list[str]:
        """Return what is wrong with the plan of a statement and not excused."""
        text = " ".join(sql.split())
        steps = [*self._steps(self._whole, sql, parameters)]
        found = [
            f"it reads {each.table} whole: {each.text}"
            for each in steps
            if each.whole and not may_read_whole(text, each.table)
        ]
        if _GIVEN.search(text):
            found += [
                f"it is given what it looks for, and reads all of the tenant's: {each.text}"
                for each in steps
                if each.by == "tenant_id=?" and each.table not in ONE_EACH
                if not any(index in each.text for index in self._partial)
            ]
        if may_cross_tenants(text):
            return found
        bare = [*self._steps(self._bare, _HINTS.sub("", sql), parameters)]
        inside = any(each.of_tenant for each in bare)
        for each in bare:
            led = each.of_id and (inside or may_follow_id(text, each.table))
            if not (each.of_tenant or led):
                found.append(f"it reads {each.table} without the tenant: {each.text}")
        return found

    def _steps(self, connection: sqlite3.Connection, sql: str, parameters: int) -> Iterator[Step]:
        rows = connection.execute(f"EXPLAIN QUERY PLAN {sql}", (None,) * parameters).fetchall()
        parts = {(found[1], parent) for _, parent, _, text in rows if (found := _PART.match(text))}
        names = {label or name: name for name, label in self._named.findall(sql)} | {
            name: name for name in self._tables
        }
        of_parts = {label for part, _ in parts for label in re.findall(rf"\b{part}\s+(?:AS\s+)?(\w+)", sql)}
        for _, parent, _, text in rows:
            step = _STEP.match(text)
            if step is None or step["label"] not in names or "VIRTUAL TABLE" in text:
                continue
            label, index = step["label"], step["index"]
            if index is None and step["how"] == "SCAN" and ((label, parent) in parts or label in of_parts):
                continue  # it reads what a part of the statement has found
            whole = step["automatic"] is not None or (step["how"] == "SCAN" and index not in self._partial)
            yield Step(text, names[label], step["by"] or "", whole)


# Without triggers, except those of views. Tables that a virtual table makes are not made again.
_SCHEMA = """
SELECT m.type, m.name, m.sql FROM sqlite_master m JOIN pragma_table_list l ON l.name = m.tbl_name AND l.schema = 'main'
WHERE m.sql IS NOT NULL AND m.name NOT LIKE 'sqlite_%' AND l.type <> 'shadow'
  AND (m.type <> 'trigger' OR m.sql LIKE '%INSTEAD OF%')
ORDER BY m.type = 'trigger', m.type = 'view', m.type = 'index', m.rowid
"""
_PASSED_ON = frozenset({"run", "batch"})
"""Functions of `Sql` that pass on what others ask for."""
_judged: set[str] = set()
_faults: dict[str, str] = {}
_kept: list[Plans] = []


def hold_statements() -> None:
    """Judge what the product runs on the host's D1 in this process, from now on. Each statement is planned once."""
    retain.host.sql.execute = _held  # type: ignore[attr-defined]


def check_statements() -> None:
    """Raises: UnplannedRead for what was run since the last call. Who runs a statement may catch what it raises."""
    found = "\n".join(_faults.values())
    _faults.clear()
    if found:
        raise UnplannedRead(found)


def _in_memory() -> sqlite3.Connection:
    return sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)


def _held(connection: sqlite3.Connection, sql: str, values: Sequence[SqlValue]) -> SqlResult:
    result = execute(connection, sql, values)
    if sql not in _judged and not sql.startswith("EXPLAIN") and _of_product():
        try:
            faults = _plans().faults(sql, len(values))
        except sqlite3.Error as error:  # not to be taken for the product's own
            # A table that the schema does not have is of a test.
            faults = [] if "no such table" in str(error) else [f"its plan is not known: {error}"]
        if faults:
            _faults[sql] = "\n  ".join([" ".join(sql.split()), *faults])
        else:
            _judged.add(sql)
    return result


def _of_product() -> bool:
    """Return whether the library runs a statement, and not a test that looks at what it did."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        code, frame = frame.f_code, frame.f_back
        if code.co_name in _PASSED_ON or "/tests/support/" in code.co_filename:
            continue
        if "/tests/" in code.co_filename:
            return False  # a test that is called by what it watches
        if "/workers/retain/" in code.co_filename and "/host/" not in code.co_filename:
            return True
    return False


def _plans() -> Plans:
    """Return the plans of the newest schema, made once, and without a test's connection: SQLite 3.40 may crash then."""
    if not _kept:
        with closing(open_database()) as database:
            for migration in sorted((ROOT / "migrations").glob("*.sql")):
                database.executescript(migration.read_text("utf-8"))
            _kept.append(Plans(database))
    return _kept[0]
