"""Import: the lines of an export become memories of a tenant, with their events and so with their history.

A record's events are united with those that the tenant has, and the record is the fold of all of them: importing a line
again changes nothing. A record whose content its scope has already under another id is left out as a duplicate.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from retain.errors import Conflict, RetainError, Unavailable
from retain.lifecycle.stores import Stores
from retain.lifecycle.transfer.lines import RecordLine, ScopeLine, read_lines
from retain.lifecycle.transfer.plan import ImportPlan, plan_import
from retain.memory.indexer import Indexed, Indexer, remove_rows
from retain.memory.records.rows import append_event, remove_record, write_record
from retain.ports import Sql
from retain.tenants.history import Change, HistoryEntry

MAX_TRIES = 5
"""How often an import decides again because its records changed meanwhile."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Imported:
    """What an import did. duplicates: records that their scope has under another id, left out."""

    scopes: int
    created: int
    changed: int
    unchanged: int
    duplicates: int
    events: int


class _MeanwhileChanged(Exception):
    """The tenant's records are no longer those that the vectors were written for."""


async def import_lines(stores: Stores, tenant_id: str, text: str) -> Imported:
    """Import at most 500 lines, all of them or none. Idempotent.

    Raises: InvalidInput (code `invalid_line`, naming the line), LimitExceeded; Conflict (code `content_taken`) when two
        records of a scope would have the same content; Unavailable, after which the call may be repeated.
    """
    lines = read_lines(text, tenant_id)
    for _ in range(MAX_TRIES):
        try:
            return await _import(stores, tenant_id, lines)
        except _MeanwhileChanged:
            continue
    raise Unavailable("the memories kept changing; try again", code="contended")


async def _import(stores: Stores, tenant_id: str, lines: Sequence[ScopeLine | RecordLine]) -> Imported:
    indexer = stores.indexer()
    plan = await plan_import(stores.sql, tenant_id, lines)
    records = [step.after for step in plan.acting if step.after is not None]
    indexed = dict(zip([record.id for record in records], await indexer.read(records), strict=True)) if records else {}
    subjects = [step.subject for step in plan.acting if step.subject is not None]
    meant = {step.before.id: step.before.content for step in plan.acting if step.before is not None}
    parts = await _parts(stores.sql, [record.id for record in subjects])
    vectors = {record_id: len(one.vectors) for record_id, one in indexed.items()}
    owed = [
        indexer.owe(
            one,
            max(parts.get(one.id, 0), vectors.get(one.id, 0)),
            changed=meant.get(one.id, one.content) != one.content,
        )
        for one in subjects
    ]

    async def decide() -> Change | None:
        now = await plan_import(stores.sql, tenant_id, lines)
        if now.steps != plan.steps:
            raise _MeanwhileChanged
        return _change(indexer, tenant_id, now, indexed)

    await stores.sql.batch(owed)
    try:
        await indexer.write([(record, indexed[record.id]) for record in records])
        await stores.history().transact(tenant_id, decide)
    except Conflict as error:
        await _settle(indexer, [one.id for one in subjects])
        raise Conflict("two memories of a scope would have the same content", code="content_taken") from error
    except (RetainError, _MeanwhileChanged):
        await _settle(indexer, [one.id for one in subjects])
        raise
    await _settle(indexer, [step.before.id for step in plan.acting if step.before is not None])
    return Imported(
        scopes=len(plan.scopes),
        created=sum(step.before is None for step in plan.acting),
        changed=sum(step.before is not None for step in plan.acting),
        unchanged=len(plan.steps) - len(plan.acting),
        duplicates=plan.duplicates,
        events=sum(len(step.events) for step in plan.acting),
    )


def _change(indexer: Indexer, tenant_id: str, plan: ImportPlan, indexed: Mapping[str, Indexed]) -> Change | None:
    """Return the statements and entries of the plan: first what frees a content, then what takes one."""
    statements = list(plan.scopes)
    entries: list[HistoryEntry] = []
    for step in plan.acting:
        for event in step.events:
            written = append_event(tenant_id, event)
            statements += written.statements
            entries.append(written.entry)
        if step.after is None and step.before is not None:
            statements += [*remove_rows(step.before.id), remove_record(step.before.id)]
    for step in sorted(plan.acting, key=lambda step: step.before is None):
        if step.after is not None:
            statements += [write_record(step.after), *indexer.rows(step.after, indexed[step.after.id])]
            if step.before is None:
                statements.append(indexer.sent(step.after))
    return Change(statements, entries) if statements else None


async def _parts(sql: Sql, record_ids: Sequence[str]) -> dict[str, int]:
    rows = (
        await sql.run(
            "SELECT r.id, s.parts FROM memory_records r JOIN memory_search s ON s.number = r.number"
            " WHERE r.id IN (SELECT value FROM json_each(?))",
            json.dumps(record_ids),
        )
    ).rows
    return {row["id"]: int(row["parts"]) for row in rows}


async def _settle(indexer: Indexer, record_ids: Sequence[str]) -> None:
    """Make the vector index agree now if that works, else leave it to the reconciler."""
    try:
        await indexer.settle_all(record_ids, still_fresh=frozenset(record_ids))
    except RetainError as error:
        _log.warning("vector index not settled", extra={"records": len(record_ids), "code": error.code})
