"""What a run leaves to be remembered: never what it recalled, never too much, always text that a database accepts."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import closing

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retain.agents.catalogue import AgentCatalogue
from retain.agents.runs.episode_text import MAX_EPISODE_BYTES
from retain.errors import LimitExceeded
from retain.models.providers.structured import CheckedChat
from retain.models.unicode import valid_text
from tests.agents.remembered import check_d1_agrees
from tests.agents.stepped_chat import SteppedChat, calls, says
from tests.support.instances import Deployment, catalogue

Deploy = Callable[..., Deployment]
Agents = Callable[..., AgentCatalogue]
SECRET = "Rumpelstiltskin spins straw into gold"


@pytest.mark.parametrize("recall", ["tool", "context", "both"])
async def test_invariant_7_recalled_text_is_not_remembered_again(deploy: Deploy, agents: Agents, recall: str) -> None:
    chat = SteppedChat(calls(("recall_memory", {"query": "who spins"}), text="let me see"), says("somebody does"))
    deployment = deploy(agents(teller={"memory_config": {"long_term_enabled": True, "recall": recall}}), chat=chat)
    await deployment.seed("teller", [f"{SECRET}."])
    result = await deployment.run("teller", "who spins?")
    assert result["memory"]["records_used"] >= (recall == "both")
    await deployment.settled()
    remembered, tool = chat.requests[-1].messages[1].content, chat.requests[-1].messages[-1].content
    assert ((SECRET in remembered), (SECRET in tool)) == (recall != "tool", recall != "context")
    episodes = await deployment.rows("SELECT content FROM memory_episodes")
    assert len(episodes) == 2
    assert all("Rumpel" not in row["content"] for row in episodes)
    await deployment.run("teller", "and who spins now?")
    assert str(chat.requests[-1].messages).count("Rumpel") == (recall != "tool")


async def test_what_the_context_recalled_is_logged_by_its_ids(deploy: Deploy, agents: Agents) -> None:
    deployment = deploy(
        agents(teller={"memory_config": {"long_term_enabled": True, "recall": "context"}}), chat=SteppedChat()
    )
    await deployment.seed("teller", [f"{SECRET}."])
    await deployment.run("teller", "who spins?")
    await deployment.settled()
    [run] = await deployment.rows("SELECT input FROM agent_runs")
    [record] = await deployment.rows("SELECT id FROM memory_records")
    assert [used["id"] for used in json.loads(run["input"])["records"]] == [record["id"]]
    assert "Rumpel" not in run["input"]


@pytest.mark.parametrize(
    "run_input",
    [
        pytest.param("", id="nothing"),
        pytest.param(" \n", id="white space"),
        pytest.param(f"{SECRET}?" + " and so on" * 10_000, id="more than a query may be"),
        pytest.param({"question": f"{SECRET}?", "rest": "é" * 10_000}, id="a large object"),
    ],
)
async def test_recall_into_the_context_takes_any_input(
    deploy: Deploy, agents: Agents, run_input: str | dict[str, str]
) -> None:
    recalling = {
        "memory_config": {"long_term_enabled": True, "recall": "context"},
        "limits": {"context_tokens": 90_000},
    }
    deployment = deploy(agents(teller=recalling), chat=SteppedChat())
    await deployment.seed("teller", [f"{SECRET}."])
    result = await deployment.run("teller", run_input)
    assert result["status"] == "completed"
    assert result["memory"]["records_used"] == (SECRET in str(run_input))


async def test_an_episode_records_what_was_asked_said_done_and_answered(deploy: Deploy) -> None:
    chat = SteppedChat(
        calls(("set_working_memory", {"key": "k", "value": "é"}), ("missing", {}), text="two things"), says("bye")
    )
    deployment = deploy(chat=chat)
    await deployment.run("sdr", {"b": 1, "a": "é"})
    await deployment.settled()
    first, second = [
        row["content"] for row in await deployment.rows("SELECT content FROM memory_episodes ORDER BY turn")
    ]
    assert first.splitlines() == [
        'input: {"a": "é", "b": 1}',
        "sdr: two things",
        'set_working_memory({"key": "k", "value": "é"}) -> {"key": "k"}',
        'missing({}) -> {"error": {"code": "no_such_tool", "message": "this agent has no tool named missing"}}',
    ]
    assert second == "sdr: bye"


@pytest.mark.parametrize("letter", ["x", "é", "\U0001f980"], ids=["one byte", "two bytes", "four bytes"])
async def test_a_long_episode_is_cut(deploy: Deploy, letter: str) -> None:
    deployment = deploy(chat=SteppedChat(says(letter * 20_000)))
    assert (await deployment.run("sdr", "hello"))["output"] == letter * 20_000
    await deployment.settled()
    [row] = await deployment.rows("SELECT content FROM memory_episodes")
    text = row["content"]
    assert text.endswith(f"{letter} […]")
    assert MAX_EPISODE_BYTES - 4 < len(text.removesuffix(" […]").encode()) <= MAX_EPISODE_BYTES


awkward = st.text(st.sampled_from('a"\\\x00\n<\u2028\u00e9\U0001f980\ud800'), max_size=20)


@settings(max_examples=30, deadline=None)
@given(run_input=awkward | st.dictionaries(awkward, awkward, max_size=2), words=awkward, output=awkward, note=awkward)
async def test_whatever_text_a_run_meets_it_ends_and_d1_gets_all_of_it(
    run_input: str | dict[str, str], words: str, output: str, note: str
) -> None:
    chat = SteppedChat(
        calls(("set_working_memory", {"key": "k", "value": note}), (note, {note: words}), text=words), says(output)
    )
    with closing(Deployment(chat=lambda _: CheckedChat(chat))) as deployment:
        result = await deployment.run("sdr", run_input)
        heard = valid_text(output) if output.strip() else "done"  # the model is asked again after an empty answer
        assert (result["status"], result["output"]) == ("completed", heard)
        for request in chat.requests:
            "".join(message.content for message in request.messages).encode()  # no server refuses it
        await deployment.settled()
        await check_d1_agrees(deployment)
        await deployment.run("sdr", "next")
        await deployment.settled()


async def test_a_run_whose_record_is_too_large_is_refused_whole() -> None:
    # Quotes are doubled by each of the two layers of JSON: what fits the turn's state does not fit the outbox.
    roomy = {
        "type": "roomy",
        "description": "Remembers much.",
        "instructions": "Go.",
        "limits": {"context_tokens": 1_000_000},
    }
    chat = SteppedChat()
    with closing(Deployment(catalogue(roomy), chat=lambda _: chat)) as deployment:
        with pytest.raises(LimitExceeded):
            await deployment.run("roomy", '"' * 520_000)
        await deployment.recover()
        assert chat.requests == []
        assert deployment.local("roomy:acme:main", "SELECT 1 FROM turn_state") == []
