"""Lines that are rows of D1: read for an export, checked for an import, and written.

An import adds rows and never changes one: a row that the tenant has stays as it is.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import JsonValue

from retain.errors import InvalidInput
from retain.identifiers import ULID, check_user_id
from retain.json_text import read_json
from retain.lifecycle.transfer.kinds import ROW_KINDS, Column, RowKind
from retain.lifecycle.transfer.renaming import renamed_id
from retain.lifecycle.transfer.shapes import DatedLineShape
from retain.memory.conversations.thread import lines_in
from retain.memory.records.limits import END_OF_NUMBERS
from retain.models.attached import attached_in
from retain.namespace import Namespace
from retain.ports import Row, Sql, Statement
from retain.retention import DAY_MS

WRITTEN_BYTES = 500_000
"""Bytes of rows that one statement writes, unless one row has more."""

Cell = str | int | float | None


_READERS: Mapping[str, Callable[[Any], object]] = {
    "object": dict,
    "list": list,
    "files": lambda files: ["".join((one.id, one.name, one.media_type)) for one in attached_in(files)],
    "lines": lines_in,
    "context": lambda context: [str(one["episode_id"]) for one in dict(context).get("episodes", [])],
}
"""What reads the JSON of a column. Raises: ValueError, KeyError or TypeError for another shape."""
_NOT_ERASED = """NOT EXISTS (SELECT 1 FROM erased_users e
  WHERE e.tenant_id = new.tenant_id AND e.user_id = new.line_owner AND e.erased_at_ms >= new.line_at_ms)"""
_PLACE = re.compile(r"rows\.([a-z_]{1,20})\.([A-Za-z0-9_=-]{0,2800})")


@dataclass(frozen=True, slots=True)
class RowPlace:
    """A position among the rows: after the row with these keys, or before a kind's first one. str() gives a cursor."""

    kind: str
    after: tuple[Cell, ...] = ()

    def __str__(self) -> str:
        keys = base64.urlsafe_b64encode(json.dumps(self.after).encode()).decode() if self.after else ""
        return f"rows.{self.kind}.{keys}"

    @staticmethod
    def parse(cursor: str) -> RowPlace | None:
        """Return the position that a cursor names, None for a cursor of other lines. Raises: InvalidInput."""
        found = _PLACE.fullmatch(cursor)
        if found is None:
            return None
        kind = ROW_KINDS.get(found[1])
        try:
            keys = read_json(base64.urlsafe_b64decode(found[2]).decode()) if found[2] else []
        except ValueError:
            keys = None
        if kind is None or not isinstance(keys, list) or len(keys) not in (0, len(kind.keys)):
            raise InvalidInput("the cursor is not valid", code="invalid_cursor")
        if not all(isinstance(key, str | int | float) for key in keys):
            raise InvalidInput("the cursor is not valid", code="invalid_cursor")
        return RowPlace(kind.name, tuple(keys))

    @property
    def next_kind(self) -> RowPlace | None:
        """Where the next kind begins, None after the last one."""
        names = list(ROW_KINDS)
        place = names.index(self.kind) + 1
        return RowPlace(names[place]) if place < len(names) else None


class RowLineShape(DatedLineShape):
    """A line of one of the kinds in `ROW_KINDS`. row: its columns."""

    kind: str
    row: dict[str, JsonValue]


@dataclass(frozen=True, slots=True)
class RowLine:
    """A row, with ids for the importing tenant. number: the line's, from 1. owner: the user whose it is."""

    number: int
    kind: str
    owner: str | None
    at_ms: int
    cells: tuple[Cell, ...]


async def row_page(
    sql: Sql, tenant_id: str, place: RowPlace, now_ms: int, *, rows: int, limit_bytes: int
) -> tuple[list[Mapping[str, object]], RowPlace | None]:
    """Return the content of a page of a kind's lines, and where the next page begins, None at the end of the kind.

    rows, limit_bytes: most rows, and after how many bytes of them the page ends.
    """
    kind = ROW_KINDS[place.kind]
    found = (await sql.run(_page_query(kind, place), tenant_id, *place.after, rows, limit_bytes)).rows
    lines = [_content(kind, row, now_ms) for row in found]
    if not found or (len(found) == found[0]["line_count"] and len(found) < rows):
        return lines, None
    return lines, RowPlace(place.kind, tuple(found[-1][key] for key in kind.keys))


def _page_query(kind: RowKind, place: RowPlace) -> str:
    keys = ", ".join(f"t.{key}" for key in kind.keys)
    size = " + ".join(f"COALESCE(length(CAST(t.{name} AS BLOB)), 0)" for name in kind.columns)
    after = f"AND ({keys}) > ({', '.join('?' * len(kind.keys))})" if place.after else ""
    table, owner, order = kind.table, "t", keys
    if kind.listed is not None:
        first, *others = kind.keys
        table, owner = f"{kind.listed} listed CROSS JOIN {table}", "listed"
        order = ", ".join((f"listed.{first}", *(f"t.{key}" for key in others)))
        after = f"AND t.{first} = listed.{first} {after}" + (f" AND listed.{first} >= ?2" if after else "")
    page = (
        f"SELECT t.*, {kind.owner} AS line_owner, {kind.at_ms or 'NULL'} AS line_at_ms, {size} AS line_bytes"
        f" FROM {table} t WHERE {owner}.tenant_id = ? {after} {kind.condition} ORDER BY {order} LIMIT ?"
    )
    return (
        f"SELECT t.* FROM (SELECT t.*, COUNT(*) OVER () AS line_count,"
        f" SUM(t.line_bytes) OVER (ORDER BY {keys}) - t.line_bytes AS line_from FROM ({page}) t) t"
        f" WHERE t.line_from < ? ORDER BY {keys}"
    )


def _content(kind: RowKind, row: Row, now_ms: int) -> Mapping[str, object]:
    at_ms = now_ms if row["line_at_ms"] is None else int(row["line_at_ms"])
    return {"owner": row["line_owner"], "at_ms": at_ms, "row": {name: row[name] for name in kind.columns}}


def read_row_line(number: int, value: Mapping[str, object], tenant_id: str, latest_ms: int) -> RowLine:
    """Return a line of a kind in `ROW_KINDS`, checked. What the row says of its owner and time counts before the line.

    Raises: InvalidInput, also for a time in the future; ValidationError.
    """
    read = RowLineShape.model_validate(value)
    kind = ROW_KINDS[read.kind]
    row = {**(kind.added or {}), **read.row}
    unknown = sorted(set(row) ^ set(kind.columns))
    if unknown:
        raise InvalidInput(f"a {kind.name} has other fields: {', '.join(unknown)}", code="invalid_line")
    cells = tuple(
        _cell(name, column, row[name], kind, read.tenant, tenant_id, latest_ms) for name, column in kind.columns.items()
    )
    user_id = row.get("user_id") or read.owner
    at_ms = next((at for name in kind.dating if isinstance(at := row[name], int)), read.at_ms)
    return RowLine(
        number, kind.name, None if user_id is None else check_user_id(user_id), min(at_ms, read.at_ms), cells
    )


def _cell(
    name: str, column: Column, value: object, kind: RowKind, source_tenant: str, tenant_id: str, latest_ms: int
) -> Cell:
    """Return a column's value for the importing tenant. Raises: InvalidInput."""
    if value is None and column.endswith("?"):
        return None
    allowed = (kind.values or {}).get(name)
    if allowed is not None and value not in allowed:
        raise InvalidInput(f"{name} must be one of {', '.join(map(str, allowed))}", code="invalid_line")
    if name == "user_id":
        return check_user_id(value)
    plain = column.removesuffix("?")
    if plain in ("whole", "time", "day") and type(value) is int and 0 <= value < END_OF_NUMBERS:
        if value * {"whole": 0, "time": 1, "day": DAY_MS}[plain] > latest_ms:
            raise InvalidInput(f"its {name} is in the future", code="invalid_line")
        return value
    if plain in ("real", "share") and type(value) in (int, float):
        number = float(str(value))
        if plain == "real" or 0 <= number <= 1:
            return number
    if isinstance(value, str):
        if plain in ("id", "named") and (plain == "named" or ULID.fullmatch(value.partition(".")[0])):
            return moved_id(value, source_tenant, tenant_id)
        if plain == "space":
            return moved_space(value, source_tenant, tenant_id)
        if plain == "text" or (plain in _READERS and _is_read(value, plain)):
            return value
    raise InvalidInput(f"{name} is not valid in a {kind.name}", code="invalid_line")


def moved_id(value: str, source_tenant: str, tenant_id: str) -> str:
    """Return the id that a row has in another tenant: a ULID, and what follows it after a dot, or a name as it is."""
    head, dot, rest = value.partition(".")
    if ULID.fullmatch(head) is None:
        return value
    return renamed_id(head, source_tenant, tenant_id) + dot + rest


def moved_space(value: str, source_tenant: str, tenant_id: str) -> str:
    """Return a namespace key in another tenant. Raises: InvalidInput."""
    space = Namespace.parse(value)
    if space.tenant_id != source_tenant:
        raise InvalidInput("the namespace belongs to another tenant", code="invalid_line")
    return str(Namespace(space.service, tenant_id, space.session_id))


def _is_read(text: str, what: str) -> bool:
    """Return whether a text is JSON that can be read as what its column has."""
    try:
        value = read_json(text)
        _READERS[what](value)
    except (ValueError, KeyError, TypeError):
        return False
    return isinstance(value, dict if what in ("object", "context") else list)


def writing(lines: Sequence[RowLine], tenant_id: str, *, include_erased: bool) -> list[Statement]:
    """Return the statements that add the rows; each returns a row for each that it added.

    include_erased: also what was a user's before their erasure, which may have begun since the lines were compared with it.
    """
    statements: list[Statement] = []
    for name, kind in ROW_KINDS.items():
        rows = [(*line.cells, line.owner, line.at_ms) for line in lines if line.kind == name]
        parts = [[row] for row in rows] if kind.counted else _parts(rows)
        insert = _insert(kind, kind.needs if include_erased else f"{kind.needs} AND {_NOT_ERASED}")
        statements += [(insert, (json.dumps(part), tenant_id)) for part in parts]
    return statements


def _insert(kind: RowKind, needs: str) -> str:
    names = (*kind.columns, "line_owner", "line_at_ms")
    cells = {name: f"json_extract(value, '$[{place}]')" for place, name in enumerate(names)}
    picked = ", ".join(f"{cell} AS {name}" for name, cell in cells.items())
    written = ", ".join((kind.written or {}).get(name, "?").replace("?", f"new.{name}") for name in kind.columns)
    return (
        f"INSERT INTO {kind.table} (tenant_id, {', '.join(kind.columns)})"
        f" SELECT new.tenant_id, {written} FROM (SELECT ?2 AS tenant_id, {picked} FROM json_each(?1)) new"
        f" WHERE {needs} ON CONFLICT DO NOTHING RETURNING 1 AS added"
    )


def _parts(rows: Iterable[tuple[Cell, ...]]) -> list[list[tuple[Cell, ...]]]:
    """Return the rows in parts that one statement can take."""
    parts: list[list[tuple[Cell, ...]]] = []
    size = 0
    for row in rows:
        length = sum(len(str(cell).encode()) for cell in row)
        if not parts or size + length > WRITTEN_BYTES:
            parts.append([])
            size = 0
        parts[-1].append(row)
        size += length
    return parts
