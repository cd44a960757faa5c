"""Moves that die at any call while the tenant is written and read: nothing acknowledged is lost, nothing read disappears."""

from __future__ import annotations

import asyncio
import contextlib

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from retain.errors import RetainError
from retain.lifecycle.moving.mover import KEPT_MS
from retain.shards.place import HOME, in_tenant
from tests.lifecycle.erasable import filled
from tests.lifecycle.moving.deployment import ShardedDeployment, living
from tests.lifecycle.moving.test_moving import same
from tests.support.faults import Crash, Fault

POINTS = [*range(1, 60, 7), *range(60, 900, 41)]
"""At which call of a store the mover dies: more often at the beginning."""


@pytest.mark.parametrize("nth", POINTS)
async def test_a_move_that_dies_at_a_call_is_continued_by_the_next(nth: int) -> None:
    with living(begun=filled()) as deployment:
        before = deployment.rows(HOME, "acme")
        deployment.faults.plan(Fault(Crash(), nth))
        with contextlib.suppress(Crash):
            await deployment.moved("acme", "DB_1")
        deployment.faults._planned.clear()  # the move has fewer calls
        deployment.isolate()
        deployment.clock.advance(KEPT_MS + 1)
        with contextlib.suppress(RetainError):  # it may be over
            move = await deployment.moved("acme", "DB_1")
            assert move.state == "completed"
        same(deployment.rows("DB_1", "acme"), before)
        assert deployment.rows(HOME, "acme") == {}


TENANTS = ("default", "other")
SHARDS = (HOME, "DB_1", "DB_2")


class Traffic(RuleBasedStateMachine):
    """Two tenants that are written, changed and read while they move between three databases, with deaths at any call."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.deployment = ShardedDeployment()
        self.loop.run_until_complete(self.deployment.register("other"))
        self.known: dict[str, list[str]] = {tenant: [] for tenant in TENANTS}
        self.number = 0
        self.ends: list[str] = []

    @rule(tenant=st.sampled_from(TENANTS))
    def write(self, tenant: str) -> None:
        """Store a memory. One that is refused is not known."""
        self.number += 1
        text = f"Note {self.number} about the harbour."
        try:
            self.loop.run_until_complete(self.deployment.store(tenant, text))
        except RetainError as error:
            assert error.code == "tenant_moving"
        else:
            self.known[tenant].append(text)

    @rule(
        tenant=st.sampled_from(TENANTS),
        where=st.sampled_from(SHARDS),
        calls=st.integers(1, 12),
        nth=st.integers(0, 90),
    )
    def move(self, tenant: str, where: str, calls: int, nth: int) -> None:
        """Start a move or continue one for some calls; die at the nth call of a store, 0 for not."""
        if nth:
            self.deployment.faults.plan(Fault(Crash(), nth))
        self.loop.run_until_complete(self._moved(tenant, where, calls))
        self.deployment.faults._planned.clear()
        self.deployment.isolate()
        self.deployment.clock.advance(KEPT_MS + 1)

    async def _moved(self, tenant: str, where: str, calls: int) -> None:
        with contextlib.suppress(Crash, RetainError):
            known = await self.deployment.mover.moves.find(tenant)
            move = known or await self.deployment.mover.start(tenant, where, "person:ada")
            for _ in range(calls):
                move = await self.deployment.mover.advance(move)
                if move.state != "running":
                    self.ends.append(move.state)
                    return

    @rule(tenant=st.sampled_from(TENANTS))
    def cancel(self, tenant: str) -> None:
        """Cancel what is open."""

        async def cancelled() -> None:
            with contextlib.suppress(RetainError):
                move = await self.deployment.mover.moves.find(tenant)
                if move is not None:
                    await self.deployment.mover.cancel(move)

        self.loop.run_until_complete(cancelled())

    @invariant()
    def everything_acknowledged_is_there(self) -> None:
        """Read what is known, as somebody who remembers nothing."""

        async def contents(tenant: str) -> list[str]:
            memory = self.deployment.memory(tenant)
            with in_tenant(tenant):
                rows = (await memory._sql.run("SELECT content FROM memory_records WHERE tenant_id = ?", tenant)).rows
            return [row["content"] for row in rows]

        for tenant, known in self.known.items():
            found = self.loop.run_until_complete(contents(tenant))
            assert set(known) <= set(found)
            assert len(found) == len(set(found))

    @invariant()
    def a_number_names_one_record(self) -> None:
        """Compare the numbers of the databases: the two sides of a move have the same record under one."""
        assert [number for number, ids in self.deployment.numbers().items() if len(ids) > 1] == []

    def teardown(self) -> None:
        """Let what is open end; then everything is found by its meaning as well, at one place."""

        async def ended(tenant: str) -> list[str]:
            for found in await self.deployment.mover.moves.all_open(2):
                move = found
                self.deployment.clock.advance(KEPT_MS + 1)
                while move.state == "running":
                    move = await self.deployment.mover.advance(move)
                    self.deployment.clock.advance(KEPT_MS + 1)
            return await self.deployment.recalled(tenant, "the harbour")

        try:
            for tenant, known in self.known.items():
                found = self.loop.run_until_complete(ended(tenant))
                assert len(found) >= min(20, len(known))
                having = [name for name in SHARDS if "memory_records" in self.deployment.rows(name, tenant)]
                assert len(having) <= 1
        finally:
            self.loop.close()


TestTraffic = Traffic.TestCase
TestTraffic.settings = settings(max_examples=12, stateful_step_count=14, deadline=None)
