"""What a definition lets into the prompt: a floor, a filter, and bounds for one record and for all of them."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import closing
from typing import Any

import pytest

from retain.agents.calls.run_request import Budget
from retain.agents.catalogue import AgentCatalogue
from retain.agents.definitions import MemoryConfig
from retain.agents.recollection import conversation_of, query_text
from retain.agents.runs.context import fenced
from retain.agents.tools.built_in import CallContext, RecallMemory, run_tool
from retain.memory.records.record import NewRecord, RecordSource, Utterance
from retain.memory.scope import Scope
from retain.memory.semantic import SemanticMemory
from retain.models.chat import ChatMessage
from tests.agents.stepped_chat import SteppedChat, calls, says
from tests.memory.semantic.substrate import Substrate
from tests.support.instances import Deployment, shipped_embedder

Deploy = Callable[..., Deployment]
Agents = Callable[..., AgentCatalogue]
FACTS = [
    "Bob is allergic to peanuts.",
    "Our lawyer is on holiday until the end of August.",
    "The office in Lyon moved to 12 rue Garibaldi.",
    "Invoices above 500 euros need two signatures.",
    "The staging server restarts every night.",
]
MANUAL = " ".join(
    f"Chapter {number} of the manual describes how the casing of the pump is cleaned." for number in range(180)
)
VALVE = "The valve of the pump opens at eleven bar."


def remembering(agents: Agents, **config: Any) -> AgentCatalogue:
    return agents(teller={"memory_config": {"long_term_enabled": True, "recall": "both", **config}})


def read_first(chat: SteppedChat) -> str:
    """Return what the last prompt has besides what was asked, answered and called: instructions and remembered text."""
    messages = chat.requests[-1].messages
    return "\n".join(one.content for one in messages if one.role == "system" or one.content.startswith("<memory"))


async def logged(deployment: Deployment) -> Any:
    """Return what D1 keeps of the beginning of the last run."""
    await deployment.settled()
    rows = await deployment.rows("SELECT input FROM agent_runs ORDER BY run_id DESC LIMIT 1")
    return json.loads(rows[0]["input"])


async def test_only_what_concerns_the_input_comes_into_the_prompt(deploy: Deploy, agents: Agents) -> None:
    chat = SteppedChat()
    deployment = deploy(remembering(agents), chat=chat)
    await deployment.seed("teller", FACTS)
    result = await deployment.run("teller", "What is 2+2?")
    assert (result["memory"]["records_used"], '<memory section="records"' in read_first(chat)) == (0, False)
    result = await deployment.run("teller", "May Bob eat peanuts?")
    assert result["memory"]["records_used"] == 1
    assert FACTS[0] in read_first(chat)
    assert not any(fact in read_first(chat) for fact in FACTS[1:])
    [used] = (await logged(deployment))["records"]
    assert used["relevance"] > 0.3
    assert "shortened" not in used


async def test_an_object_brings_what_its_values_concern(deploy: Deploy, agents: Agents) -> None:
    deployment = deploy(remembering(agents), chat=SteppedChat())
    await deployment.seed("teller", [*FACTS, "Order SO-4411 arrived broken.", "The records of the query are null."])
    asked: dict[str, Any] = {"query": None, "guest": {"name": "Bob"}, "dishes": ["peanut sauce", 2], "allergic": True}
    result = await deployment.run("teller", asked)
    assert result["memory"]["records_used"] == 1
    assert (await logged(deployment))["records"][0]["relevance"] > 0.3
    assert (await deployment.run("teller", {"order": "SO-4411"}))["memory"]["records_used"] == 1


@pytest.mark.parametrize(
    ("given", "text"),
    [
        pytest.param(" Tea? ", "Tea?", id="a text"),
        pytest.param("", "", id="nothing"),
        pytest.param({}, "", id="an empty object"),
        pytest.param({"b": {"order": 482}, "a": ["x", None, True, [1.5]]}, "b order 482 a x 1.5", id="an object"),
        pytest.param({"text": "é" * 5_000}, "text " + "é" * 4_093, id="more than a query may be"),
    ],
)
def test_the_query_of_an_input_is_its_words(given: Any, text: str) -> None:
    assert query_text(given) == text


async def test_a_definition_may_lower_the_floor_or_raise_it(deploy: Deploy, agents: Agents) -> None:
    for floor, expected in ((0, 5), (0.3, 1), (0.99, 0)):
        deployment = deploy(remembering(agents, min_score=floor), chat=SteppedChat())
        await deployment.seed("teller", FACTS)
        result = await deployment.run("teller", "May Bob eat peanuts?")
        assert result["memory"]["records_used"] == expected


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        pytest.param({"kind": "instruction"}, {"Greet Ann in French."}, id="kind"),
        pytest.param({"subject": "ann"}, {"Ann drinks tea."}, id="subject"),
        pytest.param({"channel": {"$in": ["mail", "fax"]}}, {"Ann hates letters."}, id="metadata"),
        pytest.param({"kind": "fact", "channel": {"$ne": "mail"}}, {"Ann drinks tea."}, id="two conditions"),
    ],
)
async def test_a_filter_bounds_the_context_and_the_tool(
    deploy: Deploy, agents: Agents, condition: dict[str, Any], expected: set[str]
) -> None:
    chat = SteppedChat(calls(("recall_memory", {"query": "Ann", "min_score": 0, "top_k": 20})), says("done"))
    deployment = deploy(remembering(agents, filter=condition, min_score=0), chat=chat)
    memory = SemanticMemory(
        Scope("acme", "teller"), deployment.sql, deployment.index, shipped_embedder(), deployment.clock
    )
    news = [
        NewRecord("Greet Ann in French.", kind="instruction"),
        NewRecord("Ann drinks tea.", subject="ann", predicate="drinks", object="tea"),
        NewRecord("Ann hates letters.", {"channel": "mail"}),
    ]
    await memory.store_all(news, RecordSource("person"))
    await deployment.run("teller", "What about Ann?")
    every = {new.content for new in news}
    assert {content for content in every if content in read_first(chat)} == expected
    answer = json.loads(chat.requests[-1].messages[-1].content)
    assert {one["content"] for one in answer["memories"]} == expected


async def test_the_model_reads_when_a_memory_was_said_and_by_whom_or_since_when_it_is_so(
    deploy: Deploy, agents: Agents
) -> None:
    chat = SteppedChat(calls(("recall_memory", {"query": "Lisbon", "min_score": 0, "top_k": 20})), says("done"))
    deployment = deploy(remembering(agents, min_score=0, top_k=20), chat=chat)
    memory = SemanticMemory(
        Scope("acme", "teller"), deployment.sql, deployment.index, shipped_embedder(), deployment.clock
    )
    uttered = 1_682_949_360_000
    news = [
        NewRecord("I fly to Lisbon tomorrow.", kind="event", utterance=Utterance("chat", 0, "Ann  Lee", uttered)),
        NewRecord("Lisbon is warm.", kind="event", utterance=Utterance("chat", 1, "Bob")),
        NewRecord("Ann is flying to Lisbon tomorrow", kind="event", valid_from_ms=uttered),
        NewRecord("Ann likes Lisbon", valid_from_ms=uttered),
    ]
    await memory.store_all(news, RecordSource("person"))
    await deployment.run("teller", "What about Lisbon?")
    lines = read_first(chat).split('<memory section="records"')[1].split("</memory>")[0].splitlines()[1:]
    assert sorted(lines) == [
        "(said 2023-05-01 13:56 UTC by Ann Lee) I fly to Lisbon tomorrow.",
        "(said 2023-05-01 13:56 UTC) Ann is flying to Lisbon tomorrow",
        "(said by Bob) Lisbon is warm.",
        "(since 2023-05-01 13:56 UTC) Ann likes Lisbon",
    ]
    memories = json.loads(chat.requests[-1].messages[-1].content)["memories"]
    known = {one["content"]: [one.get(name) for name in ("said_at", "since", "speaker")] for one in memories}
    assert known == {
        "I fly to Lisbon tomorrow.": ["2023-05-01 13:56 UTC", None, "Ann Lee"],
        "Lisbon is warm.": [None, None, "Bob"],
        "Ann is flying to Lisbon tomorrow": ["2023-05-01 13:56 UTC", None, None],
        "Ann likes Lisbon": [None, "2023-05-01 13:56 UTC", None],
    }


async def test_an_unrelated_long_record_stays_out_and_a_related_one_comes_as_a_passage(
    deploy: Deploy, agents: Agents
) -> None:
    chat = SteppedChat()
    deployment = deploy(remembering(agents), chat=chat)
    assert len(MANUAL) > 12_000
    await deployment.seed("teller", [f"{MANUAL} {VALVE} {MANUAL}", "[" * 12_000])
    for question in ("What is 2+2?", "Draft an e-mail to Ann about her invoice.", "Which food is dangerous for Bob?"):
        await deployment.run("teller", question)
        assert len(read_first(chat)) < 2_000
        assert (await logged(deployment))["records"] == []
    await deployment.run("teller", "At what pressure does the valve of the pump open?")
    assert VALVE in read_first(chat)
    assert "[cut]" in read_first(chat)
    assert len(read_first(chat)) < 4_000
    [used] = (await logged(deployment))["records"]
    assert used["shortened"] is True


async def test_all_records_together_have_a_bound_and_the_log_counts_the_others(deploy: Deploy, agents: Agents) -> None:
    chat = SteppedChat()
    deployment = deploy(remembering(agents, record_tokens=100, recall_tokens=250, min_score=0), chat=chat)
    await deployment.seed("teller", [f"{number}. {VALVE} {MANUAL}" for number in range(5)])
    await deployment.run("teller", "At what pressure does the valve of the pump open?")
    run = await logged(deployment)
    assert len(run["records"]) == 2
    assert all(used["shortened"] for used in run["records"])
    assert run["cut"]["records"] == 3
    assert read_first(chat).count(VALVE) == 2


async def test_a_record_that_fills_the_bound_is_shortened_to_what_its_stamp_leaves(
    deploy: Deploy, agents: Agents
) -> None:
    chat = SteppedChat()
    deployment = deploy(remembering(agents, record_tokens=100, recall_tokens=100, min_score=0), chat=chat)
    await deployment.seed("teller", [f"{VALVE} {MANUAL}"])
    await deployment.run("teller", "At what pressure does the valve of the pump open?")
    assert "UTC) " + VALVE in read_first(chat)
    assert (await logged(deployment))["cut"].get("records", 0) == 0


async def test_brackets_that_the_fence_escapes_count_for_the_bound_as_the_model_reads_them(
    deploy: Deploy, agents: Agents
) -> None:
    chat = SteppedChat()
    deployment = deploy(remembering(agents, min_score=0), chat=chat)
    await deployment.seed("teller", [f"pump {number} " + "<" * 12_000 for number in range(5)])
    await deployment.run("teller", "Which pump?")
    assert len(read_first(chat)) < 8_000 + 500


async def test_the_tool_s_answer_has_the_same_floor_and_bounds(deploy: Deploy, agents: Agents) -> None:
    chat = SteppedChat(
        calls(("recall_memory", {"query": "What is 2+2?"})),
        calls(("recall_memory", {"query": "What is 2+2?", "min_score": 0})),
        calls(("recall_memory", {"query": "the valve of the pump opens", "top_k": 20})),
        says("done"),
    )
    deployment = deploy(remembering(agents, record_tokens=100, recall_tokens=250), chat=chat)
    await deployment.seed("teller", [*FACTS, *(f"{number}. {VALVE} {MANUAL}" for number in range(5))])
    await deployment.run("teller", "Hello")
    nothing, all_of_it, valve = (
        json.loads(message.content) for message in chat.requests[-1].messages if message.role == "tool"
    )
    assert nothing == {"memories": []}
    assert len(all_of_it["memories"]) > 0
    assert [one["shortened"] for one in valve["memories"]] == [True, True]
    assert valve["left_out"] == 3
    assert all(VALVE in one["content"] and one["relevance"] > 0.3 for one in valve["memories"])


@pytest.mark.parametrize(
    ("floor", "code"),
    [
        pytest.param(-0.1, "invalid_min_score", id="below 0"),
        pytest.param(1.1, "invalid_min_score", id="above 1"),
        pytest.param("0.3", "invalid_arguments", id="a text"),
        pytest.param(True, "invalid_arguments", id="a boolean"),
    ],
)
async def test_a_floor_from_the_model_is_checked(deploy: Deploy, agents: Agents, floor: Any, code: str) -> None:
    chat = SteppedChat(calls(("recall_memory", {"query": "tea", "min_score": floor})), says("done"))
    await deploy(remembering(agents), chat=chat).run("teller", "Hello")
    assert json.loads(chat.requests[-1].messages[-1].content)["error"]["code"] == code


async def test_a_run_whose_context_recalled_without_the_index_says_so(deploy: Deploy, agents: Agents) -> None:
    deployment = deploy(remembering(agents), chat=SteppedChat())
    await deployment.seed("teller", FACTS)
    await deployment.run("teller", "May Bob eat peanuts?")
    assert "degraded" not in await logged(deployment)
    deployment.faults.down.add("index")
    result = await deployment.run("teller", "May Bob eat peanuts?")
    assert (result["status"], result["memory"]["records_used"]) == ("completed", 1)
    assert (await logged(deployment))["degraded"] == ["vectors"]


async def recalled(stored: list[tuple[str, dict[str, Any]]], config: MemoryConfig, **arguments: Any) -> Any:
    """Return what the model reads of a call of `recall_memory`. stored: contents with their metadata."""
    with closing(Substrate()) as substrate:
        for content, metadata in stored:
            await substrate.store(content, metadata=metadata)
        context = CallContext("r", 1, 0, Budget())
        tool = RecallMemory(substrate.memory(), config)
        event = await run_tool({"recall_memory": tool}, "recall_memory", arguments, context)
        answer = json.loads(event.content)
        return answer["error"]["code"] if event.failed else [one["content"] for one in answer["memories"]]


ORDERS: list[tuple[str, dict[str, Any]]] = [
    ("The parcel of order 1 was lost.", {"order": 1, "channel": "mail"}),
    ("The parcel of order 2 was lost.", {"order": 2, "channel": "mail"}),
    ("The parcel of order 2 was found.", {"order": 2, "channel": "internal"}),
]


@pytest.mark.parametrize(
    ("config", "narrowed", "expected"),
    [
        pytest.param({"filters": ["order"]}, {"order": 2}, ["found", "lost"], id="by its name"),
        pytest.param({"filters": ["order"]}, {"order": {"$in": [1]}}, ["lost"], id="by a list"),
        pytest.param({"filters": ["order"]}, {"$or": [{"order": 1}, {"order": 3}]}, ["lost"], id="joined"),
        pytest.param(
            {"filters": ["order"], "filter": {"channel": "mail"}}, {"order": 2}, ["lost"], id="within the definition's"
        ),
        pytest.param(
            {"filters": ["channel"], "filter": {"channel": "mail"}}, {"channel": "internal"}, [], id="never out of it"
        ),
        pytest.param({"filters": ["order"]}, {"channel": "internal"}, "invalid_filter", id="another name"),
        pytest.param({"filters": ["order"]}, {"$or": [{"channel": "mail"}]}, "invalid_filter", id="another, joined"),
        pytest.param({"filters": ["order"]}, {"order": {"$like": 1}}, "invalid_filter", id="an unknown operator"),
        pytest.param({"filters": ["order"]}, "order", "invalid_arguments", id="no object"),
        pytest.param({}, {"order": 2}, "invalid_arguments", id="not allowed"),
    ],
)
async def test_a_model_narrows_a_recall_by_the_names_that_the_definition_allows(
    config: dict[str, Any], narrowed: Any, expected: Any
) -> None:
    memory = MemoryConfig(min_score=0, **config)
    found = await recalled(ORDERS, memory, query="parcel", filter=narrowed)
    assert (sorted(one.split()[-1].strip(".") for one in found) if isinstance(found, list) else found) == expected


def test_the_tool_shows_the_names_that_narrow_it_and_only_those() -> None:
    with closing(Substrate()) as substrate:
        plain = RecallMemory(substrate.memory()).spec
        allowed = RecallMemory(substrate.memory(), MemoryConfig(filters=["order", "metadata.kind"])).spec
    shown: list[Any] = [json.loads(json.dumps(spec.parameters))["properties"] for spec in (plain, allowed)]
    assert "filter" not in shown[0]
    assert list(shown[1]["filter"]["properties"]) == ["order", "metadata.kind"]


@pytest.mark.parametrize("names", [["id"], ["a b"], ["$or"], ["Kind"]], ids=str)
def test_a_definition_with_a_name_that_no_filter_takes_is_refused(names: list[str]) -> None:
    with pytest.raises(ValueError, match="filter"):
        MemoryConfig(filters=names)


LAKE = [
    "A day with the blue kayak costs forty francs.",
    "A night in the tent costs thirty francs.",
    "The sauna costs fifteen francs.",
    "The cable car costs nine francs.",
]


async def test_a_run_recalls_as_a_part_of_its_conversation(deploy: Deploy, agents: Agents) -> None:
    """What "it" is was said in the run before, which another instance has not seen."""
    chat = SteppedChat(says("The blue kayak is free."), says("Forty francs."), says("What?"))
    config = {"recall": "context", "top_k": 1, "min_score": 0}
    deployment = deploy(remembering(agents, **config), chat=chat)
    await deployment.seed("teller", LAKE)
    await deployment.run("teller", "Which boat is free?")
    await deployment.run("teller", "How much does it cost?")
    assert LAKE[0] in read_first(chat)


async def test_the_tool_recalls_as_a_part_of_the_run(deploy: Deploy, agents: Agents) -> None:
    chat = SteppedChat(calls(("recall_memory", {"query": "price in francs", "top_k": 1, "min_score": 0})), says("done"))
    deployment = deploy(remembering(agents, recall="tool"), chat=chat)
    await deployment.seed("teller", LAKE)
    for thing, expected in (("the cable car", LAKE[3]), ("a tent", LAKE[1])):
        await deployment.run("teller", f"What do you ask for {thing}?", instance=thing.replace(" ", "-"))
        [memory] = json.loads(chat.requests[-1].messages[-1].content)["memories"]
        assert memory["content"] == expected
        chat._replies = [
            calls(("recall_memory", {"query": "price in francs", "top_k": 1, "min_score": 0})),
            says("done"),
        ]


def test_what_is_remembered_is_not_what_was_said() -> None:
    messages = [
        ChatMessage("system", "Be kind."),
        ChatMessage("user", fenced("conversation", ["2026-01-01 user: tea"])),
        ChatMessage("user", "Hello"),
        ChatMessage("assistant", "Yes?"),
        ChatMessage("user", fenced("records", ["coffee"])),
        ChatMessage("user", "Which cup?"),
    ]
    assert conversation_of(messages) == "Hello\nYes?\nWhich cup?"
