"""The scheduled work: its steps by name, which the daily brief does in order and an operator can do again."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING

import bindings
from retain.admin import maintenance
from retain.lifecycle.backups.jobs import BackupJob, BackupJobs
from retain.lifecycle.backups.restoring import Restoring

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


Step = Callable[[], Awaitable[object]]


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
