"""Receipts of erasures: jobs while they run, and proof afterwards.

A receipt says how much was erased from which store, when, and the salted digest of the request. The salt is returned to
the caller, and stored nowhere once the erasure is complete: only with it can anyone show whom the receipt is about.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from retain.errors import InvalidInput, NotFound
from retain.errors.codes import Code, ForeignCode
from retain.identifiers import ULID, check_id, new_id
from retain.json_text import read_own_json
from retain.ports import Row, Sql, SqlValue, Statement
from retain.tenants.history import digest_of

Kind = Literal["subject", "user", "tenant"]
_JOB = "SELECT * FROM erasure_receipts WHERE receipt_id = ?"
_RECEIPT = "SELECT * FROM erasure_receipts WHERE receipt_id = ? AND tenant_id = ?"
_OPEN = "SELECT * FROM erasure_receipts WHERE tenant_id = ?1 AND kind = ?2 AND state = 'running' AND request = ?3"
_LAST = """
SELECT * FROM erasure_receipts WHERE tenant_id = ? AND kind = 'tenant' ORDER BY started_at_ms DESC, receipt_id DESC LIMIT 1
"""
_PAGE = """
SELECT * FROM erasure_receipts WHERE tenant_id = ? AND receipt_id < ? ORDER BY receipt_id DESC LIMIT ?
"""
_AFTER_ALL = "8"
"""After every id: ULIDs begin with 0 to 7."""
_ALL_OPEN = "SELECT * FROM erasure_receipts WHERE state = 'running' ORDER BY updated_at_ms, receipt_id LIMIT 100"
_START = f"""
INSERT INTO erasure_receipts
  (tenant_id, kind, request, receipt_id, state, request_digest, counts, started_at_ms, updated_at_ms, salt, step)
SELECT ?1, ?2, ?3, ?4, 'running', ?5, '{{}}', ?6, ?6, ?7, ?8 WHERE NOT EXISTS ({_OPEN})
"""
# If the row has changed since the slice began, this violates the check on `state`, and the whole batch fails.
_STILL_HERE = """
UPDATE erasure_receipts SET state = CASE WHEN revision = ? THEN state ELSE 'moved' END WHERE receipt_id = ?
"""
_COUNT = """
UPDATE erasure_receipts
SET counts = json_set(counts, ?1, COALESCE(json_extract(counts, ?1), 0) + CAST(({amount}) AS INTEGER))
WHERE receipt_id = ?2 AND ({amount}) > 0
"""
_MOVE = """
UPDATE erasure_receipts SET step = ?, cursor = ?, pending = ?, error = NULL, updated_at_ms = ?, revision = revision + 1
WHERE receipt_id = ?
"""
_COMPLETE = """
UPDATE erasure_receipts SET state = 'completed', completed_at_ms = ?, updated_at_ms = ?, error = NULL, request = NULL,
  salt = NULL, step = NULL, cursor = NULL, pending = NULL WHERE receipt_id = ?
"""
_NOT_BEFORE = """
UPDATE erased_users SET erased_at_ms = MAX(erased_at_ms, COALESCE(({latest}), 0)) WHERE tenant_id = ?1 AND user_id = ?2
"""


@dataclass(frozen=True, slots=True)
class ErasureReceipt:
    """An erasure as shown. counts: what was erased, by store and, in D1, by table. salt: None once it is complete."""

    receipt_id: str
    tenant_id: str
    kind: Kind
    state: Literal["running", "completed"]
    request_digest: str
    counts: Mapping[str, int]
    error: str | None
    started_at_ms: int
    updated_at_ms: int
    completed_at_ms: int | None
    salt: str | None

    def to_json(self) -> Mapping[str, object]:
        """Return the receipt as shown; never with the salt."""
        return {name: getattr(self, name) for name in self.__slots__ if name != "salt"}

    @property
    def digest(self) -> str:
        """The digest of the completed receipt that world history keeps."""
        content: list[object] = [self.receipt_id, self.tenant_id, self.kind, self.request_digest, dict(self.counts)]
        content += [self.started_at_ms, self.completed_at_ms]
        return digest_of(self.receipt_id, json.dumps(content, sort_keys=True))


@dataclass(frozen=True, slots=True)
class ErasureJob:
    """A receipt with the progress of its erasure. request: what was asked for. cursor, pending: of the step."""

    receipt: ErasureReceipt
    request: Mapping[str, Any]
    step: str
    cursor: Any
    pending: Any
    revision: int

    @property
    def tenant_id(self) -> str:
        """The tenant whose data it erases."""
        return self.receipt.tenant_id

    def moved(
        self, now: int, counts: Mapping[str, int], *, step: str | None = None, cursor: Any = None, pending: Any = None
    ) -> list[Statement]:
        """Return the statements that note a slice's progress, and fail their batch if another caller was faster."""
        statements = [self.still_here()]
        statements += [self.counted(name, "?3", amount) for name, amount in counts.items() if amount]
        values: tuple[SqlValue, ...] = (step or self.step, _text(cursor), _text(pending), now, self.receipt.receipt_id)
        return [*statements, (_MOVE, values)]

    def still_here(self) -> Statement:
        """Return the statement that fails its batch if the job has progressed since it was read."""
        return _STILL_HERE, (self.revision, self.receipt.receipt_id)

    def counted(self, name: str, amount: str, *values: SqlValue) -> Statement:
        """Return the statement that adds an amount to a count. amount: an SQL expression over `values`, from ?3 on."""
        return _COUNT.format(amount=amount), (f'$."{name}"', self.receipt.receipt_id, *values)

    def not_before(self, latest: str, *values: SqlValue) -> Statement:
        """Return the statement that dates a user's erasure no earlier than what it erases, whose clock may be ahead.

        latest: SQL for the time of that, null for nothing; `?1` is the tenant, `?2` the user, `values` follow.
        """
        return _NOT_BEFORE.format(latest=latest), (self.tenant_id, self.request["user"], *values)

    def completed(self, now: int) -> Statement:
        """Return the statement that completes the receipt and erases the request from it."""
        return _COMPLETE, (now, now, self.receipt.receipt_id)


class Receipts:
    """The receipts of all tenants."""

    def __init__(self, sql: Sql) -> None:
        self._sql = sql

    async def get(self, tenant_id: str, receipt_id: str) -> ErasureReceipt:
        """Return a receipt. Raises: InvalidInput; NotFound (code `no_such_receipt`)."""
        rows = (await self._sql.run(_RECEIPT, check_id(receipt_id), tenant_id)).rows
        if not rows:
            raise NotFound("there is no such receipt", code="no_such_receipt")
        return _receipt(rows[0])

    async def page(self, tenant_id: str, *, before: str | None, limit: int) -> tuple[list[ErasureReceipt], str | None]:
        """Return the tenant's receipts, the newest first, and the cursor of the next page. before: the one of the last page.

        Raises: InvalidInput (code `invalid_cursor`) for one that is not a receipt's id.
        """
        if before is not None and ULID.fullmatch(before) is None:
            raise InvalidInput("the cursor is not valid", code="invalid_cursor")
        rows = (await self._sql.run(_PAGE, tenant_id, before or _AFTER_ALL, limit + 1)).rows
        receipts = [_receipt(row) for row in rows[:limit]]
        return receipts, receipts[-1].receipt_id if len(rows) > limit else None

    async def job(self, receipt_id: str) -> ErasureJob | ErasureReceipt:
        """Return the job while the erasure runs, or else the receipt."""
        row = (await self._sql.run(_JOB, receipt_id)).rows[0]
        return _job(row) if row["state"] == "running" else _receipt(row)

    async def open_for(self, tenant_id: str, kind: Kind, request: Mapping[str, object]) -> ErasureReceipt | None:
        """Return the receipt of the open erasure of the same request, or None."""
        rows = (await self._sql.run(_OPEN, tenant_id, kind, canonical(request))).rows
        return _receipt(rows[0]) if rows else None

    async def last_of_tenant(self, tenant_id: str) -> ErasureReceipt | None:
        """Return the receipt of the newest erasure of the whole tenant, or None."""
        rows = (await self._sql.run(_LAST, tenant_id)).rows
        return _receipt(rows[0]) if rows else None

    async def all_open(self) -> list[ErasureReceipt]:
        """Return up to 100 receipts of erasures that are not complete, least recently updated first."""
        return [_receipt(row) for row in (await self._sql.run(_ALL_OPEN)).rows]

    async def note_error(self, receipt_id: str, code: Code | ForeignCode, now: int) -> None:
        """Note the error that stopped an erasure for now."""
        await self._sql.run(
            "UPDATE erasure_receipts SET error = ?, updated_at_ms = ? WHERE receipt_id = ? AND state = 'running'",
            code,
            now,
            receipt_id,
        )

    async def note_waiting(self, receipt_id: str, now: int) -> None:
        """Note that an erasure was looked at and waits: the others come before it."""
        await self._sql.run(
            "UPDATE erasure_receipts SET updated_at_ms = ? WHERE receipt_id = ? AND state = 'running'", now, receipt_id
        )


def canonical(request: Mapping[str, object]) -> str:
    """Return a request as the text whose salted digest is in the receipt."""
    return json.dumps(request, sort_keys=True, separators=(",", ":"))


def started(tenant_id: str, kind: Kind, request: Mapping[str, object], step: str, now: int) -> Statement:
    """Return the statement that writes a new receipt, unless the same erasure is open."""
    salt, text = secrets.token_hex(16), canonical(request)
    return _START, (tenant_id, kind, text, new_id(), digest_of(salt, text), now, salt, step)


def _receipt(row: Row) -> ErasureReceipt:
    shown = {name: row[name] for name in ErasureReceipt.__slots__}
    return ErasureReceipt(**{**shown, "counts": read_own_json(row["counts"])})


def _job(row: Row) -> ErasureJob:
    cursor, pending = (None if row[name] is None else read_own_json(row[name]) for name in ("cursor", "pending"))
    return ErasureJob(_receipt(row), read_own_json(row["request"]), row["step"], cursor, pending, int(row["revision"]))


def _text(value: Any) -> str | None:
    return None if value is None else json.dumps(value)
