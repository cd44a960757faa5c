"""The past that a run reads: its own conversation, within its bound, and turns of other runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from retain.agents.conversations.summary import ThreadBound, within
from retain.agents.definitions import AgentDefinition
from retain.agents.identity import InstanceIdentity
from retain.agents.runs.tokens import Estimate
from retain.memory.conversations.thread import Thread, ThreadQuery, ThreadSummary, read_past
from retain.memory.episodes import Episode, Turns
from retain.ports import Sql
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


async def past_of(
    sql: Sql,
    identity: InstanceIdentity,
    definition: AgentDefinition,
    user_id: str | None,
    bound: ThreadBound | None,
    now_ms: int,
    *,
    counted: bool = False,
) -> Past:
    """Return what a run for a user may read, with one request to D1, or two when a long conversation has no summary yet.

    counted: as in `read_past`. Raises: as `last_episodes`.
    """
    config = definition.memory_config
    turns = Turns(config.episodes_from, identity.instance_id, user_id)
    if bound is None:
        episodes, _ = await read_past(sql, identity.scope, turns, config.episodes, None, now_ms, counted=counted)
        return Past(episodes, Thread())
    names = (identity.scope.tenant_id, identity.agent_type, identity.instance_id)
    query = ThreadQuery(*names, user_id, bound.messages + _SPARE, bound.characters)
    episodes, found = await read_past(sql, identity.scope, turns, config.episodes, query, now_ms, counted=counted)
    lines = tuple(line for line in found.summary.lines if line.at_ms >= now_ms - TEXT_KEPT_MS)
    known = replace(found, summary=replace(found.summary, lines=lines))
    thread = await within(bound, known, query, sql)
    return Past(episodes, thread, None if thread.summary == known.summary else thread.summary)
