"""What an instance sends to webhooks when a run has ended or asks a person, until it is received, whatever dies."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from contextlib import closing, suppress
from typing import Any

import pytest

from retain.agents.calls.client import InstanceClient
from retain.agents.catalogue import AgentCatalogue
from retain.agents.conversations.deletion import delete_conversation
from retain.agents.duties.owed_deliveries import UNANSWERED_MS
from retain.agents.identity import instance_of
from retain.errors import NotFound, RetainError, Unavailable
from retain.ports import HttpResponse
from retain.webhooks.endpoints import EVENTS, WebhookEvent, Webhooks
from retain.webhooks.sender import MAX_ANSWER_BYTES, RETRY_AFTER_S
from retain.webhooks.signing import signed_headers
from tests.agents.conftest import agent
from tests.agents.stepped_chat import SteppedChat, calls, says
from tests.agents.test_crash_points import different
from tests.support.faults import Crash, Fault
from tests.support.instances import Deployment, LocalInstances, Upstream, catalogue
from tests.support.receiver import URL, Receiver, allow, keyring

Agents = Callable[..., AgentCatalogue]
Deploy = Callable[..., Deployment]
NAME = "clerk:acme:main"
PAY = calls(("pay", {"order": "AB-1"}))


async def webhook(deployment: Deployment, *events: WebhookEvent, tenant: str = "acme") -> tuple[str, str]:
    """Create a webhook; return its id and its secret."""
    webhooks = Webhooks(deployment.sql, deployment.clock, keyring, allow)
    made, secret = await webhooks.create(tenant, URL, events or EVENTS, by="ada")
    return made.webhook_id, secret


async def deliveries(deployment: Deployment) -> list[tuple[str, str, int, int | None, str | None]]:
    columns = ("event", "status", "attempts", "response_status", "error")
    rows = await deployment.rows(f"SELECT {', '.join(columns)} FROM webhook_deliveries ORDER BY message_id")
    return [tuple(row[name] for name in columns) for row in rows]


def owed(deployment: Deployment) -> list[Any]:
    return deployment.local(NAME, "SELECT * FROM owed_deliveries")


async def ran(deployment: Deployment, **more: Any) -> dict[str, Any]:
    result = await deployment.run("clerk", "hello", **more)
    await deployment.settled()
    return result


async def test_the_end_of_a_run_is_sent_signed_with_the_run(deploy: Deploy, agents: Agents) -> None:
    deployment = deploy(agents(clerk={}), chat=SteppedChat(says("hi")))
    _, secret = await webhook(deployment)
    result = await ran(deployment, by="key:k")
    [message] = deployment.receiver.received
    signed = signed_headers([secret], f"msg_{result['run_id']}", deployment.clock(), message.body)
    assert dict(signed).items() <= dict(message.headers).items()
    assert message.content["type"] == "run.completed"
    assert message.content["timestamp"].endswith("+00:00")
    shown = {name: message.content["data"][name] for name in ("run_id", "instance_id", "status", "output", "by")}
    assert shown == {**{name: result[name] for name in shown}}
    assert await deliveries(deployment) == [("run.completed", "delivered", 1, 204, None)]
    assert owed(deployment) == []


async def test_without_a_webhook_nothing_is_owed(deploy: Deploy, agents: Agents) -> None:
    deployment = deploy(agents(clerk={}), chat=SteppedChat(says("hi")))
    await webhook(deployment, tenant="rival")
    await ran(deployment)
    assert (deployment.receiver.received, await deliveries(deployment), owed(deployment)) == ([], [], [])


async def test_a_webhook_hears_of_its_events_alone_and_of_no_delegate_s_end(deploy: Deploy, agents: Agents) -> None:
    delegating = calls(("delegate", {"agent": "helper", "input": "help"}))
    chats = {"clerk": SteppedChat(delegating, says("done")), "helper": SteppedChat(says("helped"))}
    deployment = deploy(agents(clerk={"delegates": ["helper"]}, helper={}), chat=chats)
    await webhook(deployment, "run.failed")
    heard, _ = await webhook(deployment, "run.completed", "run.cancelled")
    await ran(deployment)
    rows = await deployment.rows("SELECT webhook_id, event, agent_type FROM webhook_deliveries")
    assert [tuple(row.values()) for row in rows] == [(heard, "run.completed", "clerk")]


async def test_a_question_for_a_person_is_sent_and_then_the_end(deploy: Deploy, agents: Agents) -> None:
    clerk = {"tools": ["pay"], "approval": ["pay"]}
    deployment = deploy(agents(clerk=clerk), upstreams=[Upstream("pay", False)], chat=SteppedChat(PAY, says("paid")))
    await webhook(deployment)
    run = await ran(deployment)
    [asked] = deployment.receiver.received
    assert (asked.id, asked.content["type"]) == (f"msg_{run['run_id']}_1_0", "run.waiting")
    assert asked.content["data"]["waiting_for"] == run["waiting_for"]
    await deployment.ask("clerk", "answer", run_id=run["run_id"], call="1.0", approved=True, by="ada", reason=None)
    await deployment.settled()
    assert [message.content["type"] for message in deployment.receiver.received] == ["run.waiting", "run.completed"]


class Holding(Receiver):
    """A receiver that answers a message only when the test lets it: `begun` is set when it has the message."""

    def __init__(self) -> None:
        super().__init__()
        self.begun, self.go = asyncio.Event(), asyncio.Event()

    async def fetch(self, method: str, url: str, **request: Any) -> HttpResponse:
        """Receive a message, and answer it later."""
        answer = await super().fetch(method, url, **request)
        self.begun.set()
        await self.go.wait()
        return answer


@pytest.mark.parametrize("status", [204, 500], ids=["received", "to be repeated"])
async def test_the_end_of_a_run_is_sent_though_its_question_is_still_being_sent(
    deploy: Deploy, agents: Agents, status: int
) -> None:
    clerk = {"tools": ["pay"], "approval": ["pay"]}
    deployment = deploy(agents(clerk=clerk), upstreams=[Upstream("pay", False)], chat=SteppedChat(PAY, says("paid")))
    deployment.receiver = receiver = Holding()
    receiver.status = status
    await webhook(deployment)
    run = await deployment.run("clerk", "hello")
    await receiver.begun.wait()
    await deployment.ask("clerk", "answer", run_id=run["run_id"], call="1.0", approved=True, by="ada", reason=None)
    while len(await deliveries(deployment)) < 2:  # D1 has the end
        await asyncio.sleep(0)
    receiver.status = 204
    receiver.go.set()
    await deployment.settled()
    await deployment.fire_alarms()
    assert [message.content["type"] for message in receiver.received] == ["run.waiting", "run.completed"]
    deployment.clock.advance(RETRY_AFTER_S[0] * 1000)
    await deployment.fire_alarms()
    assert [row[:2] for row in await deliveries(deployment)] == [
        ("run.completed", "delivered"),
        ("run.waiting", "delivered"),
    ]
    assert owed(deployment) == []


@pytest.mark.parametrize(("status", "error"), [(500, None), (None, "upstream_timeout"), (302, None)])
async def test_what_is_not_received_is_sent_again_later_each_time_and_given_up_in_the_end(
    deploy: Deploy, agents: Agents, status: int | None, error: str | None
) -> None:
    deployment = deploy(agents(clerk={}), chat=SteppedChat(says("hi")))
    deployment.receiver.status = status
    await webhook(deployment)
    assert (await ran(deployment))["status"] == "completed"
    for attempts, pause_s in enumerate(RETRY_AFTER_S, start=1):
        assert await deliveries(deployment) == [("run.completed", "pending", attempts, status, error)]
        deployment.clock.advance(pause_s * 1000 - 1)
        await deployment.fire_alarms()
        assert len(deployment.receiver.received) == attempts
        deployment.clock.advance(1 + 1000)
        await deployment.fire_alarms()
    assert await deliveries(deployment) == [("run.completed", "failed", len(RETRY_AFTER_S) + 1, status, error)]
    assert len({message.id for message in deployment.receiver.received}) == 1
    assert owed(deployment) == []


async def test_an_answer_that_is_too_long_is_not_read_and_its_status_counts(deploy: Deploy, agents: Agents) -> None:
    deployment = deploy(agents(clerk={}), chat=SteppedChat(says("hi")))
    deployment.receiver.answer = b"x" * MAX_ANSWER_BYTES
    await webhook(deployment, "run.completed")
    await ran(deployment)
    deployment.receiver.answer += b"x"
    await ran(deployment)
    deployment.receiver.status = 500
    await ran(deployment)
    found = sorted(await deliveries(deployment), key=lambda row: row[1])
    assert found == [
        ("run.completed", "delivered", 1, 204, None),
        ("run.completed", "delivered", 1, 204, None),
        ("run.completed", "pending", 1, 500, None),
    ]


async def test_a_message_is_sent_again_on_request(deploy: Deploy, agents: Agents) -> None:
    deployment = deploy(agents(clerk={}), chat=SteppedChat(says("hi")))
    name, _ = await webhook(deployment)
    run = await ran(deployment)
    again = {"run_id": run["run_id"], "webhook_id": name, "message_id": f"msg_{run['run_id']}"}
    answer = await deployment.ask("clerk", "redeliver", **again)
    await deployment.settled()
    assert (answer["status"], answer["attempts"]) == ("pending", 1)
    assert [message.id for message in deployment.receiver.received] == [again["message_id"]] * 2
    assert await deliveries(deployment) == [("run.completed", "delivered", 2, 204, None)]
    with pytest.raises(NotFound):
        await deployment.ask("clerk", "redeliver", **{**again, "message_id": "msg_nobody"})


async def test_a_deleted_webhook_is_sent_nothing_more(deploy: Deploy, agents: Agents) -> None:
    deployment = deploy(agents(clerk={}), chat=SteppedChat(says("hi")))
    deployment.receiver.status = 500
    name, _ = await webhook(deployment)
    await ran(deployment)
    await Webhooks(deployment.sql, deployment.clock, keyring, allow).delete("acme", name)
    deployment.clock.advance(60_000)
    await deployment.fire_alarms()
    assert await deliveries(deployment) == [("run.completed", "failed", 2, None, "no_such_webhook")]
    assert (len(deployment.receiver.received), owed(deployment)) == (1, [])


async def test_while_d1_is_away_what_is_owed_stays_owed(deploy: Deploy, agents: Agents) -> None:
    deployment = deploy(agents(clerk={}), chat=SteppedChat(says("hi")))
    deployment.receiver.status = 500
    await webhook(deployment)
    await ran(deployment)
    deployment.receiver.status = 204
    deployment.clock.advance(RETRY_AFTER_S[0] * 1000)
    deployment.faults.plan(Fault(Unavailable("away"), 1, "sql.run"))
    await deployment.fire_alarms()
    assert [row["due_at_ms"] for row in owed(deployment)] == [deployment.clock() + UNANSWERED_MS]
    deployment.clock.advance(UNANSWERED_MS)
    await deployment.fire_alarms()
    assert await deliveries(deployment) == [("run.completed", "delivered", 2, 204, None)]


async def test_an_erased_instance_sends_nothing_more(deploy: Deploy, agents: Agents) -> None:
    deployment = deploy(agents(clerk={}), chat=SteppedChat(says("hi")))
    deployment.receiver.status = 500
    await webhook(deployment)
    await ran(deployment)
    await deployment.ask("clerk", "erase", term=None)
    assert owed(deployment) == []


async def test_nothing_stays_owed_of_a_run_that_is_deleted_while_its_message_is_sent_again(
    deploy: Deploy, agents: Agents
) -> None:
    deployment = deploy(agents(clerk={}), chat=SteppedChat(says("hi")))
    deployment.receiver.status = 500
    await webhook(deployment)
    await ran(deployment)
    await ran(deployment, instance="other")
    await delete_conversation(
        deployment.sql, InstanceClient(LocalInstances(deployment), instance_of("acme", "clerk", "main"))
    )
    [left] = await deployment.rows("SELECT instance_id, status FROM webhook_deliveries")
    assert tuple(left.values()) == ("other", "pending")


async def test_a_message_whose_run_is_gone_is_not_sent_again(deploy: Deploy, agents: Agents) -> None:
    deployment = deploy(agents(clerk={}), chat=SteppedChat(says("hi")))
    name, _ = await webhook(deployment)
    run = await ran(deployment)
    await deployment.sql.run("DELETE FROM agent_runs")
    again = {"run_id": run["run_id"], "webhook_id": name, "message_id": f"msg_{run['run_id']}"}
    with pytest.raises(NotFound) as refused:
        await deployment.ask("clerk", "redeliver", **again)
    assert refused.value.code == "no_such_delivery"
    assert await deliveries(deployment) == [("run.completed", "delivered", 1, 204, None)]


def deployed() -> Deployment:
    return Deployment(catalogue(agent("clerk")), chat=lambda _: SteppedChat(says("hi")))


async def test_invariant_4_a_crash_at_any_point_loses_no_message() -> None:
    deployment = deployed()
    with closing(deployment):
        await webhook(deployment)
        del deployment.faults.trace[:]
        await ran(deployment, key="k")
        numbers = [number for number, _ in different(list(deployment.faults.trace))]
    assert len(numbers) > 20
    for number in numbers:
        deployment = deployed()
        with closing(deployment):
            await webhook(deployment)
            deployment.faults.plan(Fault(Crash(), number))
            with suppress(Crash, RetainError):
                await deployment.run("clerk", "hello", key="k")
            await deployment.recover()
            run = await deployment.run("clerk", "hello", key="k")
            await deployment.recover()
            assert (run["status"], {one.id for one in deployment.receiver.received}) == (
                "completed",
                {f"msg_{run['run_id']}"},
            )
            statuses = Counter(status for _, status, *_ in await deliveries(deployment))
            assert (statuses, owed(deployment)) == (Counter(delivered=1), [])
