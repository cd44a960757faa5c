"""Restores: a tenant gets back what a backup has, as it was at a point in time.

A restore adds what the tenant does not have and changes nothing else, so an empty tenant becomes what the backed up one was.
What has a history (records, messages, ended runs with their events and episodes, outcomes, decisions, evaluations) is
restored up to the point in time exactly; what has none, from the newest backup that was complete by then.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace

from retain.contracts.stored.document_index import DocumentIndex
from retain.errors import Conflict, ConstraintViolated, NotFound, RetainError, UpstreamFailed
from retain.lifecycle.backups.backing_up import Backups
from retain.lifecycle.backups.jobs import BackupJob, BackupJobs
from retain.lifecycle.backups.objects import Manifest
from retain.lifecycle.importing import import_read
from retain.lifecycle.stores import Stores
from retain.lifecycle.transfer.items import ItemLine, Items
from retain.lifecycle.transfer.kinds import ROW_KINDS
from retain.lifecycle.transfer.lines import AnyLine, RecordLine, UserLine, read_lines
from retain.lifecycle.transfer.rows import RowLine
from retain.tenants.history import Change, HistoryEntry, digest_of

PAGES_PER_CALL = 3
"""Pages that one call restores: each stores up to 500 records with their vectors, or puts 25 items."""
MAX_PAGE_BYTES = 16 * 1_048_576
"""Largest page that is read: one row of D1 has at most 2 MB, and becomes longer as JSON in JSON."""


@dataclass(frozen=True, slots=True)
class RestoreRequest:
    """What is to be restored. source: the tenant that was backed up. backup_id, at_ms: which backup, and up to when."""

    source: str
    backup_id: str | None = None
    at_ms: int | None = None

    def to_json(self) -> dict[str, object]:
        """Return it as the job's request has it."""
        return {"from": self.source, "backup": self.backup_id, "at_ms": self.at_ms}


@dataclass(frozen=True, slots=True)
class Part:
    """A backup to read. history_only: whether only what has a history is taken from it."""

    backup_id: str
    pages: int
    history_only: bool


class Restoring:
    """Restores tenants. items: tiered memory, into which items are put."""

    def __init__(self, stores: Stores, backups: Backups, items: Items) -> None:
        self._stores = stores
        self._backups = backups
        self._items = items
        self._jobs = BackupJobs(stores)

    async def advance(self, tenant_id: str, wanted: RestoreRequest) -> BackupJob:
        """Start the restore or continue it, for up to 3 pages; return its state.

        Another restore that stopped at an error is abandoned, since nothing may ever let it continue; what it has restored
        stays.

        Raises: NotFound (code `no_such_backup`); Conflict (code `restore_running`) while another one is under way, (code
            `erasure_running`); what stopped it, with the job resumable.
        """
        request = wanted.to_json()
        job = await self._jobs.find_open(tenant_id, "restore")
        if job is None or not _is_for(job, request):
            parts = [asdict(part) for part in await self._parts(wanted)]
            if job is not None:
                await self._jobs.abandon_stopped(job)
            job = await self._jobs.opened(tenant_id, "restore", {**request, "parts": parts})
        if not _is_for(job, request):
            raise Conflict("another restore of the tenant is running", code="restore_running")
        return await self.resume(job)

    async def resume(self, job: BackupJob) -> BackupJob:
        """Continue a restore for up to 3 pages.

        A restore whose backup was removed meanwhile is abandoned; what it has restored stays.

        Raises: NotFound (code `no_such_backup`) then; what stopped it, with the job resumable.
        """
        await self._jobs.refuse_while_erasing(job.tenant_id, str(job.request["from"]))
        taken = await self._jobs.take(job)
        if taken is None:
            return await self._jobs.get(job.tenant_id, job.job_id)
        job = taken
        try:
            for _ in range(PAGES_PER_CALL):
                moved = await self._restore_page(job)
                if moved is None:
                    break
                job = moved
            await self._jobs.release(job)
        except ConstraintViolated:
            await self._jobs.release(job)  # an erasure or another worker came before the page was written
        except RetainError as error:
            if error.code == "no_such_backup":
                await self._jobs.abandon(job)
            else:
                await self._jobs.fail(job, error.code)
            raise
        return await self._jobs.get(job.tenant_id, job.job_id)

    async def _parts(self, wanted: RestoreRequest) -> list[Part]:
        """Return which backups to read, in order. Raises: NotFound (code `no_such_backup`)."""
        known = await self._backups.manifests(wanted.source)
        if wanted.backup_id is not None:
            chosen = [one for one in known if one.backup_id == wanted.backup_id]
        elif wanted.at_ms is None:
            chosen = known[-1:]
        else:
            return _parts_at(known, wanted.at_ms)
        if not chosen:
            raise NotFound("there is no such backup", code="no_such_backup")
        return [Part(one.backup_id, one.pages, history_only=False) for one in chosen]

    async def _restore_page(self, job: BackupJob) -> BackupJob | None:
        """Restore the next page; return the job as it is then, None when there is none, or an erasure has begun."""
        page = _page_after(job)
        if page is None:
            await self._finish(job)
            return None
        part, number = page
        source, until_ms = str(job.request["from"]), job.request["at_ms"]
        text = await self._page(source, part.backup_id, number)
        lines = read_lines(text, job.tenant_id, self._stores.clock(), MAX_PAGE_BYTES)
        kept = [one for line in lines if (one := _then(line, until_ms, history_only=part.history_only)) is not None]
        done = await import_read(
            self._stores, job.tenant_id, kept, items=self._items, guard=lambda: [self._jobs.still_held(job)]
        )
        counts = Counter(job.counts)
        counts.update(asdict(done))
        counts["later"] += len(lines) - len(kept)
        return await self._jobs.move(job, f"{part.backup_id}.{number}", counts)

    async def _page(self, source: str, backup_id: str, number: int) -> str:
        """Return a page. Raises: NotFound (code `no_such_backup`) when the backup was removed; UpstreamFailed."""
        backups = self._backups.of(source)
        try:
            return await backups.page(backup_id, number)
        except UpstreamFailed:
            await backups.get(backup_id)
            raise

    async def _finish(self, job: BackupJob) -> None:
        """Send documents to the index, and complete the job in a mutation that world history shows."""
        await DocumentIndex(self._stores.sql, self._stores.index, self._stores.clock).settle(job.tenant_id)

        async def decide() -> Change:
            content = json.dumps([job.request, job.counts], sort_keys=True)
            return Change([], [HistoryEntry("tenant_restored", job.job_id, digest_of(job.job_id, content))])

        await self._stores.history().transact(job.tenant_id, decide)
        await self._jobs.complete(job)


def _is_for(job: BackupJob, request: Mapping[str, object]) -> bool:
    return {name: job.request[name] for name in request} == request


def _parts_at(known: Sequence[Manifest], at_ms: int) -> list[Part]:
    """Return the newest backup that was complete by then, and of the oldest one that began after it what has a history."""
    before = [one for one in known if one.completed_at_ms <= at_ms][-1:]
    after = [one for one in known if one.began_at_ms > at_ms][:1]
    if not before and not after:
        raise NotFound("no backup is from before or after that time", code="no_such_backup")
    return [Part(one.backup_id, one.pages, history_only=one in after) for one in (*before, *after)]


def _page_after(job: BackupJob) -> tuple[Part, int] | None:
    """Return the next page: its part and its number there; None when all are restored."""
    left = job.pages
    for one in job.request["parts"]:
        part = Part(**one)
        if left < part.pages:
            return part, left
        left -= part.pages
    return None


def _then(line: AnyLine, until_ms: int | None, *, history_only: bool) -> AnyLine | None:
    """Return the line as it was at a time, None for what was not there yet or what is not to be taken."""
    stateless = isinstance(line, ItemLine) or (isinstance(line, RowLine) and not ROW_KINDS[line.kind].history)
    if history_only and stateless:
        return None
    if until_ms is None:
        return line
    match line:
        case RecordLine():
            events = tuple(event for event in line.events if event.at_ms <= until_ms)
            return replace(line, events=events) if events else None
        case UserLine():
            return line if line.created_at_ms <= until_ms else None
        case RowLine() | ItemLine():
            return line if line.at_ms <= until_ms else None
        case _:
            return line
