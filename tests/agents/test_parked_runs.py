"""A waiting run whose instance has lost its storage is rebuilt from D1, and no call that may have been made is repeated."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing, suppress
from typing import Any

import pytest

from retain.agents.execution.control import EXPIRY
from retain.agents.execution.parked import ask_for_overdue
from retain.agents.retention import run_rules
from retain.agents.runs import owed
from retain.errors import Conflict, NotFound, Unavailable
from retain.models.chat import ChatReply, ChatRequest, OnText
from retain.retention import prune
from tests.agents.conftest import agent
from tests.agents.remembered import check_d1_agrees, remembered
from tests.agents.test_approval import ANN, CLERK, SteadyChat, answer
from tests.agents.test_crash_points import different
from tests.agents.test_waiting_delegates import chat as office_chat
from tests.ports import raises
from tests.support.faults import Crash, Fault
from tests.support.instances import HOUR_MS, Deployment, LocalInstances, Upstream, catalogue

NAME = "clerk:acme:main"
SUE = {"user": {"id": "sue"}}


class Recorded(SteadyChat):
    """Adds what it is asked to a list that outlives it."""

    def __init__(self, asked: list[ChatRequest]) -> None:
        super().__init__()
        self.requests = asked

    async def complete(self, request: ChatRequest, on_text: OnText | None = None) -> ChatReply:
        """Answer as its parent."""
        self.requests.append(request)
        reply: ChatReply = await super().complete(request, on_text)
        return reply


class Desk:
    """A clerk who pays when a person approves, and everything that its model was asked."""

    def __init__(self, fault: Fault | None = None) -> None:
        self.asked: list[ChatRequest] = []
        self.pay = Upstream("pay", idempotent=False)
        agents = catalogue(agent("clerk", **CLERK))
        self.deployment = Deployment(agents, upstreams=[self.pay], chat=lambda definition: Recorded(self.asked))
        if fault is not None:
            self.deployment.faults.plan(fault)

    async def ask(self, **more: Any) -> str:
        """Let the run wait, with everything that it owes written to D1; return its id."""
        waiting = await self.deployment.run("clerk", "pay AB-1", key="k", **more)
        await self.deployment.settled()
        assert waiting["status"] == "waiting"
        return str(waiting["run_id"])

    async def show(self, run_id: str) -> dict[str, Any]:
        await self.deployment.settled()
        return await self.deployment.ask("clerk", "show", run_id=run_id)

    async def parked(self) -> list[str]:
        return [row["run_id"] for row in await self.deployment.rows("SELECT run_id FROM parked_runs")]


@asynccontextmanager
async def desk(fault: Fault | None = None) -> AsyncIterator[Desk]:
    made = Desk(fault)
    with closing(made.deployment):
        yield made


@pytest.mark.parametrize("approved", [True, False], ids=["approved", "rejected"])
async def test_an_answer_to_a_run_whose_instance_lost_its_storage_ends_it_as_if_nothing_had_happened(
    approved: bool,
) -> None:
    async with desk() as undisturbed, desk() as lost:
        for one in (undisturbed, lost):
            run_id = await one.ask(**SUE)
            assert await one.parked() == [run_id]
            if one is lost:
                await one.deployment.lose(NAME)
            for _ in range(3):
                await answer(one.deployment, run_id, approved=approved)
            result = await one.show(run_id)
            assert (result["status"], result["output"]) == ("completed", "it is done")
            assert len(one.pay.asked) == approved
            assert await one.parked() == []
            await check_d1_agrees(one.deployment)
        assert [one.messages for one in lost.asked] == [one.messages for one in undisturbed.asked]
        assert await remembered(lost.deployment) == await remembered(undisturbed.deployment)
        [served] = lost.deployment.local(NAME, "SELECT user_id FROM served_user")
        assert served["user_id"] == "sue"


async def test_a_retry_of_the_request_finds_the_run_that_the_instance_lost() -> None:
    async with desk() as one:
        run_id = await one.ask()
        await one.deployment.lose(NAME)
        again = await one.deployment.run("clerk", "pay AB-1", key="k")
        assert (again["run_id"], again["status"]) == (run_id, "waiting")
        assert await one.deployment.next_alarm_ms() == again["waiting_for"]["expires_at_ms"]
        with pytest.raises(Conflict, match="another request"):
            await one.deployment.run("clerk", "pay AB-2", key="k")
        assert len(one.asked) == 1


@pytest.mark.parametrize("method", ["show", "follow", "wake", "cancel"])
async def test_every_call_that_names_the_run_rebuilds_it_with_its_alarm(method: str) -> None:
    async with desk() as one:
        run_id = await one.ask()
        await one.deployment.lose(NAME)
        fields: dict[str, Any] = {"after": -1, "turn": 0, "offset": 0, "wait_s": 0, "by": ANN, "reason": None}
        await one.deployment.ask("clerk", method, run_id=run_id, **fields)
        report = await one.show(run_id)
        if method == "cancel":
            assert (report["status"], await one.parked()) == ("cancelled", [])
        else:
            assert report["status"] == "waiting"
            assert await one.deployment.next_alarm_ms() == report["waiting_for"]["expires_at_ms"]


async def test_a_lost_question_that_has_expired_is_rejected() -> None:
    async with desk() as one:
        run_id = await one.ask()
        await one.deployment.lose(NAME)
        one.deployment.clock.advance(25 * HOUR_MS)
        with pytest.raises(Conflict) as refused:
            await answer(one.deployment, run_id)
        assert (refused.value.code, refused.value.details["by"]) == ("already_answered", EXPIRY)
        assert (await one.show(run_id))["status"] == "completed"
        assert one.pay.asked == []


async def test_an_instance_that_has_had_other_runs_since_rebuilds_the_lost_one() -> None:
    async with desk() as one:
        run_id = await one.ask()
        await one.deployment.lose(NAME)
        other = await one.deployment.run("clerk", "another", key="other")
        await answer(one.deployment, run_id)
        assert (await one.show(run_id))["status"] == "completed"
        assert (await one.show(other["run_id"]))["status"] == "waiting"


@pytest.mark.parametrize("method", ["show", "answer", "cancel", "daily"])
async def test_a_lost_run_whose_request_was_repeated_and_runs_as_another_one_is_cancelled(method: str) -> None:
    async with desk() as one:
        lost = await one.ask()
        await one.deployment.lose(NAME)
        other = await one.deployment.run("clerk", "another")  # an object that has a run does not ask D1 for the key
        again = await one.deployment.run("clerk", "pay AB-1", key="k")
        assert again["run_id"] != lost
        for run in (other, again):
            await answer(one.deployment, run["run_id"])
        await one.deployment.settled()
        if method == "answer":
            with raises(Conflict, code="run_cancelled"):
                await answer(one.deployment, lost)
        elif method == "daily":
            one.deployment.clock.advance(26 * HOUR_MS)
            counts = await ask_for_overdue(one.deployment.sql, LocalInstances(one.deployment), one.deployment.clock)
            assert counts == {"asked": 1, "failed": 0}
        else:
            await one.deployment.ask("clerk", method, run_id=lost, by=ANN, reason=None)
        await one.deployment.recover()
        assert (await one.show(lost))["status"] == "cancelled"
        [row] = await one.deployment.rows(f"SELECT status, waiting_for FROM agent_runs WHERE run_id = '{lost}'")
        assert (row["status"], row["waiting_for"], await one.parked()) == ("cancelled", None, [])
        assert len(one.pay.asked) == 2
        if method != "daily":  # by then the object has forgotten the others
            await check_d1_agrees(one.deployment)


@pytest.mark.parametrize("method", ["show", "answer", "cancel", "daily"])
async def test_a_lost_run_of_a_user_whose_instance_serves_another_one_by_now_is_cancelled(method: str) -> None:
    async with desk() as one:
        lost = await one.ask(**SUE)
        await one.deployment.lose(NAME)
        other = await one.deployment.run("clerk", "another", user={"id": "tom"})
        if method == "daily":
            one.deployment.clock.advance(26 * HOUR_MS)
            await ask_for_overdue(one.deployment.sql, LocalInstances(one.deployment), one.deployment.clock)
        else:
            with raises(NotFound, code="no_such_run"):
                if method == "answer":
                    await answer(one.deployment, lost)
                else:
                    await one.deployment.ask("clerk", method, run_id=lost, by=ANN, reason=None)
        await one.deployment.settled()
        [row] = await one.deployment.rows("SELECT status, waiting_for, error FROM agent_runs WHERE run_id = ?", lost)
        assert (row["status"], row["waiting_for"], json.loads(row["error"])["code"]) == (
            "cancelled",
            None,
            "wrong_user",
        )
        assert lost not in await one.parked()
        assert one.deployment.local(NAME, f"SELECT 1 FROM turn_state WHERE run_id = '{lost}'") == []
        if method != "daily":
            assert (await one.show(other["run_id"]))["status"] == "waiting"
        assert one.pay.asked == []


async def test_a_call_that_names_a_run_which_nobody_has_writes_nothing() -> None:
    async with desk() as one:
        run_id = await one.ask()
        for instance in ("other", "main"):
            with pytest.raises(NotFound):
                await one.deployment.ask(
                    "clerk", "show", instance=instance, run_id=run_id if instance == "other" else "x"
                )
        assert one.deployment.local("clerk:acme:other", "SELECT name FROM sqlite_master") == []


async def approved_and_lost(one: Desk, fault: Fault | None = None) -> list[tuple[str, str]]:
    """Approve a waiting run, which a fault may stop; then lose the object, and approve again.

    Return the points that the first approval reached.
    """
    run_id = await one.ask()
    before = len(one.deployment.faults.trace)
    if fault is not None:
        one.deployment.faults.plan(fault)
    with suppress(Crash):
        await answer(one.deployment, run_id)
    await one.deployment.settled()
    reached = one.deployment.faults.trace[before:]
    assert not one.deployment.faults.pending
    await one.deployment.restart()
    await one.deployment.lose(NAME)
    with suppress(NotFound):
        await answer(one.deployment, run_id)
    await one.deployment.recover()
    return reached


async def test_a_run_of_another_tenant_is_not_rebuilt_where_instances_and_keys_have_the_same_names() -> None:
    async with desk() as one:
        theirs = await one.ask()
        await one.deployment.lose(NAME)
        with pytest.raises(NotFound):
            await one.deployment.ask("clerk", "show", tenant="other", run_id=theirs)
        assert one.deployment.local("clerk:other:main", "SELECT name FROM sqlite_master") == []
        waiting = await one.deployment.run("clerk", "pay AB-1", tenant="other", key="k")
        assert waiting["run_id"] != theirs
        with pytest.raises(NotFound):
            await one.deployment.ask("clerk", "show", tenant="other", run_id=theirs)
        await one.deployment.settled()
        assert sorted(await one.parked()) == [theirs, waiting["run_id"]]
        assert (await one.show(theirs))["status"] == "waiting"


async def test_a_run_whose_wait_has_ended_is_never_rebuilt_so_no_call_is_made_twice() -> None:
    async with desk() as one:
        points = different(await approved_and_lost(one))
        assert (len(one.pay.asked), await one.parked()) == (1, [])
    assert "tool.call done" in {point for _, (_, point) in points}
    for number, point in points:
        async with desk() as one:
            await approved_and_lost(one, Fault(Crash(), number))
            assert len(one.pay.asked) <= 1, point


async def test_a_run_that_waits_for_longer_than_rows_of_runs_are_kept_is_shown_and_rebuilt_all_the_same() -> None:
    async with desk() as one:
        ended = await one.deployment.run("clerk", "say hello", key="other")
        await answer(one.deployment, ended["run_id"])
        run_id = await one.ask()
        one.deployment.clock.advance(20 * HOUR_MS)
        await prune(one.deployment.sql, one.deployment.clock(), run_rules(HOUR_MS))
        [row] = await one.deployment.rows("SELECT waiting_for ->> '$.call' AS call, texts FROM agent_runs")
        assert (row["call"], row["texts"]) == ("1.0", "kept")
        await one.deployment.lose(NAME)
        await answer(one.deployment, run_id)
        assert (await one.show(run_id))["status"] == "completed"
        one.deployment.clock.advance(HOUR_MS + 1)
        await prune(one.deployment.sql, one.deployment.clock(), run_rules(HOUR_MS))
        assert await one.deployment.rows("SELECT 1 FROM agent_runs") == []


async def test_a_caller_and_its_delegate_that_were_both_lost_are_rebuilt() -> None:
    agents = catalogue(agent("boss", delegates=["clerk"]), agent("clerk", tools=["pay"], approval=["pay"]))
    pay = Upstream("pay", idempotent=False)
    with closing(Deployment(agents, upstreams=[pay], chat=office_chat)) as deployment:
        waiting = await deployment.run("boss", "hello", key="k")
        await deployment.settled()
        names = deployment.objects()
        [row] = await deployment.rows("SELECT run_id, instance_id FROM parked_runs WHERE agent_type = 'clerk'")
        for name in names:
            await deployment.lose(name)
        await deployment.ask(
            "clerk", "answer", instance=row["instance_id"], run_id=row["run_id"], call="1.0", approved=True, by=ANN,
            reason=None,
        )  # fmt: skip
        await deployment.settled()
        result = await deployment.ask("boss", "show", run_id=waiting["run_id"])
        assert (result["status"], result["output"]) == ("completed", "boss done")
        assert (len(pay.asked), sorted(deployment.objects())) == (1, sorted(names))
        assert await deployment.rows("SELECT * FROM parked_runs") == []


async def test_a_run_is_not_rebuilt_while_its_instance_cannot_write_that_it_was_erased() -> None:
    async with desk() as one:
        run_id = await one.ask()
        one.deployment.faults.down.add("sql")
        await one.deployment.ask("clerk", "erase", term="AB-1")
        await one.deployment.settled()
        with pytest.raises(Unavailable):
            await answer(one.deployment, run_id)
        one.deployment.faults.down.clear()
        with pytest.raises(NotFound):
            await answer(one.deployment, run_id)
        assert await one.parked() == []


@pytest.mark.parametrize("mark", ["users", "tenants"])
async def test_a_run_of_somebody_who_is_being_erased_is_not_rebuilt(mark: str) -> None:
    async with desk() as one:
        run_id = await one.ask(**SUE)
        await one.deployment.lose(NAME)
        values = {"users": "'acme', 'sue', 'Z', 0", "tenants": "'acme', 'Z', 1"}[mark]
        await one.deployment.rows(f"INSERT INTO erased_{mark} VALUES ({values})")
        with pytest.raises(NotFound):
            await answer(one.deployment, run_id)


async def test_a_run_that_is_too_large_for_a_copy_waits_without_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(owed, "MAX_PARKED_CHARACTERS", 100)
    async with desk() as one:
        run_id = await one.ask()
        assert await one.parked() == []
        await answer(one.deployment, run_id)
        assert (await one.show(run_id))["status"] == "completed"


async def test_the_daily_work_asks_for_runs_whose_alarm_was_lost_with_their_storage() -> None:
    async with desk() as one:
        run_id = await one.ask()
        other = await one.deployment.run("clerk", "pay AB-2", instance="kept")
        await one.deployment.settled()
        await one.deployment.lose(NAME)
        instances = LocalInstances(one.deployment)

        async def asked() -> dict[str, int]:
            return await ask_for_overdue(one.deployment.sql, instances, one.deployment.clock)

        assert await asked() == {"asked": 0, "failed": 0}
        one.deployment.clock.advance(26 * HOUR_MS)
        await one.deployment.fire_alarms()  # of the instance that has its own
        assert await asked() == {"asked": 1, "failed": 0}
        one.deployment.clock.advance(2_000)
        await one.deployment.fire_alarms()
        assert (await one.show(run_id))["status"] == "completed"
        assert one.pay.asked == []
        assert (await one.parked(), await asked()) == ([], {"asked": 0, "failed": 0})
        assert other["status"] == "waiting"


async def test_runs_that_cannot_be_rebuilt_come_after_all_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("retain.agents.execution.parked.OVERDUE_AT_ONCE", 1)
    async with desk() as one:
        await one.ask()
        other = await one.deployment.run("clerk", "pay AB-2", instance="other")
        await one.deployment.settled()
        for name in (NAME, NAME.replace("main", "other")):
            await one.deployment.lose(name)
        await one.deployment.rows(f"DELETE FROM run_events WHERE run_id <> '{other['run_id']}'")
        for counts in ({"asked": 0, "failed": 1}, {"asked": 1, "failed": 0}):
            one.deployment.clock.advance(26 * HOUR_MS)
            instances = LocalInstances(one.deployment)
            assert await ask_for_overdue(one.deployment.sql, instances, one.deployment.clock) == counts


async def test_a_run_that_cannot_be_rebuilt_is_counted_and_does_not_stop_the_daily_work() -> None:
    async with desk() as one:
        await one.ask()
        await one.deployment.lose(NAME)
        await one.deployment.rows("DELETE FROM run_events")
        one.deployment.clock.advance(26 * HOUR_MS)
        counts = await ask_for_overdue(one.deployment.sql, LocalInstances(one.deployment), one.deployment.clock)
        assert counts == {"asked": 0, "failed": 1}
