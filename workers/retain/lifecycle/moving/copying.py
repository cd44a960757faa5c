"""Copying rows, full texts and vectors of one tenant from one database to another."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from retain.errors import Conflict, ConstraintViolated
from retain.json_text import Json, read_own_json
from retain.lifecycle.moving.moves import Move, still_moves
from retain.lifecycle.moving.relations import OF_PAGES, TEXTS, Relation
from retain.lifecycle.moving.vectors import DELETED, stale_vectors, vectors_of
from retain.limits.vectorize import MAX_GET_IDS
from retain.memory.records.vector_names import vector_id
from retain.ports import Row, Sql, Statement, VectorEntry, VectorIndex
from retain.shards.ranges import NUMBERED, Numbering

STATEMENT_BYTES = 1_000_000
"""About how many bytes of rows one statement writes: a value has at most 2 MB."""
PAGE_BYTES = 4_000_000
"""Bytes of rows after which a page ends: an isolate has 128 MB."""
COMPARED = 5000
"""Rows that are compared, and those that differ copied, at a time at most: a tenant has a scope for each user."""
UPSERTED = 500
"""Vectors that one call writes to the index, and that are in memory at once: a multiple of those that one call reads."""

_COLUMNS = """
SELECT m.name AS relation, c.name AS "column" FROM sqlite_master m CROSS JOIN pragma_table_info(m.name) c
WHERE m.type = 'table'
"""
_PARTS = """
SELECT r.id, r.scope_id, s.parts FROM json_each(?) one CROSS JOIN memory_records r ON {meet}
CROSS JOIN memory_search s ON s.number = r.number WHERE r.tenant_id = ?
"""
_OWED = """
INSERT INTO memory_outbox (record_id, tenant_id, scope_id, parts, state, at_ms, due_at_ms)
SELECT value ->> 0, ?, value ->> 1, value ->> 2, 'owed', ?, ? FROM json_each(?) WHERE true
ON CONFLICT (record_id) DO UPDATE SET state = 'owed', at_ms = excluded.at_ms, due_at_ms = excluded.due_at_ms
"""
_SENT = """
INSERT INTO memory_outbox (record_id, tenant_id, scope_id, parts, state, writers, at_ms, due_at_ms)
SELECT value ->> 0, ?, value ->> 1, value ->> 2, 'sent', 0, ?, ? FROM json_each(?) WHERE true
ON CONFLICT DO NOTHING
"""
_OWED_DOCUMENTS = """
UPDATE vector_documents SET sent_at_ms = 9007199254740991
WHERE +tenant_id = ?1 AND number IN (SELECT CAST(substr(value, 10) AS INTEGER) FROM json_each(?2))
  AND 'document.' || number || '.' || version IN (SELECT value FROM json_each(?2))
"""
# A trigger notes the removal of a document's vector when its version is written, also the same one once more: then the index
# would lose what it has to keep. And the removal of a version may have been copied before the row that replaces it.
_NOT_REMOVED = """
DELETE FROM vector_removals WHERE +tenant_id = ? AND vector_id IN (SELECT 'document.' || number || '.' || version
  FROM vector_documents WHERE number IN (SELECT value FROM json_each(?)))
"""


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two: its database and its vector index."""

    sql: Sql
    index: VectorIndex


@dataclass(slots=True)
class Copied:
    """What was copied. vectors: those that the index had; the others are owed there."""

    rows: int = 0
    vectors: int = 0
    last_vector: str | None = None


class TenantCopy:
    """Copies a tenant. Everything is idempotent: it makes the target's rows equal to the source's.

    Once the move has ended, nothing is written to the target any more: a worker that is late fails (ConstraintViolated).
    """

    def __init__(self, move: Move, source: Side, target: Side, numbering: Numbering, now_ms: int) -> None:
        """numbering: of the target."""
        self._tenant_id = move.tenant_id
        self._still_moves = still_moves(move.tenant_id, move.move_id)
        self._numbering = numbering
        self._source = source
        self._target = target
        self._now_ms = now_ms
        self._columns: dict[str, list[str]] = {}
        self.copied = Copied()

    async def page(self, relation: Relation, after: Sequence[Json] | None, limit: int) -> list[Json] | None:
        """Copy a page of a table; return where the next one begins, None at the end.

        Raises: ConstraintViolated while the target has a row that the source no longer has; Conflict (code `row_refused`)
            if another tenant has a row of the same id there; Unavailable.
        """
        rows, following = await self._page(self._source, relation, after, limit)
        await self._write(relation, rows)
        return following

    async def _page(
        self, side: Side, relation: Relation, after: Sequence[Json] | None, limit: int
    ) -> tuple[Sequence[Row], list[Json] | None]:
        """Return a page of a table, and where the next one begins, None at the end."""
        columns = (await self._columns_of_tables())[relation.name]
        text, values = relation.bounded_page(self._tenant_id, after, limit, columns, PAGE_BYTES)
        rows = (await side.sql.run(text, *values)).rows
        more = rows and (len(rows) == limit or len(rows) < rows[0]["at_count"])
        return rows, relation.position(rows[-1]) if more else None

    async def _columns_of_tables(self) -> Mapping[str, Sequence[str]]:
        if not self._columns:
            for row in (await self._source.sql.run(_COLUMNS)).rows:
                self._columns.setdefault(row["relation"], []).append(row["column"])
        return self._columns

    async def keys(self, relation: Relation, keys: Sequence[Sequence[Json]]) -> None:
        """Make the rows with these keys equal. Their vectors count as sent just now."""
        columns = (await self._columns_of_tables())[relation.name]
        while keys:
            text, values = relation.bounded_named(self._tenant_id, keys, columns, PAGE_BYTES)
            rows = (await self._source.sql.run(text, *values)).rows
            read = int(rows[-1]["at_key"]) + 1 if rows and len(rows) < rows[0]["at_count"] else len(keys)
            there = {json.dumps(relation.key(row)) for row in rows}
            await self._delete(relation, [key for key in keys[:read] if json.dumps(list(key)) not in there])
            await self._write(relation, rows, fresh=True)
            keys = keys[read:]

    async def equalise(self, relation: Relation) -> None:
        """Make a whole table equal, without the rows that only the target has: these are deleted first."""
        differing = await self._differing_keys(relation)
        for start in range(0, len(differing), COMPARED):
            await self.keys(relation, [read_own_json(key) for key in differing[start : start + COMPARED]])

    async def differing(self, relations: Sequence[Relation]) -> list[str]:
        """Return the names of tables of which the two have different numbers of rows, or scopes that count otherwise."""
        asked = [relation.comparing(self._tenant_id) for relation in relations]
        mine, theirs = await self._source.sql.batch(asked), await self._target.sql.batch(asked)
        return [
            relation.name
            for relation, one, other in zip(relations, mine, theirs, strict=True)
            if one.rows[0]["n"] != other.rows[0]["n"]
        ]

    async def _differing_keys(self, relation: Relation) -> list[str]:
        """Return the keys of the rows in which the two differ, those that only the target has first.

        Both are read in one order, page by page, and what is equal is dropped: all rows together may exceed an isolate.
        """
        digests: list[dict[str, int]] = [{}, {}]
        after: list[list[Json] | None] = [None, None]
        unread, differing = {0, 1}, list[str]()
        mine, theirs = digests
        while unread:
            for place in sorted(unread):
                side = (self._source, self._target)[place]
                rows, after[place] = await self._page(side, relation, after[place], COMPARED)
                digests[place].update((json.dumps(relation.key(row)), _digest(row)) for row in rows)
                if after[place] is None:
                    unread.remove(place)
            for key in mine.keys() & theirs.keys():
                if mine.pop(key) != theirs.pop(key):
                    differing.append(key)
        return [*theirs, *differing, *mine]

    async def _write(self, relation: Relation, rows: Sequence[Row], *, fresh: bool = False) -> None:
        if relation.name in NUMBERED:
            await self._numbering.admit(rows)
        await self._delete_vectors(await stale_vectors(self._target.sql, relation, rows))
        for some in _pieces(rows):
            statements: list[Statement] = [relation.writing(some)]
            if relation.name in TEXTS:
                statements += await self._texts(TEXTS[relation.name], [int(row["number"]) for row in some])
            if relation.name == "vector_documents":
                kept: Statement = (_NOT_REMOVED, (self._tenant_id, json.dumps([row["number"] for row in some])))
                statements = [kept, *statements, kept]
            try:
                await self._write_to_target(statements)
            except ConstraintViolated:
                text, values = relation.foreign(self._tenant_id, [relation.key(row) for row in some])
                if (await self._target.sql.run(text, *values)).rows:
                    message = f"another tenant of the target has the id of a row in {relation.name}"
                    raise Conflict(message, code="row_refused") from None
                raise
        if rows:
            self.copied.rows += len(rows)
            await self._vectors(relation, rows, fresh=fresh)

    async def _texts(self, table: str, numbers: Sequence[int]) -> list[Statement]:
        listed = json.dumps(numbers)
        found = await self._source.sql.run(
            f"SELECT rowid AS number, content FROM {table} WHERE rowid IN (SELECT value FROM json_each(?))",
            listed,
        )
        texts = json.dumps([[row["number"], row["content"]] for row in found.rows])
        return [
            (f"DELETE FROM {table} WHERE rowid IN (SELECT value FROM json_each(?))", (listed,)),
            (f"INSERT INTO {table} (rowid, content) SELECT value ->> 0, value ->> 1 FROM json_each(?)", (texts,)),
        ]

    async def _delete(self, relation: Relation, keys: Sequence[Sequence[Json]]) -> None:
        """Delete rows of the target with these keys. The vectors come first: what is left of the rows names them."""
        if not keys:
            return
        await self._delete_vectors(await vectors_of(self._target.sql, relation, self._tenant_id, keys))
        statements = [relation.deleting(self._tenant_id, keys)]
        if relation.name in TEXTS:
            numbers = json.dumps([key[0] for key in keys])
            table = TEXTS[relation.name]
            statements.append((f"DELETE FROM {table} WHERE rowid IN (SELECT value FROM json_each(?))", (numbers,)))
        await self._write_to_target(statements)

    async def _write_to_target(self, statements: Sequence[Statement]) -> None:
        await self._target.sql.batch([self._still_moves, *statements])

    async def _delete_vectors(self, ids: Sequence[str]) -> None:
        for start in range(0, len(ids), DELETED):
            await self._target.index.delete_by_ids(ids[start : start + DELETED])

    async def _vectors(self, relation: Relation, rows: Sequence[Row], *, fresh: bool) -> None:
        """Copy the vectors that belong to rows. What the source's index does not show is owed at the target."""
        if relation.name == "vector_documents":
            ids = [f"document.{row['number']}.{row['version']}" for row in rows if row["indexed"] == 1]
            missing = await self._copy_vectors(ids)
            if missing:
                await self._write_to_target([(_OWED_DOCUMENTS, (self._tenant_id, json.dumps(sorted(missing))))])
            return
        if relation.name not in ("memory_search", "memory_outbox"):
            return
        by_number = relation.name == "memory_search"
        meet = "r.number = one.value" if by_number else "r.id = one.value"
        names = [row["number"] if by_number else row["record_id"] for row in rows]
        # Of the records that the target has, so that it knows whose vectors it got if they are deleted meanwhile.
        found = (await self._target.sql.run(_PARTS.format(meet=meet), json.dumps(names), self._tenant_id)).rows
        missing = await self._copy_vectors(
            [vector_id(row["id"], part) for row in found for part in range(row["parts"])]
        )
        owed = [row for row in found if any(vector_id(row["id"], part) in missing for part in range(row["parts"]))]
        sent = [row for row in found if row not in owed and row["parts"]] if fresh else []
        for statement, which in ((_OWED, owed), (_SENT, sent)):
            if which:
                listed = json.dumps([[row["id"], row["scope_id"], row["parts"]] for row in which])
                await self._write_to_target([(statement, (self._tenant_id, self._now_ms, self._now_ms, listed))])

    async def _copy_vectors(self, ids: Sequence[str]) -> set[str]:
        """Copy vectors; return the ids of those that the source's index does not show."""
        missing = set(ids)
        for start in range(0, len(ids), UPSERTED):
            entries: list[VectorEntry] = []
            for first in range(start, min(start + UPSERTED, len(ids)), MAX_GET_IDS):
                entries += await self._source.index.get_by_ids(ids[first : first + MAX_GET_IDS])
            if not entries:
                continue
            await self._write_to_target([])  # an index cannot refuse what comes after the move's end
            await self._target.index.upsert(entries)
            missing -= {entry.id for entry in entries}
            self.copied.vectors += len(entries)
            self.copied.last_vector = entries[-1].id
        return missing


def _digest(row: Row) -> int:
    return hash(tuple(value for column, value in row.items() if column not in OF_PAGES))


def _pieces(rows: Sequence[Row]) -> list[list[Row]]:
    """Divide rows so that each piece is one statement."""
    pieces: list[list[Row]] = []
    size = STATEMENT_BYTES
    for row in rows:
        own = len(json.dumps(list(row.values())))
        if size + own > STATEMENT_BYTES:
            pieces.append([])
            size = 0
        pieces[-1].append(row)
        size += own
    return pieces
