"""Structured facts over semantic memory: `learn` stores one as a record, `recall` returns the nearest records.

For programs that have a `SemanticMemory` and facts of their own. The facts of a conversation come from
`retain.ingest`, which does not use this.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from retain.memory.records.record import NewRecord, Record, RecordSource
from retain.memory.semantic import RecallQuery, SemanticMemory


@dataclass(frozen=True, slots=True)
class Fact:
    """One observation as subject, predicate and object. confidence: in [0, 1].

    subject: what it is about, such as `contact:hubspot_id:123456`. predicate, object: what is known of it, in snake case.
    """

    subject: str
    predicate: str
    object: str
    confidence: float = 1.0

    @property
    def text(self) -> str:
        """The fact as a sentence: what is embedded and shown."""
        return f"{self.subject} {self.predicate} {self.object}".replace("_", " ")


async def learn(memory: SemanticMemory, fact: Fact, *, run_id: str | None) -> str:
    """Store the fact and return its id. Idempotent by text.

    Raises: as `SemanticMemory.store`.
    """
    new = NewRecord(
        content=fact.text,
        subject=fact.subject,
        predicate=fact.predicate,
        object=fact.object,
        confidence=fact.confidence,
    )
    return (await memory.store(new, RecordSource("agent", run_id=run_id))).id


async def recall(memory: SemanticMemory, query: str, *, top_k: int = 5) -> Sequence[Record]:
    """Return the records nearest to the query, best first.

    Raises: as `SemanticMemory.search`.
    """
    return [hit.record for hit in await memory.search(RecallQuery(query, top_k))]
