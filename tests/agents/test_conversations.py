"""Conversations: what is kept of them, and the routes that list, read, rename and delete them."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable
from typing import Any

import pytest

from retain.agents.catalogue import AgentCatalogue
from retain.agents.context import AgentsContext
from retain.agents.routes import ROUTER
from retain.errors import Conflict, InvalidInput, NotFound, RetainError, UpstreamFailed
from retain.host.connection import open_database
from retain.host.sql import SqliteSql, split_statements
from retain.http import Request
from retain.tenants.register import Tenants
from tests.agents.stepped_chat import SteppedChat, calls, says
from tests.support.instances import ROOT, Deployment, LocalInstances

Deploy = Callable[..., Deployment]
Agents = Callable[..., AgentCatalogue]


class Desk:
    """A deployment and its agents' routes, as an application calls them."""

    def __init__(self, deployment: Deployment) -> None:
        self.deployment = deployment
        self._context = AgentsContext(
            Tenants(deployment.sql, deployment.clock),
            deployment.agents,
            LocalInstances(deployment),
            deployment.sql,
            deployment.clock,
            deployment.attachments,
        )

    async def call(self, method: str, path: str, body: Any = None, **query: Any) -> Any:
        """Return the JSON of an answer, None for an empty one. Raises: what the route raises."""
        await self._context.tenants.register("acme")
        text = "" if body is None else json.dumps(body)
        given = {name: str(value) for name, value in query.items()}
        request = Request(method, f"/v1/agents/acme/{path}", given, {}, text, "host", "request-1")
        answer = await ROUTER.handle(self._context, request)
        return json.loads(answer.body) if answer.body else None

    async def say(self, text: str, instance: str = "main", agent: str = "clerk", **more: Any) -> dict[str, Any]:
        """Return the result of a run whose rows are in D1."""
        result = await self.deployment.run(agent, text, instance=instance, **more)
        await self.deployment.settled()
        return result

    async def listed(self, **query: Any) -> list[str]:
        """Return the instances in the list."""
        page = await self.call("GET", "instances", **query)
        return [one["instance_id"] for one in page["instances"]]

    async def read(self, instance: str = "main", **query: Any) -> list[tuple[str, str]]:
        """Return the roles and contents of a page of messages."""
        page = await self.call("GET", f"clerk/instances/{instance}/messages", **query)
        return [(one["role"], one["content"]) for one in page["messages"]]


@pytest.fixture
def desk(deploy: Deploy, agents: Agents) -> Callable[..., Desk]:
    def make(chat: SteppedChat | None = None, **more: dict[str, Any]) -> Desk:
        return Desk(deploy(agents(clerk={}, **more), chat=chat or SteppedChat()))

    return make


async def test_a_conversation_is_read_as_its_messages_oldest_first(desk: Callable[..., Desk]) -> None:
    open_desk = desk(SteppedChat(says("Hello Ann."), says("Ann.")))
    first = await open_desk.say("I am Ann.")
    open_desk.deployment.clock.advance(1000)
    await open_desk.say("Who am I?")
    page = await open_desk.call("GET", "clerk/instances/main/messages")
    assert [(one["role"], one["content"]) for one in page["messages"]] == [
        ("user", "I am Ann."),
        ("assistant", "Hello Ann."),
        ("user", "Who am I?"),
        ("assistant", "Ann."),
    ]
    now = open_desk.deployment.clock()
    assert page["messages"][0] == {
        "message_id": f"{first['run_id']}.0",
        "run_id": first["run_id"],
        "role": "user",
        "content": "I am Ann.",
        "at_ms": now - 1000,
        "attachments": [],
    }
    assert page["cursor"] is None


async def test_messages_are_paged_in_both_directions(desk: Callable[..., Desk]) -> None:
    open_desk = desk()
    for number in range(5):
        await open_desk.say(f"message {number}")
    whole = await open_desk.read()
    for order, expected in (("asc", whole), ("desc", whole[::-1])):
        found: list[tuple[str, str]] = []
        query: dict[str, Any] = {"limit": 3, "order": order}
        while True:
            page = await open_desk.call("GET", "clerk/instances/main/messages", **query)
            found += [(one["role"], one["content"]) for one in page["messages"]]
            if page["cursor"] is None:
                break
            query["cursor"] = page["cursor"]
        assert found == expected
        assert len(found) == 10


async def test_a_failed_run_leaves_the_question_and_an_object_is_read_as_json(desk: Callable[..., Desk]) -> None:
    open_desk = desk(SteppedChat(UpstreamFailed("no such model", code="model_refused")))
    await open_desk.deployment.run("clerk", {"order": "AB-1"})
    await open_desk.deployment.settled()
    assert await open_desk.read() == [("user", '{"order": "AB-1"}')]
    [shown] = (await open_desk.call("GET", "instances"))["instances"]
    assert (shown["status"], shown["runs"]) == ("failed", 1)


async def test_the_list_shows_the_newest_run_of_each_conversation(desk: Callable[..., Desk]) -> None:
    open_desk = desk()
    clock = open_desk.deployment.clock
    for instance in ("ann", "bob", "ann"):
        result = await open_desk.say("hello", instance)
        clock.advance(1000)
    page = await open_desk.call("GET", "instances")
    assert page["instances"][0] == {
        "agent_type": "clerk",
        "instance_id": "ann",
        "user_id": None,
        "title": None,
        "status": "completed",
        "runs": 2,
        "created_at_ms": clock() - 3000,
        "last_run_at_ms": clock() - 1000,
        "last_run_id": result["run_id"],
    }
    assert [one["instance_id"] for one in page["instances"]] == ["ann", "bob"]
    assert page["cursor"] is None


async def test_the_list_is_filtered_and_paged(desk: Callable[..., Desk]) -> None:
    open_desk = desk(SteppedChat(*[says("ok")] * 4, UpstreamFailed("no such model", code="model_refused")), other={})
    clock = open_desk.deployment.clock
    started = clock()
    for number in range(3):
        await open_desk.say("hello", f"desk-{number}")
        clock.advance(1000)
    await open_desk.say("hello", "elsewhere", agent="other")
    await open_desk.say("hello", "fails")
    assert await open_desk.listed(agent_type="other") == ["elsewhere"]
    assert await open_desk.listed(status="failed") == ["fails"]
    assert await open_desk.listed(since_ms=started + 1000, until_ms=started + 3000) == ["desk-2", "desk-1"]
    assert await open_desk.listed(user="ann") == []
    found: list[str] = []
    query: dict[str, Any] = {"limit": 2}
    while True:
        page = await open_desk.call("GET", "instances", **query)
        found += [one["instance_id"] for one in page["instances"]]
        if page["cursor"] is None:
            break
        query["cursor"] = page["cursor"]
    assert found == ["elsewhere", "fails", "desk-2", "desk-1", "desk-0"]


async def test_the_conversations_of_a_user_are_listed_and_stay_theirs(desk: Callable[..., Desk]) -> None:
    open_desk = desk(other={})
    await open_desk.say("hello", "before")
    await open_desk.say("hello", "before", user={"id": "ann"})
    await open_desk.say("hello", "desk", agent="other", user={"id": "ann"})
    await open_desk.say("hello", "of-bob", user={"id": "bob"})
    assert sorted(await open_desk.listed(user="ann")) == ["before", "desk"]
    assert await open_desk.listed(user="bob") == ["of-bob"]
    rows = await open_desk.deployment.rows("SELECT DISTINCT instance_id, user_id FROM conversation_messages")
    assert {tuple(row.values()) for row in rows} == {
        ("before", None),
        ("before", "ann"),
        ("desk", "ann"),
        ("of-bob", "bob"),
    }


async def test_other_tenants_conversations_are_neither_listed_nor_read(desk: Callable[..., Desk]) -> None:
    open_desk = desk()
    await open_desk.deployment.run("clerk", "secret", tenant="other", instance="theirs")
    await open_desk.deployment.settled()
    assert await open_desk.listed() == []
    for method, path, body in (
        ("GET", "clerk/instances/theirs/messages", None),
        ("PATCH", "clerk/instances/theirs", {"title": "mine"}),
        ("DELETE", "clerk/instances/theirs", None),
    ):
        with pytest.raises(NotFound) as refused:
            await open_desk.call(method, path, body)
        assert refused.value.code == "no_such_instance"


async def test_where_an_agent_works_for_another_one_is_listed_on_request(deploy: Deploy, agents: Agents) -> None:
    chats = {
        "boss": SteppedChat(calls(("delegate", {"agent": "clerk", "input": "do"})), says("done")),
        "clerk": SteppedChat(),
    }
    open_desk = Desk(deploy(agents(boss={"delegates": ["clerk"]}, clerk={}), chat=chats))
    result = await open_desk.say("go", agent="boss")
    assert await open_desk.listed() == ["main"]
    assert await open_desk.listed(delegated="true", agent_type="clerk") == [f"{result['run_id']}.clerk"]


async def test_a_conversation_waits_while_its_newest_run_does(deploy: Deploy, agents: Agents) -> None:
    chat = SteppedChat(calls(("set_working_memory", {"key": "a", "value": 1})), says("done"))
    definition = {"working_memory": True, "approval": ["set_working_memory"]}
    open_desk = Desk(deploy(agents(clerk=definition), chat=chat))
    run = await open_desk.say("go")
    assert await open_desk.listed(status="waiting") == ["main"]
    fields = {"run_id": run["run_id"], "call": "1.0", "approved": True, "by": "ann", "reason": None}
    await open_desk.deployment.ask("clerk", "answer", **fields)
    await open_desk.deployment.settled()
    assert await open_desk.listed(status="completed") == ["main"]
    assert await open_desk.read() == [("user", "go"), ("assistant", "done")]


async def test_an_instance_is_shown_with_its_conversation_and_summary(deploy: Deploy, agents: Agents) -> None:
    config = {"conversation": {"messages": 2}}
    open_desk = Desk(deploy(agents(clerk={"memory_config": config}), chat=SteppedChat()))
    first = await open_desk.say("I like tea.")
    for _ in range(2):
        await open_desk.say("Hello.")
    shown = (await open_desk.call("GET", "clerk/instances/main"))["conversation"]
    [listed] = (await open_desk.call("GET", "instances"))["instances"]
    summary = shown.pop("summary")
    assert shown == listed
    line = {"run_id": first["run_id"], "role": "user", "text": "I like tea", "at_ms": open_desk.deployment.clock()}
    assert summary["lines"][0] == line
    assert summary["through"].split(".")[0] >= first["run_id"]


async def test_a_title_is_given_and_taken_away(desk: Callable[..., Desk]) -> None:
    open_desk = desk()
    await open_desk.say("hello")
    for title in ("Ann's bicycle", "Ann's bicycle", None):
        renamed = await open_desk.call("PATCH", "clerk/instances/main", {"title": title})
        assert renamed["title"] == title
        [shown] = (await open_desk.call("GET", "instances"))["instances"]
        assert shown == renamed
    await open_desk.call("PATCH", "clerk/instances/main", {"title": "kept"})
    await open_desk.say("again")
    [shown] = (await open_desk.call("GET", "instances"))["instances"]
    assert (shown["title"], shown["runs"]) == ("kept", 2)


@pytest.mark.parametrize(
    ("method", "path", "body", "query", "kind", "code"),
    [
        ("GET", "clerk/instances/none/messages", None, {}, NotFound, "no_such_instance"),
        ("PATCH", "clerk/instances/none", {"title": "a"}, {}, NotFound, "no_such_instance"),
        ("DELETE", "clerk/instances/none", None, {}, NotFound, "no_such_instance"),
        ("DELETE", "nobody/instances/main", None, {}, NotFound, "unknown_agent"),
        ("PATCH", "clerk/instances/main", {"title": ""}, {}, InvalidInput, "invalid_body"),
        ("PATCH", "clerk/instances/main", {"title": "x" * 201}, {}, InvalidInput, "invalid_body"),
        ("PATCH", "clerk/instances/main", {}, {}, InvalidInput, "invalid_body"),
        ("GET", "instances", None, {"status": "asleep"}, InvalidInput, "invalid_status"),
        ("GET", "instances", None, {"cursor": "1.clerk"}, InvalidInput, "invalid_cursor"),
        ("GET", "instances", None, {"limit": "0"}, InvalidInput, "invalid_limit"),
        ("GET", "instances", None, {"since_ms": "soon"}, InvalidInput, "invalid_query"),
        ("GET", "clerk/instances/main/messages", None, {"cursor": "' OR 1"}, InvalidInput, "invalid_cursor"),
        ("GET", "clerk/instances/main/messages", None, {"order": "up"}, InvalidInput, "invalid_query"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_what_does_not_fit_is_refused(
    desk: Callable[..., Desk],
    method: str,
    path: str,
    body: Any,
    query: dict[str, str],
    kind: type[RetainError],
    code: str,
) -> None:
    open_desk = desk()
    await open_desk.say("hello")
    with pytest.raises(kind) as refused:
        await open_desk.call(method, path, body, **query)
    assert refused.value.code == code


async def test_a_deleted_conversation_leaves_nothing_in_any_store(desk: Callable[..., Desk]) -> None:
    open_desk = desk(SteppedChat(calls(("no_such_tool", {})), says("a secret answer")))
    await open_desk.say("a secret question", "gone")
    await open_desk.call("PATCH", "clerk/instances/gone", {"title": "a secret title"})
    await open_desk.say("hello", "stays")
    assert await open_desk.call("DELETE", "clerk/instances/gone") is None
    assert await open_desk.listed() == ["stays"]
    assert await open_desk.read("stays") == [("user", "hello"), ("assistant", "done")]
    for table in await open_desk.deployment.rows("SELECT name FROM sqlite_master WHERE type = 'table'"):
        rows = await open_desk.deployment.rows(f'SELECT * FROM "{table["name"]}"')
        assert not [row for row in rows if re.search(r"secret|\bgone\b", str(dict(row)))], table["name"]
    local = open_desk.deployment.local("clerk:acme:gone", "SELECT name FROM sqlite_master WHERE type = 'table'")
    for table in local:
        if not table["name"].startswith("sqlite_") and table["name"] != "schema_version":
            assert open_desk.deployment.local("clerk:acme:gone", f"SELECT * FROM {table['name']}") == []
    with pytest.raises(NotFound):
        await open_desk.call("DELETE", "clerk/instances/gone")


async def test_a_deleted_conversation_starts_again_empty(desk: Callable[..., Desk]) -> None:
    chat = SteppedChat()
    open_desk = desk(chat)
    await open_desk.say("my name is Ann")
    await open_desk.call("DELETE", "clerk/instances/main")
    await open_desk.say("hello")
    assert "Ann" not in str(chat.requests[-1])
    assert await open_desk.read() == [("user", "hello"), ("assistant", "done")]


async def test_no_conversation_is_deleted_while_a_run_is_under_way(desk: Callable[..., Desk]) -> None:
    chat = SteppedChat(hold=True)
    open_desk = desk(chat)
    run = asyncio.create_task(open_desk.deployment.run("clerk", "hello"))
    await chat.asked.wait()
    with pytest.raises(Conflict) as refused:
        await open_desk.call("DELETE", "clerk/instances/main")
    assert refused.value.code == "instance_busy"
    chat.let_go()
    await run
    await open_desk.deployment.settled()
    assert await open_desk.read() == [("user", "hello"), ("assistant", "done")]


async def test_a_deletion_that_d1_interrupts_is_completed_by_the_next_one(desk: Callable[..., Desk]) -> None:
    open_desk = desk()
    await open_desk.say("hello")
    identity = {"tenant_id": "acme", "agent_type": "clerk", "instance_id": "main"}
    await LocalInstances(open_desk.deployment).call("clerk:acme:main", "erase", identity)
    await open_desk.call("DELETE", "clerk/instances/main")
    assert await open_desk.listed(delegated="true") == []
    assert await open_desk.deployment.rows("SELECT * FROM agent_runs") == []


async def test_a_database_of_version_0_1_0_gets_its_conversations_whole() -> None:
    connection = open_database()
    sql = SqliteSql(connection)
    files = sorted((ROOT / "migrations").glob("*.sql"))
    for path in (path for path in files if path.name < "0012"):
        await sql.batch([(statement, ()) for statement in split_statements(path.read_text())])
    inserted = (
        "INSERT INTO agent_runs (run_id, tenant_id, agent_type, instance_id, parent_run_id, status, input, output, model,"
        " created_at_ms, completed_at_ms) VALUES (?, 'acme', 'clerk', ?, ?, ?, ?, ?, 'm', ?, ?)"
    )
    await sql.batch(
        [
            (inserted, ("R1", "ann", None, "completed", '{"input": "I am Ann"}', "Hello", 1, 2)),
            (inserted, ("R2", "ann", None, "failed", '{"input": {"order": "é"}}', None, 5, 6)),
            (inserted, ("R3", "ann", None, "waiting", '{"input": "later"}', None, 7, None)),
            (inserted, ("R4", "R1.clerk", "R1", "completed", '{"erased": "receipt"}', None, 3, 4)),
        ]
    )
    for path in (path for path in files if path.name >= "0012"):
        await sql.batch([(statement, ()) for statement in split_statements(path.read_text())])
    found = await sql.run(
        "SELECT instance_id, delegated, created_at_ms, last_run_at_ms, last_run_id, status, runs FROM conversations"
        " ORDER BY instance_id DESC"
    )
    assert [tuple(row.values()) for row in found.rows] == [
        ("ann", 0, 1, 7, "R3", "waiting", 3),
        ("R1.clerk", 1, 3, 3, "R4", "completed", 1),
    ]
    messages = await sql.run("SELECT * FROM conversation_messages ORDER BY message_id")
    assert [(row["message_id"], row["role"], row["content"], row["at_ms"]) for row in messages.rows] == [
        ("R1.0", "user", "I am Ann", 1),
        ("R1.1", "assistant", "Hello", 2),
        ("R2.0", "user", '{"order":"é"}', 5),
        ("R3.0", "user", "later", 7),
    ]
    assert {(row["tenant_id"], row["instance_id"]) for row in messages.rows} == {("acme", "ann")}
    connection.close()
