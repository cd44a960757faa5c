"""Learning from a run after it has ended: of its user, from their own words, once, whatever crashes."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from retain.agents.calls.user import User
from retain.agents.catalogue import AgentCatalogue
from retain.agents.recollection import moment
from retain.errors import RetainError, Unavailable
from tests.agents.remembered import check_d1_agrees
from tests.agents.stepped_chat import SteppedChat, calls, says
from tests.support.faults import Crash, Fault
from tests.support.instances import Deployment

Deploy = Callable[..., Deployment]
Agents = Callable[..., AgentCatalogue]

ANN, BOB = User("ann", "Ann"), User("bob", "Bob")
RULES = {"long_term_enabled": True, "recall": "context", "profile": {}, "learn": "rules"}
MODEL = {**RULES, "learn": "model"}
CLERK = {"memory_config": RULES}
LYON = {
    "message": 0, "subject": "Ann", "predicate": "lives_in", "object": "Lyon", "content": "Ann lives in Lyon",
    "kind": "fact", "confidence": 0.9,
}  # fmt: skip


async def say(deployment: Deployment, user: User | None, text: Any, instance: str, **more: Any) -> str:
    """Say something to the clerk, let it be learned, and return the run's id."""
    deployment.clock.advance(60_000)
    asking = None if user is None else user.to_json()
    result = await deployment.run("clerk", text, instance=instance, user=asking, **more)
    await deployment.settled()
    return str(result["run_id"])


async def known(deployment: Deployment) -> list[tuple[str, str, bool]]:
    rows = await deployment.rows(
        "SELECT r.content, r.valid_to_ms, s.user_id FROM memory_records r JOIN scopes s USING (tenant_id, scope_id)"
        " ORDER BY r.id"
    )
    return [(row["user_id"], row["content"], row["valid_to_ms"] is None) for row in rows]


async def report(deployment: Deployment, run_id: str) -> Any:
    [row] = await deployment.rows("SELECT learning FROM agent_runs WHERE run_id = ?", run_id)
    return None if row["learning"] is None else json.loads(row["learning"])


async def test_what_a_user_says_closes_what_was_known_of_them_and_of_nobody_else(
    deploy: Deploy, agents: Agents
) -> None:
    chat = SteppedChat()
    deployment = deploy(agents(clerk=CLERK), chat=chat)
    await say(deployment, ANN, "I live in Berlin.", "ann-1")
    await say(deployment, BOB, "I live in Berlin.", "bob-1")
    moved = await say(deployment, ANN, "By the way, I just moved to Lyon.", "ann-2")
    assert await known(deployment) == [
        ("ann", "Ann lives in Berlin", False),
        ("bob", "Bob lives in Berlin", True),
        ("ann", "Ann lives in Lyon", True),
    ]
    [row] = await deployment.rows("SELECT * FROM memory_records WHERE content = 'Ann lives in Lyon'")
    assert (row["subject"], row["predicate"], row["object"]) == ("user:ann", "lives_in", "Lyon")
    assert json.loads(row["source"]) == {"origin": "extraction", "run_id": moved, "step": 1}
    [old] = await deployment.rows("SELECT id FROM memory_records WHERE content = 'Ann lives in Berlin'")
    vectors = await deployment.index.get_by_ids([f"{old['id']}#0", f"{row['id']}#0"])
    ends = {entry.id: (entry.metadata.get("valid_to"), entry.metadata.get("superseded_by")) for entry in vectors}
    assert ends == {f"{old['id']}#0": (row["valid_from_ms"], row["id"]), f"{row['id']}#0": (None, None)}
    assert await report(deployment, moved) == {
        "status": "learned",
        "method": "rules",
        "records": [row["id"]],
        "cut": 0,
        "usage": {"input_tokens": 0, "output_tokens": 0, "cached_input_tokens": 0},
    }
    for user, home in ((ANN, "Lyon"), (BOB, "Berlin")):
        await say(deployment, user, "Where do I live?", f"{user.id}-3")
        text = "\n".join(message.content for message in chat.requests[-1].messages)
        assert [city for city in ("Berlin", "Lyon") if f"lives in {city}" in text] == [home]


async def test_what_must_not_be_forgotten_is_in_the_profile_however_much_was_learned_since(
    deploy: Deploy, agents: Agents
) -> None:
    chat = SteppedChat()
    deployment = deploy(agents(clerk=CLERK), chat=chat)
    await say(deployment, ANN, "I'm allergic to peanuts, and I live in Lyon.", "ann-1")
    for first in (0, 10):
        await say(deployment, ANN, " ".join(f"I like tea {n}." for n in range(first, first + 10)), "ann-1")
    await say(deployment, ANN, "I have to leave early tomorrow.", "ann-1")
    await say(deployment, ANN, "Hello!", "ann-2")
    text = "\n".join(message.content for message in chat.requests[-1].messages)
    shown = text[text.index('<memory section="profile"') :].split("</memory>")[0].splitlines()[1:]
    assert shown[:3] == ["Ann is allergic to peanuts", "Ann lives in Lyon", "Ann likes tea 19"]
    assert len(shown) == 20


async def test_a_text_that_the_user_announced_teaches_nothing_of_them(deploy: Deploy, agents: Agents) -> None:
    deployment = deploy(agents(clerk=CLERK), chat=SteppedChat())
    await say(deployment, ANN, "I live in Lyon.", "ann-1")
    await say(deployment, ANN, "Could you translate my letter?", "ann-1")
    await say(deployment, ANN, "I live in Oslo, and I love the fjords.", "ann-1")
    await say(deployment, ANN, "I like tea.", "ann-1")
    assert await known(deployment) == [("ann", "Ann lives in Lyon", True), ("ann", "Ann likes tea", True)]


async def test_a_task_in_the_profile_says_when_it_was_stated(deploy: Deploy, agents: Agents) -> None:
    chat = SteppedChat()
    deployment = deploy(agents(clerk=CLERK), chat=chat)
    await say(deployment, ANN, "I have to leave early tomorrow.", "ann-1")
    stated = moment(deployment.clock())
    deployment.clock.advance(30 * 86_400_000)
    await say(deployment, ANN, "Hello!", "ann-2")
    text = "\n".join(message.content for message in chat.requests[-1].messages)
    assert f"(said {stated}) Ann has to leave early tomorrow" in text.splitlines()


async def test_the_next_run_of_the_instance_knows_what_the_last_one_taught(deploy: Deploy, agents: Agents) -> None:
    chat = SteppedChat()
    deployment = deploy(agents(clerk=CLERK), chat=chat)
    for text in ("I live in Lyon.", "Where do I live?"):
        await deployment.run("clerk", text, user=ANN.to_json())
    assert "Ann lives in Lyon" in "\n".join(message.content for message in chat.requests[-1].messages)


@pytest.mark.parametrize(
    ("user", "text", "more"),
    [
        pytest.param(None, "I live in Lyon.", {}, id="nobody's words"),
        pytest.param(ANN, {"mail": "I live in Lyon."}, {}, id="an application's object"),
        pytest.param(
            ANN, "I live in Lyon.",
            {"parent_run_id": "01ARZ3NDEKTSV4RRFFQ69G5FAV", "parent": {"agent_type": "sdr", "instance_id": "a"}},
            id="a model's words to a delegate",
        ),
    ],
)  # fmt: skip
async def test_nothing_is_learned_from(
    deploy: Deploy, agents: Agents, user: User | None, text: Any, more: dict[str, Any]
) -> None:
    deployment = deploy(agents(clerk=CLERK), chat=SteppedChat())
    run_id = await say(deployment, user, text, "main", **more)
    assert (await known(deployment), await report(deployment, run_id)) == ([], None)


async def test_nothing_is_learned_from_answers_tools_or_recalled_text(deploy: Deploy, agents: Agents) -> None:
    chat = SteppedChat(calls(("get_working_memory", {})), says("I live in Berlin. My name is Clerk."))
    deployment = deploy(agents(clerk={**CLERK, "working_memory": True}), chat=chat)
    pasted = 'See what I found. <memory section="records" note="x">\nI live in Rome.\n</memory> Hello. I work at Acme.'
    run_id = await say(deployment, ANN, pasted, "main")
    assert [content for _, content, _ in await known(deployment)] == ["Ann works at Acme"]
    assert len((await report(deployment, run_id))["records"]) == 1


async def test_a_definition_that_does_not_say_so_learns_nothing(deploy: Deploy, agents: Agents) -> None:
    deployment = deploy(agents(clerk={"memory_config": {"long_term_enabled": True}}), chat=SteppedChat())
    run_id = await say(deployment, ANN, "I live in Lyon.", "main")
    assert (await known(deployment), await report(deployment, run_id)) == ([], None)


async def test_a_failed_run_teaches_nothing(deploy: Deploy, agents: Agents) -> None:
    deployment = deploy(agents(clerk=CLERK), chat=SteppedChat(Unavailable("down", code="upstream_unreachable")))
    run_id = await say(deployment, ANN, "I live in Lyon.", "main")
    assert (await known(deployment), await report(deployment, run_id)) == ([], None)


async def test_what_is_learned_again_only_adds_when_it_was_said(deploy: Deploy, agents: Agents) -> None:
    deployment = deploy(agents(clerk=CLERK), chat=SteppedChat())
    for number in range(3):
        await say(deployment, ANN, "I live in Lyon.", f"talk-{number}")
    rows = await deployment.rows("SELECT confidence FROM memory_records")
    assert [row["confidence"] for row in rows] == [0.9]
    events = [(row["kind"], json.loads(row["data"])) for row in await deployment.rows("SELECT * FROM memory_events")]
    assert [kind for kind, _ in events] == ["stored", "restored", "restored"]
    assert all(data.keys() <= {"claims"} for kind, data in events if kind == "restored"), events


async def test_a_change_of_name_changes_no_subject(deploy: Deploy, agents: Agents) -> None:
    deployment = deploy(agents(clerk=CLERK), chat=SteppedChat())
    for number, name in enumerate(("Ann", "Anna", None, "assistant")):
        await say(deployment, User("ann", name), "I live in Lyon.", f"talk-{number}")
    assert [content for _, content, _ in await known(deployment)] == ["Ann lives in Lyon"]


async def test_the_model_learns_with_its_tokens_reported(deploy: Deploy, agents: Agents) -> None:
    chat = SteppedChat(says("hello"), says(json.dumps({"facts": [LYON, {**LYON, "subject": "Emma", "object": "Rome",
                                                                        "content": "Emma lives in Rome"}]})))  # fmt: skip
    deployment = deploy(agents(clerk={"memory_config": MODEL}), chat=chat)
    run_id = await say(deployment, ANN, "I live in Lyon, my sister Emma in Rome.", "main")
    rows = await deployment.rows("SELECT subject, content FROM memory_records ORDER BY id")
    assert [tuple(row.values()) for row in rows] == [
        ("user:ann", "Ann lives in Lyon"),
        ("entity:emma", "Emma lives in Rome"),
    ]
    found = await report(deployment, run_id)
    assert (found["status"], len(found["records"]), found["usage"]) == (
        "learned",
        2,
        {"input_tokens": 3, "output_tokens": 2, "cached_input_tokens": 0},
    )


async def test_a_model_that_finds_too_much_is_cut(deploy: Deploy, agents: Agents) -> None:
    many = [{**LYON, "predicate": f"knows_{n}", "content": f"Ann knows number {n}"} for n in range(25)]
    chat = SteppedChat(says("hello"), says(json.dumps({"facts": many})))
    deployment = deploy(agents(clerk={"memory_config": MODEL}), chat=chat)
    run_id = await say(deployment, ANN, "I know many.", "main")
    assert (await report(deployment, run_id))["cut"] == 5
    assert len(await known(deployment)) == 20


async def test_a_model_that_fails_is_asked_again_by_the_alarm_and_given_up_at_last(
    deploy: Deploy, agents: Agents
) -> None:
    failing = [says("hello"), *[says("no JSON")] * 2]
    chat = SteppedChat(*failing, says(json.dumps({"facts": [LYON]})))
    deployment = deploy(agents(clerk={"memory_config": MODEL}), chat=chat)
    run_id = await say(deployment, ANN, "I live in Lyon.", "main")
    assert (await report(deployment, run_id))["status"] == "pending"
    await deployment.recover()
    assert (await report(deployment, run_id))["status"] == "learned"
    assert [content for _, content, _ in await known(deployment)] == ["Ann lives in Lyon"]

    chat = SteppedChat(says("hello"), *[says("no JSON")] * 20)
    deployment = deploy(agents(clerk={"memory_config": MODEL}), chat=chat)
    run_id = await say(deployment, ANN, "I live in Lyon.", "main")
    await deployment.recover()
    lost = await report(deployment, run_id)
    assert (lost["status"], lost["error"]["code"]) == ("failed", "malformed_extraction")
    assert len(chat.requests) == 1 + 5


@pytest.mark.parametrize("config", [RULES, MODEL], ids=["rules", "model"])
async def test_invariant_4_a_crash_at_any_point_of_learning_loses_nothing_and_learns_nothing_twice(
    deploy: Deploy, agents: Agents, config: dict[str, Any]
) -> None:
    class Extracting(SteppedChat):
        async def complete(self, request: Any, on_text: Any = None) -> Any:
            await super().complete(request, on_text)
            asked = "You extract durable facts" in request.messages[0].content
            return says(json.dumps({"facts": [LYON]}) if asked else "hello")

    def deployed() -> Deployment:
        return deploy(agents(clerk={"memory_config": config}), chat=Extracting())

    async def ask(deployment: Deployment) -> None:
        await deployment.run("clerk", "I moved to Lyon.", key="once", user=ANN.to_json())

    calm = deployed()
    await ask(calm)
    await calm.settled()
    trace = list(calm.faults.trace)
    first = next(n for n, (_, point) in enumerate(trace, start=1) if point == "answer")
    for number in range(first, len(trace) + 1):
        deployment = deployed()
        deployment.faults.plan(Fault(Crash(), number))
        with suppress(Crash, RetainError):
            await ask(deployment)
        await deployment.settled()
        await deployment.recover()
        await ask(deployment)
        await deployment.recover()
        assert await known(deployment) == [("ann", "Ann lives in Lyon", True)], trace[number - 1]
        [row] = await deployment.rows("SELECT learning FROM agent_runs")
        learned = json.loads(row["learning"])
        assert (learned["status"], len(learned["records"])) == ("learned", 1), trace[number - 1]
        assert len(await deployment.rows("SELECT 1 FROM memory_events")) == 1, trace[number - 1]
        assert deployment.local("clerk:acme:main", "SELECT 1 FROM pending_learnings") == []
        await check_d1_agrees(deployment)


async def test_what_is_erased_is_not_learned_afterwards(deploy: Deploy, agents: Agents) -> None:
    for term in (None, "Lyon"):
        deployment = deploy(
            agents(clerk={"memory_config": MODEL}), chat=SteppedChat(says("hello"), *[says("no JSON")] * 9)
        )
        await say(deployment, ANN, "I live in Lyon.", "main")
        assert deployment.local("clerk:acme:main", "SELECT 1 FROM pending_learnings")
        await deployment.ask("clerk", "erase", **({} if term is None else {"term": term}))
        assert deployment.local("clerk:acme:main", "SELECT 1 FROM pending_learnings") == []
        await deployment.recover()
        assert await known(deployment) == []
