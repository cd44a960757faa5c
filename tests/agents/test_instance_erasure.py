"""What an instance erases of itself, what it refuses to erase, and what D1 learns of it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from retain.agents.catalogue import AgentCatalogue
from retain.errors import Conflict, Unavailable
from retain.models.chat import ChatReply, ChatRequest, OnText
from tests.agents.stepped_chat import SteppedChat, calls, says
from tests.agents.test_tenant_agents import define
from tests.ports import raises
from tests.support.faults import Crash, Fault
from tests.support.held import Held
from tests.support.instances import Deployment, Upstream

Agents = Callable[..., AgentCatalogue]
Deploy = Callable[..., Deployment]
DESK = "sdr:acme:main"
ANN = {"id": "ann"}


class AnswersOnce(SteppedChat):
    """Answers the first question at once, and each further one when it is let go."""

    async def complete(self, request: ChatRequest, on_text: OnText | None = None) -> ChatReply:
        reply = await super().complete(request, on_text)
        if len(self.requests) == 1:
            self.hold()
        return reply


async def test_an_instance_is_not_erased_while_a_run_is_under_way(deploy: Deploy) -> None:
    chat = SteppedChat(says("done"), hold=True)
    deployment = deploy(chat=chat)
    run = asyncio.create_task(deployment.run("sdr", "hello"))
    await chat.asked.wait()
    for term in (None, "AB-1"):
        with raises(Conflict, code="instance_busy"):
            await deployment.ask("sdr", "erase", term=term)
    chat.let_go()
    assert (await run)["output"] == "done"
    await deployment.settled()


async def test_erasing_everything_leaves_nothing_not_even_who_it_was(deploy: Deploy) -> None:
    chat = SteppedChat(calls(("set_working_memory", {"key": "k", "value": 1})), says("bye"))
    deployment = deploy(chat=chat)
    await deployment.run("sdr", "hello")
    await deployment.settled()
    noted = await deployment.rows("SELECT * FROM kv_audit")
    assert len(noted) == 1
    assert await deployment.ask("sdr", "erase") == {"everything": True}
    await deployment.settled()
    for table in ("identity", "turn_state", "run_log", "working_memory", "outbox"):
        assert deployment.local(DESK, f"SELECT 1 FROM {table}") == [], table
    assert await deployment.rows("SELECT * FROM kv_audit") == noted, "an erasure is noted on its receipt alone"
    assert (await deployment.run("sdr", "hello again"))["status"] == "completed"
    await deployment.settled()


async def test_erasing_a_user_erases_everything_of_the_instance_that_serves_them_and_nothing_of_another(
    deploy: Deploy,
) -> None:
    deployment = deploy(chat=SteppedChat())
    await deployment.run("sdr", "hello", user=ANN)
    await deployment.settled()
    assert await deployment.ask("sdr", "erase", user_id="ben") == {"everything": False}
    assert len(deployment.local(DESK, "SELECT 1 FROM turn_state")) == 1
    assert await deployment.ask("sdr", "erase", user_id="ann") == {"everything": True}
    assert deployment.local(DESK, "SELECT 1 FROM turn_state") == []
    await deployment.settled()


async def test_a_term_is_erased_only_after_d1_has_what_is_owed(deploy: Deploy) -> None:
    chat = SteppedChat(says("done"), hold=True)
    deployment = deploy(chat=chat)
    run = asyncio.create_task(deployment.run("sdr", "about AB-1"))
    await chat.asked.wait()
    deployment.faults.down.add("sql")
    chat.let_go()
    await run
    await deployment.settled()
    with raises(Unavailable, code="outbox_waits"):
        await deployment.ask("sdr", "erase", term="AB-1")
    assert len(deployment.local(DESK, "SELECT 1 FROM turn_state")) == 1
    deployment.faults.down.clear()
    assert await deployment.ask("sdr", "erase", term="AB-1") == {"everything": False}
    assert deployment.local(DESK, "SELECT 1 FROM turn_state") == []
    await deployment.settled()
    await deployment.run("sdr", "next")
    await deployment.settled()
    assert len(deployment.local(DESK, "SELECT 1 FROM turn_state")) == 1


async def test_after_an_erasure_changes_in_kv_are_noted_again(deploy: Deploy) -> None:
    noted = calls(("set_working_memory", {"key": "k", "value": 1}))
    deployment = deploy(chat=SteppedChat(says("hello"), noted, says("bye")))
    await deployment.run("sdr", "hello")
    await deployment.ask("sdr", "erase", term="AB-1")
    await deployment.run("sdr", "note it")
    await deployment.settled()
    assert len(await deployment.rows("SELECT * FROM kv_audit")) == 1


async def test_a_term_is_not_erased_while_a_run_is_interrupted_and_everything_is(deploy: Deploy) -> None:
    deployment = deploy(chat=SteppedChat())
    deployment.faults.plan(Fault(Crash(), point="chat.complete"))
    with pytest.raises(Crash):
        await deployment.run("sdr", "about AB-1")
    await deployment.restart()
    with raises(Conflict, code="instance_busy"):
        await deployment.ask("sdr", "erase", term="AB-1")
    assert deployment.local(DESK, "SELECT status FROM turn_state") == [{"status": "running"}]
    assert await deployment.ask("sdr", "erase") == {"everything": True}
    assert deployment.local(DESK, "SELECT status FROM turn_state") == []


@pytest.mark.parametrize("term", [None, "Lyon"])
async def test_nothing_else_happens_while_an_instance_is_erased(
    deploy: Deploy, agents: Agents, term: str | None
) -> None:
    learns = {"memory_config": {"long_term_enabled": True, "recall": "context", "profile": {}, "learn": "model"}}
    chat = AnswersOnce()
    deployment = deploy(agents(clerk=learns), chat=chat)
    await deployment.run("clerk", "I live in Lyon.", user=ANN)
    await chat.asked.wait()
    erased = asyncio.create_task(deployment.ask("clerk", "erase", term=term))
    for _ in range(10):
        await asyncio.sleep(0)  # the model reads what is to be learned, and the erasure waits for that
    assert not erased.done()
    for method, fields in (("run", {"input": "hello", "metadata": {}}), ("erase", {"term": term})):
        with raises(Conflict, code="instance_busy"):
            await deployment.ask("clerk", method, **fields)
    chat.let_go()
    assert await erased == {"everything": term is None}
    await deployment.settled()
    assert deployment.local("clerk:acme:main", "SELECT 1 FROM turn_state") == []


async def test_a_term_is_erased_from_working_memory_which_is_noted_on_the_receipt_alone(deploy: Deploy) -> None:
    noted = calls(
        ("set_working_memory", {"key": "k", "value": "AB-1"}), ("set_working_memory", {"key": "l", "value": 1})
    )
    deployment = deploy(chat=SteppedChat(noted, says("bye")))
    await deployment.run("sdr", "hello")
    await deployment.settled()
    changes = await deployment.rows("SELECT * FROM kv_audit")
    assert len(changes) == 2
    await deployment.ask("sdr", "erase", term="AB-1")
    await deployment.settled()
    assert (await deployment.describe("sdr"))["working"] == {"l": 1}
    assert await deployment.kv.get("agent_working:acme:main:sdr.k") is None
    assert await deployment.rows("SELECT * FROM kv_audit") == changes


async def test_a_waiting_run_that_names_a_term_is_cancelled_in_d1_at_once(deploy: Deploy, agents: Agents) -> None:
    clerk = {"tools": ["pay"], "approval": ["pay"]}
    chat = SteppedChat(calls(("pay", {"order": "AB-1"})))
    deployment = deploy(agents(clerk=clerk), upstreams=[Upstream("pay", idempotent=False)], chat=chat)
    assert (await deployment.run("clerk", "hello"))["status"] == "waiting"
    await deployment.settled()
    await deployment.ask("clerk", "erase", term="AB-1")
    assert await deployment.next_alarm_ms() != deployment.clock() + 1000
    await deployment.settled()
    [run] = await deployment.rows("SELECT status, error FROM agent_runs")
    assert (run["status"], json.loads(run["error"])["code"]) == ("cancelled", "erased")
    assert await deployment.rows("SELECT 1 FROM parked_runs") == []
    assert deployment.local("clerk:acme:main", "SELECT 1 FROM outbox") == []


async def test_a_request_that_waited_while_everything_was_erased_is_refused_and_repeated_it_runs_once(
    deploy: Deploy, monkeypatch: pytest.MonkeyPatch
) -> None:
    chat = SteppedChat()
    deployment = deploy(chat=chat)
    held = Held(monkeypatch, deployment.sql, "run", lambda sql, *_: "parked_runs" in sql)
    run = asyncio.create_task(deployment.run("sdr", "hello", key="k"))
    await held.begun.wait()
    assert await deployment.ask("sdr", "erase") == {"everything": True}
    held.go.set()
    with raises(Conflict, code="instance_busy"):
        await run
    await deployment.settled()
    for table in ("identity", "turn_state", "outbox"):
        assert deployment.local(DESK, f"SELECT 1 FROM {table}") == [], table
    for _ in range(2):
        assert (await deployment.run("sdr", "hello", key="k"))["status"] == "completed"
    assert len(deployment.local(DESK, "SELECT 1 FROM identity")) == len(chat.requests) == 1
    await deployment.settled()


@pytest.mark.parametrize(
    ("method", "waits_for", "fields"),
    [
        pytest.param(
            "schedule",
            "agent_versions",
            {"request": {"input": "look", "metadata": {}}, "cron": "0 * * * *", "timezone": "UTC"},
            id="a schedule",
        ),
        pytest.param(
            "record_outcome",
            "procedure_outcomes",
            {"run_id": "r", "task_type": "mail", "workflow_id": "short", "score": 1},
            id="an outcome",
        ),
        pytest.param(
            "cancel_call", "parked_runs", {"idempotency_key": "k", "by": "ann", "reason": None}, id="a cancellation"
        ),
    ],
)
async def test_nothing_that_waited_while_everything_was_erased_is_written(
    deploy: Deploy, monkeypatch: pytest.MonkeyPatch, method: str, waits_for: str, fields: dict[str, Any]
) -> None:
    deployment = deploy(chat=SteppedChat())
    await define(deployment, "Help.")
    held = Held(monkeypatch, deployment.sql, "run", lambda sql, *_: waits_for in sql)
    asked = asyncio.create_task(deployment.ask("helper", method, **fields))
    await held.begun.wait()
    assert await deployment.ask("helper", "erase") == {"everything": True}
    held.go.set()
    with raises(Conflict, code="instance_busy"):
        await asked
    await deployment.settled()
    for table in ("identity", "schedules", "procedural_workflows", "cancel_requests", "agent_versions", "outbox"):
        assert deployment.local("helper:acme:main", f"SELECT 1 FROM {table}") == [], table


async def test_a_run_that_is_answered_while_a_term_is_erased_ends_before_the_term_is_erased(
    deploy: Deploy, agents: Agents, monkeypatch: pytest.MonkeyPatch
) -> None:
    noted = calls(("set_working_memory", {"key": "k", "value": "Wagner"}))
    chat = SteppedChat(noted, calls(("pay", {"order": "AB-1"})), says("Wagner paid"))
    clerk = {"tools": ["pay"], "approval": ["pay"], "working_memory": True}
    deployment = deploy(agents(clerk=clerk), upstreams=[Upstream("pay", idempotent=False)], chat=chat)
    run_id = (await deployment.run("clerk", "Wagner pays"))["run_id"]
    await deployment.settled()
    held = Held(monkeypatch, deployment.kv, "delete")
    erased = asyncio.create_task(deployment.ask("clerk", "erase", term="Wagner"))
    await held.begun.wait()
    await deployment.ask("clerk", "answer", run_id=run_id, call="2.0", approved=True, by="ann", reason=None)
    held.go.set()
    with raises(Conflict, code="instance_busy"):
        await erased
    await deployment.settled()
    assert (await deployment.ask("clerk", "show", run_id=run_id))["output"] == "Wagner paid", "it continued at once"
    assert await deployment.ask("clerk", "erase", term="Wagner") == {"everything": False}
    assert deployment.local("clerk:acme:main", "SELECT 1 FROM turn_state") == []
    await deployment.settled()
