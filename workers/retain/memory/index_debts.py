"""Index debts: what the vector index is owed, recorded in D1 before the index is changed.

Each row of the table `memory_outbox` is one record's debt. It says how many vectors the record may have in the index, and
how many writers owe it. A writer settles the debt when it is done, and only the last one deletes it, since the others
may still send the index something old. A debt whose writer died is settled by the reconciler after the grace time.

State `owed`: the index may differ from D1. State `sent`: the index was sent the vectors, but may not show them yet.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from retain.limits.vectorize import GRACE_MS
from retain.memory.records.events import KnownRecord
from retain.memory.records.record import Record
from retain.memory.records.rows import record_of
from retain.ports import SqlResult, Statement

FIRST_PAUSE_MS = 60_000
"""How long after a first failure the reconciler retries a debt. It doubles with each failure …"""
LONGEST_PAUSE_MS = 3_600_000
"""… up to this."""
_FORGOTTEN_AFTER_MS = 10 * GRACE_MS
"""After this time, the index certainly shows what it was sent."""
_LISTED = "(SELECT value FROM json_each(?))"
_VERSION = "SELECT COUNT(*) || MAX(event_id) FROM memory_events WHERE record_id = ?1"
"""Changes with every event of a record. NULL when there is no event."""
_PARTS = "SELECT s.parts FROM memory_search s JOIN memory_records r ON r.number = s.number WHERE r.id = ?"
_OWE = f"""
INSERT INTO memory_outbox (record_id, tenant_id, scope_id, parts, state, changed, at_ms, due_at_ms)
VALUES (?, ?, ?, MAX(?, COALESCE(({_PARTS}), 0)), 'owed', ?, ?, ?)
ON CONFLICT (record_id) DO UPDATE SET state = 'owed', parts = MAX(parts, excluded.parts),
  changed = MAX(changed, excluded.changed), due_at_ms = excluded.due_at_ms,
  at_ms = MAX(excluded.at_ms, at_ms + 1), writers = CASE state WHEN 'sent' THEN 1 ELSE writers + 1 END
"""
_SENT = """
UPDATE memory_outbox SET state = 'sent', changed = 0, writers = 0, at_ms = ?, attempts = 0, last_error = NULL
WHERE record_id = ?
"""
_SENT_LISTED = """
UPDATE memory_outbox SET state = 'sent', changed = 0, writers = 0, at_ms = one.value ->> 0, attempts = 0, last_error = NULL
FROM json_each(?) one WHERE record_id = one.value ->> 1
"""
_OWE_UNKNOWN = """
INSERT INTO memory_outbox (record_id, tenant_id, scope_id, parts, state, changed, at_ms, due_at_ms)
SELECT one.value ->> 0, ?1, one.value ->> 1, one.value ->> 3, 'owed', 0, ?3, ?3 FROM json_each(?2) one
WHERE NOT EXISTS (SELECT 1 FROM memory_records r
  WHERE r.tenant_id = ?1 AND r.scope_id = one.value ->> 1 AND r.content_hash = one.value ->> 2)
ON CONFLICT (record_id) DO NOTHING
"""
_CANCEL = f"DELETE FROM memory_outbox WHERE record_id IN {_LISTED}"
_SETTLED = """
UPDATE memory_outbox SET writers = writers - 1, attempts = 0, last_error = NULL,
  state = CASE WHEN writers <= 1 THEN 'sent' ELSE state END, at_ms = CASE WHEN writers <= 1 THEN ?2 ELSE at_ms END
FROM json_each(?1) one WHERE record_id = one.value ->> 0
  AND (SELECT MAX(event_id) FROM memory_events WHERE record_id = one.value ->> 0) = one.value ->> 1
RETURNING record_id
"""
_DEBTS = f"SELECT record_id, parts FROM memory_outbox WHERE record_id IN {_LISTED}"
_RECORDS = f"SELECT * FROM memory_records WHERE id IN {_LISTED}"
_VERSIONS = """
SELECT value AS record_id, (SELECT COUNT(*) || MAX(event_id) FROM memory_events WHERE record_id = value) AS version
FROM json_each(?)
"""
_ABANDONED = "UPDATE memory_outbox SET writers = 1 WHERE state = 'owed' AND at_ms <= ?"
"""The debt's writers did not finish: the reconciler is the only one left."""
_DUE = """
SELECT record_id, tenant_id, attempts FROM memory_outbox WHERE state = 'owed' AND at_ms <= ? AND due_at_ms <= ?
ORDER BY due_at_ms, record_id LIMIT ?
"""
_SHOWN = "DELETE FROM memory_outbox WHERE state = 'sent' AND at_ms <= ?"
_FAILED = f"""
UPDATE memory_outbox SET attempts = attempts + 1, last_error = ?1,
  due_at_ms = ?2 + MIN({FIRST_PAUSE_MS} << MIN(attempts, 16), {LONGEST_PAUSE_MS})
WHERE record_id = ?3 RETURNING record_id, tenant_id, scope_id, attempts
"""


@dataclass(frozen=True, slots=True)
class Owed:
    """One record's debt, and what D1 has of the record.

    parts: the most vectors that the index may have of it. record: None when it does not exist. version: changes with
    each of its events; None when it has none.
    """

    record_id: str
    parts: int
    record: Record | None
    version: str | None


LISTED_FORMS: Mapping[str, str] = {_SENT: _SENT_LISTED}
"""The statements for many rows at once (`retain.limits.listed_rows`)."""

OWED = "EXISTS (SELECT 1 FROM json_each(?6) owed CROSS JOIN memory_outbox o ON o.record_id = owed.value)"
"""The condition that one of these records has a debt, for `retain.memory.scope.registration`."""


def owe(record: Record, parts: int, now_ms: int, *, changed: bool) -> Statement:
    """Return the statement that adds one writer to the record's debt.

    parts: how many vectors the writer may send to the index. changed: the record's meaning changed and the index still has
    the old vectors, so recall ranks it by its signature until the debt is settled.
    """
    return _OWE, (record.id, record.tenant_id, record.scope_id, parts, record.id, int(changed), now_ms, now_ms)


def sent(record_id: str, now_ms: int) -> Statement:
    """Return the statement that records that the index was sent the vectors, which it may not show yet."""
    return _SENT, (now_ms, record_id)


def owe_unknown(tenant_id: str, records: Sequence[tuple[Record, int]], now_ms: int) -> Statement:
    """Return the statement that records a debt for each new record whose content the scope does not have yet.

    records: each with the most vectors that the index may be sent of it. Idempotent.
    """
    rows = [(record.id, record.scope_id, record.content_hash, parts) for record, parts in records]
    return _OWE_UNKNOWN, (tenant_id, json.dumps(rows), now_ms)


def cancel(record_ids: Sequence[str]) -> Statement:
    """Return the statement that deletes the debts of records of which the index was sent nothing, nor will be."""
    return _CANCEL, (json.dumps(list(record_ids)),)


def settled(known: Sequence[KnownRecord], now_ms: int) -> Statement:
    """Return the statement that removes one writer from each debt, and leaves the last one's as sent.

    It does nothing for a record that has other events by then; its rows are the records for which it did.
    """
    return _SETTLED, (json.dumps([(one.record.id, one.last_event_id) for one in known]), now_ms)


def reading(record_ids: Sequence[str]) -> tuple[Statement, Statement, Statement]:
    """Return the statements whose results `owed_of` reads: the debts, the records, and the records' versions."""
    listed = (json.dumps(list(record_ids)),)
    return (_DEBTS, listed), (_RECORDS, listed), (_VERSIONS, listed)


def owed_of(debts: SqlResult, records: SqlResult, versions: SqlResult) -> list[Owed]:
    """Return what is owed, from the results of `reading`."""
    parts = {str(row["record_id"]): int(row["parts"]) for row in debts.rows}
    return _joined(parts, records, versions)


def changed_since(owed: Sequence[Owed], kept: Mapping[str, int], records: SqlResult, versions: SqlResult) -> list[Owed]:
    """Return those of the debts whose record changed since they were read, as they are now.

    kept: how many vectors the index was sent, by record. records, versions: the results of `reading`'s statements now.
    """
    now = {row["record_id"]: row["version"] for row in versions.rows}
    parts = {
        one.record_id: max(one.parts, kept.get(one.record_id, 0)) for one in owed if now[one.record_id] != one.version
    }
    return _joined(parts, records, versions)


def crossed_out(owed: Owed, sent_at_ms: int | None) -> list[Statement]:
    """Return the statements that remove one writer from the debt, and delete the debt after the last one.

    They do nothing if the record has changed since this version. sent_at_ms: if given, the last writer instead leaves
    the debt as sent at this time.
    """
    unchanged = f"record_id = ?1 AND ({_VERSION}) IS ?2"
    last = f"{unchanged} AND writers <= 0"
    values = (owed.record_id, owed.version)
    taken = (f"UPDATE memory_outbox SET writers = writers - 1 WHERE {unchanged}", values)
    if sent_at_ms is None:
        return [taken, (f"DELETE FROM memory_outbox WHERE {last}", values)]
    left = f"UPDATE memory_outbox SET state = 'sent', at_ms = ?3, attempts = 0, last_error = NULL WHERE {last}"
    return [taken, (left, (*values, sent_at_ms))]


def due(now_ms: int, limit: int) -> tuple[Statement, Statement, Statement]:
    """Return a reconciler's statements: take over abandoned debts, list the due ones, delete those that the index shows.

    The second one's rows are the records of up to `limit` debts, those due for longest first.
    """
    horizon = now_ms - GRACE_MS
    return (_ABANDONED, (horizon,)), (_DUE, (horizon, now_ms, limit)), (_SHOWN, (now_ms - _FORGOTTEN_AFTER_MS,))


def failed(record_id: str, code: str, now_ms: int) -> Statement:
    """Return the statement that records a failure, each of which makes the debt due later; its row is the debt then."""
    return _FAILED, (code, now_ms, record_id)


def _joined(parts: Mapping[str, int], records: SqlResult, versions: SqlResult) -> list[Owed]:
    found = {str(row["id"]): record_of(row) for row in records.rows if row["id"] in parts}
    version = {row["record_id"]: row["version"] for row in versions.rows}
    return [Owed(record_id, most, found.get(record_id), version[record_id]) for record_id, most in parts.items()]
