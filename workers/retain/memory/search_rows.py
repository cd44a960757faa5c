"""The search row and the full text of a record, which are written with it: for words, and for what ranking needs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from retain.memory.recall.preparation import PreparedRecord
from retain.memory.recall.words import indexed_text
from retain.memory.records.record import Record
from retain.ports import SqlValue, Statement

_UNCHANGED = "SELECT number FROM memory_records WHERE id = ? AND content_hash = ?"
_COLUMNS = (
    "tenant_id", "scope_id", "conversation", "position", "length", "words", "span", "terms", "names_time", "asking",
    "signature", "parts", "embedding_model",
)  # fmt: skip
_INSERT = f"INSERT INTO memory_search ({', '.join(_COLUMNS)}, number)"
_SEARCH = f"{_INSERT} SELECT {', '.join('?' * len(_COLUMNS))}, number FROM ({_UNCHANGED})"
_SEARCH_LISTED = f"""
{_INSERT} SELECT {", ".join(f"one.value ->> {place}" for place in range(len(_COLUMNS)))}, r.number
FROM json_each(?) one CROSS JOIN memory_records r
  ON r.id = one.value ->> {len(_COLUMNS)} AND r.content_hash = one.value ->> {len(_COLUMNS) + 1}
"""
_TEXT = f"INSERT INTO memory_text (content, rowid) SELECT ?, number FROM ({_UNCHANGED})"
_TEXT_LISTED = """
INSERT INTO memory_text (content, rowid) SELECT one.value ->> 0, r.number
FROM json_each(?) one CROSS JOIN memory_records r ON r.id = one.value ->> 1 AND r.content_hash = one.value ->> 2
"""
_DELETE_SEARCH = f"DELETE FROM memory_search WHERE number = ({_UNCHANGED})"
_DELETE_TEXT = f"DELETE FROM memory_text WHERE rowid = ({_UNCHANGED})"
_UNCHANGED_LISTED = """
(SELECT r.number FROM json_each(?) one CROSS JOIN memory_records r
 ON r.id = one.value ->> 0 AND r.content_hash = one.value ->> 1)
"""
LISTED_FORMS: Final[Mapping[str, str]] = {
    _DELETE_SEARCH: f"DELETE FROM memory_search WHERE number IN {_UNCHANGED_LISTED}",
    _DELETE_TEXT: f"DELETE FROM memory_text WHERE rowid IN {_UNCHANGED_LISTED}",
    _SEARCH: _SEARCH_LISTED,
    _TEXT: _TEXT_LISTED,
}
"""The statements for many rows at once (`retain.limits.listed_rows`)."""


def written_rows(record: Record, prepared: PreparedRecord, signature: str, parts: int, model: str) -> list[Statement]:
    """Return the statements that write a record's rows; they must run after the one that writes the record.

    They do nothing when the record has other content by then. parts: how many vectors it has. model: of its vectors.
    """
    place = record.utterance
    unchanged: tuple[SqlValue, ...] = (record.id, record.content_hash)
    values = (
        record.tenant_id,
        record.scope_id,
        None if place is None else place.conversation,
        None if place is None else place.position,
        prepared.length,
        len(prepared.stems),
        prepared.span,
        prepared.terms,
        int(prepared.names_time),
        prepared.asking,
        signature,
        parts,
        model,
    )
    text = indexed_text(record.tenant_id, record.scope_id, list(prepared.stems))
    return [
        (_DELETE_SEARCH, unchanged),
        (_DELETE_TEXT, unchanged),
        (_SEARCH, (*values, *unchanged)),
        (_TEXT, (text, *unchanged)),
    ]


def remove_rows(record_id: str) -> list[Statement]:
    """Return the statements that delete a record's rows; they must run before its own row is deleted."""
    where = "= (SELECT number FROM memory_records WHERE id = ?)"
    return [
        (f"DELETE FROM memory_search WHERE number {where}", (record_id,)),
        (f"DELETE FROM memory_text WHERE rowid {where}", (record_id,)),
    ]
