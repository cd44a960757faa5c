"""The scheduled work: its steps by name, which the daily brief does in order and an operator can do again."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import bindings
from retain.admin import catching_up, maintenance
from retain.lifecycle.backups.jobs import BackupJob, BackupJobs
from retain.lifecycle.backups.restoring import Restoring
from retain.limits.d1_calls import budget, part
from retain.scheduled_steps import CALLS, CALLS_OF_OTHERS, begin

if TYPE_CHECKING:
    from assembly.root import Assembly


def restoring_of(root: Assembly) -> Restoring:
    """Return what restores tenants from their backups."""
    return Restoring(root.lifecycle.stores, root.lifecycle.backups, lambda namespace: root.items.client(namespace))


async def continued(root: Assembly, tenant_id: str, job_id: str) -> BackupJob:
    """Continue a backup or a restore. Raises: NotFound; what stopped it."""
    job = await BackupJobs(root.lifecycle.stores).get(tenant_id, job_id)
    of_backup = job.kind == "backup"
    return await (root.lifecycle.backups.resume(job) if of_backup else restoring_of(root).resume(job))


CATCH_UP_CALLS = 950
"""Calls of D1 that the work of every five minutes may make, with moves: they have what the other work leaves."""
MOVES_A_TIME = 2
"""Open moves that are continued every few minutes. Who started them continues them sooner."""
Step = Callable[[], Awaitable[object]]


async def weekly_pruning(root: Assembly) -> None:
    """Remove what is too old."""
    platform = root.platform

    async def prune() -> None:
        await maintenance.prune(platform.sql, bindings.now_ms, platform.settings.runs_retention_days)

    await _on_each_database(root, prune)


async def daily_brief(root: Assembly) -> None:
    """Do the steps and write the brief. What fails stops nothing else, and is repeated within minutes."""

    async def do() -> None:
        kept_up: dict[str, object] = {}
        await begin(root.platform.sql, bindings.now_ms(), *repeatable(root))
        with budget(maintenance.WORK_CALLS):
            for name, step in steps_of(root).items():
                with part(CALLS.get(name, CALLS_OF_OTHERS)):
                    kept_up[name] = await step()
        await _brief(root, kept_up)

    await _on_each_database(root, do, owed=tuple(repeatable(root)))


async def catch_up(root: Assembly) -> None:
    """Settle the debts of the vector index that are due, and repeat what failed in the daily brief."""

    async def do() -> None:
        await catching_up.catch_up(root.platform.sql, bindings.now_ms, root.memory.indexer(), repeatable(root))

    with budget(CATCH_UP_CALLS):
        try:
            await _on_each_database(root, do)
        finally:  # a tenant may just have to leave the database on which work fails
            mover = root.lifecycle.mover
            if mover is not None:
                await mover.continue_open(MOVES_A_TIME)


async def _on_each_database(root: Assembly, work: Callable[[], Awaitable[None]], owed: Sequence[str] = ()) -> None:
    """Do the work; where there are several databases, on each. owed: the steps to repeat where it has to wait."""
    if root.platform.shards is None:
        await work()
        return
    from retain.shards.working import on_each_database

    await on_each_database(root.platform.shards, work, bindings.now_ms, owed)


def repeatable(root: Assembly) -> Mapping[str, Step]:
    """Return what may be done again by its name: the steps, and the brief itself, then without what the steps did."""
    return {**steps_of(root), "brief": lambda: _brief(root, {})}


async def _brief(root: Assembly, kept_up: Mapping[str, object]) -> object:
    platform = root.platform
    return await maintenance.try_brief(platform.sql, platform.objects, root.memory.indexer(), bindings.now_ms, kept_up)


def steps_of(root: Assembly) -> Mapping[str, Step]:
    """Return the steps of the daily brief by the names under which it reports them, in order."""
    stores, sql = root.lifecycle.stores, root.platform.sql
    kept_days = root.platform.settings.runs_retention_days
    keeping_up: dict[str, Step] = {
        name: partial(maintenance.keep_up_step, name, stores) for name in maintenance.KEEPING_UP
    }
    return keeping_up | {
        "pruned": lambda: maintenance.pruned(sql, bindings.now_ms, kept_days),
        "abandoned_uploads": lambda: maintenance.abandoned_uploads(stores),
        "ingests": lambda: maintenance.ingests(stores, root.memory.ingestion),
        "evaluations": lambda: maintenance.evaluations(stores, root.evaluation.runner()),
        "items": lambda: maintenance.demoted(stores, root.items.demotion),
        "backups": lambda: maintenance.backed_up(
            root.lifecycle.backups, restoring_of(root), stores, daily=root.platform.settings.backups_daily
        ),
    }
