"""Who counts as a person: a message's role decides, and a list of names only where there is no role."""

from __future__ import annotations

import json

import pytest

from retain.ingest.extraction import SourceMessage
from retain.ingest.extractors.llm_extractor import read_facts, shown
from retain.ingest.extractors.rule_extractor import RuleExtractor
from retain.ingest.speech.speakers import ROLES, Role, is_machine
from tests.ingest.substrate import IngestSubstrate

MACHINES = (
    "assistant", "System", "tool", " AI ", "ChatGPT", "chat gpt", "GPT-4o", "Claude", "claude-3-5-sonnet",
    "Claude 3.5 Sonnet", "Gemini", "gemini-1.5-pro", "Support Bot", "SupportBot", "support_bot", "helpdesk", "Help Desk",
    "HelpDesk", "Agent",
    "Agent 7", "Support Agent", "Customer Service", "customer-service", "Acme AI", "Acme Support", "AI Assistant", "Copilot",
    "\uff23hat\uff27PT", "Virtual Agent", "Siri",
)  # fmt: skip
PEOPLE = (
    "Bea", "Dr. Bea Lang", "Claude Monet", "Tom Abbot", "Abbot", "Ai Weiwei", "Agent Smith", "Alexander", "Model Citizen",
    "Mistral Raymond", "Gemini Ganesan", "user", "customer", "Bea 2", "Toolsi", "Aida",
)  # fmt: skip


@pytest.mark.parametrize("name", MACHINES)
def test_without_a_role_a_known_name_is_a_machine(name: str) -> None:
    assert is_machine(name)


@pytest.mark.parametrize("name", PEOPLE)
def test_without_a_role_any_other_name_is_a_person(name: str) -> None:
    assert not is_machine(name)


@pytest.mark.parametrize("name", [*MACHINES, *PEOPLE])
@pytest.mark.parametrize("role", ROLES)
def test_a_role_decides_whatever_the_name(name: str, role: Role) -> None:
    assert is_machine(name, role) == (role != "user")


@pytest.mark.parametrize("speaker", ["ChatGPT", "Claude", "Support Bot", "helpdesk", "Agent"])
async def test_what_an_assistant_says_of_itself_becomes_no_person(substrate: IngestSubstrate, speaker: str) -> None:
    await substrate.ingest("chat", [{"speaker": speaker, "content": "My name is Max and I live in Paris."}])
    assert await substrate.true_facts() == []


async def test_a_role_outweighs_the_name_from_the_request_to_the_fact(substrate: IngestSubstrate) -> None:
    statement = "I live in Paris."
    request = [
        {"speaker": "Claude", "role": "user", "content": statement},
        {"speaker": "Maya", "role": "assistant", "content": statement},
    ]
    job = await substrate.ingest("chat", request)
    assert (job.state, job.stored) == ("completed", 2)
    assert await substrate.true_facts() == ["Claude lives in Paris"]
    assert await substrate.rows("SELECT 1 FROM ingest_messages WHERE role IS NOT NULL") == []


async def test_a_role_is_kept_when_the_request_is_spilled(substrate: IngestSubstrate) -> None:
    long = "x " * 15_000
    request = [{"speaker": "Maya", "role": "assistant", "content": f"I live in Paris. {n} {long}"} for n in range(12)]
    job = await substrate.ingest("chat", request)
    assert (job.state, job.stored, job.extracted) == ("completed", 12, 0)


async def test_a_role_that_does_not_exist_is_rejected(substrate: IngestSubstrate) -> None:
    job = await substrate.ingest("chat", [{"speaker": "Bea", "role": "boss", "content": "Hello"}])
    assert [rejection.code for rejection in job.rejections] == ["invalid_role"]


async def test_extractors_take_nothing_from_machines() -> None:
    messages = [SourceMessage("a", "Maya", "I live in Rome.", role="assistant"), SourceMessage("b", "Bea", "Hello.")]
    assert await RuleExtractor().extract(messages) == []
    assert [one.get("by") for one in json.loads(shown(messages))] == ["machine", None]
    fact = {"subject": "Maya", "predicate": "lives_in", "object": "Rome", "content": "Maya lives in Rome",
            "kind": "fact", "confidence": 0.9}  # fmt: skip
    answer = json.dumps({"facts": [{**fact, "message": 0}, {**fact, "message": 1, "subject": "Bea"}]})
    assert [found.message for found in read_facts(answer, messages)] == ["b"]
