"""A run names who started it, and who answered or cancelled it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from retain.agents.catalogue import AgentCatalogue
from retain.agents.routes import ROUTER
from retain.http import Request
from tests.agents.queues import LIMITS, NAME, busy, followed, written
from tests.agents.stepped_chat import SteppedChat, calls, says
from tests.agents.test_routes import context_of
from tests.support.instances import Deployment, Upstream

Deploy = Callable[..., Deployment]
Agents = Callable[..., AgentCatalogue]
ANN, BEN = "person:ann@example.com", "person:ben@example.com"
DESK = "/v1/agents/acme/clerk/instances/main"


async def asked(deployment: Deployment, by: str, method: str, path: str, body: object = None, key: str = "k") -> Any:
    """Return the JSON of an answer to what a person asks."""
    text, name = "" if body is None else json.dumps(body), by.removeprefix("person:")
    request = Request(method, path, {}, {"idempotency-key": key}, text, "host", "request-1", caller=name)
    return json.loads((await ROUTER.handle(await context_of(deployment), request)).body)


async def run(deployment: Deployment, by: str, **more: object) -> Any:
    body = {"input": "hello", "instance_id": "main"}
    return await asked(deployment, by, "POST", "/v1/agents/acme/clerk/run", {**body, **more})


async def starters(deployment: Deployment) -> dict[str, str | None]:
    """Return who started each run, as D1 has it."""
    await deployment.settled()
    rows = await deployment.rows("SELECT run_id, started_by FROM agent_runs")
    return {row["run_id"]: row["started_by"] for row in rows}


async def test_a_run_names_who_started_it_even_when_another_person_repeats_the_request(
    deploy: Deploy, agents: Agents
) -> None:
    desk = deploy(agents(clerk={}), chat=SteppedChat(says("hi")))
    result = await run(desk, ANN)
    assert result["by"] == ANN
    assert await run(desk, BEN) == result
    path = f"{DESK}/runs/{result['run_id']}"
    assert (await asked(desk, BEN, "GET", path))["by"] == ANN
    [listed] = (await asked(desk, BEN, "GET", DESK))["turn_state"]
    assert (listed["run_id"], listed["by"]) == (result["run_id"], ANN)
    assert await starters(desk) == {result["run_id"]: ANN}


async def test_a_run_that_nobody_is_known_to_have_started_has_no_name(deploy: Deploy, agents: Agents) -> None:
    desk = deploy(agents(clerk={}), chat=SteppedChat(says("hi")))
    result = await desk.run("clerk", "hello")  # as an instance of an earlier version keeps it
    assert "by" not in result
    assert await starters(desk) == {result["run_id"]: None}


async def test_a_queued_run_names_who_queued_it_before_and_after_it_begins(deploy: Deploy, agents: Agents) -> None:
    chat = SteppedChat(hold=True)
    desk = deploy(agents(clerk={"limits": LIMITS}), chat=chat)
    async with busy(desk, chat) as first:
        queued = await run(desk, BEN)
        assert (queued["status"], queued["by"]) == ("queued", BEN)
        [waiting] = (await asked(desk, ANN, "GET", DESK))["queue"]
        assert (waiting["run_id"], waiting["by"]) == (queued["run_id"], BEN)
        await written(desk)
        [row] = await desk.rows("SELECT started_by FROM agent_runs WHERE status = 'waiting'")
        assert row["started_by"] == BEN
    assert await starters(desk) == {first: None, queued["run_id"]: BEN}
    assert (await asked(desk, ANN, "GET", f"{DESK}/runs/{queued['run_id']}"))["by"] == BEN
    assert [name for name, _ in await followed(desk, queued["run_id"])][-1] == "run.completed"


async def test_a_delegate_s_run_names_the_agent_that_started_it(deploy: Deploy, agents: Agents) -> None:
    boss = SteppedChat(calls(("delegate", {"agent": "helper", "input": "do it"})), says("all done"))
    chats = {"boss": boss, "helper": SteppedChat(says("it is done"))}
    deployment = deploy(agents(boss={"delegates": ["helper"]}, helper={}), chat=chats)
    result = await deployment.run("boss", "hello", by=ANN)
    assert (names := await starters(deployment)).pop(result["run_id"]) == ANN
    assert list(names.values()) == ["agent:boss"]


async def test_an_approval_and_a_cancellation_name_the_person(deploy: Deploy, agents: Agents) -> None:
    chat = SteppedChat(calls(("pay", {"order": "A"})), calls(("pay", {"order": "B"})), says("paid"))
    clerk = {"tools": ["pay"], "approval": ["pay"]}
    desk = deploy(agents(clerk=clerk), upstreams=[Upstream("pay", True)], chat=chat)
    waiting = await run(desk, ANN)
    await desk.lose(NAME)  # what D1 has of the run names it as well
    path = f"{DESK}/runs/{waiting['run_id']}"
    answer = {"call": waiting["waiting_for"]["call"], "decision": "approve"}
    await asked(desk, BEN, "POST", f"{path}/resume", answer)
    await desk.settled()
    [approval] = await desk.rows("SELECT decided_by FROM decision_log WHERE kind = 'approval'")
    assert approval["decided_by"] == BEN
    result = await asked(desk, BEN, "POST", f"{path}/cancel")
    assert (result["by"], result["error"]["by"]) == (ANN, BEN)
