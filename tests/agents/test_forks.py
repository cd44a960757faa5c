"""Forks: a run continues another one from its failed step, or from a turn; nothing is asked, called or paid for twice."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from retain.agents.catalogue import AgentCatalogue
from retain.agents.runs.events import RunEvent, from_json
from retain.agents.runs.replay import replay
from retain.agents.runs.run_state import Policy
from retain.errors import RetainError, UpstreamFailed
from retain.tenants.quotas import set_numbers
from tests.agents.remembered import check_d1_agrees
from tests.agents.stepped_chat import SteppedChat, calls, says
from tests.support.faults import Crash, Fault
from tests.support.instances import HOUR_MS, Deployment, Upstream

Deploy = Callable[..., Deployment]
Agents = Callable[..., AgentCatalogue]
CLERK: dict[str, Any] = {"tools": ["look", "pay"], "limits": {"max_turns": 3, "busy": "queue"}}
POLICY = Policy(3, frozenset({"look"}))
LOOK, PAY = ("look", {"order": "A"}), ("pay", {"order": "A"})
REFUSED = UpstreamFailed("no", code="model_refused")


class Desk:
    """A deployment with a clerk who looks (idempotent) and pays (not), and whose model answers what is lined up."""

    def __init__(self, deploy: Deploy, agents: Agents, *replies: Any, **clerk: Any) -> None:
        self.chat = SteppedChat(*replies)
        self.look, self.pay = Upstream("look", idempotent=True), Upstream("pay", idempotent=False)
        definition = agents(clerk={**CLERK, **clerk})
        self.deployment = deploy(definition, upstreams=[self.look, self.pay], chat=self.chat)

    async def run(self, text: str = "hello", **more: Any) -> dict[str, Any]:
        return await self.deployment.run("clerk", text, **more)

    async def fork(self, run_id: str, turns: int | None = None, **more: Any) -> dict[str, Any]:
        """Fork a run, or retry it, and return the fork's report once it has ended or waits."""
        fields = {"turns": turns, "idempotency_key": None, "by": "ann", **more}
        begun = await self.deployment.ask("clerk", "fork", run_id=run_id, **fields)
        await self.deployment.settled()
        return await self.deployment.ask("clerk", "show", run_id=begun["run_id"])

    async def cut_off(self, tool: str = "pay", **more: Any) -> str:
        """Return a run that was cancelled after it died in a tool's call, whose outcome it does not know."""
        self.deployment.faults.plan(Fault(Crash(), point="tool.call done"))
        with pytest.raises(Crash):
            await self.run(**more)
        await self.deployment.restart()
        [row] = self.deployment.local("clerk:acme:main", "SELECT run_id FROM turn_state WHERE status = 'running'")
        run_id = str(row["run_id"])
        await self.deployment.ask("clerk", "cancel", run_id=run_id, by="ann", reason="enough")
        await self.deployment.settled()
        assert (await self.deployment.ask("clerk", "show", run_id=run_id))["status"] == "cancelled"
        return run_id

    async def timeline(self, run_id: str) -> list[tuple[str, dict[str, Any]]]:
        """Return kind and data of the events that D1 has of a run, which are those that the instance has."""
        sql = "SELECT kind, data FROM {} WHERE run_id = '" + run_id + "' ORDER BY seq"
        rows = await self.deployment.rows(sql.format("run_events"))
        assert [dict(row) for row in rows] == [
            dict(row) for row in self.deployment.local("clerk:acme:main", sql.format("run_log"))
        ]
        return [(row["kind"], json.loads(row["data"])) for row in rows]

    async def kinds(self, run_id: str) -> list[str]:
        return [kind for kind, _ in await self.timeline(run_id)]

    async def events(self, run_id: str) -> list[RunEvent]:
        return [from_json(kind, data) for kind, data in await self.timeline(run_id)]


async def test_a_retry_repeats_the_failed_step_alone(deploy: Deploy, agents: Agents) -> None:
    desk = Desk(deploy, agents, calls(PAY), REFUSED, says("paid"))
    failed = await desk.run(metadata={"ticket": 7})
    assert failed["error"]["code"] == "model_refused"
    retried = await desk.fork(failed["run_id"])
    assert (retried["status"], retried["output"], retried["by"]) == ("completed", "paid", "ann")
    assert len(desk.pay.asked) == 1
    assert desk.chat.requests[2].messages == desk.chat.requests[1].messages
    assert await desk.kinds(retried["run_id"]) == [
        *("model_asked", "model_answered", "tool_called", "tool_answered"),
        *("run_forked", "model_asked", "model_answered", "run_completed"),
    ]
    await check_d1_agrees(desk.deployment)


async def test_a_fork_counts_what_it_does_itself(deploy: Deploy, agents: Agents) -> None:
    desk = Desk(deploy, agents, calls(PAY), REFUSED, says("paid"))
    failed = await desk.run()
    retried = await desk.fork(failed["run_id"])
    assert (failed["steps"], retried["steps"]) == (2, 1)
    assert (retried["usage"]["input_tokens"], retried["usage"]["output_tokens"]) == (3, 2)
    [row] = await desk.deployment.rows("SELECT SUM(runs) AS runs, SUM(input_tokens) AS tokens FROM model_use")
    assert (row["runs"], row["tokens"]) == (2, 6)
    episodes = await desk.deployment.rows("SELECT run_id, turn FROM memory_episodes ORDER BY run_id")
    assert [(row["run_id"], row["turn"]) for row in episodes] == [(failed["run_id"], 1), (retried["run_id"], 2)]


async def test_a_fork_of_a_run_that_an_earlier_version_began_is_known_by_its_model(
    deploy: Deploy, agents: Agents
) -> None:
    desk = Desk(deploy, agents, REFUSED, says("hi"))
    failed = await desk.run()
    desk.deployment.local("clerk:acme:main", "UPDATE turn_state SET context = json_remove(context, '$.basis')")
    await desk.fork(failed["run_id"])
    runs = await desk.deployment.rows("SELECT model FROM agent_runs")
    assert [row["model"] for row in runs] == ["stepped", "stepped"]
    assert [row["model"] for row in await desk.deployment.rows("SELECT model FROM model_use")] == ["stepped"]


async def test_a_retry_asks_for_no_second_time_what_the_user_wrote(deploy: Deploy, agents: Agents) -> None:
    desk = Desk(deploy, agents, REFUSED, says("hi"), says("hi again"))
    failed = await desk.run()
    retried = await desk.fork(failed["run_id"])
    messages = "SELECT role, content, run_id FROM conversation_messages ORDER BY run_id, role DESC"
    rows = [(row["role"], row["content"], row["run_id"]) for row in await desk.deployment.rows(messages)]
    assert rows == [("user", "hello", failed["run_id"]), ("assistant", "hi", retried["run_id"])]
    await desk.run("more")
    talk = [(message.role, message.content) for message in desk.chat.requests[-1].messages if message.role != "system"]
    assert talk == [("user", "hello"), ("assistant", "hi"), ("user", "more")]


async def test_a_retry_has_limits_of_its_own(deploy: Deploy, agents: Agents) -> None:
    desk = Desk(deploy, agents, *[calls(LOOK)] * 4, says("found"))
    failed = await desk.run()
    assert failed["error"]["code"] == "turn_limit"
    retried = await desk.fork(failed["run_id"])
    assert (retried["status"], retried["steps"]) == ("completed", 3)
    assert len(desk.look.asked) == 4
    forked = await desk.events(retried["run_id"])
    assert replay(forked, POLICY).state.closed is not None


async def test_a_call_whose_outcome_is_unknown_keeps_its_key(deploy: Deploy, agents: Agents) -> None:
    desk = Desk(deploy, agents, calls(LOOK), says("found"))
    run_id = await desk.cut_off()
    retried = await desk.fork(run_id)
    assert (retried["status"], retried["output"]) == ("completed", "found")
    assert [key for _, key in desk.look.asked] == [f"{run_id}.1.0"] * 2
    assert "tool_called" not in (await desk.kinds(retried["run_id"]))[3:]


async def test_a_call_keeps_its_key_through_two_retries(deploy: Deploy, agents: Agents) -> None:
    desk = Desk(deploy, agents, calls(LOOK), says("found"))
    first = await desk.cut_off()
    desk.deployment.faults.plan(Fault(Crash(), point="tool.call done"))
    asked: dict[str, Any] = {"run_id": first, "turns": None, "idempotency_key": None, "by": "ann"}
    second = (await desk.deployment.ask("clerk", "fork", **asked))["run_id"]
    await desk.deployment.restart()
    await desk.deployment.ask("clerk", "cancel", run_id=second, by="ann", reason=None)
    await desk.deployment.settled()
    retried = await desk.fork(second)
    assert retried["status"] == "completed"
    assert [key for _, key in desk.look.asked] == [f"{first}.1.0"] * 3


async def test_a_call_that_must_not_be_repeated_is_given_up(deploy: Deploy, agents: Agents) -> None:
    desk = Desk(deploy, agents, calls(PAY), says("I cannot tell"))
    retried = await desk.fork(await desk.cut_off())
    assert (retried["status"], len(desk.pay.asked)) == ("completed", 1)
    assert "outcome_unknown" in desk.chat.requests[-1].messages[-1].content


async def test_a_later_call_has_a_key_of_the_fork(deploy: Deploy, agents: Agents) -> None:
    desk = Desk(deploy, agents, calls(LOOK, LOOK), says("found"))
    run_id = await desk.cut_off()
    retried = await desk.fork(run_id)
    assert [key for _, key in desk.look.asked] == [f"{run_id}.1.0", f"{run_id}.1.0", f"{retried['run_id']}.1.1"]


async def test_a_fork_keeps_the_turns_that_it_is_asked_to_keep(deploy: Deploy, agents: Agents) -> None:
    desk = Desk(deploy, agents, calls(LOOK), calls(PAY), says("done"), says("no payment"))
    run = await desk.run()
    forked = await desk.fork(run["run_id"], 1)
    assert (forked["output"], forked["steps"]) == ("no payment", 1)
    assert (len(desk.look.asked), len(desk.pay.asked)) == (1, 1)
    assert desk.chat.requests[-1].messages == desk.chat.requests[1].messages
    [row] = await desk.deployment.rows("SELECT input FROM agent_runs WHERE run_id = ?", forked["run_id"])
    assert json.loads(row["input"])["fork"] == {"turn": 1, "run_id": run["run_id"], "turns": 1, "call_key": None}
    afresh = await desk.fork(run["run_id"], 0)
    assert desk.chat.requests[-1].messages == desk.chat.requests[0].messages
    assert (await desk.kinds(afresh["run_id"]))[0] == "run_forked"
    messages = await desk.deployment.rows(
        "SELECT run_id FROM conversation_messages WHERE role = 'user' ORDER BY run_id"
    )
    assert [row["run_id"] for row in messages] == [run["run_id"], forked["run_id"], afresh["run_id"]]


async def test_a_fork_reads_the_memory_that_the_run_before_it_read(deploy: Deploy, agents: Agents) -> None:
    memory = {"long_term_enabled": True, "recall": "context"}
    desk = Desk(deploy, agents, calls(LOOK), REFUSED, says("blue"), tools=["look"], memory_config=memory)
    await desk.deployment.seed("clerk", ["Ann's favourite colour is blue."])
    failed = await desk.run("What is Ann's favourite colour?")
    [record] = await desk.deployment.rows("SELECT id FROM memory_records")
    await desk.deployment.seed("clerk", ["Ann's favourite colour was green as a child."])
    retried = await desk.fork(failed["run_id"])
    assert (retried["output"], retried["memory"]) == ("blue", failed["memory"])
    rows = await desk.deployment.rows("SELECT input FROM agent_runs ORDER BY run_id")
    refers = [[one["id"] for one in json.loads(row["input"])["records"]] for row in rows]
    assert refers == [[record["id"]]] * 2


async def test_an_approval_that_was_given_is_not_asked_for_again(deploy: Deploy, agents: Agents) -> None:
    desk = Desk(deploy, agents, calls(PAY), REFUSED, says("paid"), approval=["pay"])
    waiting = await desk.run()
    answer = {"run_id": waiting["run_id"], "call": "1.0", "approved": True, "by": "ann", "reason": None}
    await desk.deployment.ask("clerk", "answer", **answer)
    await desk.deployment.settled()
    retried = await desk.fork(waiting["run_id"])
    assert (retried["status"], len(desk.pay.asked)) == ("completed", 1)
    assert "approval_answered" in await desk.kinds(retried["run_id"])


async def test_an_approval_permits_one_call_however_often_the_run_is_retried(deploy: Deploy, agents: Agents) -> None:
    """The run is cancelled between the answer and the call. Whoever may retry it need not be who may approve."""
    desk = Desk(deploy, agents, calls(PAY), says("other"), approval=["pay"])
    waiting = await desk.run()
    desk.chat.hold()
    await desk.deployment.ask("clerk", "start", input="keep the instance busy", metadata={})
    await desk.chat.asked.wait()
    answer = {"run_id": waiting["run_id"], "call": "1.0", "approved": True, "by": "ann", "reason": None}
    await desk.deployment.ask("clerk", "answer", **answer)
    await desk.deployment.ask("clerk", "cancel", run_id=waiting["run_id"], by="user:ben", reason=None)
    desk.chat.let_go()
    await desk.deployment.settled()
    for _ in range(2):
        retried = await desk.fork(waiting["run_id"], by="user:ben")
        assert (retried["status"], retried["waiting_for"]["call"]) == ("waiting", "1.0")
        assert "approval_answered" not in await desk.kinds(retried["run_id"])
    assert desk.pay.asked == []


async def test_a_rejection_stays_one_in_a_retry(deploy: Deploy, agents: Agents) -> None:
    desk = Desk(deploy, agents, calls(PAY), REFUSED, says("not paid"), approval=["pay"])
    waiting = await desk.run()
    answer = {"run_id": waiting["run_id"], "call": "1.0", "approved": False, "by": "ann", "reason": None}
    await desk.deployment.ask("clerk", "answer", **answer)
    await desk.deployment.settled()
    retried = await desk.fork(waiting["run_id"])
    assert (retried["status"], retried["output"], desk.pay.asked) == ("completed", "not paid", [])


async def test_a_question_that_nobody_answered_is_asked_again(deploy: Deploy, agents: Agents) -> None:
    desk = Desk(deploy, agents, calls(PAY), says("paid"), approval=["pay"])
    waiting = await desk.run()
    await desk.deployment.ask("clerk", "cancel", run_id=waiting["run_id"], by="ann", reason=None)
    await desk.deployment.settled()
    again = await desk.fork(waiting["run_id"])
    assert (again["status"], again["waiting_for"]["call"]) == ("waiting", "1.0")
    assert len(desk.chat.requests) == 1


async def test_a_delegated_run_that_was_stopped_is_begun_again(deploy: Deploy, agents: Agents) -> None:
    hand = ("delegate", {"agent": "helper", "input": "help"})
    chat = {"clerk": SteppedChat(calls(hand), says("helped")), "helper": SteppedChat(hold=True)}
    catalogue = agents(clerk={"delegates": ["helper"]}, helper={})
    deployment = deploy(catalogue, chat=chat)
    begun = await deployment.ask("clerk", "start", input="hello", metadata={})
    await chat["helper"].asked.wait()
    await deployment.ask("clerk", "cancel", run_id=begun["run_id"], by="ann", reason=None)
    chat["helper"].let_go()
    await deployment.settled()
    asked = {"run_id": begun["run_id"], "turns": None, "idempotency_key": None, "by": "ann"}
    retried = await deployment.ask("clerk", "fork", **asked)
    await deployment.settled()
    assert (await deployment.ask("clerk", "show", run_id=retried["run_id"]))["output"] == "helped"
    parents = await deployment.rows("SELECT parent_run_id, status FROM agent_runs WHERE agent_type = 'helper'")
    assert [(row["parent_run_id"], row["status"]) for row in parents] == [
        (begun["run_id"], "cancelled"),
        (retried["run_id"], "completed"),
    ]


REFUSALS: dict[str, tuple[str, int | None, str]] = {
    "a retry of what did not fail": ("completed", None, "run_not_failed"),
    "more turns than there are": ("completed", 2, "invalid_turn"),
    "a run that waits": ("waiting", 0, "run_not_ended"),
    "no run": ("unknown", 0, "no_such_run"),
}


@pytest.mark.parametrize(("which", "turns", "code"), REFUSALS.values(), ids=REFUSALS)
async def test_what_cannot_be_forked_is_refused(
    deploy: Deploy, agents: Agents, which: str, turns: int | None, code: str
) -> None:
    desk = Desk(deploy, agents, calls(LOOK), says("found"), calls(PAY), approval=["pay"])
    runs = {"completed": (await desk.run())["run_id"], "waiting": (await desk.run())["run_id"], "unknown": "0" * 26}
    await desk.deployment.settled()
    before = len(await desk.deployment.rows("SELECT 1 FROM agent_runs"))
    with pytest.raises(RetainError) as refused:
        await desk.fork(runs[which], turns)
    assert refused.value.code == code
    assert len(await desk.deployment.rows("SELECT 1 FROM agent_runs")) == before


async def test_a_delegates_run_is_not_forked(deploy: Deploy, agents: Agents) -> None:
    hand = ("delegate", {"agent": "helper", "input": "help"})
    deployment = deploy(
        agents(clerk={"delegates": ["helper"]}, helper={}),
        chat={"clerk": SteppedChat(calls(hand), says("done")), "helper": SteppedChat(REFUSED)},
    )
    run_id = (await deployment.run("clerk", "hello"))["run_id"]
    await deployment.settled()
    [helper] = await deployment.rows("SELECT run_id, instance_id FROM agent_runs WHERE agent_type = 'helper'")
    asked = {"run_id": helper["run_id"], "turns": None, "idempotency_key": None, "by": "ann"}
    with pytest.raises(RetainError) as refused:
        await deployment.ask("helper", "fork", instance=f"{run_id}.helper", **asked)
    assert refused.value.code == "delegated_run"


async def test_a_repeated_retry_with_its_key_is_the_same_run(deploy: Deploy, agents: Agents) -> None:
    desk = Desk(deploy, agents, REFUSED, says("hi"))
    failed = await desk.run()
    first = await desk.fork(failed["run_id"], idempotency_key="again")
    assert await desk.fork(failed["run_id"], idempotency_key="again") == first
    with pytest.raises(RetainError) as reused:
        await desk.fork(failed["run_id"], 0, idempotency_key="again")
    assert reused.value.code == "idempotency_key_reused"


async def test_a_repeated_fork_is_the_same_run_though_what_it_was_forked_from_is_forgotten(
    deploy: Deploy, agents: Agents
) -> None:
    desk = Desk(deploy, agents, calls(LOOK), says("one"), says("two"))
    run_id = (await desk.run())["run_id"]
    await desk.deployment.settled()
    desk.deployment.clock.advance(47 * HOUR_MS)
    first = await desk.fork(run_id, 1, idempotency_key="again")
    desk.deployment.clock.advance(2 * HOUR_MS)
    await desk.deployment.fire_alarms()
    with pytest.raises(RetainError) as forgotten:
        await desk.deployment.ask("clerk", "show", run_id=run_id)
    assert forgotten.value.code == "no_such_run"
    assert await desk.fork(run_id, 1, idempotency_key="again") == first
    for turns, key in ((0, "again"), (1, "another")):
        with pytest.raises(RetainError) as refused:
            await desk.fork(run_id, turns, idempotency_key=key)
        assert refused.value.code == "no_such_run"


async def test_a_run_that_never_began_is_asked_for_again(deploy: Deploy, agents: Agents) -> None:
    desk = Desk(deploy, agents, says("one"), says("two"))
    desk.chat.hold()
    await desk.deployment.ask("clerk", "start", input="first", metadata={})
    queued = await desk.deployment.ask("clerk", "start", input="second", metadata={})
    assert queued["status"] == "queued"
    await desk.deployment.ask("clerk", "cancel", run_id=queued["run_id"], by="ann", reason=None)
    desk.chat.let_go()
    await desk.deployment.settled()
    retried = await desk.fork(queued["run_id"])
    assert retried["output"] == "two"
    assert "run_forked" not in await desk.kinds(retried["run_id"])
    assert desk.chat.requests[-1].messages[-1].content == "second"


async def _queued_fork(deploy: Deploy, agents: Agents) -> tuple[Desk, Any]:
    """Fork a run that failed while its instance is busy; return the desk, whose model holds its answers, and the fork."""
    desk = Desk(deploy, agents, calls(LOOK), REFUSED, says("other"), says("found"))
    failed = await desk.run()
    desk.chat.hold()
    await desk.deployment.ask("clerk", "start", input="other", metadata={})
    asked = {"run_id": failed["run_id"], "turns": None, "idempotency_key": None, "by": "ann"}
    queued = await desk.deployment.ask("clerk", "fork", **asked)
    assert queued["status"] == "queued"
    return desk, queued


async def test_a_queued_fork_begins_when_its_instance_is_free(deploy: Deploy, agents: Agents) -> None:
    desk, queued = await _queued_fork(deploy, agents)
    desk.chat.let_go()
    await desk.deployment.settled()
    assert (await desk.deployment.ask("clerk", "show", run_id=queued["run_id"]))["output"] == "found"
    assert len(desk.look.asked) == 1
    await check_d1_agrees(desk.deployment)


async def test_a_queued_fork_does_not_begin_when_the_tokens_of_the_day_are_spent_by_then(
    deploy: Deploy, agents: Agents
) -> None:
    desk, queued = await _queued_fork(deploy, agents)
    await set_numbers(desk.deployment.sql, "acme", {"runs_a_day": 0, "tokens_a_day": 1})
    desk.chat.let_go()
    await desk.deployment.settled()
    shown = await desk.deployment.ask("clerk", "show", run_id=queued["run_id"])
    assert (shown["status"], shown["error"]["code"]) == ("failed", "token_quota")


async def test_a_fork_that_dies_continues_as_a_fork(deploy: Deploy, agents: Agents) -> None:
    desk = Desk(deploy, agents, calls(PAY), REFUSED, calls(LOOK), says("paid"))
    failed = await desk.run()
    desk.deployment.faults.plan(Fault(Crash(), point="tool.call done"))
    asked = {"run_id": failed["run_id"], "turns": None, "idempotency_key": None, "by": "ann"}
    begun = await desk.deployment.ask("clerk", "fork", **asked)
    await desk.deployment.recover()
    ended = await desk.deployment.ask("clerk", "show", run_id=begun["run_id"])
    assert (ended["status"], ended["steps"]) == ("completed", 3)
    assert (len(desk.pay.asked), len(desk.look.asked)) == (1, 2)
    await check_d1_agrees(desk.deployment)
