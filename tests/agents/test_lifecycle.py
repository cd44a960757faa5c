"""The life of instances as a state machine: runs, retries, crashes anywhere, alarms, D1 down and up, in any order."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Coroutine
from typing import Any, TypeVar

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from retain.errors import RetainError, Unavailable
from tests.agents.remembered import check_d1_agrees
from tests.agents.shipping import shipping_deployment
from tests.support.faults import Crash, Fault
from tests.support.instances import HOUR_MS

Result = TypeVar("Result")
INSTANCES = st.sampled_from(["one", "two"])
KEYS = st.sampled_from(["k1", "k2", "k3"])
INPUTS = {"k1": "Ship AB-1001.", "k2": "Ship CD-2002.", "k3": "Good morning."}
FAILING = st.sampled_from(["sql.batch", "sql.batch done", "kv.put", "kv.put done", "tool.call", "tool.call done"])


class Lifecycle(RuleBasedStateMachine):
    """Whatever happens: a run closes once, its tools keep their promises, and D1 gets all of it once it is up."""

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.deployment = shipping_deployment()
        self.faults = self.deployment.faults
        self.answers: dict[tuple[str, str], dict[str, Any]] = {}
        self.unkeyed: list[str] = []

    def happen(self, work: Coroutine[Any, Any, Result]) -> Result | None:
        """Do the work, then restart what died of it."""

        async def guarded() -> Result | None:
            try:
                return await work
            except (Crash, RetainError):
                return None
            finally:
                await self.deployment.settled()

        result = self.runner.run(guarded())
        if not self.faults.pending:
            self.runner.run(self.deployment.restart())
        return result

    @rule(instance=INSTANCES, key=KEYS)
    def run_with_a_key(self, instance: str, key: str) -> None:
        result = self.happen(self.deployment.run("shipping", INPUTS[key], instance=instance, key=key))
        if result is not None:
            assert result["status"] in ("completed", "failed")
            assert self.answers.setdefault((instance, key), result) == result

    @rule(instance=INSTANCES)
    def run_without_a_key(self, instance: str) -> None:
        result = self.happen(self.deployment.run("shipping", "Ship EF-3003.", instance=instance))
        if result is not None:
            assert result["run_id"] not in self.unkeyed
            self.unkeyed.append(result["run_id"])

    @rule(instance=INSTANCES, key=KEYS, after=st.integers(1, 90), alone=st.booleans())
    def crash_in_a_run(self, instance: str, key: str, after: int, alone: bool) -> None:
        self.plan_a_crash(after, alone)
        self.run_with_a_key(instance, key)

    @rule(instance=INSTANCES, key=KEYS, after=st.integers(1, 90), again=st.integers(1, 60))
    def crash_in_a_run_and_in_the_alarm_after_it(self, instance: str, key: str, after: int, again: int) -> None:
        self.crash_in_a_run(instance, key, after, alone=False)
        self.plan_a_crash(again, alone=False)
        self.fire_the_next_alarm()

    @rule(after=st.integers(1, 90), alone=st.booleans())
    def plan_a_crash(self, after: int, alone: bool) -> None:
        self.faults.alone = alone
        self.faults.plan(Fault(Crash(), after))

    @rule(after=st.integers(1, 5), point=FAILING, outage=st.booleans())
    def plan_a_failure(self, after: int, point: str, outage: bool) -> None:
        self.faults.plan(Fault(Unavailable("it failed"), after, point, outage=outage))

    @rule()
    def recover_everything(self) -> None:
        self.faults.down.clear()

    @rule()
    def fire_the_next_alarm(self) -> None:
        clock = self.deployment.clock
        at_ms = self.happen(self.deployment.next_alarm_ms())
        if at_ms is not None and at_ms < clock() + HOUR_MS:
            clock.set(max(at_ms, clock()))
            self.happen(self.deployment.fire_alarms())
        assert self.deployment.alarm_failures == []

    @rule()
    def put_everything_to_sleep(self) -> None:
        self.runner.run(self.deployment.evict())

    @invariant()
    def no_run_closes_twice(self) -> None:
        closed = self.all_objects("SELECT run_id FROM run_log WHERE kind IN ('run_completed', 'run_failed')")
        assert set(closed.values()) <= {1}

    @invariant()
    def no_label_is_made_twice(self) -> None:
        asked = Counter(key for _, key in self.deployment.upstreams["create_label"].asked)
        assert set(asked.values()) <= {1}

    def all_objects(self, sql: str) -> Counter[str]:
        """Count the first values of a query to every object's database."""

        async def counted() -> Counter[str]:
            names = self.deployment.objects()
            return Counter(next(iter(row.values())) for name in names for row in self.deployment.local(name, sql))

        return self.runner.run(counted())

    def teardown(self) -> None:
        deployment = self.deployment
        try:
            self.faults.down.clear()
            self.faults.cancel()
            self.runner.run(deployment.recover())
            self.runner.run(check_d1_agrees(deployment))
            local = self.all_objects("SELECT run_id FROM turn_state")
            kept = self.runner.run(deployment.rows("SELECT run_id FROM agent_runs"))
            assert Counter(row["run_id"] for row in kept) == local
            assert {result["run_id"] for result in self.answers.values()} | set(self.unkeyed) <= set(local)
            for (instance, key), result in self.answers.items():
                assert self.happen(deployment.run("shipping", INPUTS[key], instance=instance, key=key)) == result
        finally:
            deployment.close()
            self.runner.close()


TestLifecycle = Lifecycle.TestCase
TestLifecycle.settings = settings(max_examples=50, stateful_step_count=20, deadline=None)
