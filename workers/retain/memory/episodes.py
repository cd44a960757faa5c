"""Episodic memory: the turns of past runs, in D1.

Writes are named statements: an instance puts them into its outbox in the transaction that logs the turn, and the outbox
sends them to D1. Reads are for the next run's context and for the administrator.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias

from retain.errors import QuotaExceeded
from retain.json_text import Json
from retain.memory.scope import Scope
from retain.outbox import OwedStatement
from retain.ports import Sql, SqlResult, Statement
from retain.retention import TEXT_KEPT_MS, RetentionRule

EpisodeSource: TypeAlias = Literal["instance", "user", "agent"]
"""Whose past turns come into a run's context."""
MAX_PER_TENANT = 100_000
"""Episodes of one tenant. D1 has the same number in the trigger `memory_episodes_limited`, which refuses those above it."""
WARN_PER_TENANT = 80_000
_COLUMNS = "episode_id, run_id, instance_id, turn, content, created_at_ms"
_NEWEST = "ORDER BY created_at_ms DESC, episode_id DESC LIMIT ?"
OF_INSTANCE = f"""
SELECT {_COLUMNS} FROM memory_episodes
WHERE tenant_id = ? AND agent_type = ? AND instance_id = ? AND (user_id IS NULL OR user_id = ?) {_NEWEST}
"""
OF_USER = f"""
SELECT {_COLUMNS} FROM memory_episodes WHERE tenant_id = ? AND agent_type = ? AND user_id IS ? {_NEWEST}
"""
EPISODE_RULES = (
    RetentionRule(
        "memory_episodes",
        TEXT_KEPT_MS,
        (
            "DELETE FROM memory_episodes WHERE episode_id IN (SELECT episode_id FROM memory_episodes"
            " WHERE created_at_ms < ? ORDER BY created_at_ms LIMIT ?) RETURNING tenant_id",
        ),
        5000,
    ),
    RetentionRule(
        "refused_episodes",
        TEXT_KEPT_MS,
        (
            "DELETE FROM refused_episodes WHERE episode_id IN (SELECT episode_id FROM refused_episodes"
            " WHERE at_ms < ? ORDER BY at_ms LIMIT ?) RETURNING tenant_id",
        ),
        5000,
    ),
)
EARLIER: Mapping[str, str] = {
    "append_episode": """
        INSERT OR IGNORE INTO memory_episodes
          (episode_id, tenant_id, agent_type, instance_id, run_id, turn, content, created_at_ms)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?)
    """,
}
"""Statements that version 0.1.0 owed, which an outbox may still hold."""


@dataclass(frozen=True, slots=True)
class AppendEpisode(OwedStatement):
    """The episode of one turn, owed to D1 by the instance of the run.

    Of a tenant that has as many as it may, it is not kept: D1 notes its id in `refused_episodes`, and the statement
    succeeds.
    """

    ALONE: ClassVar[bool] = False
    NAME: ClassVar[str] = "append_episode_of_user"
    SQL: ClassVar[str] = """
        INSERT OR IGNORE INTO memory_episodes
          (episode_id, tenant_id, agent_type, instance_id, run_id, turn, content, created_at_ms, user_id)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
    """

    episode_id: str
    tenant_id: str
    agent_type: str
    instance_id: str
    run_id: str
    turn: int
    content: str
    created_at_ms: int
    user_id: str | None


@dataclass(frozen=True, slots=True)
class Episode:
    """One turn of a past run, as it is remembered."""

    episode_id: str
    run_id: str
    instance_id: str
    turn: int
    content: str
    created_at_ms: int

    def to_json(self) -> dict[str, Json]:
        """Return the episode as it is logged and shown."""
        return {name: getattr(self, name) for name in self.__slots__}


def episode_id(run_id: str, turn: int) -> str:
    """Return the id of a turn's episode: the same for every attempt to write it, and sorted in the order of turns."""
    return f"{run_id}.{turn:03d}"


@dataclass(frozen=True, slots=True)
class Turns:
    """Whose past turns a run reads.

    source: those of its instance, those of its user with the same agent, or those of every instance of the agent. A run
    without a user has no user's turns to read: `user` is then its instance's. user_id: the run's user.
    """

    source: EpisodeSource
    instance_id: str
    user_id: str | None

    def statements(self, scope: Scope, count: int) -> list[Statement]:
        """Return the queries whose results together hold the newest `count`.

        No query can return a turn that names another user than the run's own.
        """
        place = (scope.tenant_id, scope.agent_type)
        if self.source == "agent":
            users = (None,) if self.user_id is None else (None, self.user_id)
            return [(OF_USER, (*place, user, count)) for user in users]
        if self.source == "user" and self.user_id is not None:
            return [(OF_USER, (*place, self.user_id, count))]
        return [(OF_INSTANCE, (*place, self.instance_id, self.user_id, count))]


async def last_episodes(sql: Sql, scope: Scope, turns: Turns, count: int) -> list[Episode]:
    """Return the newest `count` of the turns that a run of an agent may read, oldest first.

    Raises: as `episodes_in`; Unavailable.
    """
    return episodes_in(await sql.batch(episode_queries(scope, turns, count)), count)


def episode_queries(scope: Scope, turns: Turns, count: int) -> list[Statement]:
    """Return the queries whose results `episodes_in` takes."""
    counted = ("SELECT episodes FROM episode_counts WHERE tenant_id = ?", (scope.tenant_id,))
    return [counted, *turns.statements(scope, count)]


def episodes_in(results: Sequence[SqlResult], count: int) -> list[Episode]:
    """Return the newest `count` episodes in the results of `episode_queries`, oldest first.

    Raises: QuotaExceeded (code `episode_limit`) when the tenant has as many episodes as it may, since the run that
        needs the context could not be remembered.
    """
    counted, *recent = results
    if counted.rows and int(counted.rows[0]["episodes"]) >= MAX_PER_TENANT:
        raise QuotaExceeded(
            "the tenant has reached its limit of episodes; prune or erase some",
            code="episode_limit",
            limit=MAX_PER_TENANT,
        )
    found = [Episode(**{name: row[name] for name in Episode.__slots__}) for result in recent for row in result.rows]
    return sorted(found, key=lambda episode: (episode.created_at_ms, episode.episode_id))[-count:] if count else []
