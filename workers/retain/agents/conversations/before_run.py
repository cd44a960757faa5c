"""What a run reads before it begins: the past, what is known of its user, and what it recalls, in two trips to D1.

A recall depends on the conversation, which is read in the same trip as the recall's first part. So it begins with what the
instance itself knows of the conversation, and begins again in the rare case that D1 knows another one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from retain.agents.calls.user import User
from retain.agents.conversations.past import Past, PastReading
from retain.agents.definitions import MemoryConfig
from retain.agents.recollection import query_of
from retain.agents.users.known_user import UserQuery
from retain.memory.facts import KnownFact, ProfileQuery
from retain.memory.recall.query import latest
from retain.memory.semantic import RecallQuery, RecallResult, SemanticMemory
from retain.ports import Row, Sql, SqlResult, Statement


@dataclass(frozen=True, slots=True)
class Before:
    """The past, what is known of the run's user, and what was recalled. of_agent: rows about the run's agent.

    user: the run's, with what the tenant knows of them; None if nothing was asked.
    """

    past: Past
    profile: Sequence[KnownFact]
    recalled: RecallResult
    of_agent: Sequence[Row] = ()
    user: User | None = None


@dataclass(frozen=True, slots=True)
class ContextRecall:
    """The recall into a run's context. query: its text. last_words: the end of the conversation, as far as is known."""

    memory: SemanticMemory
    config: MemoryConfig
    query: str
    last_words: str

    def after(self, conversation: str) -> RecallQuery:
        """Return the recall after a conversation that ends so."""
        return query_of(self.config, self.query, conversation=conversation)


class _Reading:
    """Implements `ReadAlong`."""

    def __init__(
        self,
        sql: Sql,
        reading: PastReading,
        profile: ProfileQuery | None,
        recall: ContextRecall | None,
        of_agent: Sequence[Statement],
        user: UserQuery | None,
    ) -> None:
        self._sql = sql
        self._reading = reading
        self._profile = profile
        self._recall = recall
        self._asked = of_agent
        self._user = user
        self.of_agent: Sequence[Row] = ()
        self.past: Past | None = None
        self.facts: Sequence[KnownFact] = ()
        self.user: User | None = None

    @property
    def statements(self) -> Sequence[Statement]:
        """The queries for the past, then that for the profile, then that for the user, then that about the agent."""
        now_ms = self._reading.query.now_ms
        return [
            *self._reading.query.statements(),
            *([] if self._profile is None else [self._profile.statement(now_ms)]),
            *([] if self._user is None else [self._user.statement()]),
            *self._asked,
        ]

    async def read(self, results: Sequence[SqlResult]) -> Past:
        """Take the results. Raises: as `PastReading.past`."""
        if self._asked:
            *results, version = results
            self.of_agent = version.rows
        if self._user is not None:
            *results, row = results
            self.user = self._user.found(row)
        if self._profile is not None:
            *results, known = results
            self.facts = self._profile.facts(known)
        self.past = await self._reading.past(results, self._sql)
        return self.past

    async def wanted(self, results: Sequence[SqlResult]) -> RecallQuery:
        """Take the results; return the recall after the conversation that D1 has. Raises: as `PastReading.past`."""
        past = await self.read(results)
        assert self._recall is not None
        return self._recall.after(latest([message.content for message in past.thread.messages]))


async def read_before(
    sql: Sql,
    reading: PastReading,
    profile: ProfileQuery | None,
    recall: ContextRecall | None,
    of_agent: Sequence[Statement] = (),
    user: UserQuery | None = None,
) -> Before:
    """Return what a run reads. profile, recall: None for an agent without them. of_agent: a query about the agent, or none.

    user: None for a run of which nothing of its user is to be read.

    Raises: as `PastQuery.found` and `SemanticMemory.recall`.
    """
    read = _Reading(sql, reading, profile, recall, of_agent, user)
    recalled = RecallResult([])
    if recall is None:
        await read.read(await sql.batch(read.statements))
    else:
        recalled = await recall.memory.recall(recall.after(recall.last_words), read)
    assert read.past is not None
    return Before(read.past, read.facts, recalled, read.of_agent, read.user)
