"""Faults that are planted in the product one at a time, to prove that the machine finds each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from retain.ingest import learning
from retain.lifecycle import consolidation, reindexing
from retain.lifecycle.erasure import subject
from retain.lifecycle.reindexing import IndexJob, Reindexing
from retain.lifecycle.transfer.erased import KnownErasures
from retain.memory import scope, search_rows, semantic
from retain.memory.indexer import Indexer
from retain.memory.recall.candidates import TextIndex, Visible
from retain.memory.records import derived, listing, supersession
from retain.memory.records.events import KnownRecord, fold
from retain.memory.records.record import Record
from retain.memory.records.rows import event_of, write_record
from retain.memory.records.supersession import Supersession
from retain.memory.scope import Scope, View
from retain.ports import Sql, SqlValue, Statement

Plant = Callable[[pytest.MonkeyPatch], None]
_NOTHING: Statement = ("SELECT 1", ())


def _whole(place: Any, column: str) -> tuple[str, tuple[SqlValue, SqlValue]]:
    return "?2 = ?2", (place.tenant_id, place.scope_id)


def view_has_a_stranger(patch: pytest.MonkeyPatch) -> None:
    """Whoever recalls sees what all agents may know of one user."""
    nodes: Callable[[View], tuple[Scope, ...]] = vars(View)["nodes"].fget

    def more(self: View) -> tuple[Scope, ...]:
        stranger = Scope(self.tenant_id, user_id="ann")
        return (*(node for node in nodes(self) if node != stranger), stranger)

    patch.setattr(View, "nodes", property(more))


def get_ignores_scope(patch: pytest.MonkeyPatch) -> None:
    """A record is read by its id from anywhere in the tenant."""
    patch.setattr(semantic, "holding", _whole)


def list_ignores_scope(patch: pytest.MonkeyPatch) -> None:
    """A list has the records of the whole tenant."""
    patch.setattr(listing, "holding", _whole)
    patch.setattr(listing, "scopes_of", lambda _: "SELECT scope_id FROM scopes WHERE tenant_id = ?1 AND ?2 = ?2")


def users_share_a_scope(patch: pytest.MonkeyPatch) -> None:
    """The digest of a user's scope leaves out the user."""
    digest = scope._digest
    patch.setattr(scope, "_digest", lambda agent, name: digest(agent, "" if name in ("ann", "bob") else name))


def supersession_skips_claims(patch: pytest.MonkeyPatch) -> None:
    """Of several claims only the span from the first one counts."""
    for module in (supersession, derived):
        patch.setattr(module, "claims_of", lambda record: ((record.valid_from_ms, record.valid_to_ms),))


def deleted_facts_still_replace(patch: pytest.MonkeyPatch) -> None:
    """A fact that is deleted leaves the others as they are."""

    async def nothing(self: Supersession, *records: Record) -> None: ...

    patch.setattr(Supersession, "remove", nothing)


def edit_not_recorded(patch: pytest.MonkeyPatch) -> None:
    """An edit changes the record without an event."""

    async def edit(self: Supersession, known: KnownRecord, event: Any) -> KnownRecord:
        record, following = known.after(event)
        self.parts.append(write_record(record))
        self.changes[record.id] = known.record, record
        return KnownRecord(record, following.event_id)

    patch.setattr(Supersession, "edit", edit)


def person_is_overruled(patch: pytest.MonkeyPatch) -> None:
    """What a person closed, an agent reopens."""

    async def no(self: Supersession, record: Record) -> bool:
        return False

    patch.setattr(Supersession, "_is_closed_by_person", no)


def expiry_is_ignored(patch: pytest.MonkeyPatch) -> None:
    """Recall finds what has expired until the daily work deletes it."""
    where = Visible.where

    def lax(self: Visible, texts: TextIndex | None = None) -> tuple[str, tuple[SqlValue, ...]]:
        text, values = where(self, texts)
        return text.replace("r.expires_at_ms > ?", "r.expires_at_ms > ? - 1000000"), values

    patch.setattr(Visible, "where", lax)


def rules_merge_too_much(patch: pytest.MonkeyPatch) -> None:
    """The daily work closes duplicates whose metadata differ."""
    key = consolidation._plain
    patch.setattr(consolidation, "likeness", lambda record: f"{record.scope_id} {key(record.content)}")


def import_ignores_erasures(patch: pytest.MonkeyPatch) -> None:
    """An import brings back what was erased."""
    patch.setattr(KnownErasures, "has_record", lambda self, stored, user_id: False)


def reindex_resurrects(patch: pytest.MonkeyPatch) -> None:
    """A reindexing makes records of the events of deleted ones."""
    advance = Reindexing.advance

    async def resurrecting(self: Reindexing, tenant_id: str) -> IndexJob:
        sql: Sql = self._stores.sql
        lost = "SELECT * FROM memory_events WHERE tenant_id = ? AND record_id NOT IN (SELECT id FROM memory_records)"
        events: dict[str, list[Any]] = {}
        for row in (await sql.run(f"{lost} ORDER BY event_id", tenant_id)).rows:
            events.setdefault(row["record_id"], []).append(event_of(row))
        records = [fold(one for one in own if one.kind != "deleted") for own in events.values()]
        for record in records:
            if record is not None:
                await sql.batch([write_record(record)])
        return await advance(self, tenant_id)

    patch.setattr(reindexing.Reindexing, "advance", resurrecting)


def erasure_leaves_words(patch: pytest.MonkeyPatch) -> None:
    """An erasure leaves the words of deleted texts in the blocks of the full-text index."""

    async def nothing(sql: Sql) -> None: ...

    patch.setattr(subject, "purge_words", nothing)


def erasure_forgets_metadata(patch: pytest.MonkeyPatch) -> None:
    """An erasure by mention does not read metadata."""
    named = subject._named

    def blind(job: Any, fields: Mapping[str, Any]) -> bool:
        return named(job, {name: value for name, value in fields.items() if name != "metadata"})

    patch.setattr(subject, "_named", blind)


def debts_are_lost(patch: pytest.MonkeyPatch) -> None:
    """No debt to the vector index is recorded, so a crash between the stores leaves them different."""
    patch.setattr(Indexer, "owe", lambda self, record, parts, *, changed=False: _NOTHING)


def vectors_are_left(patch: pytest.MonkeyPatch) -> None:
    """The vectors of deleted records stay."""

    async def nothing(self: Indexer, owed: Sequence[Any], kept: Mapping[str, int]) -> None: ...

    patch.setattr(Indexer, "_delete_surplus", nothing)


def search_rows_are_left(patch: pytest.MonkeyPatch) -> None:
    """The search rows of deleted records stay."""
    rows = search_rows.remove_rows
    patch.setattr("retain.memory.semantic.remove_rows", lambda record_id: rows(record_id)[1:])


def ingest_forgets_when(patch: pytest.MonkeyPatch) -> None:
    """Ingest stores each fact as valid from the beginning of time, not from when it was stated."""
    record_of = learning._record_of
    patch.setattr(learning, "_record_of", lambda one: record_of(replace(one, at_ms=1)))


def import_skips_reconciling(patch: pytest.MonkeyPatch) -> None:
    """Imported facts are written without regard to those that the tenant has."""

    async def nothing(self: Supersession, known: Any, removed: Any) -> None: ...

    patch.setattr(Supersession, "reconcile", nothing)


PLANTED: tuple[Plant, ...] = (
    view_has_a_stranger,
    get_ignores_scope,
    list_ignores_scope,
    users_share_a_scope,
    supersession_skips_claims,
    deleted_facts_still_replace,
    edit_not_recorded,
    person_is_overruled,
    expiry_is_ignored,
    rules_merge_too_much,
    import_ignores_erasures,
    reindex_resurrects,
    erasure_leaves_words,
    erasure_forgets_metadata,
    debts_are_lost,
    vectors_are_left,
    search_rows_are_left,
    ingest_forgets_when,
    import_skips_reconciling,
)
