"""Import: the lines of an export become a tenant's records, with their events and so with their history, rows and items.

A record's events are merged with those that the tenant has, and the record is the fold of all of them: importing a line
again changes nothing. If the scope already has a record's content under another id, the record is skipped as a duplicate.
What was erased in the tenant is left out, unless the caller asks for it; world history has what was brought back.
Of two facts that would be valid at the same time after an import, one gives way as if both had been stored.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from retain.errors import Conflict, ConstraintViolated, RetainError, Unavailable
from retain.lifecycle.stores import Stores
from retain.lifecycle.transfer.erased import NOTHING_ERASED, erased_content
from retain.lifecycle.transfer.items import ItemLine, Items, put_items
from retain.lifecycle.transfer.lines import AnyLine, Line, RecordLine, ScopeLine, UserLine, bad_line, read_lines
from retain.lifecycle.transfer.plan import plan_import
from retain.lifecycle.transfer.remembered import RememberedReads
from retain.lifecycle.transfer.rows import RowLine, writing
from retain.memory.indexer import Indexer
from retain.memory.records.supersession import Supersession
from retain.ports import Sql, SqlResult, Statement
from retain.tenants.history import Change

MAX_TRIES = 5
"""How often an import is planned while its records keep changing."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Imported:
    """What an import did. users: profiles that it took. duplicates: skipped records whose content the scope has already.

    erased: lines that were left out, because what they have was erased in the tenant. rows, items: those that were added.
    """

    scopes: int
    users: int
    created: int
    changed: int
    unchanged: int
    duplicates: int
    events: int
    erased: int
    rows: int = 0
    items: int = 0


class _MeanwhileChanged(Exception):
    """The tenant's records are no longer those for which the vectors were written."""


async def import_lines(
    stores: Stores, tenant_id: str, text: str, *, items: Items | None = None, include_erased: bool = False
) -> Imported:
    """Import at most 500 lines. Idempotent. include_erased: bring back what was erased in the tenant.

    Of records, scopes, users and rows all are imported or none; then items one by one. items: tiered memory, without which
    there must be no lines of items.
    Raises: InvalidInput (code `invalid_line`, naming the line, also for one recorded in the future), LimitExceeded;
        Conflict (code `content_taken`) when two records of a scope would have the same content, (code `tenant_erased`);
        Unavailable, after which the call may be repeated; as `put_items`.
    """
    lines = read_lines(text, tenant_id, stores.clock())
    return await import_read(stores, tenant_id, lines, items=items, include_erased=include_erased)


async def import_read(
    stores: Stores,
    tenant_id: str,
    lines: Sequence[AnyLine],
    *,
    items: Items | None,
    include_erased: bool = False,
    guard: Callable[[], Sequence[Statement]] = list,
) -> Imported:
    """Import lines that were read. guard: statements that refuse what may have been erased meanwhile.

    Raises: as `import_lines`; ConstraintViolated by the guard.
    """
    rows = [line for line in lines if isinstance(line, RowLine)]
    of_items = [line for line in lines if isinstance(line, ItemLine)]
    if of_items and items is None:
        raise bad_line(of_items[0].number, ["there is no tiered memory to put an item into"])
    remembered = partial(_import, stores, tenant_id, _remembered(lines), guard, include_erased=include_erased)
    done = await _until_unchanged(remembered)
    if not rows and not of_items:
        return done
    erased = NOTHING_ERASED if include_erased else await erased_content(stores.sql, tenant_id)
    kept_rows, kept_items = erased.without(rows), erased.without(of_items)
    try:
        added = await stores.sql.batch([*writing(kept_rows, tenant_id, include_erased=include_erased), *guard()])
    except ConstraintViolated as error:
        await stores.sql.batch(guard())
        raise Conflict(
            "a row was refused: the tenant was erased, or the row contradicts another", code="row_refused"
        ) from error
    put = 0 if items is None else await put_items(stores, items, tenant_id, kept_items)
    left_out = len(rows) - len(kept_rows) + len(of_items) - len(kept_items)
    return replace(done, rows=sum(len(one.rows) for one in added), items=put, erased=done.erased + left_out)


def _remembered(lines: Sequence[AnyLine]) -> list[Line]:
    return [line for line in lines if isinstance(line, ScopeLine | UserLine | RecordLine)]


async def _until_unchanged(attempt: Callable[[], Awaitable[Imported]]) -> Imported:
    for _ in range(MAX_TRIES):
        try:
            return await attempt()
        except _MeanwhileChanged:
            continue
    raise Unavailable("the memories kept changing; try again", code="contended")


async def _import(
    stores: Stores,
    tenant_id: str,
    lines: Sequence[Line],
    guard: Callable[[], Sequence[Statement]],
    *,
    include_erased: bool,
) -> Imported:
    """Plan, write the owed vectors, and commit if the plan is still the same."""
    indexer = stores.indexer()
    plan = await plan_import(stores.sql, tenant_id, lines, include_erased=include_erased)
    records = plan.records
    texts = [text for step in plan.acting for text in step.earlier_texts]
    read = await indexer.read([*records, *(text.record for text in texts)]) if records else []
    indexed = {record.id: one for record, one in zip(records, read, strict=False)}
    earlier = indexer.earlier_rows(texts, read[len(records) :])
    subjects = [record.id for record in plan.subjects]
    await stores.sql.batch(plan.debts(indexer, indexed, await _parts(stores.sql, subjects)))

    debts: dict[str, Statement] = {}

    reads = RememberedReads(stores.sql)
    decided: Change | None = None

    async def decide(at_ms: int, read: Sequence[SqlResult]) -> Change | None:
        nonlocal debts, decided
        if decided is None or not reads.read_the_same(read):
            reads.forget()
            now = await plan_import(reads, tenant_id, lines, include_erased=include_erased)
            if now.steps != plan.steps:
                raise _MeanwhileChanged
            supersession = Supersession(reads, at_ms)
            await supersession.reconcile(now.known, now.removed)
            replaced = {record.id for record in now.replaced}  # whose debts are recorded before
            debts = indexer.debts({name: one for name, one in supersession.changes.items() if name not in replaced})
            change = now.change(indexer, tenant_id, indexed, [*earlier, *supersession.parts, *debts.values()])
            decided = None if supersession.parts else change  # which have the time of the mutation
        else:
            change = decided
        return None if change is None else replace(change, statements=[*guard(), *change.statements])

    try:
        await indexer.write([(record, indexed[record.id]) for record in records])
        await stores.history().transact_on(tenant_id, reads.statements, decide)  # each try reads what was read by then
    except (RetainError, _MeanwhileChanged) as error:
        await _settle(indexer, subjects)
        if isinstance(error, Conflict):
            await stores.sql.batch(guard())
            raise Conflict("two memories of a scope would have the same content", code="content_taken") from error
        raise
    await _settle(indexer, [*(record.id for record in plan.replaced), *sorted(debts)])
    return Imported(
        scopes=len(plan.scopes),
        users=len(plan.users),
        created=len(plan.acting) - len(plan.replaced),
        changed=len(plan.replaced),
        unchanged=len(plan.steps) - len(plan.acting),
        duplicates=plan.duplicates,
        events=sum(len(step.events) for step in plan.acting),
        erased=plan.erased,
    )


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
    """Settle the vector index now if possible; else leave it to the reconciler."""
    try:
        await indexer.settle_all(record_ids, still_fresh=frozenset(record_ids))
    except RetainError as error:
        _log.warning("vector index not settled", extra={"records": len(record_ids), "code": error.code})
