"""What each call of an instance costs: statements in the object, alarms that are set, and calls of D1 and KV.

The platform bills each. The numbers are those of the call itself, until it answers: nothing of what it leaves to the
background is among them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from retain.agents.catalogue import AgentCatalogue
from retain.agents.identity import instance_of
from tests.agents.stepped_chat import SteppedChat, calls
from tests.support.instances import HOUR_MS, Deployment, Upstream

Agents = Callable[..., AgentCatalogue]
Deploy = Callable[..., Deployment]
NAME = "clerk:acme:main"
PAY = calls(("pay", {"order": "AB-1"}))
ASKED: dict[str, Any] = {"input": "hello", "metadata": {}, "idempotency_key": "ended"}
WAITS: dict[str, Any] = {"input": "pay AB-1", "metadata": {}, "idempotency_key": "waits"}
BY_ANN: dict[str, Any] = {"by": "ann", "reason": None}
FOLLOWED: dict[str, Any] = {"after": 0, "turn": 0, "offset": 0, "wait_s": 0}


@pytest.fixture
async def desk(deploy: Deploy, agents: Agents) -> Deployment:
    """Return a deployment whose clerk has a run that has ended and one that waits, and owes nothing."""
    clerk = {
        "tools": ["pay"],
        "approval": ["pay"],
        "working_memory": True,
        "procedures": {"mail": {"short": "Be short."}},
    }
    noted = calls(("set_working_memory", {"key": "k", "value": 1}))
    chat = SteppedChat(noted, PAY)
    deployment = deploy(agents(clerk=clerk), upstreams=[Upstream("pay", idempotent=False)], chat=chat)
    for request in (WAITS, ASKED):
        await deployment.ask("clerk", "run", **request)
        await deployment.settled()
    return deployment


def id_of(deployment: Deployment, status: str) -> str:
    [row] = deployment.local(NAME, f"SELECT run_id FROM turn_state WHERE status = '{status}'")
    return str(row["run_id"])


async def cost_of(deployment: Deployment, work: Callable[[], Awaitable[object]]) -> dict[str, int]:
    del deployment.faults.trace[:]
    await work()
    return dict(
        Counter(point for _, point in deployment.faults.trace if point != "answer" and not point.endswith(" done"))
    )


@pytest.mark.parametrize(
    ("method", "status", "fields", "expected"),
    [
        pytest.param("run", None, ASKED, {"local.run": 3}, id="run again"),
        pytest.param("start", None, ASKED, {"local.run": 3}, id="start again"),
        pytest.param("run", None, WAITS, {"local.run": 5}, id="run again while it waits"),
        pytest.param("show", "completed", {}, {"local.run": 4}, id="show"),
        pytest.param("follow", "completed", FOLLOWED, {"local.run": 6}, id="follow"),
        pytest.param(
            "answer",
            "waiting",
            {**BY_ANN, "call": "2.0", "approved": True},
            {"local.run": 15, "local.atomically": 1, "alarm.set": 1},
            id="answer",
        ),
        pytest.param("cancel", "completed", BY_ANN, {"local.run": 7}, id="cancel what has ended"),
        pytest.param(
            "cancel_call",
            None,
            {**BY_ANN, "idempotency_key": "ended"},
            {"local.run": 6},
            id="cancel by key",
        ),
        pytest.param("wake", "waiting", {}, {"local.run": 6}, id="wake"),
        pytest.param("describe", None, {}, {"local.run": 6}, id="describe"),
        pytest.param("erase", None, {"term": "nowhere"}, {"local.run": 7}, id="erase a term"),
        pytest.param("erase", None, {}, {"local.run": 14, "kv.delete": 1}, id="erase everything"),
    ],
)
async def test_a_call_costs(
    desk: Deployment, method: str, status: str | None, fields: dict[str, Any], expected: dict[str, int]
) -> None:
    named: dict[str, Any] = {} if status is None else {"run_id": id_of(desk, status)}
    assert await cost_of(desk, lambda: desk.ask("clerk", method, **named, **fields)) == expected
    await desk.settled()


async def test_an_outcome_costs(desk: Deployment) -> None:
    fields: dict[str, Any] = {
        "run_id": id_of(desk, "completed"),
        "task_type": "mail",
        "workflow_id": "short",
        "score": 1,
    }
    assert await cost_of(desk, lambda: desk.ask("clerk", "record_outcome", **fields)) == {
        "local.run": 5,
        "local.atomically": 1,
        "sql.run": 1,
        "alarm.set": 1,
    }
    await desk.settled()


@pytest.mark.parametrize(
    ("after_ms", "expected"),
    [
        pytest.param(0, {"local.run": 7, "alarm.set": 1}, id="nothing is due"),
        pytest.param(23 * HOUR_MS, {"local.run": 7, "alarm.set": 1}, id="before idleness"),
        pytest.param(24 * HOUR_MS, {"local.run": 13, "kv.delete": 1, "sql.batch": 1}, id="idle"),
    ],
)
async def test_an_alarm_costs(desk: Deployment, after_ms: int, expected: dict[str, int]) -> None:
    await desk.ask("clerk", "cancel", run_id=id_of(desk, "waiting"), **BY_ANN)
    await desk.settled()
    desk.clock.advance(after_ms)
    living = desk.living(NAME, instance_of("acme", "clerk", "main"))
    assert await cost_of(desk, living.on_alarm) == expected


async def test_a_run_costs(desk: Deployment) -> None:
    async def whole() -> None:
        await desk.run("clerk", "hello")
        await desk.settled()

    found = await cost_of(desk, whole)
    assert {name: found[name] for name in ("local.run", "sql.batch", "alarm.set")} == {
        "local.run": 17,
        "sql.batch": 2,
        "alarm.set": 2,
    }


@pytest.mark.parametrize(("again", "alarms"), [("run", 1), ("answer", 2)])
async def test_rebuilding_a_waiting_run_that_the_object_has_lost_sets_one_alarm(
    desk: Deployment, again: str, alarms: int
) -> None:
    run_id = id_of(desk, "waiting")
    await desk.lose(NAME)
    parked = {"run_id": run_id} if again == "answer" else {}
    fields = {**BY_ANN, "call": "2.0", "approved": True} if again == "answer" else WAITS
    found = await cost_of(desk, lambda: desk.ask("clerk", again, **parked, **fields))
    assert found["alarm.set"] == alarms, "the answer sets one of its own"
    await desk.settled()
