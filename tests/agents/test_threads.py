"""What a run reads of its conversation: the newest messages as messages, a summary of older ones, and nothing twice."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from retain.admin.maintenance import prune
from retain.agents.calls.tokens import Estimate
from retain.agents.catalogue import AgentCatalogue
from retain.agents.conversations.past import bound_of
from retain.errors import UpstreamFailed
from retain.memory.conversations.statements import AppendMessage, OpenConversation
from retain.memory.conversations.thread import ThreadQuery
from retain.models.providers.anthropic import to_wire
from retain.retention import TEXT_KEPT_MS
from tests.agents.stepped_chat import SteppedChat, calls, says
from tests.support.faults import Crash, Fault
from tests.support.instances import Deployment

Deploy = Callable[..., Deployment]
Agents = Callable[..., AgentCatalogue]
CARD = "My card ends in 4242"
DAY_MS = 24 * 3_600_000


def talk(chat: SteppedChat) -> list[tuple[str, str]]:
    """Return the roles and contents that the model read last, after the instructions."""
    return [(message.role, message.content) for message in chat.requests[-1].messages[1:]]


def prompt(chat: SteppedChat) -> str:
    return "\n".join(message.content for message in chat.requests[-1].messages)


def fence(chat: SteppedChat, section: str) -> list[str]:
    """Return the lines of a section of remembered text in the last prompt, [] when it is not there."""
    _, found, rest = prompt(chat).partition(f'<memory section="{section}"')
    return rest.split("</memory>")[0].splitlines()[1:] if found else []


async def say(deployment: Deployment, *texts: str, agent: str = "clerk", instance: str = "main", **more: Any) -> None:
    for text in texts:
        await deployment.run(agent, text, instance=instance, **more)
    await deployment.settled()


async def test_an_early_fact_of_thirty_turns_is_in_the_summary_and_small_talk_is_not(
    deploy: Deploy, agents: Agents
) -> None:
    chat = SteppedChat(*[says("Fine.")] * 31)
    deployment = deploy(agents(clerk={"memory_config": {"conversation": {"summary_tokens": 200}}}), chat=chat)
    await say(deployment, f"Hello! I am Ann. {CARD}.")
    await say(deployment, *[f"What about the weather, part {'x' * n}?" for n in range(30)])
    assert ("user", f"Hello! I am Ann. {CARD}.") not in talk(chat)
    summary = fence(chat, "conversation")
    assert [line for line in summary if CARD in line] == [f"2023-11-14 user: {CARD}"]
    assert sum("weather" in line for line in summary) < 20
    assert Estimate().text("\n".join(summary)) <= 200
    assert talk(chat)[-1] == ("user", f"What about the weather, part {'x' * 29}?")
    [row] = await deployment.rows("SELECT summary FROM conversations")
    assert CARD in row["summary"]


async def test_the_beginning_of_the_prompt_stays_equal_for_many_runs(deploy: Deploy, agents: Agents) -> None:
    chat = SteppedChat(*[says("Fine.")] * 60)
    deployment = deploy(agents(clerk={"memory_config": {"conversation": {"messages": 20}}}), chat=chat)
    await say(deployment, *[f"Question {number}." for number in range(60)])
    prompts = [request.messages for request in chat.requests]
    kept = sum(after[: len(before)] == before for before, after in pairwise(prompts))
    assert kept >= 50, "a prompt begins with the whole one before it, except when messages go into the summary"
    assert max(map(len, prompts)) <= 1 + 1 + 20 + 1


async def test_five_hundred_turns_stay_within_the_budget_with_one_request_to_d1_for_each(
    deploy: Deploy, agents: Agents
) -> None:
    chat = SteppedChat(*[says("An answer. " * 20)] * 500)
    limits = {"context_tokens": 3000}
    deployment = deploy(agents(clerk={"limits": limits, "model": {"max_output_tokens": 500}}), chat=chat)
    await say(deployment, f"{CARD}.")
    reads: list[int] = []
    for number in range(499):
        before = len(deployment.faults.trace)
        await deployment.run("clerk", f"And order AB-{number}? " + "Please. " * 20)
        new = [point for owner, point in deployment.faults.trace[before:]]
        reads.append(new[: new.index("chat.complete")].count("sql.batch"))
        assert Estimate().messages(chat.requests[-1].messages) <= 2500
    assert max(reads) <= 3, "what the last run owes, the past, and what this run owes"
    assert CARD in prompt(chat)
    await deployment.settled()
    [shown] = await deployment.rows("SELECT runs, LENGTH(summary) AS size FROM conversations")
    assert shown["runs"] == 500
    assert shown["size"] < 16_000


async def test_a_long_conversation_without_a_summary_is_summarised_piece_by_piece(
    deploy: Deploy, agents: Agents
) -> None:
    chat = SteppedChat()
    deployment = deploy(agents(clerk={}), chat=chat)
    names = ("acme", "clerk", "main")
    owed = [OpenConversation(*names, None, 0, "01A", 0, 0)]
    now = deployment.clock()
    for number in range(300):
        text = f"I am Ann and {CARD}." if number == 0 else f"Hello {'x' * (number % 7)}."
        run = f"01B{number:04d}"
        owed += [AppendMessage(f"{run}.0", *names, run, "user", text, now, None, 0)]  # type: ignore[list-item]
        owed += [AppendMessage(f"{run}.1", *names, run, "assistant", "Yes.", now, None, 0)]  # type: ignore[list-item]
    await deployment.sql.batch([(one.SQL, one.values()) for one in owed])
    reads = []
    for number in range(7):
        before = len(deployment.faults.trace)
        await say(deployment, f"Still there {number}?")
        reads.append([point for _, point in deployment.faults.trace[before:]].count("sql.run"))
        assert CARD in prompt(chat)
        assert len(chat.requests[-1].messages) <= 44
    [row] = await deployment.rows("SELECT summary_through FROM conversations")
    newest = await deployment.rows("SELECT message_id FROM conversation_messages ORDER BY message_id DESC LIMIT 48")
    assert row["summary_through"] >= newest[-1]["message_id"]
    assert max(reads) <= 1


async def test_what_a_tool_did_in_the_conversation_is_remembered_without_its_messages(
    deploy: Deploy, agents: Agents
) -> None:
    chat = SteppedChat(calls(("set_working_memory", {"key": "order", "value": "AB-1"}), text="noting"), says("Noted."))
    deployment = deploy(agents(clerk={"working_memory": True}), chat=chat)
    await say(deployment, "Note my order AB-1.", "Which one?")
    assert ("user", "Note my order AB-1.") in talk(chat)
    assert ("assistant", "Noted.") in talk(chat)
    assert fence(chat, "episodes") == [
        "[this conversation, 2023-11-14 22:13 UTC] clerk: noting",
        'set_working_memory({"key": "order", "value": "AB-1"}) -&gt; {"key": "order"}',
    ]


async def test_other_conversations_come_as_data_that_says_from_where_and_when(deploy: Deploy, agents: Agents) -> None:
    chat = SteppedChat(says("One."), says("Two."), says("Three."))
    deployment = deploy(agents(clerk={"memory_config": {"episodes_from": "agent"}}), chat=chat)
    await say(deployment, "A parcel is late.", instance="monday")
    deployment.clock.advance(DAY_MS)
    await say(deployment, "Hello.", "And now?", instance="tuesday")
    assert fence(chat, "episodes") == [
        "[conversation monday, 2023-11-14 22:13 UTC] input: A parcel is late.",
        "clerk: One.",
    ]
    assert [entry for entry in talk(chat) if "<memory" not in entry[1]] == [
        ("user", "Hello."),
        ("assistant", "Two."),
        ("user", "And now?"),
    ]


async def test_an_agent_whose_inputs_are_unrelated_reads_them_as_episodes(deploy: Deploy, agents: Agents) -> None:
    chat = SteppedChat(says("One."), says("Two."))
    deployment = deploy(agents(clerk={"memory_config": {"conversation": {"messages": 0}}}), chat=chat)
    await say(deployment, "First.", "Second.")
    assert fence(chat, "episodes") == ["[this conversation, 2023-11-14 22:13 UTC] input: First.", "clerk: One."]
    assert talk(chat)[1:] == [("user", "Second.")]


async def test_invariant_7_an_answer_with_recalled_text_is_not_summarised(deploy: Deploy, agents: Agents) -> None:
    secret = "Order AB-77 was paid by Rumpelstiltskin"
    chat = SteppedChat(
        calls(("recall_memory", {"query": "order"})), says(f"{secret}."), *[says("Order CD-1 is sent.")] * 9
    )
    config = {"long_term_enabled": True, "recall": "tool", "conversation": {"messages": 4}}
    deployment = deploy(agents(clerk={"memory_config": config}), chat=chat)
    await deployment.seed("clerk", [f"{secret}."])
    await say(deployment, "Who paid?", *[f"{CARD}, number {n}." for n in range(8)])
    [row] = await deployment.rows("SELECT summary FROM conversations")
    assert "Rumpel" not in row["summary"]
    assert "CD-1" in row["summary"]
    assert CARD in row["summary"]


async def test_a_conversation_of_messages_larger_than_the_bound_keeps_its_newest(
    deploy: Deploy, agents: Agents
) -> None:
    chat = SteppedChat(*[says("y" * 40_000)] * 4)
    deployment = deploy(agents(clerk={}), chat=chat)
    await say(deployment, *[f"{number} " + "x" * 40_000 for number in range(3)])
    assert Estimate().messages(chat.requests[-1].messages) <= 16_000 - 1_024
    shown = talk(chat)[-3:-1]
    assert [role for role, _ in shown] == ["user", "assistant"]
    assert shown[0][1].startswith("1 xxx")
    assert all(content.endswith(" […]") for _, content in shown)


async def test_a_message_that_does_not_fit_with_the_input_is_counted_as_cut(deploy: Deploy, agents: Agents) -> None:
    chat = SteppedChat()
    deployment = deploy(agents(clerk={"limits": {"context_tokens": 3000}}), chat=chat)
    await say(deployment, *["x" * 800] * 3)
    result = await deployment.run("clerk", "z" * 7_000)
    await deployment.settled()
    [row] = await deployment.rows("SELECT input FROM agent_runs WHERE run_id = ?", result["run_id"])
    assert json.loads(row["input"])["cut"] == {"messages": 6}
    assert Estimate().messages(chat.requests[-1].messages) <= 3000 - 1_024


async def test_questions_without_an_answer_leave_alternating_turns_for_every_provider(
    deploy: Deploy, agents: Agents
) -> None:
    failure = UpstreamFailed("no such model", code="model_refused")
    chat = SteppedChat(failure, failure, says("Fine."))
    deployment = deploy(agents(clerk={}), chat=chat)
    await say(deployment, "One.", "Two.", "Three.", "Four.")
    wire: Any = to_wire(chat.requests[-1], model="claude")
    roles = [turn["role"] for turn in wire["messages"]]
    assert roles == ["user", "assistant", "user"]
    assert [block["text"] for block in wire["messages"][0]["content"]] == ["One.", "Two.", "Three."]


async def test_after_an_erasure_the_conversation_continues_without_what_was_erased(
    deploy: Deploy, agents: Agents
) -> None:
    chat = SteppedChat()
    deployment = deploy(agents(clerk={"memory_config": {"conversation": {"messages": 4}}}), chat=chat)
    await say(deployment, f"{CARD}.", *[f"I like number {n}." for n in range(6)])
    assert CARD in prompt(chat)
    erased = "title = NULL, summary = NULL, summary_through = NULL, summary_since_ms = NULL"
    await deployment.sql.run(f"UPDATE conversations SET {erased}")
    await deployment.sql.run("DELETE FROM conversation_messages WHERE content LIKE '%4242%'")
    await say(deployment, "Hello?")
    assert CARD not in prompt(chat)
    assert "I like number 0" in prompt(chat)


async def test_a_summary_keeps_nothing_for_more_than_ninety_days(deploy: Deploy, agents: Agents) -> None:
    chat = SteppedChat()
    deployment = deploy(agents(clerk={"memory_config": {"conversation": {"messages": 2}}}), chat=chat)
    await deployment.sql.run("INSERT INTO tenants (tenant_id, created_at_ms) VALUES ('acme', 0)")
    await say(deployment, f"{CARD}.", "Hello.")
    deployment.clock.advance(TEXT_KEPT_MS // 2)
    await say(deployment, "I like tea.", "Hello.", "Hello.")
    assert CARD in prompt(chat)
    deployment.clock.advance(TEXT_KEPT_MS // 2 + 1)
    await say(deployment, "Hello.")
    assert CARD not in prompt(chat)
    assert "I like tea" in prompt(chat)
    await prune(deployment.sql, deployment.clock, 365)
    [row] = await deployment.rows("SELECT summary, summary_since_ms FROM conversations")
    assert CARD not in row["summary"]
    assert "I like tea" in row["summary"]
    assert row["summary_since_ms"] == deployment.clock() - TEXT_KEPT_MS // 2 - 1


async def test_no_message_that_names_another_user_is_read(deploy: Deploy) -> None:
    deployment = deploy()
    names = ("acme", "clerk", "main")
    planted = [AppendMessage(f"{n}.0", *names, n, "user", n, 0, n[1:] or None, 0) for n in ("R", "Rann", "Rbob")]
    await deployment.sql.batch([(one.SQL, one.values()) for one in planted])
    for user, expected in ((None, ["R"]), ("ann", ["R", "Rann"]), ("bob", ["R", "Rbob"]), ("' OR 1", ["R"])):
        query = ThreadQuery(*names, user, 10, 100)
        thread = query.thread(await deployment.sql.batch(query.statements()))
        assert [message.content for message in thread.messages] == expected
        assert [message.content for message in await query.older(deployment.sql, "", "~")] == expected


async def test_a_crash_loses_no_message_and_writes_none_twice(deploy: Deploy, agents: Agents) -> None:
    deployment = deploy(agents(clerk={"memory_config": {"conversation": {"messages": 4}}}), chat=SteppedChat())
    await say(deployment, *[f"I like number {n}." for n in range(4)])
    deployment.faults.plan(Fault(Crash(), nth=5))
    with pytest.raises(Crash):
        await deployment.run("clerk", "I like crashes.", key="k")
    await deployment.recover()
    await deployment.run("clerk", "I like crashes.", key="k")
    await say(deployment, "And?")
    rows = await deployment.rows("SELECT content FROM conversation_messages WHERE role = 'user' ORDER BY message_id")
    assert [row["content"] for row in rows] == [*[f"I like number {n}." for n in range(4)], "I like crashes.", "And?"]
    [shown] = await deployment.rows("SELECT runs FROM conversations")
    assert shown["runs"] == 6


def test_the_bound_leaves_half_of_the_context_to_the_rest(agents: Agents) -> None:
    small = agents(clerk={"limits": {"context_tokens": 2000}, "model": {"max_output_tokens": 1000}}).agent("clerk")
    bound = bound_of(small, Estimate(), 100)
    assert bound is not None
    assert bound.tokens == (2000 - 1000 - 100 - Estimate().text(small.instructions)) // 2
