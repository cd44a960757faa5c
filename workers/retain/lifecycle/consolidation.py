"""Consolidation: what rules may do to a tenant's records overnight. Bounded; the next run continues.

- An expired task is closed; any other expired record is deleted.
- Of duplicates the one that is valid longest stays, of equal ones the oldest, and supersedes the others. It does not become
  more trusted.
- A record that a person wrote or edited changes only when it reaches the expiry that the person set.

Duplicates say the same in the same words: equal scope, kind, subject, predicate, object, metadata and expiry, no position in
a conversation, and the same text except for the form of its spaces, quotes and last full stop. Records whose words have
equal stems are similar: that is only shown to a person, since by stems "smokes" is "smoked" (docs/lifecycle.md).
"""

from __future__ import annotations

import json
import logging
import math
import re
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from itertools import groupby
from typing import Any

from retain.errors import RetainError
from retain.identifiers import new_id
from retain.ledgers.errors import Trouble, park, settle_earlier
from retain.lifecycle.stores import Stores
from retain.limits.d1_calls import used_up
from retain.memory.recall.wording import compatible
from retain.memory.recall.words import fold, stem
from retain.memory.records.claims import closed as closed_claims
from retain.memory.records.events import EventKind, KnownRecord, LearningEvent, apply
from retain.memory.records.record import Record
from retain.memory.records.rows import (
    LAST_EVENT,
    Written,
    append_event,
    change_of,
    known_of,
    remove_record,
    write_record,
)
from retain.memory.records.supersession import Supersession
from retain.memory.search_rows import remove_rows
from retain.ports import Row, Statement
from retain.tenants.history import Change, HistoryEntry

EXPIRED_PER_RUN = 500
COMPARED_PER_RUN = 2000
CHUNK = 50
"""Records per transaction."""

_FILLERS = frozenset(("a", "an", "the", "that", "also", "just", "very", "really", "quite", "please"))
_TOKEN = re.compile(r"[^\W_]+|[^\w\s]|_")
_SILENT = frozenset(".,;:!'\"()[]`\u2026\u201c\u201d\u201e\u2018\u2019\u00ab\u00bb")
"""Signs that do not change the meaning. All others do, as in `O-` and `O+`, `C` and `C#`, a question and its answer."""
_FORMS = str.maketrans("\u2018\u2019\u201b\u201c\u201d\u201e\u201f\u2010\u2011", '\'\'\'""""--')
"""Typographic quotes and hyphens, and what they are typed as."""
_HYPHENATED = re.compile(r"(?<=\w)-(?=\w)")

_log = logging.getLogger(__name__)
_Work = Callable[[Stores, str, Sequence[str], "Consolidated"], Awaitable[None]]

# A tenant that could not be consolidated comes after all others, and of several the one that was tried first.
_PARKED = "SELECT tenant_id, last_at_ms FROM error_ledger WHERE stage = 'consolidation' AND state = 'parked'"
_EXPIRED = f"""
SELECT r.id, r.tenant_id, COALESCE(p.last_at_ms, 0) AS tried_at_ms
FROM memory_records r LEFT JOIN ({_PARKED}) p ON p.tenant_id = r.tenant_id
WHERE r.expires_at_ms <= ? AND (r.kind <> 'task' OR r.valid_to_ms IS NULL OR r.valid_to_ms > r.expires_at_ms)
ORDER BY p.last_at_ms, r.tenant_id, r.expires_at_ms, r.id LIMIT ?
"""
_NEW = f"""
SELECT id, tenant_id, 0 AS tried_at_ms FROM (SELECT record_id AS id, tenant_id FROM memory_likeness
  WHERE key IS NULL AND tenant_id NOT IN (SELECT tenant_id FROM ({_PARKED})) ORDER BY record_id LIMIT ?1)
UNION ALL
SELECT id, tenant_id, tried_at_ms FROM (SELECT l.record_id AS id, l.tenant_id, p.last_at_ms AS tried_at_ms
  FROM ({_PARKED}) p CROSS JOIN memory_likeness l ON l.tenant_id = p.tenant_id AND l.key IS NULL
  ORDER BY p.last_at_ms, l.record_id LIMIT ?1)
LIMIT ?1
"""
_RECORDS = f"""
SELECT r.*, {LAST_EVENT}, COALESCE(s.parts, 0) AS parts
FROM memory_records r LEFT JOIN memory_search s ON s.number = r.number
WHERE +r.tenant_id = ? AND r.id IN (SELECT value FROM json_each(?))
"""
_ALIKE = f"""
SELECT r.*, {LAST_EVENT} FROM memory_likeness l JOIN memory_records r ON r.id = l.record_id
WHERE l.tenant_id = ? AND l.key IN (SELECT value FROM json_each(?))
"""
_KEYED = """
UPDATE memory_likeness SET key = ?, similar = ?
WHERE record_id = ? AND (SELECT updated_at_ms FROM memory_records WHERE id = record_id) = ?
"""


@dataclass(slots=True)
class Consolidated:
    """What a run did.

    compared: records examined for duplicates. failed: batches left for the next run, one tenant each. complete: whether
    another run would not do more now. tenants_failed: those of the batches.
    """

    closed: int = 0
    deleted: int = 0
    superseded: int = 0
    compared: int = 0
    failed: int = 0
    complete: bool = True
    tenants_failed: set[str] = field(default_factory=set)

    def to_json(self) -> dict[str, int]:
        """Return the counts by name."""
        return {name: count for name, count in asdict(self).items() if name not in ("complete", "tenants_failed")}


async def consolidate(stores: Stores) -> Consolidated:
    """Consolidate all tenants' records, up to a bound. Idempotent. A tenant that fails does not stop the others."""
    done = Consolidated()
    began_ms = stores.clock()
    expired = (await stores.sql.run(_EXPIRED, stores.clock(), EXPIRED_PER_RUN)).rows
    await _each(stores, expired, EXPIRED_PER_RUN, _expire, done)
    new = (await stores.sql.run(_NEW, COMPARED_PER_RUN)).rows
    ordered = sorted(new, key=lambda row: (row["tried_at_ms"], row["tenant_id"]))
    await _each(stores, ordered, COMPARED_PER_RUN, _merge, done)
    if done.complete and len(expired) < EXPIRED_PER_RUN and len(new) < COMPARED_PER_RUN:
        await settle_earlier(stores.sql, stores.clock(), "consolidation", began_ms, failed=sorted(done.tenants_failed))
    return done


async def _each(stores: Stores, rows: Sequence[Row], most: int, work: _Work, done: Consolidated) -> None:
    """Do the work for the records of each tenant, until the calls of D1 are used up.

    most: how many rows were read at most. If all of so many fail as they did before, another run would do no more.
    """
    full = len(rows) == most
    done.complete = done.complete and not (full and any(row["tried_at_ms"] == 0 for row in rows))
    for tenant_id, ids in _chunks(rows):
        try:
            await work(stores, tenant_id, ids, done)
            done.complete = done.complete and not full
        except RetainError as error:
            if not used_up():
                await _failed(stores, tenant_id, error, done)
        if used_up():
            done.complete = False
            return


def likeness(record: Record) -> str:
    """Return a key that duplicates share and other records do not, as SHA-256 in hexadecimal."""
    return _key(record, _plain(record.content))


def similarity(record: Record) -> str:
    """Return a key that similar records share, as SHA-256 in hexadecimal: their words have equal stems, without fillers."""
    return _key(record, _stems(record.content))


def _key(record: Record, words: str | list[str]) -> str:
    content = {
        "scope": record.scope_id,
        "kind": record.kind,
        "parts": [record.subject, record.predicate, record.object],
        "metadata": record.metadata,
        "expires_at_ms": record.expires_at_ms,
        # An event at another time is another event.
        "at_ms": record.valid_from_ms if record.kind == "event" else None,
        "words": words,
    }
    return sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _plain(content: str) -> str:
    """Return the text with one form for equal spaces, quotes and dashes, without its last full stop or exclamation mark."""
    text = " ".join(compatible(content).translate(_FORMS).split())
    return text.rstrip(".! ") or text


def _stems(content: str) -> list[str]:
    tokens = _TOKEN.findall(_HYPHENATED.sub(" ", fold(content)))
    return [stem(token) for token in tokens if token not in _FILLERS and token not in _SILENT]


async def _expire(stores: Stores, tenant_id: str, ids: Sequence[str], done: Consolidated) -> None:
    indexer = stores.indexer()
    deleted: list[str] = []
    closed: list[str] = []
    debts: dict[str, Statement] = {}

    async def decide(now: int) -> Change | None:
        nonlocal debts
        deleted.clear()
        closed.clear()
        rows = {row["id"]: row for row in (await stores.sql.run(_RECORDS, tenant_id, json.dumps(ids))).rows}
        over = [known for known in map(known_of, rows.values()) if _has_expired(known.record, now)]
        gone = [known for known in over if known.record.kind != "task"]
        supersession = Supersession(stores.sql, now)
        await supersession.remove(*[known.record for known in gone])
        for known in map(supersession.now, over):
            ended = known.record.expires_at_ms
            if known.record.kind == "task" and ended is not None and (known.record.valid_to_ms or ended + 1) > ended:
                await supersession.close(known, ended, {"origin": "rule", "rule": "expired"})
                closed.append(known.record.id)
        parts: list[Written | Statement] = [*supersession.parts]
        for known in gone:
            record, vectors = known.record, int(rows[known.record.id]["parts"])
            event = LearningEvent(new_id(), record.id, "deleted", {}, {"origin": "rule", "rule": "expired"}, now)
            parts += [append_event(tenant_id, known.follow(event)), *remove_rows(record.id), remove_record(record.id)]
            parts.append(indexer.owe(record, vectors))
            deleted.append(record.id)
        debts = indexer.debts(supersession.changes)
        parts += debts.values()
        return change_of(parts) if parts else None

    if await stores.history().transact_at(tenant_id, decide):
        done.closed += len(closed)
        done.deleted += len(deleted)
        await indexer.try_to_settle(*deleted, *sorted(debts), still_fresh=True)


async def _merge(stores: Stores, tenant_id: str, ids: Sequence[str], done: Consolidated) -> None:
    """Compare new records, and supersede duplicates, in the transaction that marks the records as compared."""
    indexer = stores.indexer()
    counted = 0
    merged: list[str] = []

    async def decide(now: int) -> Change | None:
        nonlocal counted
        merged.clear()
        rows = (await stores.sql.run(_RECORDS, tenant_id, json.dumps(ids))).rows
        new = [known_of(row).record for row in rows]
        keys = {record.id: likeness(record) for record in new}
        statements: list[Statement] = [
            (_KEYED, (keys[one.id], similarity(one), one.id, one.updated_at_ms)) for one in new
        ]
        entries: list[HistoryEntry] = []
        known = (await stores.sql.run(_ALIKE, tenant_id, json.dumps(sorted(set(keys.values()))))).rows
        seen = {row["id"]: known_of(row) for row in [*known, *rows]}
        together = {known.record.id: known.record for known in seen.values() if _holds(known.record, now)}
        groups: dict[str, list[Record]] = {}
        for record in together.values():
            groups.setdefault(keys.get(record.id) or likeness(record), []).append(record)
        for group in groups.values():
            kept, *others = sorted(group, key=_rank)
            for other in others:
                if not _persons(other):
                    data: dict[str, Any] = {"by": kept.id, "valid_to_ms": now}
                    if other.claims:
                        data["claims"] = closed_claims(other.claims, now)
                    _note(seen[other.id], "superseded", data, "near_duplicate", now, statements, entries)
                    statements.append(indexer.owe(other, 0))
                    merged.append(other.id)
        counted = len(entries)
        return Change(statements, entries) if statements else None

    await stores.history().transact_at(tenant_id, decide)
    done.compared += len(ids)
    done.superseded += counted
    await indexer.try_to_settle(*merged, still_fresh=True)


def _has_expired(record: Record, now: int) -> bool:
    return record.expires_at_ms is not None and record.expires_at_ms <= now


def _persons(record: Record) -> bool:
    return record.edited or record.source.get("origin") == "person"


def _rank(record: Record) -> tuple[float, bool, int, str]:
    """Return what orders duplicates, the one that stays first: one that ends before another would leave nothing valid."""
    end_ms = math.inf if record.valid_to_ms is None else record.valid_to_ms
    return -end_ms, not _persons(record), record.recorded_at_ms, record.id


def _holds(record: Record, now: int) -> bool:
    return record.superseded_by is None and record.holds_at(max(now, record.recorded_at_ms))


def _note(
    known: KnownRecord,
    kind: EventKind,
    data: dict[str, Any],
    rule: str,
    now: int,
    statements: list[Statement],
    entries: list[HistoryEntry],
) -> None:
    record = known.record
    event = known.follow(LearningEvent(new_id(), record.id, kind, data, {"origin": "rule", "rule": rule}, now))
    written = append_event(record.tenant_id, event)
    changed = apply(record, event)
    statements += [*written.statements, *([] if changed is None else [write_record(changed)])]
    entries.append(written.entry)


def _chunks(rows: Iterable[Row]) -> Iterable[tuple[str, list[str]]]:
    for tenant_id, own in groupby(rows, key=lambda row: str(row["tenant_id"])):
        ids = [str(row["id"]) for row in own]
        for start in range(0, len(ids), CHUNK):
            yield tenant_id, ids[start : start + CHUNK]


async def _failed(stores: Stores, tenant_id: str, error: RetainError, done: Consolidated) -> None:
    _log.error("a tenant was not consolidated", extra={"tenant_id": tenant_id, "code": error.code})
    await park(stores.sql, Trouble("consolidation", tenant_id, error.code, stores.clock(), tenant_id))
    done.failed += 1
    done.tenants_failed.add(tenant_id)
