"""The agent of one instance: its definition now, and the versions with which its runs began.

For an agent of the repository this is the catalogue, and nothing is read or written. A tenant's own agent is kept in the
object: the version that it knew last, and those of its open runs. A run is prepared with the version that is known, while
D1 is asked, in a request that the run makes anyway, which one is current. In the rare case that it is another one, the run
is prepared again.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from retain.agents.definitions import AgentDefinition
from retain.agents.identity import InstanceIdentity
from retain.agents.runs.open_run import OpenRun, VersionReference
from retain.agents.versions.tenant_agents import TenantAgents, deleted, unknown
from retain.agents.versions.version import AgentVersion, version_of
from retain.errors import NotFound
from retain.ports import ObjectSql, Row, Sql, Statement

_KEPT = "SELECT version, digest, definition FROM agent_versions WHERE {}"
_KEEP = """
INSERT INTO agent_versions (version, digest, definition, current) VALUES (?, ?, ?, ?)
ON CONFLICT (version, digest) DO UPDATE SET current = MAX(current, excluded.current)
"""
# The row of a run stays for a day or two after it has ended, for what is learned from it.
_DROP = """
DELETE FROM agent_versions WHERE current = 0 AND NOT EXISTS (
  SELECT 1 FROM turn_state WHERE context ->> '$.agent.version' = agent_versions.version
    AND context ->> '$.agent.digest' = agent_versions.digest)
"""
_CURRENT = """
SELECT agent_type, version, digest, CASE WHEN version = ?3 AND digest = ?4 THEN NULL ELSE definition END AS definition,
  definition IS NULL AS deleted, restored_from, created_by, created_at_ms
FROM agent_versions WHERE tenant_id = ?1 AND agent_type = ?2 ORDER BY version DESC LIMIT 1
"""
_ONE = "SELECT * FROM agent_versions WHERE tenant_id = ? AND agent_type = ? AND version = ? AND digest = ?"


class OwnAgent:
    """The agent of one instance."""

    def __init__(self, identity: InstanceIdentity, local: ObjectSql, sql: Sql, agents: TenantAgents) -> None:
        self._tenant_id = identity.scope.tenant_id
        self._type = identity.agent_type
        self._local = local
        self._sql = sql
        self._agents = agents
        self._read: dict[VersionReference, AgentVersion] = {}

    @property
    def in_repository(self) -> bool:
        """Whether the agent is one of the repository."""
        return self._agents.catalogue.has(self._type)

    async def ready(self) -> None:
        """Know a definition: that of the repository, the one that was known last, or the one in D1.

        Raises: NotFound (code `unknown_agent`, `agent_deleted`); Unavailable.
        """
        if self.in_repository or self._known() is not None:
            return
        guessed = self._agents.guess(self._tenant_id, self._type)
        if guessed is None or guessed.deleted:
            guessed = (await self._agents.latest(self._tenant_id, [self._type])).get(self._type)
        self._take(guessed)

    def now(self) -> AgentDefinition:
        """Return the definition that is known.

        Raises: NotFound (code `unknown_agent`) before `ready`, (code `agent_unreadable`).
        """
        if self.in_repository:
            return self._agents.catalogue.agent(self._type)
        known = self._known()
        if known is None:
            raise unknown(self._type)
        return known.definition

    def version(self) -> VersionReference | None:
        """Return what a run that begins now stores of the agent: None for one of the repository. Raises: as `now`."""
        if self.in_repository:
            return None
        known = self._known()
        if known is None:
            raise unknown(self._type)
        return known.reference

    def of_run(self, run: OpenRun) -> AgentDefinition:
        """Return the definition with which a run began; for an agent of the repository, the one that it has now.

        Raises: NotFound (code `unknown_agent`) for an agent that was removed from the repository, (code
            `no_such_agent_version`) for a version that is not kept, (code `agent_unreadable`).
        """
        if run.agent is None:
            return self._agents.catalogue.agent(self._type)
        known = self._kept(run.agent)
        if known is None:
            raise _not_kept(self._type, run.agent)
        return known.definition

    def asking(self) -> list[Statement]:
        """Return the query for the current version, for `confirmed`; none for an agent of the repository."""
        if self.in_repository:
            return []
        known = self._known()
        version, digest = (0, "") if known is None else (known.version, known.digest)
        return [(_CURRENT, (self._tenant_id, self._type, version, digest))]

    def confirmed(self, rows: Sequence[Row]) -> bool:
        """Take the result of `asking`; return whether the version that was known is current. Otherwise it is known now.

        Raises: NotFound (code `unknown_agent`, `agent_deleted`).
        """
        if self.in_repository:
            return True
        known, row = self._known(), next(iter(rows), None)
        if row is None or row["deleted"]:
            found = None if row is None else version_of(row)
            self._agents.note(self._tenant_id, self._type, found)
            self._local.run("UPDATE agent_versions SET current = 0")
            self._take(found)
        elif known is not None and row["definition"] is None:
            self._agents.note(self._tenant_id, self._type, known)
            return True
        else:
            found = version_of(row)
            self._agents.note(self._tenant_id, self._type, found)
            self._take(found)
        return False

    async def restore(self, reference: VersionReference) -> None:
        """Keep the version of a run that is rebuilt. Raises: NotFound (code `no_such_agent_version`); Unavailable."""
        known = self._kept(reference)
        if known is None:
            place = (self._tenant_id, self._type)
            rows = (await self._sql.run(_ONE, *place, reference.version, reference.digest)).rows
            if not rows:
                raise _not_kept(self._type, reference)
            known = version_of(rows[0])
        self._keep(known, current=False)  # what was read once may have been dropped since

    def keep(self, reference: VersionReference | None) -> None:
        """Keep the version with which a run is about to be recorded, in the same turn of the event loop.

        Another request may have learned of a newer one while the run was prepared, and no run had this one yet.
        """
        if reference is None:
            return
        known, prepared = self._known(), self._kept(reference)
        if prepared is not None and known is not prepared:
            self._keep(prepared, current=False)

    def clear(self) -> None:
        """Forget every version."""
        self._local.run("DELETE FROM agent_versions")
        self._read.clear()

    def _take(self, found: AgentVersion | None) -> None:
        """Let a version be the one that is known. Raises: NotFound for a deletion, and for none."""
        if found is None:
            raise unknown(self._type)
        if found.deleted:
            raise deleted(self._type)
        self._local.atomically(partial(self._replace, found))

    def _replace(self, found: AgentVersion) -> None:
        self._local.run("UPDATE agent_versions SET current = 0 WHERE current = 1")
        self._keep(found, current=True)
        self._local.run(_DROP)

    def _keep(self, found: AgentVersion, *, current: bool) -> None:
        self._local.run(_KEEP, found.version, found.digest, found.definition_text or "", int(current))

    def _known(self) -> AgentVersion | None:
        rows = self._local.run("SELECT version, digest FROM agent_versions WHERE current = 1").rows
        return self._kept(VersionReference(int(rows[0]["version"]), rows[0]["digest"])) if rows else None

    def _kept(self, reference: VersionReference) -> AgentVersion | None:
        """Return a version that the object has. It is read and parsed once in the object's life."""
        if reference not in self._read:
            rows = self._local.run(_KEPT.format("version = ? AND digest = ?"), reference.version, reference.digest).rows
            if not rows:
                return None
            self._read[reference] = AgentVersion(self._type, reference.version, reference.digest, rows[0]["definition"])
        return self._read[reference]


def _not_kept(agent_type: str, reference: VersionReference) -> NotFound:
    return NotFound(
        f"version {reference.version} of the agent {agent_type} is no longer kept", code="no_such_agent_version"
    )
