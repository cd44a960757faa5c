"""The life of a queue as a state machine: requests at once, cancellations, crashes, D1 down and up, in any order."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Coroutine
from typing import Any, TypeVar

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from retain.errors import RetainError, Unavailable
from tests.agents.conftest import agent
from tests.agents.remembered import check_d1_agrees
from tests.agents.test_queue_crashes import NAME, Payer
from tests.support.faults import Crash, Fault
from tests.support.instances import HOUR_MS, Deployment, Upstream, catalogue

Result = TypeVar("Result")
MOST = 3
ORDERS = st.sampled_from([f"A-{number}" for number in range(8)])
SEVERAL = st.lists(ORDERS, min_size=2, max_size=6)
FAILING = st.sampled_from(["sql.batch", "sql.batch done", "sql.run", "tool.call", "tool.call done"])
ENDED = ("completed", "failed", "cancelled")


class QueueLifecycle(RuleBasedStateMachine):
    """Whatever happens: what was accepted ends, is paid once at most and in order, and the queue keeps its bound."""

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.pay = Upstream("pay", idempotent=False)
        limits = {"busy": "queue", "max_queued_runs": MOST, "queue_minutes": 1_440}
        clerk = agent("clerk", tools=["pay"], limits=limits)
        self.deployment = Deployment(catalogue(clerk), upstreams=[self.pay], chat=lambda _: Payer())
        self.faults = self.deployment.faults
        self.accepted: dict[str, str] = {}

    def happen(self, *work: Coroutine[Any, Any, Result]) -> list[Result | None]:
        """Do the work, all of it at once, then restart what died of it."""

        async def guarded(one: Coroutine[Any, Any, Result]) -> Result | None:
            try:
                return await one
            except (Crash, RetainError):
                return None

        async def together() -> list[Result | None]:
            results = await asyncio.gather(*map(guarded, work))
            await self.deployment.settled()
            return results

        results = self.runner.run(together())
        if not self.faults.pending:
            self.runner.run(self.deployment.restart())
        return results

    @rule(orders=SEVERAL)
    def ask_at_once(self, orders: list[str]) -> None:
        answers = self.happen(*(self.deployment.run("clerk", order, key=order) for order in orders))
        for order, answer in zip(orders, answers, strict=True):
            if answer is not None:
                assert self.accepted.setdefault(order, answer["run_id"]) == answer["run_id"]

    @rule(orders=SEVERAL, after=st.integers(1, 200))
    def crash_while_asked(self, orders: list[str], after: int) -> None:
        self.plan_a_crash(after)
        self.ask_at_once(orders)

    @rule(orders=SEVERAL, cancelled=ORDERS)
    def cancel_while_asked(self, orders: list[str], cancelled: str) -> None:
        cancelling = self.deployment.ask("clerk", "cancel_call", idempotency_key=cancelled, by="ann", reason=None)
        asking = [self.deployment.run("clerk", order, key=order) for order in orders]
        *answers, _ = self.happen(*asking, cancelling)
        for order, answer in zip(orders, answers, strict=True):
            if answer is not None:
                assert self.accepted.setdefault(order, answer["run_id"]) == answer["run_id"]

    @rule(after=st.integers(1, 200))
    def plan_a_crash(self, after: int) -> None:
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
        [at_ms] = self.happen(self.deployment.next_alarm_ms())
        if at_ms is not None and at_ms < clock() + HOUR_MS:
            clock.set(max(at_ms, clock()))
            self.happen(self.deployment.fire_alarms())
        assert self.deployment.alarm_failures == []

    @rule()
    def put_everything_to_sleep(self) -> None:
        self.runner.run(self.deployment.evict())

    @invariant()
    def nothing_is_paid_twice(self) -> None:
        assert set(Counter(arguments["order"] for arguments, _ in self.pay.asked).values()) <= {1}

    @invariant()
    def the_queue_keeps_its_bound_and_holds_no_run_that_has_begun(self) -> None:
        queued, begun = self.rows("SELECT run_id FROM queued_runs"), self.rows("SELECT run_id FROM turn_state")
        assert len(queued) <= MOST
        assert not set(queued) & set(begun)
        assert len(self.rows("SELECT run_id FROM turn_state WHERE status = 'running'")) <= 1

    def rows(self, sql: str) -> list[str]:
        """Return the run ids of a query to the clerk's database."""

        async def read() -> list[str]:
            if NAME not in self.deployment.objects():
                return []
            return [str(row["run_id"]) for row in self.deployment.local(NAME, sql)]

        return self.runner.run(read())

    def teardown(self) -> None:
        deployment = self.deployment
        try:
            self.faults.down.clear()
            self.faults.cancel()
            self.runner.run(deployment.recover())
            assert self.rows("SELECT run_id FROM queued_runs") == []
            self.runner.run(check_d1_agrees(deployment))
            kept = self.runner.run(
                deployment.rows("SELECT run_id, status, input ->> '$.input' AS asked FROM agent_runs ORDER BY run_id")
            )
            assert {row["status"] for row in kept} <= set(ENDED)
            assert set(self.accepted.items()) <= {(str(row["asked"]), str(row["run_id"])) for row in kept}
            assert len({row["asked"] for row in kept}) == len(kept), "one key is one run"
            paid = [arguments["order"] for arguments, _ in self.pay.asked]
            assert paid == [row["asked"] for row in kept if row["asked"] in paid], "in the order of acceptance"
            assert self.runner.run(deployment.rows("SELECT 1 FROM parked_runs")) == []
        finally:
            deployment.close()
            self.runner.close()


TestQueueLifecycle = QueueLifecycle.TestCase
TestQueueLifecycle.settings = settings(max_examples=40, stateful_step_count=15, deadline=None)
