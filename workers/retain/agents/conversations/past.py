"""The past that a run reads: its own conversation, within its bound, and turns of other runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from retain.agents.calls.run_request import PriorMessage
from retain.agents.calls.tokens import Estimate
from retain.agents.conversations.summary import ThreadBound, within
from retain.agents.definitions import AgentDefinition
from retain.agents.identity import InstanceIdentity
from retain.agents.runs.episode_text import valid_unicode
from retain.agents.runs.run_table import RunTable
from retain.memory.conversations.thread import PastMessage, PastQuery, Thread, ThreadQuery, ThreadSummary
from retain.memory.episodes import Episode, Turns
from retain.memory.recall.query import MAX_CONTEXT_TURNS, latest
from retain.ports import Sql, SqlResult
from retain.retention import TEXT_KEPT_MS

_SPARE = 4
"""How many messages more than the bound are read: a run adds two, and the bound is checked before each run."""


@dataclass(frozen=True, slots=True)
class Past:
    """What a run may read of the past. new_summary: the conversation's, if messages were added to it."""

    episodes: Sequence[Episode]
    thread: Thread
    new_summary: ThreadSummary | None = None


def bound_of(definition: AgentDefinition, estimate: Estimate, tools_tokens: int) -> ThreadBound | None:
    """Return how much of its conversation an agent's run reads; None when it does not read it as messages.

    The bound is at most half of what instructions and tools leave of `limits.context_tokens`.
    """
    config = definition.memory_config.conversation
    if config.messages == 0:
        return None
    room = definition.limits.context_tokens - definition.model.max_output_tokens - tools_tokens
    room -= estimate.text(definition.instructions)
    return ThreadBound(config.messages, max(0, min(config.tokens, room // 2)), config.summary_tokens, estimate.text)


@dataclass(frozen=True, slots=True)
class PastReading:
    """What a run reads of the past. bound: None when it does not read its conversation as messages.

    prior: the messages that it reads instead of its instance's conversation, if there are any.
    """

    query: PastQuery
    bound: ThreadBound | None
    prior: Sequence[PriorMessage] = ()

    @classmethod
    def of(
        cls,
        identity: InstanceIdentity,
        definition: AgentDefinition,
        user_id: str | None,
        bound: ThreadBound | None,
        now_ms: int,
        *,
        prior: Sequence[PriorMessage] = (),
        counted: bool = False,
    ) -> PastReading:
        """Return what a run for a user reads at a time. counted: as in `PastQuery`."""
        config = definition.memory_config
        turns = Turns(config.episodes_from, identity.instance_id, user_id)
        names = (identity.scope.tenant_id, identity.agent_type, identity.instance_id)
        thread = None if bound is None else ThreadQuery(*names, user_id, bound.messages + _SPARE, bound.characters)
        return cls(PastQuery(identity.scope, turns, config.episodes, thread, now_ms, counted), bound, prior)

    async def past(self, results: Sequence[SqlResult], sql: Sql) -> Past:
        """Return the past that the query's statements found; a long conversation without a summary takes another request.

        Raises: as `PastQuery.found`; Unavailable.
        """
        episodes, found = self.query.found(results)
        if self.bound is None or self.query.query is None:
            return Past(episodes, found)
        if self.prior:
            brought = Thread(messages=tuple(_as_past(self.prior, self.query.now_ms)))
            return Past(episodes, await within(self.bound, brought, self.query.query, sql))
        lines = tuple(line for line in found.summary.lines if line.at_ms >= self.query.now_ms - TEXT_KEPT_MS)
        known = replace(found, summary=replace(found.summary, lines=lines))
        thread = await within(self.bound, known, self.query.query, sql)
        return Past(episodes, thread, None if thread.summary == known.summary else thread.summary)


def _as_past(prior: Sequence[PriorMessage], now_ms: int) -> Iterator[PastMessage]:
    """Yield the messages as those of a conversation without names: a question and its answers are of one run."""
    exchange = 0
    for message in prior:
        exchange += message.role == "user"
        yield PastMessage(
            "", f"prior-{exchange}", message.role, valid_unicode(message.content), now_ms, attachments=message.files
        )


def last_words(runs: RunTable, bound: ThreadBound | None, prior: Sequence[PriorMessage] = ()) -> str:
    """Return the end of the conversation as far as the instance has it itself, which is what its runs of a day or two say.

    D1 may know better: messages that were deleted there, or that are older. prior: what the run reads instead, if any.
    """
    if bound is None:
        return ""
    if prior:
        texts = [message.content for message in prior[-MAX_CONTEXT_TURNS:]]
    else:
        texts = [text for run in runs.exchanged(MAX_CONTEXT_TURNS // 2) for text in (run.asked, run.answered) if text]
    return latest([bound.shortened_text(valid_unicode(text)[: bound.characters]) for text in texts])
