"""Scheduled work: the weekly pruning and the daily brief."""

from __future__ import annotations

import json
import logging
from collections.abc import Awaitable, Callable, Mapping
from itertools import takewhile

from retain.admin.capacity import Capacity
from retain.admin.catching_up import COPIES, FILES
from retain.admin.overdue_deliveries import OVERDUE_AT_ONCE as MESSAGES_AT_ONCE
from retain.admin.overdue_deliveries import ask_for_overdue_deliveries
from retain.admin.schedules.listed import OVERDUE_AT_ONCE as SCHEDULES_AT_ONCE
from retain.admin.schedules.listed import ask_for_overdue_schedules
from retain.agents.execution.parked import OVERDUE_AT_ONCE as RUNS_AT_ONCE
from retain.agents.execution.parked import ask_for_overdue
from retain.agents.retention import run_rules
from retain.attachments.removal import remove_owed
from retain.attachments.retention import attachment_rules
from retain.contracts.stored.document_index import DocumentIndex
from retain.errors import RetainError
from retain.evaluation.runner import Runner
from retain.ingest.ingestion import Ingestion, continue_interrupted
from retain.ingest.intake import forget_abandoned
from retain.ingest.jobs import JOB_RULES
from retain.items.demotion import LOOKS, MOVES, Demotion
from retain.jobs import Continued, continue_open
from retain.ledgers.put_aside import park_unlisted
from retain.lifecycle.backups.backing_up import Backups
from retain.lifecycle.backups.jobs import BackupJob, BackupJobs
from retain.lifecycle.backups.restoring import Restoring
from retain.lifecycle.consolidation import consolidate
from retain.lifecycle.erasure.earlier_copies import copies_of
from retain.lifecycle.erasure.eraser import Erasure
from retain.lifecycle.erasure.receipts import ErasureReceipt
from retain.lifecycle.erasure.user import USER_RULES
from retain.lifecycle.heads import keep_heads
from retain.lifecycle.reindexing import Reindexing
from retain.lifecycle.stores import Stores
from retain.limits.d1_calls import budget, used_up
from retain.memory.conversations.statements import CONVERSATION_RULES
from retain.memory.episodes import EPISODE_RULES, WARN_PER_TENANT
from retain.memory.indexer import Indexer
from retain.memory.scope import Scope
from retain.ports import Clock, Objects, Sql, Statement
from retain.retention import DAY_MS, Pruned, RetentionRule
from retain.retention import prune as remove_old
from retain.scheduled_steps import Partly, done
from retain.shards.place import HOME, shard_here
from retain.shards.ranges import NOBODY
from retain.tenants.model_use import use_rules
from retain.tenants.mutation_log import MutationLog
from retain.tenants.retention import ledger_rules
from retain.webhooks.delivery_log import DELIVERY_RULES

_log = logging.getLogger(__name__)

PRUNE = "0 3 * * SUN"
"""Sunday, 03:00 UTC. Cloudflare refuses 0 as a weekday: it counts them from 1.

Source: https://developers.cloudflare.com/workers/configuration/cron-triggers/#supported-cron-expressions
"""
PRUNE_IN_CRON = "0 3 * * 0"
"""The same in standard cron syntax."""
BRIEF = "0 4 * * *"
"""Every day, 04:00 UTC."""

REFUSALS_SHOWN_MS = 7 * DAY_MS
"""How long the briefs report that a tenant's episodes were refused."""
WORK_CALLS = 650
"""Calls of D1 that the work of one brief may make; those of `brief` come in addition. An invocation has 1,000."""
SETTLING_CALLS = 300
"""Calls of D1 that writing what the vector index is owed may make."""
TENANTS_PER_CALL = 100
"""Most tenants that one call begins to back up."""
WRITES_PER_CALL = 200
"""Writes of instances that one brief parks in the error ledger, where they are missing."""
OBJECTS_AT_ONCE = 300
"""Most objects of attachments that one call removes: each is a call of R2."""
JOBS_A_TIME = 10
"""Open jobs of each kind that one call continues. While more are left, the step is continued within minutes."""

_STOPPED = "SELECT step FROM steps_left WHERE begun_at_ms IS NULL ORDER BY step"
_ROWS = "SELECT COUNT(*) AS n FROM {}"
_COUNTED: Mapping[str, str] = {
    "tenants": _ROWS,
    "agent_runs": _ROWS,
    "run_events": "SELECT COALESCE(SUM(1 + (SELECT seq FROM run_events WHERE run_id = t.run_id ORDER BY seq DESC LIMIT 1)"
    " - (SELECT seq FROM run_events WHERE run_id = t.run_id ORDER BY seq LIMIT 1)), 0) AS n FROM timelines t",
    "memory_episodes": _ROWS,
    "memory_records": f"{_ROWS} WHERE tenant_id <> '{NOBODY}'",
    "memory_outbox": _ROWS,
    "outbox_failures": _ROWS,
}
"""What is counted, and how. The events of a run have numbers without gaps, and go from the first one on."""


def retention_rules(runs_kept_days: int) -> tuple[RetentionRule, ...]:
    """Return every rule of a deployment. runs_kept_days: how long the row of a run is kept."""
    kept_ms = runs_kept_days * DAY_MS
    runs = (*run_rules(kept_ms), *ledger_rules(kept_ms), *use_rules(kept_ms))
    return (
        *EPISODE_RULES,
        *CONVERSATION_RULES,
        *attachment_rules(kept_ms),
        *runs,
        *DELIVERY_RULES,
        *JOB_RULES,
        *USER_RULES,
    )


async def prune(sql: Sql, clock: Clock, runs_kept_days: int) -> Pruned:
    """Remove what is too old: episodes, messages, run events, texts of runs and runs, failed writes, completed ingest jobs.

    Bounded: what is left is removed by the next call, and the daily brief makes one as well.
    Returns how much each tenant lost. Raises: Unavailable; then the next call continues.
    """
    pruned = await remove_old(sql, clock(), retention_rules(runs_kept_days))
    _log.info("pruned", extra={"pruned": pruned.to_json()})
    if not pruned.complete:
        _log.warning("the pruning is not complete; the daily brief continues it")
    return pruned


async def pruned(sql: Sql, clock: Clock, runs_kept_days: int) -> object:
    """Continue the pruning; return what was removed."""

    async def run() -> object:
        removed = await prune(sql, clock, runs_kept_days)
        return removed.to_json() if removed.complete else Partly(removed.to_json())

    return await done("pruned", run(), sql, clock)


async def keep_up(stores: Stores) -> dict[str, object]:
    """Consolidate memories, continue erasures and reindexings, seal mutations and keep heads; return what was done.

    Bounded; the next day continues. A part that fails is logged and reported, and does not stop the rest.
    """
    return {name: await keep_up_step(name, stores) for name in KEEPING_UP}


async def keep_up_step(name: str, stores: Stores) -> object:
    """Do one of the steps of `KEEPING_UP`; return what was done."""
    return await done(name, KEEPING_UP[name](stores), stores.sql, stores.clock)


async def abandoned_uploads(stores: Stores) -> object:
    """Forget uploads without a job; return how many messages they had."""
    return await done("abandoned_uploads", forget_abandoned(stores.sql, stores.clock()), stores.sql, stores.clock)


async def ingests(stores: Stores, ingestion: Callable[[Scope], Ingestion]) -> object:
    """Continue ingests that were interrupted or failed; return the number per state."""
    sql, clock = stores.sql, stores.clock

    async def run() -> object:
        states, more = await continue_interrupted(sql, clock, ingestion, limit=JOBS_A_TIME)
        return Partly(states) if more else states

    return await done("ingests", run(), sql, clock)


async def evaluations(stores: Stores, runner: Runner) -> object:
    """Continue evaluations that are not completed; return the number per state."""

    async def call(run: tuple[str, str]) -> Continued:
        try:
            progress = await runner.advance(*run)
        except RetainError as error:
            _log.error("an evaluation stopped", extra={"run_id": run[1], "code": error.code})
            raise
        return Continued(progress.run.state, more=progress.retry_after_ms == 0)

    async def run() -> object:
        runs = await runner.open(JOBS_A_TIME + 1)
        return _continued(len(runs), await continue_open(runs[:JOBS_A_TIME], call))

    return await done("evaluations", run(), stores.sql, stores.clock)


async def demoted(stores: Stores, demotion: Callable[[], Demotion]) -> object:
    """Demote and remove items of tiered memory as the policy decides; return the counts. Those left come within minutes."""

    async def run() -> object:
        counts = await demotion().run()
        bounded = counts.get("left") or counts.get("expired", 0) >= LOOKS or counts.get("objects", 0) >= MOVES
        return Partly(counts) if bounded else counts

    return await done("items", run(), stores.sql, stores.clock)


async def backed_up(backups: Backups, restoring: Restoring, stores: Stores, *, daily: bool) -> object:
    """Continue backups and restores, remove those that are too old, and if `daily` back up the tenants that are due.

    Bounded by the calls of D1 that are left: the tenants whose backup is oldest come first. Returns what was done.
    """

    async def call(job: BackupJob) -> Continued:
        job = await (backups.resume(job) if job.kind == "backup" else restoring.resume(job))
        return Continued(job.state, more=job.state == "running")

    async def start(tenant_id: str) -> Continued:
        job = await backups.advance(tenant_id)
        return Continued(job.state, more=job.state == "running")

    async def run() -> object:
        pruned = await backups.prune(JOBS_A_TIME)
        jobs = await BackupJobs(stores).all_open(JOBS_A_TIME + 1)
        open_jobs = await continue_open(jobs[:JOBS_A_TIME], call)
        due = await backups.due(TENANTS_PER_CALL) if daily else ()
        started = await continue_open(takewhile(lambda _: not used_up(), due), start)
        report = {"pruned": pruned, "continued": open_jobs, "daily": started}
        more = pruned == JOBS_A_TIME or len(due) == TENANTS_PER_CALL or "running" in started
        return Partly(report) if more or _are_left(len(jobs), open_jobs) else report

    return await done("backups", run(), stores.sql, stores.clock)


async def _consolidated(stores: Stores) -> object:
    consolidated = await consolidate(stores)
    return consolidated.to_json() if consolidated.complete else Partly(consolidated.to_json())


async def _documents(stores: Stores) -> dict[str, int]:
    """Write owed documents to the vector index; return for how many tenants that failed."""
    return {"tenants_failed": await DocumentIndex(stores.sql, stores.index, stores.clock).reconcile()}


async def _erasures(stores: Stores) -> object:
    """Continue open erasures; return the number per state."""
    erasure = Erasure(stores)

    async def call(receipt: ErasureReceipt) -> Continued:
        outcome = await erasure.resume(receipt)
        return Continued(outcome.receipt.state, more=outcome.retry_after_ms == 0)

    receipts = await erasure.open()
    states = await continue_open(receipts[:JOBS_A_TIME], call)
    untried = any(receipt.error is None for receipt in receipts[JOBS_A_TIME:])
    return Partly(states) if untried else _continued(len(receipts), states)


async def _reindexings(stores: Stores) -> object:
    """Continue open reindexings; return the number per state."""
    reindexing = Reindexing(stores)

    async def call(tenant_id: str) -> Continued:
        job = await reindexing.advance(tenant_id)
        return Continued(job.state, more=job.state == "running")

    tenants = await reindexing.open_tenants()
    return _continued(len(tenants), await continue_open(tenants[:JOBS_A_TIME], call, stopped="failed"))


def _continued(found: int, states: Mapping[str, int]) -> object:
    """Return what was done to open jobs, of which more may be left. found: how many there were."""
    return Partly(dict(states)) if _are_left(found, states) else dict(states)


def _are_left(found: int, states: Mapping[str, int]) -> bool:
    """Return whether jobs are left that another call may bring further, within minutes.

    One that failed is not among them, so that it is not repeated all day. If all that were taken failed, the others wait for
    the next day, when they come first.
    """
    failed = states.get("stopped", 0) + states.get("failed", 0)
    taken = sum(states.values())
    return taken > failed + states.get("completed", 0) or found > taken > failed


async def _mutations(stores: Stores) -> object:
    sealed = await MutationLog(stores.sql, stores.clock).seal_all()
    return sealed.to_json() if sealed.complete else Partly(sealed.to_json())


def _asked(counts: Mapping[str, int], most: int) -> object:
    """Return what was asked of instances. The next ones are asked within minutes, and those that failed after an hour."""
    return Partly(counts) if sum(counts.values()) >= most else counts


async def _overdue_runs(stores: Stores) -> object:
    return _asked(await ask_for_overdue(stores.sql, stores.instances, stores.clock), RUNS_AT_ONCE)


async def _overdue_schedules(stores: Stores) -> object:
    return _asked(await ask_for_overdue_schedules(stores.sql, stores.instances, stores.clock), SCHEDULES_AT_ONCE)


async def _overdue_deliveries(stores: Stores) -> object:
    return _asked(await ask_for_overdue_deliveries(stores.sql, stores.instances, stores.clock), MESSAGES_AT_ONCE)


async def _heads(stores: Stores) -> object:
    return await keep_heads(stores)


async def _unlisted_writes(stores: Stores) -> object:
    parked = await park_unlisted(stores.sql, WRITES_PER_CALL)
    return {"parked": parked} if parked < WRITES_PER_CALL else Partly({"parked": parked})


async def _earlier_copies(stores: Stores) -> object:
    return {"removed": await copies_of(stores).remove_due()}


async def _attachment_objects(stores: Stores) -> object:
    """Remove objects of attachments that have no row any more; return how many."""
    removed = await remove_owed(stores.sql, stores.objects, stores.clock(), limit=OBJECTS_AT_ONCE)
    return {"removed": removed}


KEEPING_UP: Mapping[str, Callable[[Stores], Awaitable[object]]] = {
    "consolidation": _consolidated,
    "erasures": _erasures,
    "reindexings": _reindexings,
    "documents": _documents,
    "overdue_runs": _overdue_runs,
    "overdue_schedules": _overdue_schedules,
    "overdue_deliveries": _overdue_deliveries,
    "unlisted_writes": _unlisted_writes,
    COPIES: _earlier_copies,
    FILES: _attachment_objects,
    "mutations": _mutations,
    "histories_that_lost_their_head": _heads,
}
"""The steps of `keep_up` by name, in their order."""


async def try_brief(
    sql: Sql, objects: Objects, indexer: Indexer, clock: Clock, kept_up: Mapping[str, object] | None = None
) -> object:
    """Return the brief, as `brief`, or the error for which there is none; it is repeated like a step that failed."""
    return await done("brief", brief(sql, objects, indexer, clock, kept_up), sql, clock)


async def brief(
    sql: Sql, objects: Objects, indexer: Indexer, clock: Clock, kept_up: Mapping[str, object] | None = None
) -> dict[str, object]:
    """Settle what the vector index is owed, count the tables, warn of what is nearly full, and store the brief in R2.

    kept_up: what `keep_up` returned, included in the brief.
    The object is `briefs/{epoch day}.json`, for another database than the first with its name before `.json`; a
    second brief on the same day replaces the first.
    """
    with budget(SETTLING_CALLS):
        settled = await indexer.reconcile()
    now = clock()
    counted: list[Statement] = [(sql.format(table), ()) for table, sql in _COUNTED.items()]
    *counts, stopped = await sql.batch([*counted, (_STOPPED, ())])
    full = await sql.run(
        "SELECT tenant_id, episodes FROM episode_counts WHERE episodes >= ? ORDER BY episodes DESC, tenant_id",
        WARN_PER_TENANT,
    )
    near = {row["tenant_id"]: int(row["episodes"]) for row in full.rows}
    refused = await sql.run(
        "SELECT tenant_id, COUNT(*) AS episodes FROM refused_episodes WHERE at_ms >= ?"
        " GROUP BY tenant_id ORDER BY tenant_id",
        now - REFUSALS_SHOWN_MS,
    )
    lost = {row["tenant_id"]: int(row["episodes"]) for row in refused.rows}
    capacity = await Capacity.measured(sql, indexer)
    rows = {table: int(result.rows[0]["n"]) for table, result in zip(_COUNTED, counts, strict=True)}
    report: dict[str, object] = {
        "at_ms": now,
        "rows": rows,
        "capacity": capacity.to_json(),
        "tenants_near_episode_limit": near,
        "episodes_refused": lost,
        "vector_outbox": {"settled": settled.settled, "failed": settled.failed},
        **(kept_up or {}),
        "continued_within_minutes": [row["step"] for row in stopped.rows],
    }
    for limit, part in capacity.near().items():
        _log.warning("a limit of the platform is near", extra={"limit": limit, "used": part.used, "of": part.limit})
    for tenant_id, episodes in near.items():
        _log.warning("a tenant nears the episode limit", extra={"tenant_id": tenant_id, "episodes": episodes})
    for tenant_id, episodes in lost.items():
        _log.error(
            "turns are not remembered", extra={"tenant_id": tenant_id, "episodes": episodes, "code": "episode_limit"}
        )
    if rows["outbox_failures"] or settled.failed:
        _log.error("outbox entries failed", extra={"report": report})
    _log.info("daily brief", extra={"report": report})
    where = "" if shard_here() == HOME else f".{shard_here()}"
    await objects.put(
        f"briefs/{now // 86_400_000}{where}.json", json.dumps(report).encode(), content_type="application/json"
    )
    return report
