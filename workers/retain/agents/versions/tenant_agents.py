"""Every agent that a tenant has: those of the repository, and those that it defines itself.

What the repository has is in memory, and costs nothing. An agent of the repository comes first: a tenant's agent of the
same name is not reached as long as the repository has one. D1 has the tenants' own, and each isolate remembers what it
read last: a run is refused or begun by what D1 has at that moment, see `own_agent.py`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from retain.agents.catalogue import AgentCatalogue
from retain.agents.definitions import AgentDefinition
from retain.agents.versions.version import AgentVersion, version_of
from retain.errors import NotFound
from retain.json_text import Json, read_own_json
from retain.ports import Clock, Row, Sql, SqlValue
from retain.shards.place import in_tenant

FRESH_MS = 60_000
"""How long an isolate takes an agent that it has read for one that exists, and uses its description."""
_REMEMBERED = 200
"""Most agents that an isolate remembers."""

_LATEST = """
SELECT v.* FROM json_each(?2) wanted CROSS JOIN agent_versions v ON v.tenant_id = ?1 AND v.agent_type = wanted.value
  AND v.version = (SELECT MAX(version) FROM agent_versions WHERE tenant_id = ?1 AND agent_type = wanted.value)
"""
_LAST = """
SELECT * FROM agent_versions WHERE tenant_id = ? AND agent_type = ? AND definition IS NOT NULL
ORDER BY version DESC LIMIT 1
"""
_PAGE = """
WITH RECURSIVE types (agent_type) AS (
  SELECT MIN(agent_type) FROM agent_versions WHERE tenant_id = ?1 AND agent_type > ?2
  UNION ALL
  SELECT (SELECT MIN(agent_type) FROM agent_versions WHERE tenant_id = ?1 AND agent_type > t.agent_type) FROM types t
  WHERE t.agent_type IS NOT NULL
)
SELECT v.agent_type, v.version, v.definition ->> '$.description' AS description, v.definition ->> '$.house' AS house,
  v.definition -> '$.delegates' AS delegates
FROM types t CROSS JOIN agent_versions v ON v.tenant_id = ?1 AND v.agent_type = t.agent_type
  AND v.version = (SELECT MAX(version) FROM agent_versions WHERE tenant_id = ?1 AND agent_type = t.agent_type)
WHERE v.definition IS NOT NULL LIMIT ?3
"""
"""A tenant's own agents by their types, with a few seeks per agent, however many versions there are."""


@dataclass(frozen=True, slots=True)
class ListedAgent:
    """An agent as lists have it. version: None for an agent of the repository."""

    agent_type: str
    description: str
    house: str | None
    delegates: tuple[str, ...]
    version: int | None = None

    def to_json(self) -> dict[str, Json]:
        """Return the agent as HTTP answers have it."""
        return {
            "agent_type": self.agent_type,
            "description": self.description,
            "house": self.house,
            "delegates": list(self.delegates),
            "source": "repository" if self.version is None else "tenant",
            "version": self.version,
        }


def unknown(agent_type: str) -> NotFound:
    """Return the error for an agent that a tenant does not have."""
    return NotFound(f"there is no agent of type {agent_type}", code="unknown_agent")


def deleted(agent_type: str) -> NotFound:
    """Return the error for an agent that the tenant has deleted."""
    return NotFound(f"the agent {agent_type} was deleted: it begins no runs", code="agent_deleted")


class TenantAgents:
    """The agents of every tenant. catalogue: those of the repository, which every tenant has."""

    def __init__(self, catalogue: AgentCatalogue, sql: Sql, clock: Clock) -> None:
        self.catalogue = catalogue
        self._sql = sql
        self._clock = clock
        self._seen: dict[tuple[str, str], tuple[AgentVersion, int]] = {}

    async def require(self, tenant_id: str, agent_type: str) -> None:
        """Refuse an agent that the tenant never had. Of one that was deleted the runs are there; its instances begin none.

        Raises: NotFound (code `unknown_agent`); Unavailable.
        """
        if self.catalogue.has(agent_type):
            return
        if agent_type not in await self.latest(tenant_id, [agent_type], fresh_ms=FRESH_MS):
            raise unknown(agent_type)

    async def definition(self, tenant_id: str, agent_type: str, *, fresh_ms: int = 0) -> AgentDefinition:
        """Return the definition of an agent as it is now. fresh_ms: as in `latest`.

        Raises: NotFound (code `unknown_agent`, `agent_deleted`, `agent_unreadable`); Unavailable.
        """
        if self.catalogue.has(agent_type):
            return self.catalogue.agent(agent_type)
        found = (await self.latest(tenant_id, [agent_type], fresh_ms=fresh_ms)).get(agent_type)
        if found is None:
            raise unknown(agent_type)
        if found.deleted:
            raise deleted(agent_type)
        return found.definition

    async def last_definition(self, tenant_id: str, agent_type: str) -> AgentDefinition:
        """Return the definition of an agent; of one that was deleted, whose memories remain, the last that it had.

        Raises: NotFound (code `unknown_agent`, `agent_unreadable`); Unavailable.
        """
        if self.catalogue.has(agent_type):
            return self.catalogue.agent(agent_type)
        rows = await self._rows(tenant_id, _LAST, agent_type)
        if not rows:
            raise unknown(agent_type)
        return version_of(rows[0]).definition

    async def house_of(self, tenant_id: str, agent_type: str) -> str | None:
        """Return an agent's house. Raises: as `last_definition`."""
        return (await self.last_definition(tenant_id, agent_type)).house

    async def descriptions(self, tenant_id: str, agent_types: Iterable[str]) -> Mapping[str, str]:
        """Return what models read of agents, as old as `FRESH_MS` at most. An agent that was deleted is called so.

        Raises: NotFound (code `unknown_agent`); Unavailable.
        """
        known = {name: self.catalogue.agent(name).description for name in agent_types if self.catalogue.has(name)}
        others = [name for name in agent_types if name not in known]
        if others:
            found = await self.latest(tenant_id, others, fresh_ms=FRESH_MS)
            for name in others:
                if name not in found:
                    raise unknown(name)
                known[name] = "(deleted)" if found[name].deleted else found[name].definition.description
        return {name: known[name] for name in agent_types}

    async def latest(self, tenant_id: str, agent_types: Iterable[str], *, fresh_ms: int = 0) -> dict[str, AgentVersion]:
        """Return the newest versions of those that the tenant has defined, deletions too, in one request to D1.

        fresh_ms: how old what the isolate remembers may be; with 0, all are read. Raises: Unavailable.
        """
        since_ms = self._clock() - fresh_ms
        found: dict[str, AgentVersion] = {}
        asked: list[str] = []
        for name in agent_types:
            version, read_ms = self._seen.get((tenant_id, name), (None, 0))
            if version is None or not fresh_ms or read_ms < since_ms:
                asked.append(name)
            else:
                found[name] = version
        if asked:
            rows = await self._rows(tenant_id, _LATEST, json.dumps(asked))
            read = {row["agent_type"]: version_of(row) for row in rows}
            for name in asked:
                self.note(tenant_id, name, read.get(name))
            found |= read
        return found

    def guess(self, tenant_id: str, agent_type: str) -> AgentVersion | None:
        """Return the version that this isolate read last, however long ago, or None. Nothing may rest on it alone."""
        return self._seen.get((tenant_id, agent_type), (None, 0))[0]

    def note(self, tenant_id: str, agent_type: str, version: AgentVersion | None) -> None:
        """Remember what D1 has of an agent now; None for nothing."""
        self._seen.pop((tenant_id, agent_type), None)
        if version is not None:
            if len(self._seen) >= _REMEMBERED:
                del self._seen[next(iter(self._seen))]
            self._seen[tenant_id, agent_type] = (version, self._clock())

    def forget(self, tenant_id: str) -> None:
        """Drop what is remembered of a tenant: it was erased."""
        for key in [key for key in self._seen if key[0] == tenant_id]:
            del self._seen[key]

    async def page(
        self, tenant_id: str | None, *, limit: int, cursor: str | None, only: str | None = None
    ) -> tuple[list[ListedAgent], str | None]:
        """Return the tenant's agents by their types, after the one named by the cursor, and the cursor of the next page.

        tenant_id: None for those of the repository alone. only: the one that is listed if there is such an agent; None for
        all. Raises: Unavailable.
        """
        in_repository, _ = self.catalogue.page(limit=limit + 1, cursor=cursor, only=only)
        found = {one.type: ListedAgent(one.type, one.description, one.house, one.delegates) for one in in_repository}
        if tenant_id is not None and only is None:
            for row in await self._rows(tenant_id, _PAGE, cursor or "", limit + 1):
                name, delegates = row["agent_type"], tuple(read_own_json(row["delegates"]))
                listed = ListedAgent(name, row["description"], row["house"], delegates, int(row["version"]))
                found.setdefault(name, listed)
        elif tenant_id is not None and only is not None and only > (cursor or "") and not self.catalogue.has(only):
            own = (await self.latest(tenant_id, [only])).get(only)
            if own is not None and not own.deleted:
                one = own.definition
                found[only] = ListedAgent(only, one.description, one.house, one.delegates, own.version)
        types = sorted(found)
        return [found[name] for name in types[:limit]], types[limit - 1] if len(types) > limit else None

    async def _rows(self, tenant_id: str, sql: str, *values: SqlValue) -> Sequence[Row]:
        """Return what a query of a tenant finds, wherever the tenant lives."""
        with in_tenant(tenant_id):
            return (await self._sql.run(sql, tenant_id, *values)).rows
