"""One living agent: who it is, one run at a time, equal keys give equal answers, and what it leaves in D1."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from retain.agents.calls.tokens import Estimate
from retain.agents.catalogue import AgentCatalogue
from retain.agents.identity import InstanceIdentity, claim, claimed, identity_of
from retain.errors import (
    Conflict,
    InvalidInput,
    LimitExceeded,
    Misconfigured,
    NotFound,
    QuotaExceeded,
    RetainError,
    Unavailable,
    UpstreamFailed,
)
from retain.host.object_sql import SqliteObjectSql
from retain.memory.episodes import MAX_PER_TENANT
from retain.memory.scope import Scope
from tests.agents.remembered import check_d1_agrees
from tests.agents.stepped_chat import SteppedChat, calls, says
from tests.ports import raises
from tests.support.faults import Fault
from tests.support.instances import Deployment, Upstream

Deploy = Callable[..., Deployment]
Agents = Callable[..., AgentCatalogue]
DESK = "sdr:acme:main"


async def test_a_run_answers_its_result_and_leaves_its_row_timeline_and_episodes(deploy: Deploy) -> None:
    chat = SteppedChat(calls(("set_working_memory", {"key": "k", "value": 1}), text="noting"), says("bye"))
    deployment = deploy(chat=chat)
    result = await deployment.run("sdr", "hello", metadata={"channel": "mail"})
    assert result == {
        "run_id": result["run_id"],
        "instance_id": "main",
        "status": "completed",
        "output": "bye",
        "finish_reason": "stop",
        "steps": 3,
        "usage": {
            "input_tokens": 6,
            "output_tokens": 4,
            "delegated_tokens": 0,
            "delegations": 0,
            "cached_input_tokens": 0,
        },
        "memory": {"messages_used": 0, "episodes_used": 0, "records_used": 0},
        "procedure": result["procedure"],
    }
    await deployment.settled()
    await check_d1_agrees(deployment)
    [run] = await deployment.rows("SELECT * FROM agent_runs")
    assert (run["tenant_id"], run["agent_type"], run["instance_id"], run["model"]) == ("acme", "sdr", "main", "stepped")
    assert json.loads(run["input"]) == {
        "input": "hello",
        "metadata": {"channel": "mail"},
        "messages": [],
        "episodes": [],
        "records": [],
        "cut": {},
        "procedure": result["procedure"],
    }
    episodes = await deployment.rows("SELECT content FROM memory_episodes ORDER BY turn")
    assert [row["content"] for row in episodes] == [
        'input: hello\nsdr: noting\nset_working_memory({"key": "k", "value": 1}) -> {"key": "k"}',
        "sdr: bye",
    ]


async def test_the_next_run_reads_the_messages_of_the_ones_before_it_at_once(deploy: Deploy) -> None:
    chat = SteppedChat(says("one"), says("two"), says("three"))
    deployment = deploy(chat=chat)
    for text in ("first", "second", "third"):
        last = await deployment.run(
            "sdr", text
        )  # no waiting in between: what one run owes is in the next one's context
    assert last["memory"] == {"messages_used": 4, "episodes_used": 0, "records_used": 0}
    assert [(message.role, message.content) for message in chat.requests[-1].messages[1:]] == [
        ("user", "first"),
        ("assistant", "one"),
        ("user", "second"),
        ("assistant", "two"),
        ("user", "third"),
    ]
    await deployment.settled()
    [run] = await deployment.rows("SELECT input FROM agent_runs WHERE run_id = ?", last["run_id"])
    kept = await deployment.rows("SELECT message_id FROM conversation_messages ORDER BY message_id LIMIT 4")
    assert json.loads(run["input"])["messages"] == [row["message_id"] for row in kept]


async def test_a_run_that_the_model_fails_is_recorded_as_failed_and_does_not_block_the_next(deploy: Deploy) -> None:
    chat = SteppedChat(UpstreamFailed("no such model", code="model_refused"), says("better"))
    deployment = deploy(chat=chat)
    failed = await deployment.run("sdr", "hello")
    assert (failed["status"], failed["output"], failed["steps"]) == ("failed", None, 0)
    assert failed["error"] == {"code": "model_refused", "message": "no such model"}
    assert (await deployment.run("sdr", "again"))["output"] == "better"
    await deployment.settled()
    await check_d1_agrees(deployment)


async def test_a_run_ends_at_its_turn_limit(deploy: Deploy, agents: Agents) -> None:
    chat = SteppedChat(*[calls(("get_working_memory", {}))] * 5)
    deployment = deploy(agents(looper={"working_memory": True, "limits": {"max_turns": 3}}), chat=chat)
    result = await deployment.run("looper", "go")
    assert (result["status"], result["error"]["code"], result["steps"]) == ("failed", "turn_limit", 6)
    assert len(chat.requests) == 3


async def test_invariant_6_an_equal_key_gets_the_first_answer_and_runs_nothing(deploy: Deploy) -> None:
    chat = SteppedChat(says("one"), says("two"))
    deployment = deploy(chat=chat)
    first = await deployment.run("sdr", {"b": 1, "a": 2}, key="k-1", metadata={"x": 1})
    await deployment.evict()
    assert await deployment.run("sdr", {"a": 2, "b": 1}, key="k-1", metadata={"x": 1}) == first
    assert len(chat.requests) == 1
    assert (await deployment.run("sdr", "hello", key="k-2"))["output"] == "two"
    await deployment.settled()
    assert len(await deployment.rows("SELECT 1 FROM agent_runs")) == 2


async def test_a_failed_run_is_the_answer_to_its_key_too(deploy: Deploy) -> None:
    chat = SteppedChat(UpstreamFailed("no"), says("two"))
    deployment = deploy(chat=chat)
    failed = await deployment.run("sdr", "hello", key="k")
    assert failed["status"] == "failed"
    assert await deployment.run("sdr", "hello", key="k") == failed


@pytest.mark.parametrize(
    ("run_input", "metadata"),
    [pytest.param("other", {}, id="another input"), pytest.param("hello", {"x": 1}, id="other metadata")],
)
async def test_a_key_is_refused_for_another_request(deploy: Deploy, run_input: str, metadata: dict[str, Any]) -> None:
    deployment = deploy(chat=SteppedChat())
    await deployment.run("sdr", "hello", key="k")
    with pytest.raises(Conflict) as raised:
        await deployment.run("sdr", run_input, key="k", metadata=metadata)
    assert raised.value.code == "idempotency_key_reused"


async def test_a_key_means_nothing_to_another_instance_agent_or_tenant(deploy: Deploy) -> None:
    deployment = deploy(chat=SteppedChat())
    runs = [
        await deployment.run("sdr", "hello", key="k"),
        await deployment.run("sdr", "other", key="k", instance="second"),
        await deployment.run("order_triage", "other", key="k"),
        await deployment.run("sdr", "other", key="k", tenant="rival"),
    ]
    assert len({run["run_id"] for run in runs}) == 4


async def test_a_busy_instance_refuses_another_run_and_reports_its_own_as_running(deploy: Deploy) -> None:
    chat = SteppedChat(says("done"), hold=True)
    deployment = deploy(chat=chat)
    first = asyncio.create_task(deployment.run("sdr", "hello", key="k"))
    await chat.asked.wait()
    for key in (None, "another"):
        with pytest.raises(Conflict) as raised:
            await deployment.run("sdr", "hello", key=key)
        assert raised.value.code == "instance_busy"
    [row] = deployment.local(DESK, "SELECT run_id FROM turn_state")
    retried = await deployment.run("sdr", "hello", key="k")
    assert retried == {"run_id": row["run_id"], "instance_id": "main", "status": "running"}
    other = await asyncio.wait_for(deployment.describe("sdr"), 5)
    assert other["turn_state"][0]["status"] == "running"
    chat.let_go()
    assert (await first)["output"] == "done"
    assert (await deployment.run("sdr", "next"))["status"] == "completed"
    await deployment.settled()
    assert len(await deployment.rows("SELECT 1 FROM agent_runs")) == 2


async def test_other_instances_run_while_one_is_busy(deploy: Deploy) -> None:
    chat = SteppedChat(says("done"), hold=True)
    deployment = deploy(chat=chat)
    running = [asyncio.create_task(deployment.run("sdr", "hello", instance=name)) for name in ("a", "b")]
    while len(chat.requests) < 2:
        await asyncio.sleep(0)
    chat.let_go()
    assert [(await run)["status"] for run in running] == ["completed", "completed"]
    await deployment.settled()


async def test_a_run_that_was_refused_leaves_nothing_and_does_not_keep_the_instance_busy(
    deploy: Deploy, agents: Agents
) -> None:
    chat = SteppedChat(says("done"))
    deployment = deploy(agents(small={"limits": {"context_tokens": 1100}}), chat=chat)
    with pytest.raises(LimitExceeded) as raised:
        await deployment.run("small", "x" * 4000)
    assert (raised.value.code, raised.value.details["limit_tokens"]) == ("input_too_large", 1100)
    assert deployment.local("small:acme:main", "SELECT 1 FROM turn_state") == []
    assert (await deployment.run("small", "hi"))["output"] == "done"
    await deployment.settled()
    assert len(await deployment.rows("SELECT 1 FROM agent_runs")) == 1


async def test_an_unknown_agent_is_not_run(deploy: Deploy) -> None:
    deployment = deploy(chat=SteppedChat())
    with pytest.raises(NotFound) as raised:
        await deployment.run("nobody", "hello")
    assert raised.value.code == "unknown_agent"


async def test_a_run_is_refused_while_the_tenant_holds_as_many_episodes_as_it_may(deploy: Deploy) -> None:
    chat = SteppedChat()
    deployment = deploy(chat=chat)
    await deployment.rows("INSERT INTO episode_counts VALUES ('acme', ?)", MAX_PER_TENANT)
    with pytest.raises(QuotaExceeded) as raised:
        await deployment.run("sdr", "hello")
    assert (raised.value.code, raised.value.details["limit"]) == ("episode_limit", 100_000)
    assert chat.requests == []
    await deployment.rows("UPDATE episode_counts SET episodes = episodes - 1")
    assert (await deployment.run("sdr", "hello"))["status"] == "completed"
    assert (await deployment.run("sdr", "hello", tenant="rival"))["status"] == "completed"


async def test_a_run_is_refused_while_d1_is_down_and_nothing_is_recorded(deploy: Deploy) -> None:
    chat = SteppedChat(says("done"))
    deployment = deploy(chat=chat)
    deployment.faults.down.add("sql")
    with pytest.raises(Unavailable):
        await deployment.run("sdr", "hello", key="k")
    assert (chat.requests, deployment.local(DESK, "SELECT 1 FROM turn_state")) == ([], [])
    deployment.faults.down.clear()
    assert (await deployment.run("sdr", "hello", key="k"))["output"] == "done"


async def test_a_run_ends_though_d1_fails_meanwhile_and_what_it_owes_arrives_later(deploy: Deploy) -> None:
    chat = SteppedChat(says("done"), hold=True)
    deployment = deploy(chat=chat)
    run = asyncio.create_task(deployment.run("sdr", "hello"))
    await chat.asked.wait()
    deployment.faults.down.add("sql")
    chat.let_go()
    assert (await run)["output"] == "done"
    await deployment.settled()
    statements = [row["statement"] for row in deployment.local(DESK, "SELECT statement FROM outbox ORDER BY entry_id")]
    assert statements[-4:] == ["append_episode_of_user", "close_cached_run", "mark_conversation", "append_message"]
    await deployment.fire_alarms()
    assert len(deployment.local(DESK, "SELECT 1 FROM outbox")) == len(statements)
    owed = (await deployment.describe("sdr"))["owed"]
    assert owed["entries"] == len(statements)
    assert owed["attempts"] >= 1
    deployment.faults.down.clear()
    await deployment.recover()
    await check_d1_agrees(deployment)
    assert (await deployment.describe("sdr"))["owed"] == {"entries": 0, "attempts": 0, "due_at_ms": None}


async def test_describe_shows_turn_state_newest_events_and_working_keys(deploy: Deploy) -> None:
    chat = SteppedChat(calls(("set_working_memory", {"key": "draft", "value": "Dear"})), says("bye"))
    deployment = deploy(chat=chat)
    result = await deployment.run("sdr", "hello")
    shown = await deployment.describe("sdr")
    assert shown["instance_id"] == "main"
    assert [(turn["run_id"], turn["status"]) for turn in shown["turn_state"]] == [(result["run_id"], "completed")]
    assert [event["kind"] for event in shown["run_log"]] == [
        "run_completed",
        "model_answered",
        "model_asked",
        "tool_answered",
        "tool_called",
        "model_answered",
        "model_asked",
    ]
    assert shown["run_log"][4]["data"]["arguments"] == {"key": "draft", "value": "Dear"}
    assert shown["working"] == {"draft": "Dear"}


async def test_an_instance_that_never_ran_does_not_exist_and_looking_for_it_writes_nothing(deploy: Deploy) -> None:
    deployment = deploy()
    with raises(NotFound, code="no_such_instance"):
        await deployment.describe("sdr")
    assert deployment.local(DESK, "SELECT name FROM sqlite_master") == []
    assert await deployment.next_alarm_ms() is None
    await deployment.run("sdr", "hello")
    assert (await deployment.describe("sdr"))["instance_id"] == "main"


def test_an_object_belongs_to_whoever_claimed_it_first() -> None:
    local = SqliteObjectSql.open()
    identity = InstanceIdentity(Scope("acme", "sdr"), "main")
    assert claimed(local) is None
    claim(local, identity)
    claim(local, identity)
    assert claimed(local) == identity
    assert len(local.run("SELECT * FROM identity").rows) == 1
    for other in (
        InstanceIdentity(Scope("rival", "sdr"), "main"),
        InstanceIdentity(Scope("acme", "order_triage"), "main"),
        InstanceIdentity(Scope("acme", "sdr"), "second"),
    ):
        with pytest.raises(Misconfigured) as raised:
            claim(local, other)
        assert raised.value.code == "wrong_instance"
    assert claimed(local) == identity
    local.close()


async def test_invariant_3_a_living_object_refuses_a_request_for_another_instance(deploy: Deploy) -> None:
    deployment = deploy(chat=SteppedChat())
    await deployment.run("sdr", "hello")
    request = {"tenant_id": "rival", "agent_type": "sdr", "instance_id": "main", "input": "hello"}
    answer = json.loads(await deployment.receive(DESK, "run", json.dumps(request)))
    assert answer["error"]["code"] == "wrong_instance"
    await deployment.settled()
    assert len(await deployment.rows("SELECT 1 FROM agent_runs")) == 1


@pytest.mark.parametrize(
    ("change", "code"),
    [
        pytest.param({"tenant_id": "*"}, "invalid_tenant", id="wildcard tenant"),
        pytest.param({"tenant_id": ""}, "invalid_tenant", id="empty tenant"),
        pytest.param({"tenant_id": None}, "invalid_tenant", id="tenant is null"),
        pytest.param({"agent_type": "sdr:acme"}, "invalid_agent_type", id="delimiter in the agent"),
        pytest.param({"agent_type": None}, "invalid_agent_type", id="agent is null"),
        pytest.param({"instance_id": "../x"}, "invalid_instance_id", id="path in the instance"),
        pytest.param({"instance_id": ""}, "invalid_instance_id", id="empty instance"),
    ],
)
def test_a_request_with_an_invalid_identity_is_refused(change: dict[str, Any], code: str) -> None:
    with pytest.raises(InvalidInput) as raised:
        identity_of({"tenant_id": "acme", "agent_type": "sdr", "instance_id": "main", **change})
    assert raised.value.code == code


@pytest.mark.parametrize("missing", ["tenant_id", "agent_type", "instance_id"])
def test_a_request_must_say_whom_it_is_for(missing: str) -> None:
    request = {"tenant_id": "acme", "agent_type": "sdr", "instance_id": "main"}
    del request[missing]
    with pytest.raises(InvalidInput) as raised:
        identity_of(request)
    assert raised.value.code == "invalid_request"


def test_an_instance_is_named_by_its_namespace_key() -> None:
    assert InstanceIdentity(Scope("acme", "sdr"), "main").key == DESK


@pytest.mark.parametrize("error", [Unavailable("no"), UpstreamFailed("no"), Misconfigured("no")], ids=repr)
async def test_an_error_before_the_run_began_reaches_the_caller_and_nothing_is_recorded(
    deploy: Deploy, agents: Agents, error: RetainError
) -> None:
    deployment = deploy(agents(buyer={"tools": ["order"]}), upstreams=[Upstream("order", True)], chat=SteppedChat())
    deployment.faults.plan(Fault(error, point="tool.describe"))
    with pytest.raises(type(error)):
        await deployment.run("buyer", "hello")
    assert deployment.local("buyer:acme:main", "SELECT 1 FROM turn_state") == []
    assert (await deployment.run("buyer", "hello"))["status"] == "completed"


async def test_no_prompt_of_a_run_is_larger_than_the_agent_s_context(deploy: Deploy, agents: Agents) -> None:
    chat = SteppedChat(*[calls(("look", {"order": "AB-1"}))] * 3)
    upstreams = [Upstream("look", idempotent=True, body="x" * 30_000)]
    deployment = deploy(
        agents(clerk={"tools": ["look"], "limits": {"context_tokens": 9000}}), upstreams=upstreams, chat=chat
    )
    await deployment.run("clerk", "hello")
    sizes = [sum(Estimate().text(message.content) for message in request.messages) for request in chat.requests]
    assert max(sizes) <= 9000


async def test_a_run_is_in_d1_as_running_while_its_model_answers(deploy: Callable[..., Deployment]) -> None:
    chat = SteppedChat(hold=True)
    deployment = deploy(chat=chat)
    run = asyncio.create_task(deployment.run("sdr", "hello"))
    await chat.asked.wait()
    await deployment.background.settled()
    rows = (await deployment.sql.run("SELECT status FROM agent_runs")).rows
    assert [row["status"] for row in rows] == ["running"]
    chat.let_go()
    assert (await run)["status"] == "completed"
    await deployment.settled()
