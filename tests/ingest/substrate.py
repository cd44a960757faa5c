"""Ingest on the host: the substrate of semantic memory, and conversations to send to it.

with closing(IngestSubstrate()) as substrate:
    job = await substrate.ingest("chat", turns("Bea: I live in Paris.", "Tom: Nice!"))
    assert (job.state, job.stored) == ("completed", 2)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from retain.ingest.extraction import ExtractedFact, Extractor, SourceMessage
from retain.ingest.extractors.rule_extractor import RuleExtractor
from retain.ingest.ingestion import Ingestion
from retain.ingest.jobs import IngestJob
from retain.memory.records.record import Record
from retain.memory.scope import Scope
from tests.memory.semantic.substrate import AGENT, Substrate

Turn = dict[str, Any]


def turns(*lines: str, first_id: int | None = None, at_ms: int | None = None) -> list[Turn]:
    """Return messages from lines like "Bea: Hello". first_id, at_ms: of the first; one minute apart."""
    found: list[Turn] = []
    for number, line in enumerate(lines):
        speaker, _, content = line.partition(": ")
        turn: Turn = {"speaker": speaker, "content": content}
        if first_id is not None:
            turn["id"] = f"m{first_id + number}"
        if at_ms is not None:
            turn["at_ms"] = at_ms + 60_000 * number
        found.append(turn)
    return found


class IngestSubstrate(Substrate):
    """One deployment's stores, with ingest on them. extractor: creates the extractor."""

    def __init__(self) -> None:
        super().__init__()
        self.extractor: Callable[[], Extractor] = RuleExtractor

    def ingestion(self, scope: Scope = AGENT) -> Ingestion:
        """Return the ingest of a scope."""
        return Ingestion(self.memory(scope), self.sql, self.extractor, self.clock)

    async def ingest(self, conversation: str, messages: Sequence[object], scope: Scope = AGENT) -> IngestJob:
        """Send a request and process it, as its route does."""
        ingestion = self.ingestion(scope)
        return await ingestion.process(await ingestion.receive(conversation, messages, leased=True))

    async def texts(self, conversation: str, scope: Scope = AGENT) -> list[str]:
        """Return the scope's records of a conversation, in its order, as "Bea: Hello"."""
        records = [record for record in await self.listed(scope) if record.utterance is not None]
        here = [record for record in records if record.utterance and record.utterance.conversation == conversation]
        here.sort(key=lambda record: record.utterance.position if record.utterance else 0)
        places = [record.utterance.position for record in here if record.utterance]
        assert len(places) == len(set(places)), "two messages have one position"
        return [f"{record.utterance.speaker}: {record.content}" for record in here if record.utterance]

    async def facts(self, scope: Scope = AGENT) -> list[Record]:
        """Return the extracted facts, oldest first, including closed ones."""
        return [record for record in await self.listed(scope) if record.source.get("origin") == "extraction"]

    async def true_facts(self, scope: Scope = AGENT) -> list[str]:
        """Return the contents of the facts that are valid."""
        return sorted(record.content for record in await self.facts(scope) if record.valid_to_ms is None)


class FixedExtractor:
    """Returns for every message the facts that its content is mapped to, and counts its calls."""

    batch = 10
    local = False

    def __init__(self, facts: dict[str, list[tuple[str, str]]]) -> None:
        self.facts = facts
        self.seen: list[str] = []

    async def extract(self, messages: Sequence[SourceMessage]) -> list[ExtractedFact]:
        """Return facts of confidence 0.5: predicate and object as they were given."""
        self.seen += [message.content for message in messages]
        return [
            ExtractedFact("entity:x", predicate, value, f"x {predicate} {value}", "fact", 0.5, message.id)
            for message in messages
            for predicate, value in self.facts.get(message.content, [])
        ]
