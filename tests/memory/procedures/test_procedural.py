"""The procedural memory of instances: learned in the object, kept in D1, shared as a prior."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retain import outbox as outbox_module
from retain.errors import InvalidInput, Unavailable
from retain.host.clock import ManualClock
from retain.memory.procedures.posterior import Posterior, prior
from retain.memory.procedures.procedural import SCHEMA, BeginProcedure, ProceduralMemory, RecordOutcome
from retain.memory.scope import Scope
from retain.outbox import Outbox, statements_of
from tests.support.databases import migrated_d1
from tests.support.faults import Crash, Fault, Faults
from tests.support.object_storage import ObjectStorage

OUTREACH = {"direct_roi": "Lead with the money saved.", "social_proof": "Name a customer.", "question": "Ask."}
SDR = Scope("acme", "sdr", "sales")


class World:
    """Instances with one D1. An object can be lost and created again."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.sql = migrated_d1()
        self.faults = Faults(self._died)
        self.storages: dict[str, ObjectStorage] = {}
        self.outboxes: dict[str, Outbox] = {}

    def _died(self, _: str | None) -> None:
        for storage in self.storages.values():
            storage.lose_turn()

    def instance(self, name: str = "main", scope: Scope = SDR) -> ProceduralMemory:
        """Return the instance's memory, created as by an object that wakes up."""
        storage = self.storages.setdefault(name, ObjectStorage())
        life = self.faults.life(name)
        local = self.faults.wrap("local", storage, life)
        remote = self.faults.wrap("sql", self.sql, life, before=storage.commit)
        local.run(outbox_module.SCHEMA)
        local.run(SCHEMA)
        statements = statements_of(BeginProcedure, RecordOutcome)
        outbox = Outbox(local, remote, statements, self.clock, f"{scope.agent_type}:{scope.tenant_id}:{name}")
        self.outboxes[name] = outbox
        return ProceduralMemory(scope, lambda: scope.house, name, local, remote, outbox, self.clock)

    def lose(self, name: str = "main") -> None:
        self.storages.pop(name).close()

    def close(self) -> None:
        self.sql.close()
        for storage in self.storages.values():
            storage.close()


@contextmanager
def world_of_instances() -> Iterator[World]:
    world = World()
    try:
        yield world
    finally:
        world.close()


@pytest.fixture
def world() -> Iterator[World]:
    with world_of_instances() as made:
        yield made


async def test_a_new_instance_starts_with_uniform_posteriors_and_chooses_one_of_the_workflows(world: World) -> None:
    memory = world.instance()
    choice = await memory.select_workflow("outreach", OUTREACH, "run-1")
    assert choice.spec == OUTREACH[choice.workflow_id]
    assert memory.posteriors() == {"outreach": dict.fromkeys(OUTREACH, Posterior())}


async def test_the_same_run_is_given_the_same_workflow_again(world: World) -> None:
    memory = world.instance()
    runs = [f"run-{number}" for number in range(20)]
    first = [(await memory.select_workflow("outreach", OUTREACH, run)).workflow_id for run in runs]
    again = [(await world.instance().select_workflow("outreach", OUTREACH, run)).workflow_id for run in runs]
    assert first == again
    assert set(first) == set(OUTREACH), "twenty runs try each of three unknown workflows"


async def test_an_outcome_moves_the_posterior_by_its_score(world: World) -> None:
    memory = world.instance()
    await memory.select_workflow("outreach", OUTREACH, "run-1")
    assert await memory.record_outcome("run-1", "outreach", "question", 0.25) == Posterior(1.25, 1.75)


async def test_an_outcome_reported_twice_counts_once_and_a_corrected_one_replaces_the_first(world: World) -> None:
    memory = world.instance()
    await memory.select_workflow("outreach", OUTREACH, "run-1")
    for score, belief in ((1.0, Posterior(2, 1)), (1.0, Posterior(2, 1)), (0.5, Posterior(1.5, 1.5))):
        assert await memory.record_outcome("run-1", "outreach", "question", score) == belief


async def test_outcomes_reported_at_once_are_each_counted_once(world: World) -> None:
    memory = world.instance()
    await memory.select_workflow("outreach", OUTREACH, "run-1")
    await asyncio.gather(*(memory.record_outcome("run-1", "outreach", "question", 1.0) for _ in range(5)))
    assert memory.posteriors()["outreach"]["question"] == Posterior(2, 1)


async def test_an_invalid_score_changes_nothing(world: World) -> None:
    memory = world.instance()
    await memory.select_workflow("outreach", OUTREACH, "run-1")
    with pytest.raises(InvalidInput):
        await memory.record_outcome("run-1", "outreach", "question", 1.5)
    assert memory.posteriors()["outreach"]["question"] == Posterior()


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(sorted(OUTREACH)), st.sampled_from([0, 0.25, 0.5, 1])), max_size=12))
def test_a_lost_object_is_rebuilt_to_the_same_posterior(outcomes: list[tuple[str, float]]) -> None:
    async def report() -> None:
        with world_of_instances() as world:
            elder = world.instance("elder")
            for number in range(3):
                await elder.record_outcome(f"elder-{number}", "outreach", "direct_roi", 1.0)
            await world.outboxes["elder"].flush()
            memory = world.instance()
            await memory.select_workflow("outreach", OUTREACH, "first")
            for number, (workflow, score) in enumerate(outcomes):
                await memory.record_outcome(f"run-{number}", "outreach", workflow, score)
            await world.outboxes["main"].flush()
            before = memory.posteriors()
            world.lose()
            reborn = world.instance()
            await reborn.select_workflow("outreach", OUTREACH, "next")
            assert reborn.posteriors() == before

    asyncio.run(report())


async def test_what_was_reported_to_a_lost_object_is_in_its_next_posterior(world: World) -> None:
    memory = world.instance()
    await memory.select_workflow("outreach", OUTREACH, "run-1")
    await world.outboxes["main"].flush()
    world.lose()
    assert await world.instance().record_outcome("run-1", "outreach", "question", 1.0) is None
    reborn = world.instance()
    await reborn.select_workflow("outreach", OUTREACH, "run-2")
    assert reborn.posteriors()["outreach"]["question"] == Posterior(2, 1)


async def test_a_new_instance_starts_with_a_weakened_prior_from_its_house(world: World) -> None:
    elder = world.instance("elder", Scope("acme", "closer", "sales"))
    for number in range(40):
        await elder.record_outcome(f"run-{number}", "outreach", "direct_roi", 0.75)
    await world.outboxes["elder"].flush()
    memory = world.instance()
    await memory.select_workflow("outreach", OUTREACH, "run-x")
    assert memory.posteriors()["outreach"] == {
        "direct_roi": prior(30.0, 40),
        "question": Posterior(),
        "social_proof": Posterior(),
    }


@pytest.mark.parametrize(
    "teacher",
    [
        Scope("globex", "sdr", "sales"),
        Scope("acme", "sdr", "support"),
        Scope("acme", "closer"),
    ],
    ids=["another tenant", "another house", "another agent without a house"],
)
async def test_nothing_is_learned_from_outside_the_house(world: World, teacher: Scope) -> None:
    elder = world.instance("elder", teacher)
    await elder.record_outcome("run-1", "outreach", "direct_roi", 1.0)
    await world.outboxes["elder"].flush()
    memory = world.instance()
    await memory.select_workflow("outreach", OUTREACH, "run-2")
    assert memory.posteriors()["outreach"]["direct_roi"] == Posterior()


async def test_without_a_house_instances_of_the_same_agent_teach_each_other(world: World) -> None:
    alone = Scope("acme", "sdr")
    await world.instance("elder", alone).record_outcome("run-1", "outreach", "direct_roi", 1.0)
    await world.outboxes["elder"].flush()
    memory = world.instance("main", alone)
    await memory.select_workflow("outreach", OUTREACH, "run-2")
    assert memory.posteriors()["outreach"]["direct_roi"] == Posterior(2, 1)


async def test_task_types_are_learned_separately_even_if_their_workflows_share_a_name(world: World) -> None:
    await world.instance("elder").record_outcome("run-1", "follow_up", "direct_roi", 1.0)
    await world.outboxes["elder"].flush()
    memory = world.instance()
    await memory.select_workflow("outreach", OUTREACH, "run-2")
    assert memory.posteriors()["outreach"]["direct_roi"] == Posterior()


@pytest.mark.parametrize("nth", range(1, 14))
async def test_a_crash_at_any_point_neither_loses_nor_doubles_an_outcome(world: World, nth: int) -> None:
    memory = world.instance()
    await memory.select_workflow("outreach", OUTREACH, "run-1")
    await world.outboxes["main"].flush()
    world.faults.plan(Fault(Crash(), nth=nth))
    try:
        await memory.record_outcome("run-1", "outreach", "question", 1.0)
        await world.outboxes["main"].flush()
    except Crash:
        memory = world.instance()
        await memory.record_outcome("run-1", "outreach", "question", 1.0)
        await world.outboxes["main"].flush()
    world.faults.cancel()
    held = memory.posteriors()["outreach"]["question"]
    rows = (await world.sql.run("SELECT score FROM procedure_outcomes")).rows
    assert (held, [row["score"] for row in rows]) == (Posterior(2, 1), [1.0])


@pytest.mark.parametrize("point", ["sql.batch", "sql.run"])
async def test_without_d1_nothing_is_learned_and_the_caller_gets_an_error(world: World, point: str) -> None:
    memory = world.instance()
    await memory.select_workflow("outreach", OUTREACH, "run-1")
    world.faults.plan(Fault(Unavailable("D1 is away"), point=point))
    with pytest.raises(Unavailable):
        await memory.record_outcome("run-1", "outreach", "question", 1.0)
    assert memory.posteriors()["outreach"]["question"] == Posterior()


async def test_the_workflow_that_works_is_chosen_more_and_more(world: World) -> None:
    memory, answers = world.instance(), Random(7)
    rates = {"direct_roi": 0.8, "social_proof": 0.4, "question": 0.2}
    chosen = []
    for number in range(120):
        run_id = f"run-{number}"
        choice = await memory.select_workflow("outreach", OUTREACH, run_id)
        chosen.append(choice.workflow_id)
        await memory.record_outcome(
            run_id, "outreach", choice.workflow_id, float(answers.random() < rates[choice.workflow_id])
        )
    assert chosen[-40:].count("direct_roi") > chosen[:40].count("direct_roi")
    assert chosen[-40:].count("direct_roi") >= 30
