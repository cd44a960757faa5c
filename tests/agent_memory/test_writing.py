"""Summaries made by rule, and answers and summaries by a language model where one is configured."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import pytest

from retain.agent_memory.memories import kind_of, summary_of
from retain.agent_memory.summary import CHARACTERS
from retain.models.chat import ChatReply
from tests.agent_memory.account import Account
from tests.shell.worker import serving
from tests.support.model_server import Failure, ModelServer

ANN = "/acme/profiles/ann"


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer() as running:
        yield running


@asynccontextmanager
async def answering(server: ModelServer) -> AsyncIterator[Account]:
    """Serve a deployment whose chat model writes answers, with a memory of Ann."""
    settings = {
        "AGENT_MEMORY_ANSWERS": "chat",
        "CHAT_PROVIDER": "openai",
        "CHAT_MODEL": "gpt-9",
        "CHAT_BASE_URL": server.base_url,
        "CHAT_API_KEY": server.api_key,
    }
    async with serving(**settings) as worker:
        account = Account(worker)
        await account.result("POST", "", {"name": "acme"}, status=201)
        await account.remember("Ann drinks green tea.")
        yield account


async def test_a_summary_has_a_section_for_each_kind_and_the_last_session(account: Account) -> None:
    assert await account.result("POST", f"{ANN}/summary", {}) == {"summary": ""}
    for content in (
        "Ann drinks green tea.",
        "Always answer in French.",
        "Remember to call the dentist.",
        "The contract was signed on 2023-11-10.",
    ):
        await account.remember(content)
    await account.ingest("user: Good morning!", sessionId="s1")
    await account.ingest("user: How are you?", "assistant: Well.", sessionId="s2")
    expected = {
        "Key Facts": ["Ann drinks green tea."],
        "Recent Events": ["The contract was signed on 2023-11-10."],
        "Active Tasks": ["Remember to call the dentist."],
        "Last Session": ["user: How are you?", "assistant: Well."],
        "Instructions": ["Always answer in French."],
    }
    sections = [f"## {title}\n" + "\n".join(f"- {line}" for line in lines) for title, lines in expected.items()]
    summary = (await account.result("POST", f"{ANN}/summary", {"sessionId": None}))["summary"]
    assert summary == "\n\n".join(sections)


async def test_a_summary_for_a_session_has_its_messages_and_no_tasks_of_others(account: Account) -> None:
    await account.remember("Remember to call the dentist.", sessionId="s1")
    await account.remember("Remember to call the bank.", sessionId="s2")
    await account.remember("Remember to call the doctor.")
    await account.ingest("user: Good morning!", sessionId="s1")
    await account.ingest("user: How are you?", sessionId="s2")
    summary = (await account.result("POST", f"{ANN}/summary", {"sessionId": "s1"}))["summary"]
    assert "Good morning!" in summary
    assert "How are you?" not in summary
    assert "dentist" in summary
    assert "doctor" in summary
    assert "bank" not in summary


async def test_what_is_old_closed_or_deleted_is_not_in_a_summary(account: Account) -> None:
    event = await account.remember("The contract was signed on 2023-11-10.")
    fact = await account.remember("Ann drinks green tea.")
    gone = await account.remember("Ann drinks coffee.")
    await account.result("DELETE", f"{ANN}/memories/{gone['id']}")
    path = f"/admin/tenants/acme/memories/{fact['id']}"
    assert (await account.worker.request("PATCH", path, {"valid_to_ms": account.worker.clock()})).status == 200
    account.worker.clock.set(account.worker.clock() + 31 * 86_400_000)
    assert await account.result("POST", f"{ANN}/summary", {}) == {"summary": ""}
    assert [one["id"] for one in await account.listed()] == [event["id"]]


async def test_each_section_keeps_within_its_share_of_the_room(account: Account) -> None:
    for number in range(40):
        await account.remember(f"Fact {number} is {'long ' * 20}indeed.")
    await account.remember("Always answer in French.")
    summary = (await account.result("POST", f"{ANN}/summary", {}))["summary"]
    facts, instructions = summary.split("\n\n")
    assert 0.2 * CHARACTERS < len(facts) <= 0.25 * CHARACTERS
    assert instructions.endswith("- Always answer in French.")


async def test_a_configured_model_answers_from_what_was_recalled(server: ModelServer) -> None:
    async with answering(server) as account:
        server.say(ChatReply("Green tea."))
        question = {"query": "What does Ann drink?", "responseLength": "short", "referenceDate": "2026-11-23"}
        body = await account.result("POST", f"{ANN}/recall", question)
        assert (body["answer"], body["count"]) == ("Green tea.", 1)
        [asked] = server.received
        system, user = asked.body["messages"]
        assert "in one sentence" in system["content"]
        given = json.loads(user["content"])
        assert (given["question"], given["today"]) == ("What does Ann drink?", "2026-11-23")
        assert [one["memory"] for one in given["memories"]] == ["Ann drinks green tea."]

        # Without candidates nobody is asked.
        empty = await account.result("POST", "/acme/profiles/ben/recall", {"query": "What does Ann drink?"})
        assert empty == {"count": 0, "candidates": [], "answer": ""}
        assert len(server.received) == 1


async def test_a_configured_model_rewrites_the_summary(server: ModelServer) -> None:
    async with answering(server) as account:
        server.say(ChatReply("## Key Facts\n- Drinks tea."))
        assert await account.result("POST", f"{ANN}/summary", {}) == {"summary": "## Key Facts\n- Drinks tea."}
        assert server.received[0].body["messages"][1]["content"] == "## Key Facts\n- Ann drinks green tea."
        assert await account.result("POST", "/acme/profiles/ben/summary", {}) == {"summary": ""}


async def test_a_model_that_fails_costs_the_answer_and_not_the_candidates(server: ModelServer) -> None:
    async with answering(server) as account:
        for path, body, kept in (
            ("recall", {"query": "What does Ann drink?"}, "candidates"),
            ("summary", {}, "summary"),
        ):
            server.fail(Failure(status=400), times=1)
            envelope = await account.envelope("POST", f"{ANN}/{path}", body)
            assert "green tea" in str(envelope["result"][kept])
            assert "answer" not in envelope["result"]
            assert "the language model wrote no" in envelope["messages"][0]["message"]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Ann drinks tea.", "fact"),
        ("Please call me Annie.", "instruction"),
        ("Don't mention the war.", "instruction"),
        ("Remind Ann of the dentist.", "task"),
        ("Needs to renew the passport", "task"),
        ("Met Ben yesterday.", "event"),
        ("Signed on 2026-03-04.", "event"),
        ("Replying late is her habit.", "fact"),
    ],
)
def test_the_kind_of_a_text_follows_from_its_first_words_and_dates(text: str, kind: str) -> None:
    assert kind_of(text) == kind


@pytest.mark.parametrize(
    ("content", "summary"),
    [
        ("One.\n Two.", "One. Two."),
        (f"One. {'x' * 30}", "One."),
        (f"One two {'x' * 30}", "One two…"),
        ("x" * 40, f"{'x' * 19}…"),
    ],
)
def test_a_summary_of_a_memory_ends_with_a_sentence_or_a_word(content: str, summary: str) -> None:
    assert summary_of(content, 20) == summary
