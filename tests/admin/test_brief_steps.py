"""The steps of the daily brief, each alone: how often it calls what it works with, and where a failure is noted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from types import SimpleNamespace
from typing import cast

import pytest

from retain.admin import maintenance
from retain.admin.maintenance import KEEPING_UP, keep_up_step, retention_rules
from retain.errors import Unavailable
from retain.evaluation.runner import Runner
from retain.ingest.ingestion import Ingestion
from retain.items.demotion import Demotion
from retain.lifecycle.backups.backing_up import Backups
from retain.lifecycle.backups.jobs import BackupJobs
from retain.lifecycle.backups.restoring import Restoring
from retain.lifecycle.erasure.eraser import Erasure
from retain.lifecycle.reindexing import Reindexing
from retain.lifecycle.stores import Stores
from retain.limits.d1_calls import budget, spend
from retain.memory.scope import Scope
from tests.lifecycle.world import World, living
from tests.support.faults import Fault

DAY_MS = 86_400_000
Step = Callable[[Stores], Awaitable[object]]


@pytest.fixture
def world() -> Iterator[World]:
    with living() as world:
        yield world


class NoEvaluation:
    """Stands in for the runner of evaluations: asks D1 once, and finds nothing."""

    def __init__(self, stores: Stores) -> None:
        self._stores = stores

    async def open(self, limit: int) -> list[tuple[str, str]]:
        assert limit == 11
        await self._stores.sql.run("SELECT 1")
        return []


class NoDemotion:
    """Stands in for the demotion: asks D1 once, and moves nothing."""

    def __init__(self, stores: Stores) -> None:
        self._stores = stores

    async def run(self) -> object:
        await self._stores.sql.run("SELECT 1")
        return {}


class Scripted:
    """Stands in for backups and for the restoring: each job or tenant has the states that its calls answer, None for one
    that fails. The due tenants are all of them except the job "backup".
    """

    def __init__(self, stores: Stores, **states: list[str | None]) -> None:
        self._stores = stores
        self.states = states

    async def resume(self, job: SimpleNamespace) -> SimpleNamespace:
        return await self.advance(job.job_id)

    async def advance(self, name: str) -> SimpleNamespace:
        await self._stores.sql.run("SELECT 1")
        spend()
        state = self.states[name].pop(0)
        if state is None:
            raise Unavailable("down")
        return SimpleNamespace(kind="backup", state=state)

    async def prune(self, limit: int) -> int:
        assert limit == 10
        await self._stores.sql.run("SELECT 1")
        return 3

    async def due(self, limit: int) -> list[str]:
        assert limit == 100
        await self._stores.sql.run("SELECT 1")
        return [name for name in self.states if name != "backup"]

    def left(self) -> list[str]:
        return [name for name, states in self.states.items() if states]


def backed_up(stores: Stores, backups: Scripted, restoring: Scripted, *, daily: bool) -> Awaitable[object]:
    return maintenance.backed_up(cast(Backups, backups), cast(Restoring, restoring), stores, daily=daily)


def no_ingestion(_: Scope) -> Ingestion:
    raise AssertionError("there is no job")


def evaluated(stores: Stores) -> Awaitable[object]:
    return maintenance.evaluations(stores, cast(Runner, NoEvaluation(stores)))


def demoted(stores: Stores) -> Awaitable[object]:
    return maintenance.demoted(stores, lambda: cast(Demotion, NoDemotion(stores)))


STEPS: dict[str, Step] = {
    **{name: partial(keep_up_step, name) for name in KEEPING_UP},
    "pruned": lambda stores: maintenance.pruned(stores.sql, stores.clock, 400),
    "abandoned_uploads": maintenance.abandoned_uploads,
    "ingests": lambda stores: maintenance.ingests(stores, no_ingestion),
    "evaluations": evaluated,
    "items": demoted,
    "backups": lambda stores: backed_up(stores, Scripted(stores), Scripted(stores), daily=True),
}


async def calls_of(world: World, work: Callable[[], Awaitable[object]]) -> dict[str, int]:
    """Return how often some work calls each method of a store."""
    del world.faults.trace[:]
    await work()
    return dict(Counter(point for _, point in world.faults.trace if not point.endswith(" done")))


SETTLED = {"sql.batch": 1}
"""What every step does at last: it settles what is parked of it."""


COSTS: dict[str, dict[str, int]] = {
    "consolidation": {"sql.run": 2, "sql.batch": 2},
    "erasures": {"sql.run": 1, **SETTLED},
    "reindexings": {"sql.run": 1, **SETTLED},
    "documents": {"sql.run": 1, "sql.batch": 2},
    "overdue_runs": {"sql.run": 1, **SETTLED},
    "overdue_schedules": {"sql.run": 1, **SETTLED},
    "overdue_deliveries": {"sql.run": 1, **SETTLED},
    "mutations": {"sql.run": 1, **SETTLED},
    "histories_that_lost_their_head": {"sql.run": 1, "objects.get": 1, "objects.put": 2, **SETTLED},
    "pruned": {"sql.batch": 1 + 21},
    "abandoned_uploads": {"sql.run": 1, **SETTLED},
    "ingests": {"sql.run": 2, **SETTLED},
    "evaluations": {"sql.run": 1, **SETTLED},
    "items": {"sql.run": 1, **SETTLED},
    "backups": {"sql.run": 3, **SETTLED},
    "unlisted_writes": {"sql.run": 1, **SETTLED},
    "earlier_copies": {"sql.run": 1, **SETTLED},
    "attachment_objects": {"sql.run": 1, **SETTLED},
}


def test_every_step_is_among_them() -> None:
    assert COSTS.keys() == STEPS.keys()
    assert STEPS.keys() >= KEEPING_UP.keys()


@pytest.mark.parametrize("step", COSTS)
async def test_a_step_that_has_nothing_to_do_makes_these_calls(world: World, step: str) -> None:
    assert await calls_of(world, lambda: STEPS[step](world.stores())) == COSTS[step]


async def test_a_brief_makes_these_calls(world: World) -> None:
    stores = world.stores()

    async def work() -> None:
        await maintenance.brief(stores.sql, stores.objects, stores.indexer(), stores.clock)

    assert await calls_of(world, work) == {"sql.run": 3, "sql.batch": 2, "index.count": 1, "objects.put": 1}


@pytest.mark.parametrize("step", STEPS)
async def test_a_step_that_fails_is_parked_by_its_name_and_settled_when_it_succeeds(world: World, step: str) -> None:
    columns = "tenant_id, stage, concerns, code, attempts, first_at_ms, last_at_ms, state, settled_at_ms, settled_by"
    failed_at_ms = world.clock()
    world.faults.plan(Fault(Unavailable("down"), point="sql.batch" if step == "pruned" else "sql.run"))
    reports: list[object] = []

    async def failing() -> None:
        reports.append(await STEPS[step](world.stores()))

    calls = await calls_of(world, failing)
    assert reports == [{"error": "unavailable"}]
    assert calls["sql.batch"] == (COSTS[step]["sql.batch"] if step == "pruned" else 1), "it is parked once"
    parked = {
        "tenant_id": "",
        "stage": "cron",
        "concerns": step,
        "code": "unavailable",
        "attempts": 1,
        "first_at_ms": failed_at_ms,
        "last_at_ms": failed_at_ms,
        "state": "parked",
        "settled_at_ms": None,
        "settled_by": None,
    }
    assert world.sql_now(f"SELECT {columns} FROM error_ledger") == [parked]
    world.clock.advance(DAY_MS)
    await STEPS[step](world.stores())
    settled = {**parked, "state": "replayed", "settled_at_ms": failed_at_ms + DAY_MS}
    assert world.sql_now(f"SELECT {columns} FROM error_ledger") == [settled]


def test_every_rule_of_retention_is_among_them_with_its_age() -> None:
    ages = {rule.name: rule.kept_ms / DAY_MS for rule in retention_rules(400)}
    assert ages == {
        "memory_episodes": 90,
        "refused_episodes": 90,
        "conversation_messages": 90,
        "summaries": 90,
        "texts_copied_into_runs": 0,
        "run_events": 90,
        "parked_runs": 90,
        "texts_of_runs": 90,
        "agent_runs": 400,
        "outbox_failures": 90,
        "error_ledger": 90,
        "kv_audit": 90,
        "decision_log": 400,
        "model_calls": 400,
        "model_use": 400,
        "ingest_jobs": 90,
        "waiting_ingests": 90,
        "erased_users": 30,
        "webhook_deliveries": 30,
        "attachment_uses": 90,
        "attachments": 90,
    }


@pytest.mark.parametrize(
    ("states", "report"),
    [
        pytest.param(["running", "running", "completed"], {"completed": 1}, id="until it is completed"),
        pytest.param(["running", "waiting"], {"waiting": 1}, id="until it waits"),
        pytest.param(["running"] * 5, {"running": 1}, id="five times at most"),
        pytest.param(["running", None], {"stopped": 1}, id="until it fails"),
    ],
)
@pytest.mark.parametrize("step", ["erasures", "reindexings"])
async def test_an_open_job_is_continued(
    world: World, monkeypatch: pytest.MonkeyPatch, step: str, states: list[str | None], report: dict[str, int]
) -> None:
    left = list(states)

    async def one_open(_: object) -> list[str]:
        return ["job"]

    async def advanced(_: object, job: str) -> SimpleNamespace:
        assert job == "job"
        state = left.pop(0)
        if state is None:
            raise Unavailable("down")
        waits_ms = {"running": 0, "waiting": 500}.get(state)
        return SimpleNamespace(state=state, receipt=SimpleNamespace(state=state), retry_after_ms=waits_ms)

    kind, listed, method = {
        "erasures": (Erasure, "open", "resume"),
        "reindexings": (Reindexing, "open_tenants", "advance"),
    }[step]
    monkeypatch.setattr(kind, listed, one_open)
    monkeypatch.setattr(kind, method, advanced)
    stopped = "failed" if step == "reindexings" else "stopped"
    assert await keep_up_step(step, world.stores()) == {
        stopped if state == "stopped" else state: count for state, count in report.items()
    }
    assert left == []


@pytest.fixture
def open_jobs(monkeypatch: pytest.MonkeyPatch) -> list[SimpleNamespace]:
    """Return the open jobs of backups and restores, for the test to fill."""
    jobs: list[SimpleNamespace] = []

    async def all_open(_: BackupJobs, limit: int) -> list[SimpleNamespace]:
        assert limit == 11
        return jobs

    monkeypatch.setattr(BackupJobs, "all_open", all_open)
    return jobs


@pytest.mark.parametrize("daily", [True, False])
async def test_open_backups_and_restores_are_continued_and_due_tenants_backed_up_if_asked(
    world: World, open_jobs: list[SimpleNamespace], daily: bool
) -> None:
    open_jobs += [SimpleNamespace(kind=kind, job_id=kind) for kind in ("backup", "restore")]
    stores = world.stores()
    restoring = Scripted(stores, restore=["running", "waiting"])
    backups = Scripted(stores, backup=["running", "running", "completed"])
    tenants: dict[str, list[str | None]] = {
        "acme": ["running", "completed"],
        "broken": ["running", None],
        "other": ["completed"],
        "long": ["running"] * 5,
    }
    if daily:
        backups.states |= tenants
    reports: list[object] = []

    async def work() -> None:
        reports.append(await backed_up(stores, backups, restoring, daily=daily))

    calls = await calls_of(world, work)
    begun = {"completed": 2, "stopped": 1, "running": 1} if daily else {}
    assert reports.pop() == {"pruned": 3, "continued": {"completed": 1, "waiting": 1}, "daily": begun}
    assert (backups.left(), restoring.left()) == ([], [])
    assert calls == {"sql.run": 1 + 3 + 2 + (1 + 2 + 2 + 1 + 5 if daily else 0), **SETTLED}


async def test_no_further_tenant_is_backed_up_once_the_calls_of_d1_are_used_up(
    world: World, open_jobs: list[SimpleNamespace]
) -> None:
    assert open_jobs == []
    stores = world.stores()
    backups = Scripted(stores, acme=["completed"], other=["completed"], third=["completed"])
    with budget(2):
        report = await backed_up(stores, backups, Scripted(stores), daily=True)
    assert report == {"pruned": 3, "continued": {}, "daily": {"completed": 2}}
    assert backups.left() == ["third"]


@pytest.mark.parametrize(
    ("counts", "left"),
    [
        ({"expired": 7, "objects": 3}, []),
        ({"expired": 7, "objects": 3, "left": 1}, ["items"]),
        ({"expired": 2000, "objects": 3}, ["items"]),
        ({"expired": 7, "objects": 100}, ["items"]),
    ],
)
async def test_items_that_a_bound_left_are_continued_within_minutes(
    world: World, counts: dict[str, int], left: list[str]
) -> None:
    async def run() -> dict[str, int]:
        return counts

    stores = world.stores()
    assert await maintenance.demoted(stores, lambda: cast(Demotion, SimpleNamespace(run=run))) == counts
    assert [row["step"] for row in world.sql_now("SELECT step FROM steps_left")] == left


@pytest.mark.parametrize("at_ms", [19_675 * DAY_MS - 1, 19_675 * DAY_MS, 19_676 * DAY_MS - 1])
async def test_the_day_of_a_brief_begins_at_midnight(world: World, at_ms: int) -> None:
    world.clock.set(at_ms)
    stores = world.stores()
    await maintenance.brief(stores.sql, stores.objects, stores.indexer(), stores.clock)
    day = 19_674 if at_ms < 19_675 * DAY_MS else 19_675
    assert (await world.objects_store.list("briefs/")).keys == [f"briefs/{day}.json"]
