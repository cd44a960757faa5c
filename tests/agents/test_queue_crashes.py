"""The queue of an instance that dies: each run that was accepted runs, once, in order, whatever is lost.

Invariants 4 (a crash loses nothing and shows nothing half-done), 5 (nothing that matters is only in the object) and 6.
"""

from __future__ import annotations

import asyncio
from contextlib import closing, suppress
from typing import Any

import pytest

from retain.agents.execution.parked import ask_for_overdue
from retain.errors import RetainError
from retain.models.chat import ChatReply, ChatRequest, OnText
from tests.agents.conftest import agent
from tests.agents.remembered import check_d1_agrees
from tests.agents.stepped_chat import calls, says
from tests.agents.test_crash_points import different
from tests.support.faults import Crash, Fault
from tests.support.instances import HOUR_MS, Deployment, LocalInstances, Upstream, catalogue

NAME = "clerk:acme:main"
ORDERS = ("A-1", "B-2", "C-3")


class Payer:
    """A model that pays the order that it is asked for, and then says so. Each answer takes a few turns of the loop."""

    name = "payer"

    async def complete(self, request: ChatRequest, on_text: OnText | None = None) -> ChatReply:
        """Answer."""
        for _ in range(20):
            await asyncio.sleep(0)
        last = request.messages[-1]
        return says("paid") if last.role == "tool" else calls(("pay", {"order": last.content}))


def deployed() -> tuple[Deployment, Upstream]:
    pay = Upstream("pay", idempotent=False)
    clerk = agent("clerk", limits={"busy": "queue"}, tools=["pay"])
    return Deployment(catalogue(clerk), upstreams=[pay], chat=lambda _: Payer()), pay


async def asked_for(deployment: Deployment) -> dict[str, dict[str, Any]]:
    """Ask for each order, one right after the other; return the answers that came."""
    asking = {order: asyncio.create_task(deployment.run("clerk", order, key=order)) for order in ORDERS}
    answers = {}
    for order, answer in asking.items():
        with suppress(Crash, RetainError):
            answers[order] = await answer
    return answers


async def check_all_ran(deployment: Deployment, pay: Upstream) -> None:
    """Check that each order was paid once at most, in the order of the runs, and that each has ended with D1 knowing it.

    That of the runs is the order in which they were accepted: who asks again after a crash may be last.
    """
    paid = [arguments["order"] for arguments, _ in pay.asked]
    rows = await deployment.rows("SELECT run_id, status, input ->> '$.input' AS asked FROM agent_runs ORDER BY run_id")
    asked = [row["asked"] for row in rows]
    assert (sorted(asked), {row["status"] for row in rows}) == (list(ORDERS), {"completed"})
    assert paid == [order for order in asked if order in paid]
    assert deployment.local(NAME, "SELECT 1 FROM queued_runs") == []
    assert await deployment.rows("SELECT 1 FROM parked_runs") == []
    await check_d1_agrees(deployment)


async def undisturbed() -> list[int]:
    """Return the numbers of the points at which dying makes a difference."""
    deployment, pay = deployed()
    with closing(deployment):
        answers = await asked_for(deployment)
        assert [answers[order]["status"] for order in ORDERS] == ["completed", "queued", "queued"]
        await deployment.settled()
        trace = list(deployment.faults.trace)
        await deployment.recover()
        await check_all_ran(deployment, pay)
        assert [arguments["order"] for arguments, _ in pay.asked] == list(ORDERS)
        return [number for number, _ in different(trace)]


@pytest.mark.parametrize("retried", [False, True], ids=["nobody asks again first", "the requests are repeated at once"])
async def test_invariant_4_a_crash_at_any_point_of_a_queue_loses_no_run_and_runs_none_twice(retried: bool) -> None:
    numbers = await undisturbed()
    assert len(numbers) > 50
    for number in numbers:
        deployment, pay = deployed()
        with closing(deployment):
            deployment.faults.plan(Fault(Crash(), number))
            answers = await asked_for(deployment)
            await deployment.settled()
            assert not deployment.faults.pending
            if retried:
                await deployment.restart()
            else:
                await deployment.recover()
            again = await asked_for(deployment)
            await deployment.recover()
            assert {order: again[order]["run_id"] for order in answers} == {
                order: answer["run_id"] for order, answer in answers.items()
            }
            await check_all_ran(deployment, pay)


async def lost() -> tuple[Deployment, Upstream, dict[str, str]]:
    """Return a deployment whose clerk has lost its storage while two runs were queued, and their ids."""
    deployment, pay = deployed()
    asking = asyncio.create_task(asked_for(deployment))
    while (
        not deployment.storages
        or len(deployment.local(NAME, "SELECT 1 FROM sqlite_master WHERE name = 'queued_runs'")) < 1
    ):
        await asyncio.sleep(0)
    while len(deployment.local(NAME, "SELECT 1 FROM queued_runs")) < 2 or deployment.local(
        NAME, "SELECT 1 FROM outbox"
    ):
        await asyncio.sleep(0)
    deployment.faults.kill()
    answers = await asking
    await deployment.lose(NAME)
    assert list(answers) == list(ORDERS[1:])
    return deployment, pay, {order: answer["run_id"] for order, answer in answers.items()}


async def test_invariant_5_a_queue_survives_the_loss_of_the_storage_of_its_object() -> None:
    deployment, pay, ids = await lost()
    with closing(deployment):
        for run_id in ids.values():
            assert (await deployment.ask("clerk", "show", run_id=run_id))["status"] == "queued"
        assert [row["run_id"] for row in (await deployment.describe("clerk"))["queue"]] == list(ids.values())
        await deployment.recover()
        for order, run_id in ids.items():
            assert (await deployment.ask("clerk", "show", run_id=run_id))["output"] == "paid"
            assert [arguments for arguments, _ in pay.asked].count({"order": order}) == 1
        assert await deployment.rows("SELECT 1 FROM parked_runs") == []


async def test_a_queued_run_that_was_lost_is_found_by_its_key() -> None:
    deployment, pay, ids = await lost()
    with closing(deployment):
        found = await deployment.run("clerk", ORDERS[1], key=ORDERS[1])
        assert (found["run_id"], found["output"]) == (ids[ORDERS[1]], "paid")
        await deployment.recover()
        assert [arguments for arguments, _ in pay.asked].count({"order": ORDERS[1]}) == 1


async def test_a_queued_run_that_was_lost_does_not_run_after_its_repeated_request_did() -> None:
    deployment, pay, ids = await lost()
    with closing(deployment):
        order, other = ORDERS[1:]
        await deployment.run("clerk", "another")  # an object that has a run does not ask D1 for the key
        assert (await deployment.run("clerk", order, key=order))["output"] == "paid"
        assert (await deployment.ask("clerk", "show", run_id=ids[order]))["status"] == "cancelled"
        assert (await deployment.ask("clerk", "show", run_id=ids[other]))["status"] == "queued"
        await deployment.recover()
        assert [arguments for arguments, _ in pay.asked].count({"order": order}) == 1


async def test_the_daily_work_finds_a_queued_run_whose_object_has_lost_its_storage() -> None:
    deployment, _, ids = await lost()
    with closing(deployment):
        deployment.clock.advance(3 * HOUR_MS)
        counts = await ask_for_overdue(deployment.sql, LocalInstances(deployment), deployment.clock)
        assert counts == {"asked": 2, "failed": 0}
        await deployment.recover()
        for run_id in ids.values():
            report = await deployment.ask("clerk", "show", run_id=run_id)
            assert (report["status"], report["error"]["code"]) == ("failed", "queue_deadline")
        assert await deployment.rows("SELECT 1 FROM parked_runs") == []
