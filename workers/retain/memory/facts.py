"""Facts in parts: `learn` stores one as a record, `recall` returns the nearest, `ProfileQuery` finds those of a user.

`learn` and `recall` are for an agent's tools and for programs that have a `SemanticMemory`. The facts of a conversation
come from `retain.ingest`, which stores many at once.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from retain.memory.recalled import store_unrecalled
from retain.memory.records.record import Kind, NewRecord, Record, RecordSource
from retain.memory.records.rows import outside_gaps
from retain.memory.scope import View
from retain.memory.semantic import RecallQuery, SemanticMemory
from retain.memory.writing.calls import StoreResult
from retain.ports import SqlResult, Statement

_KNOWN = f"""
SELECT id, content, CASE WHEN kind IN ('event', 'task') THEN valid_from_ms END AS at_ms
FROM memory_records r INDEXED BY memory_records_of_users
WHERE tenant_id = ?1 AND scope_id IN (SELECT value FROM json_each(?2)) AND scope_id GLOB 'user.*'
  AND conversation IS NULL AND valid_to_ms IS NULL
  AND valid_from_ms <= ?3 AND (expires_at_ms IS NULL OR expires_at_ms > ?3) AND {outside_gaps("?3")}
ORDER BY importance DESC, valid_from_ms DESC, id DESC LIMIT ?4
"""


@dataclass(frozen=True, slots=True)
class Fact:
    """One observation as subject, predicate and object.

    subject: what it is about, such as `contact:hubspot_id:123456`. predicate, object: what is known of it; a newer fact of
    equal subject and predicate replaces this one. called: how the sentence names the subject, None for the subject itself.
    confidence, importance: in [0, 1].
    """

    subject: str
    predicate: str
    object: str
    confidence: float = 1.0
    importance: float = 0.5
    kind: Kind = "fact"
    called: str | None = None

    @property
    def text(self) -> str:
        """The fact as a sentence: what is embedded and shown. What follows a colon in the predicate is not part of it."""
        relation = self.predicate.partition(":")[0].replace("_", " ")
        return f"{self.called or self.subject} {relation} {self.object}"


def user_subject(user_id: str) -> str:
    """Return the subject of what is known of a user."""
    return f"user:{user_id}"


async def learn(memory: SemanticMemory, fact: Fact, source: RecordSource) -> StoreResult:
    """Store the fact, unless it was recalled; return its record. Idempotent by text.

    Raises: as `store_unrecalled`; InvalidInput for a part that does not fit.
    """
    new = NewRecord(
        content=fact.text,
        kind=fact.kind,
        subject=fact.subject,
        predicate=fact.predicate,
        object=fact.object,
        confidence=fact.confidence,
        importance=fact.importance,
    )
    return await store_unrecalled(memory, new, source)


async def recall(memory: SemanticMemory, query: str, *, top_k: int = 5) -> Sequence[Record]:
    """Return the records nearest to the query, best first.

    Raises: as `SemanticMemory.search`.
    """
    return [hit.record for hit in await memory.search(RecallQuery(query, top_k))]


@dataclass(frozen=True, slots=True)
class KnownFact:
    """A record of a user's scope, as it goes into a profile. at_ms: when an event or a task was stated, None for a fact."""

    id: str
    content: str
    at_ms: int | None = None


@dataclass(frozen=True, slots=True)
class ProfileQuery:
    """What is known of a view's user: the most important first, of equals the one that became valid last.

    Messages of conversations are not in it, nor records that something closed, even if they are still valid.
    """

    view: View
    limit: int

    def statement(self, now_ms: int) -> Statement:
        """Return the query for what is valid at a time."""
        users = json.dumps([node.scope_id for node in self.view.nodes if node.kind == "user"])
        return _KNOWN, (self.view.tenant_id, users, now_ms, self.limit)

    @staticmethod
    def facts(result: SqlResult) -> list[KnownFact]:
        """Return what the query found."""
        return [KnownFact(row["id"], row["content"], row["at_ms"]) for row in result.rows]
