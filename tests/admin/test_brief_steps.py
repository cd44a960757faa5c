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
from retain.lifecycle.erasure.eraser import Erasure
from retain.lifecycle.reindexing import Reindexing
from retain.lifecycle.stores import Stores
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
        assert limit == 10
        await self._stores.sql.run("SELECT 1")
        return []


class NoDemotion:
    """Stands in for the demotion: asks D1 once, and moves nothing."""

    def __init__(self, stores: Stores) -> None:
        self._stores = stores

    async def run(self) -> object:
        await self._stores.sql.run("SELECT 1")
        return {}


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
}


async def calls_of(world: World, work: Callable[[], Awaitable[object]]) -> dict[str, int]:
    """Return how often some work calls each method of a store."""
    del world.faults.trace[:]
    await work()
    return dict(Counter(point for _, point in world.faults.trace if not point.endswith(" done")))


SETTLED = {"sql.batch": 1}
"""What every step does at last: it settles what is parked of it."""


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        ("consolidation", {"sql.run": 2, **SETTLED}),
        ("erasures", {"sql.run": 1, **SETTLED}),
        ("reindexings", {"sql.run": 1, **SETTLED}),
        ("documents", {"sql.run": 1, **SETTLED}),
        ("overdue_runs", {"sql.run": 1, **SETTLED}),
        ("mutations", {"sql.run": 1, **SETTLED}),
        ("histories_that_lost_their_head", {"sql.run": 1, "objects.get": 1, "objects.put": 2, **SETTLED}),
        ("pruned", {"sql.batch": 1 + 16}),
        ("abandoned_uploads", {"sql.run": 1, **SETTLED}),
        ("ingests", {"sql.run": 2, **SETTLED}),
        ("evaluations", {"sql.run": 1, **SETTLED}),
        ("items", {"sql.run": 1, **SETTLED}),
    ],
)
async def test_a_step_that_has_nothing_to_do_makes_these_calls(
    world: World, step: str, expected: dict[str, int]
) -> None:
    assert await calls_of(world, lambda: STEPS[step](world.stores())) == expected


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
    assert await STEPS[step](world.stores()) == {"error": "unavailable"}
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
        "ingest_jobs": 90,
        "waiting_ingests": 90,
        "erased_users": 30,
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


@pytest.mark.parametrize("at_ms", [19_675 * DAY_MS - 1, 19_675 * DAY_MS, 19_676 * DAY_MS - 1])
async def test_the_day_of_a_brief_begins_at_midnight(world: World, at_ms: int) -> None:
    world.clock.set(at_ms)
    stores = world.stores()
    await maintenance.brief(stores.sql, stores.objects, stores.indexer(), stores.clock)
    day = 19_674 if at_ms < 19_675 * DAY_MS else 19_675
    assert (await world.objects_store.list("briefs/")).keys == [f"briefs/{day}.json"]
