"""What a tenant knows of a run's user fills in what the run does not say: name, locale and time zone."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from retain.agents.catalogue import AgentCatalogue
from retain.errors import UpstreamFailed
from retain.memory.users import Users
from tests.agents.stepped_chat import SteppedChat, calls, says
from tests.support.faults import Crash, Fault
from tests.support.instances import Deployment

Deploy = Callable[..., Deployment]
Agents = Callable[..., AgentCatalogue]

WHO = calls(("who_and_when", {}))
ANN = {"name": "Ann", "locale": "fr-CH", "timezone": "Asia/Tokyo"}
FUNCTIONS = {"who_and_when": "tests.agents.declared_functions"}
CLERK: dict[str, dict[str, Any]] = {"clerk": {"functions": list(FUNCTIONS)}}
NOBODY: dict[str, Any] = {"name": None, "locale": None, "timezone": None}


async def know(deployment: Deployment, tenant: str = "acme", user: str = "ann", **profile: str) -> None:
    """Set the profile of a user, as an administrator does."""
    users = Users(deployment.shared()[0], tenant, deployment.clock, lambda _zone, _at_ms: 0)
    await users.put(user, **{**NOBODY, **profile})


async def profile(deployment: Deployment) -> dict[str, Any]:
    await deployment.settled()
    [row] = await deployment.rows("SELECT name, locale, timezone FROM users WHERE tenant_id = 'acme'")
    return dict(row)


def shown(chat: SteppedChat) -> str:
    """Return the instructions of the model's last request."""
    return chat.requests[-1].messages[0].content


def heard(chat: SteppedChat) -> Any:
    """Return what the last tool answered."""
    return json.loads(chat.requests[-1].messages[-1].content)


@pytest.mark.parametrize(
    ("asked", "known", "taken"),
    [
        ({}, ANN, ANN),
        ({"name": "Annie"}, ANN, {**ANN, "name": "Annie"}),
        ({"timezone": "Europe/Zurich"}, {"name": "Ann"}, {**NOBODY, "name": "Ann", "timezone": "Europe/Zurich"}),
        ({}, {}, NOBODY),
        ({}, {"timezone": "Mars/Olympus"}, NOBODY),
    ],
)
async def test_what_a_run_does_not_say_of_its_user_is_taken_from_what_is_known(
    deploy: Deploy, agents: Agents, asked: dict[str, str], known: dict[str, str], taken: dict[str, Any]
) -> None:
    chat = SteppedChat(WHO, says("ok"))
    deployment = deploy(agents(FUNCTIONS, **CLERK), chat=chat)
    await know(deployment, **known)
    await deployment.run("clerk", "hello", user={"id": "ann", **asked})
    assert heard(chat)["user"] == {"id": "ann", **taken}
    zone = taken["timezone"] or "UTC"
    assert f"({zone})" in shown(chat)
    assert ("name = " in shown(chat)) is (taken["name"] is not None)
    assert heard(chat)["date"].endswith({"Asia/Tokyo": "+09:00", "Europe/Zurich": "+01:00"}.get(zone, "+00:00"))


async def test_another_tenants_and_another_users_profile_fill_in_nothing(deploy: Deploy, agents: Agents) -> None:
    chat = SteppedChat(WHO, says("ok"))
    deployment = deploy(agents(FUNCTIONS, **CLERK), chat=chat)
    await know(deployment, tenant="beta", **ANN)
    await know(deployment, user="anna", **ANN)
    await deployment.run("clerk", "hello", user={"id": "ann"})
    assert heard(chat)["user"] == {"id": "ann", **NOBODY}


async def test_a_run_that_continues_after_a_crash_acts_for_the_user_as_it_began(deploy: Deploy, agents: Agents) -> None:
    chat = SteppedChat(WHO, WHO, says("ok"))
    deployment = deploy(agents(FUNCTIONS, **CLERK), chat=chat)
    await know(deployment, **ANN)
    deployment.faults.plan(Fault(Crash(), point="chat.complete done"))
    with pytest.raises(Crash):
        await deployment.run("clerk", "hello", user={"id": "ann"}, idempotency_key="k")
    await know(deployment, name="Anna")
    await deployment.recover()
    assert heard(chat)["user"] == {"id": "ann", **ANN}
    again = await deployment.run("clerk", "hello", user={"id": "ann", "name": "Anna"}, idempotency_key="k")
    assert again["output"] == "ok"


async def test_a_delegate_knows_the_user_as_its_caller_does_and_says_nothing_new_of_them(
    deploy: Deploy, agents: Agents
) -> None:
    boss = SteppedChat(calls(("delegate", {"agent": "clerk", "input": "who?"})), says("ok"))
    clerk = SteppedChat(WHO, says("Ann"))
    deployment = deploy(agents(FUNCTIONS, boss={"delegates": ["clerk"]}, **CLERK), chat={"boss": boss, "clerk": clerk})
    await know(deployment, **ANN)
    boss.hold()
    running = asyncio.create_task(deployment.run("boss", "go", user={"id": "ann", "locale": "de"}))
    await boss.asked.wait()
    await know(deployment, name="Anna")
    boss.let_go()
    await running
    assert heard(clerk)["user"] == {"id": "ann", **ANN, "locale": "de"}
    assert await profile(deployment) == {**NOBODY, "name": "Anna", "locale": "de"}


async def test_a_schedule_and_a_retry_do_not_bring_back_an_old_name(deploy: Deploy, agents: Agents) -> None:
    chat = SteppedChat(UpstreamFailed("no", code="model_refused"))
    deployment = deploy(agents(clerk={}), chat=chat)
    ann = {"id": "ann", "name": "Ann"}
    failed = await deployment.run("clerk", "hello", user=ann)
    at_ms = deployment.clock() + 60_000
    request = {"input": "again", "metadata": {}, "idempotency_key": None, "by": "key:1", "user": ann}
    await deployment.ask("clerk", "schedule", request=request, cron=None, timezone=None, at_ms=at_ms)
    await know(deployment, name="Anna")
    fork = {"run_id": failed["run_id"], "turns": None, "idempotency_key": None, "by": "key:1"}
    await deployment.ask("clerk", "fork", **fork)
    assert await profile(deployment) == {**NOBODY, "name": "Anna"}
    deployment.clock.set(at_ms)
    await deployment.fire_alarms()
    assert await profile(deployment) == {**NOBODY, "name": "Anna"}
    assert len(await deployment.rows("SELECT 1 FROM agent_runs WHERE status = 'completed'")) == 2
    [row] = await deployment.rows("SELECT last_run_at_ms FROM users")
    assert row["last_run_at_ms"] == at_ms


async def test_what_a_run_says_is_known_although_its_delegate_is_heard_of_first(deploy: Deploy, agents: Agents) -> None:
    boss = SteppedChat(calls(("delegate", {"agent": "clerk", "input": "hello"})), says("ok"))
    deployment = deploy(agents(boss={"delegates": ["clerk"]}, clerk={}), chat={"boss": boss, "clerk": SteppedChat()})
    await know(deployment, name="Ann", locale="fr-CH")
    await deployment.run("boss", "go", user={"id": "ann", "name": "Anna"})
    assert await profile(deployment) == {**NOBODY, "name": "Anna", "locale": "fr-CH"}


async def test_facts_name_the_user_as_they_are_known(deploy: Deploy, agents: Agents) -> None:
    memory = {"long_term_enabled": True, "learn": "rules", "facts": True}
    chat = SteppedChat(calls(("learn_fact", {"predicate": "likes", "object": "tea", "subject": "ann"})), says("ok"))
    deployment = deploy(agents(clerk={"memory_config": memory}), chat=chat)
    await know(deployment, user="7", name="Ann")
    await deployment.run("clerk", "I live in Lyon.", user={"id": "7"})
    await deployment.settled()
    rows = await deployment.rows("SELECT content, subject FROM memory_records ORDER BY content")
    assert [(row["content"], row["subject"]) for row in rows] == [
        ("Ann likes tea", "user:7"),
        ("Ann lives in Lyon", "user:7"),
    ]


async def test_a_time_at_which_an_agent_wakes_is_in_the_zone_that_is_known(deploy: Deploy, agents: Agents) -> None:
    chat = SteppedChat(calls(("schedule_wakeup", {"input": "now", "at": "2023-11-15T09:00"})), says("ok"))
    deployment = deploy(agents(clerk={"wakeups": True}), chat=chat)
    await know(deployment, **ANN)
    await deployment.run("clerk", "Wake up at nine", user={"id": "ann"})
    [row] = await deployment.rows("SELECT at_ms, request FROM schedules")
    assert row["at_ms"] == 1_700_006_400_000
    assert json.loads(row["request"])["user"] == {"id": "ann", **NOBODY}


async def test_what_is_known_of_a_user_costs_no_trip_of_its_own(deploy: Deploy, agents: Agents) -> None:
    trips: list[int] = []
    for user in ({"id": "ann", **ANN}, {"id": "ann"}):
        deployment = deploy(agents(clerk={}), chat=SteppedChat(says("ok")))
        await deployment.run("clerk", "hello", user=user)
        await deployment.settled()
        trips.append(sum(point in ("sql.batch", "sql.run") for _, point in deployment.faults.trace))
    assert trips[0] == trips[1] > 0
