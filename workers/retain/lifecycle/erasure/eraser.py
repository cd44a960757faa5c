"""Erasure: jobs that erase a subject, a user or a whole tenant from every store, and leave a receipt.

A job is a row of D1 with the request and the progress; any caller can continue it, slice by slice. It completes in a
mutation of the tenant that finds nothing left, and the same mutation erases the request from the row.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass
from typing import Literal

from retain.errors import ConstraintViolated, InvalidInput, RetainError, Unavailable
from retain.identifiers import check_user_id
from retain.jobs import noted
from retain.ledgers.errors import Stage, Trouble, park, settle
from retain.lifecycle.erasure.receipts import ErasureJob, ErasureReceipt, Kind, Receipts, started
from retain.lifecycle.erasure.slices import Slice, Step
from retain.lifecycle.erasure.subject import BY_MENTION, BY_SUBJECT
from retain.lifecycle.erasure.tenant import STEPS, closing
from retain.lifecycle.erasure.user import STEPS as BY_USER
from retain.lifecycle.erasure.user import marking
from retain.lifecycle.stores import Stores
from retain.lifecycle.terms import MAX_TERM_BYTES, Term
from retain.ports import Statement
from retain.shards.place import at_home

SLICES_PER_CALL = 20
SLICES_TO_COMPLETE = 80
"""Slices of a call whose caller waits until everything is gone: enough for most."""
RETRY_MS = 10_000
"""When to retry an erasure that has to wait: for a run to end, or for a store to show what was done."""

_CLOSED = "SELECT 1 FROM erased_tenants WHERE tenant_id = ? AND closed"

Match = Literal["subject", "mention"]

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Outcome:
    """The progress of a call. salt: proves whom the receipt is about; it is stored nowhere once the erasure is complete.

    retry_after_ms: None when the erasure is complete, 0 when it only needs another call.
    """

    receipt: ErasureReceipt
    salt: str | None
    retry_after_ms: int | None


class Erasure:
    """Erases subjects, users and tenants, and keeps the receipts. slices: how far one call goes, at most."""

    def __init__(self, stores: Stores, *, slices: int = SLICES_PER_CALL) -> None:
        self._stores = stores
        self._slices = slices
        self._receipts = Receipts(stores.sql)

    async def erase_subject(self, tenant_id: str, subject: str, match: Match) -> Outcome:
        """Erase records with this subject or, by mention, everything that names it as an exact term.

        An open erasure of the same request is resumed; else a new one begins.
        Raises: InvalidInput (code `invalid_term`); what stopped it, with the job resumable.
        """
        if not subject.strip() or len(subject.encode("utf-8", "replace")) > MAX_TERM_BYTES:
            raise InvalidInput(f"a subject has 1 to {MAX_TERM_BYTES} bytes", code="invalid_term")
        if match == "mention":
            Term.of(subject)
        request = {"subject": subject, "match": match}
        receipt = await self._receipts.open_for(tenant_id, "subject", request)
        return await self.resume(receipt or await self._start(tenant_id, "subject", request))

    async def erase_user(self, tenant_id: str, user_id: str) -> Outcome:
        """Erase a user: their memories of every kind in every agent, their instances, runs and items.

        An open erasure of the same user is resumed; else a new one begins. Runs of the user that are under way are
        cancelled, and what they leave is erased too. A later run of the user begins again with nothing.
        Raises: InvalidInput (code `invalid_user`); what stopped it, with the job resumable.
        """
        request = {"user": check_user_id(user_id)}
        receipt = await self._receipts.open_for(tenant_id, "user", request)
        return await self.resume(receipt or await self._start(tenant_id, "user", request))

    async def erase_tenant(self, tenant_id: str) -> Outcome:
        """Close the tenant and erase all its data except world history and receipts; resume an open erasure.

        If the tenant was erased and not registered again, there is nothing to erase, and its receipt is returned.
        Raises: what stopped it, with the job resumable.
        """
        request = {"tenant": True}
        receipt = await self._receipts.open_for(tenant_id, "tenant", request)
        if receipt is None and (await self._stores.sql.run(_CLOSED, tenant_id)).rows:
            receipt = await self._receipts.last_of_tenant(tenant_id)
        return await self.resume(receipt or await self._start(tenant_id, "tenant", request))

    async def resume(self, receipt: ErasureReceipt) -> Outcome:
        """Continue an erasure. Raises: what stopped it, with the job resumable."""
        try:
            outcome = await self._advance(receipt)
            if outcome.retry_after_ms is None:
                await self._settle(receipt)
            return outcome
        except RetainError as error:
            note = self._receipts.note_error(receipt.receipt_id, error.code, self._stores.clock())
            await noted("an erasure", receipt.receipt_id, error.code, note)
            tenant_id, stage, concerns = _place(receipt)
            with _ledger_of(receipt):
                await park(self._stores.sql, Trouble(stage, concerns, error.code, self._stores.clock(), tenant_id))
            with suppress(RetainError):  # the last slice may have been committed, and only its answer lost
                if (await self._receipts.get(receipt.tenant_id, receipt.receipt_id)).state == "completed":
                    await self._settle(receipt)
            raise

    async def _settle(self, receipt: ErasureReceipt) -> None:
        with _ledger_of(receipt):
            await settle(self._stores.sql, self._stores.clock(), _place(receipt))

    async def receipt(self, tenant_id: str, receipt_id: str) -> ErasureReceipt:
        """Return a receipt. Raises: InvalidInput; NotFound (code `no_such_receipt`)."""
        return await self._receipts.get(tenant_id, receipt_id)

    async def receipts(
        self, tenant_id: str, *, before: str | None, limit: int
    ) -> tuple[list[ErasureReceipt], str | None]:
        """Return a page of receipts, the newest first, and the next one's cursor. Raises: InvalidInput."""
        return await self._receipts.page(tenant_id, before=before, limit=limit)

    async def open(self) -> list[ErasureReceipt]:
        """Return up to 100 erasures that are not complete, least recently updated first."""
        return await self._receipts.all_open()

    async def _start(self, tenant_id: str, kind: Kind, request: Mapping[str, object]) -> ErasureReceipt:
        first, now = next(iter(_steps(kind, request))), self._stores.clock()
        begun = _begun(tenant_id, kind, request, now)
        await self._stores.sql.batch([started(tenant_id, kind, request, first, now), *begun])
        receipt = await self._receipts.open_for(tenant_id, kind, request)
        if receipt is None:  # another caller started it at the same time, and it is already complete
            raise Unavailable("the erasure was completed meanwhile; ask again", code="contended")
        return receipt

    async def _advance(self, receipt: ErasureReceipt) -> Outcome:
        salt = receipt.salt
        for _ in range(self._slices):
            job = await self._receipts.job(receipt.receipt_id)
            if isinstance(job, ErasureReceipt):
                return Outcome(job, salt, None)
            salt = job.receipt.salt
            steps = _steps(job.receipt.kind, job.request)
            try:
                done = await steps[job.step](self._stores, job)
                if done is Slice.WAIT:
                    await self._receipts.note_waiting(receipt.receipt_id, self._stores.clock())
                    return Outcome(job.receipt, salt, RETRY_MS)
                if done in (Slice.DONE, Slice.AGAIN):
                    names = list(steps)
                    following = names.index(job.step) + 1 if done is Slice.DONE else 0
                    now, kind = self._stores.clock(), job.receipt.kind
                    begun = _begun(job.tenant_id, kind, job.request, now) if done is Slice.AGAIN else []
                    if following < len(names):
                        moved = job.moved(now, {}, step=names[following])
                        await self._stores.sql.batch([*moved, *begun])
            except ConstraintViolated:
                _log.info("another caller continues the erasure", extra={"receipt_id": receipt.receipt_id})
        receipt = await self._receipts.get(receipt.tenant_id, receipt.receipt_id)
        return Outcome(receipt, salt, None if receipt.state == "completed" else 0)


def _place(receipt: ErasureReceipt) -> tuple[str, Stage, str]:
    """Return the place in the error ledger: the deployment's for a tenant's erasure, which leaves no row of the tenant."""
    return "" if receipt.kind == "tenant" else receipt.tenant_id, "erasure", receipt.receipt_id


def _ledger_of(receipt: ErasureReceipt) -> AbstractContextManager[None]:
    """Be where the error ledger has what concerns an erasure: the deployment's rows do not move with the tenant."""
    return at_home() if receipt.kind == "tenant" else nullcontext()


def _begun(tenant_id: str, kind: Kind, request: Mapping[str, object], now_ms: int) -> list[Statement]:
    """Return the statements with which the steps begin: they keep late writes from bringing anything back."""
    if kind == "tenant":
        return closing(tenant_id)
    return [marking(tenant_id, str(request["user"]), now_ms)] if kind == "user" else []


def _steps(kind: Kind, request: Mapping[str, object]) -> Mapping[str, Step]:
    if kind == "tenant":
        return {"scratches": _erase_own_tenants, **STEPS}
    if kind == "user":
        return BY_USER
    return BY_MENTION if request["match"] == "mention" else BY_SUBJECT


async def _erase_own_tenants(stores: Stores, job: ErasureJob) -> Slice:
    """Erase the tenant's next scratch tenant before the row that names it, which is erased with the tenant."""
    for table in stores.tables:
        if table.tenants is None:
            continue
        first = f"SELECT {table.tenants} AS id FROM {table.name} WHERE tenant_id = ? ORDER BY {table.tenants} LIMIT 1"
        for row in (await stores.sql.run(first, job.tenant_id)).rows:
            outcome = await Erasure(stores).erase_tenant(str(row["id"]))
            if outcome.retry_after_ms is not None:
                return Slice.WAIT if outcome.retry_after_ms else Slice.MORE
            gone = (f"DELETE FROM {table.name} WHERE {table.tenants} = ?", (str(row["id"]),))
            await stores.sql.batch([*job.moved(stores.clock(), {"scratch_tenants": 1}), gone])
            return Slice.MORE
    return Slice.DONE
