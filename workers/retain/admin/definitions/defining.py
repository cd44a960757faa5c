"""Define, change and delete the agents of a tenant. Every change adds a version; none is ever changed.

A change names the version that it is based on, or is decided again when another one was first. Equal content adds nothing.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from retain.admin.definitions.checking import (
    DefinitionProblem,
    TenantModels,
    invalid_definition,
    memory_problems,
    read_definition,
    reference_problems,
)
from retain.agents.definitions import AgentDefinition
from retain.agents.versions.tenant_agents import TenantAgents, unknown
from retain.agents.versions.version import (
    MAX_DEFINITION_BYTES,
    AgentVersion,
    digest_of_definition,
    digest_of_text,
    stored_text,
    version_of,
)
from retain.errors import Conflict, Contended, NotFound, QuotaExceeded
from retain.identifiers import check_agent_type
from retain.json_text import read_own_json
from retain.ports import Clock, Sql, SqlResult, SqlValue, Statement
from retain.retention import DAY_MS

MAX_AGENTS = 100
"""Most agents that a tenant defines itself and has not deleted."""
MAX_VERSIONS = 2_000
"""Most versions of all agents of a tenant together."""
VERSIONS_KEPT_MS = 90 * DAY_MS
"""How long a version is kept at least after another one replaced it. Older ones are removed when there is no more room."""
_TRIES = 5
_REMOVED_AT_ONCE = 50

_COUNT = "SELECT COUNT(*) AS versions FROM agent_versions WHERE tenant_id = ?"
_LATEST = "SELECT * FROM agent_versions WHERE tenant_id = ? AND agent_type = ? ORDER BY version DESC LIMIT 1"
_OTHERS = """
SELECT wanted.value AS agent_type FROM json_each(?2) wanted CROSS JOIN agent_versions v ON v.tenant_id = ?1
  AND v.agent_type = wanted.value
  AND v.version = (SELECT MAX(version) FROM agent_versions WHERE tenant_id = ?1 AND agent_type = wanted.value)
WHERE v.definition IS NOT NULL
"""
_ADD = """
INSERT INTO agent_versions
  (tenant_id, agent_type, version, definition, digest, restored_from, created_by, created_at_ms)
SELECT ?1, ?2, ?3 + 1, ?4, ?5, ?6, ?7, ?8
WHERE COALESCE((SELECT MAX(version) FROM agent_versions WHERE tenant_id = ?1 AND agent_type = ?2), 0) = ?3
  AND (SELECT COUNT(*) FROM agent_versions WHERE tenant_id = ?1) < ?9
  AND ({condition})
RETURNING *
"""
_ROOM = """
(SELECT COUNT(*) FROM (
   SELECT agent_type, MAX(version) AS version FROM agent_versions WHERE tenant_id = ?1 AND agent_type <> ?2
   GROUP BY agent_type) newest
 JOIN agent_versions v ON v.tenant_id = ?1 AND v.agent_type = newest.agent_type AND v.version = newest.version
 WHERE v.definition IS NOT NULL) < ?10
"""
_UNUSED = """
NOT EXISTS (SELECT 1 FROM (
    SELECT agent_type, MAX(version) AS version FROM agent_versions WHERE tenant_id = ?1 AND agent_type <> ?2
    GROUP BY agent_type) newest
  JOIN agent_versions v ON v.tenant_id = ?1 AND v.agent_type = newest.agent_type AND v.version = newest.version
  JOIN json_each(v.definition, '$.delegates') delegate WHERE delegate.value = ?2)
"""
_USERS = """
SELECT v.agent_type FROM (
    SELECT agent_type, MAX(version) AS version FROM agent_versions WHERE tenant_id = ?1 AND agent_type <> ?2
    GROUP BY agent_type) newest
  JOIN agent_versions v ON v.tenant_id = ?1 AND v.agent_type = newest.agent_type AND v.version = newest.version
  JOIN json_each(v.definition, '$.delegates') delegate WHERE delegate.value = ?2 LIMIT 5
"""
# A deletion is removed last: without it, an older version would be the current one.
_REMOVE = """
DELETE FROM agent_versions WHERE rowid IN (
  SELECT v.rowid FROM agent_versions v WHERE v.tenant_id = ?1 AND (
    EXISTS (SELECT 1 FROM agent_versions n WHERE n.tenant_id = ?1 AND n.agent_type = v.agent_type
              AND n.version > v.version AND n.created_at_ms < ?2)
    OR (v.definition IS NULL AND v.created_at_ms < ?2
        AND NOT EXISTS (SELECT 1 FROM agent_versions o WHERE o.tenant_id = ?1 AND o.agent_type = v.agent_type
                          AND o.version <> v.version)))
  ORDER BY v.created_at_ms, v.version LIMIT ?3)
"""
_VERSIONS = """
SELECT agent_type, version, CASE WHEN definition IS NOT NULL THEN '' END AS definition, digest,
  restored_from, created_by, created_at_ms
FROM agent_versions WHERE tenant_id = ? AND agent_type = ? AND version < ? ORDER BY version DESC LIMIT ?
"""
_ONE = "SELECT * FROM agent_versions WHERE tenant_id = ? AND agent_type = ? AND version = ?"

Warnings = Callable[[str, AgentDefinition], Awaitable[list[DefinitionProblem]]]
"""Returns what a definition names that the tenant does not have yet, but may get."""


async def _no_warnings(tenant_id: str, definition: AgentDefinition) -> list[DefinitionProblem]:  # noqa: ARG001
    """Return no warnings."""
    return []


@dataclass(frozen=True, slots=True)
class Defined:
    """The outcome of a change. added: whether it added a version; False for equal content."""

    version: AgentVersion
    added: bool
    warnings: Sequence[DefinitionProblem] = ()


@dataclass(frozen=True, slots=True)
class Checked:
    """The outcome of a check: what keeps a definition from being taken, and what it needs before it can run."""

    problems: Sequence[DefinitionProblem]
    warnings: Sequence[DefinitionProblem]
    digest: str | None


class DefinedAgents:
    """The agents that tenants define themselves, in D1.

    models: those that they may name. warnings: returns what a definition names that the tenant does not have yet.
    """

    def __init__(
        self,
        agents: TenantAgents,
        sql: Sql,
        clock: Clock,
        models: Callable[[], TenantModels],
        warnings: Warnings = _no_warnings,
    ) -> None:
        self._agents = agents
        self._sql = sql
        self._clock = clock
        self._models = models
        self._warnings = warnings

    async def define(
        self, tenant_id: str, agent_type: str, content: Mapping[str, object], *, by: str, based_on: int | None = None
    ) -> Defined:
        """Let an agent be defined so. Idempotent: content that it has already adds no version.

        by: who does it. based_on: the version that must be current, 0 for an agent that must not be there; None for any.
        Raises: InvalidInput (code `invalid_agent`); LimitExceeded (code `agent_too_large`); Conflict (code `agent_changed`,
            `agent_of_repository`); QuotaExceeded (code `too_many_agents`, `too_many_agent_versions`); Unavailable.
        """
        self._check_name(agent_type)
        definition = read_definition(agent_type, content, MAX_DEFINITION_BYTES)
        if isinstance(definition, list):
            raise invalid_definition(definition)
        await self._require_valid(tenant_id, definition)
        defined = await self._add(tenant_id, agent_type, definition, by=by, based_on=based_on)
        return replace(defined, warnings=await self._warnings(tenant_id, definition))

    async def check(self, tenant_id: str, agent_type: str, content: Mapping[str, object]) -> Checked:
        """Return what is wrong with a definition, without defining it. Raises: as `define`, unless it is invalid."""
        self._check_name(agent_type)
        definition = read_definition(agent_type, content, MAX_DEFINITION_BYTES)
        if isinstance(definition, list):
            return Checked(definition, (), None)
        problems = await self._problems(tenant_id, definition)
        return Checked(problems, await self._warnings(tenant_id, definition), digest_of_definition(definition))

    def digest_of_imported(self, agent_type: str, definition_text: str) -> str:
        """Return the digest of a version that an import brings, as it is stored.

        What it names besides its model may come later, or be gone: an earlier version stays what it was.
        Raises: InvalidInput (code `invalid_agent`, `invalid_agent_type`); LimitExceeded (code `agent_too_large`).
        """
        content = read_own_json(definition_text or "null")
        if not isinstance(content, dict):
            raise invalid_definition([DefinitionProblem("", "must be an object")])
        definition = read_definition(check_agent_type(agent_type), content, MAX_DEFINITION_BYTES)
        problems = definition if isinstance(definition, list) else self._models().problems(definition.model)
        if problems:
            raise invalid_definition(problems)
        return digest_of_text(definition_text)

    async def roll_back(
        self, tenant_id: str, agent_type: str, version: int, *, by: str, based_on: int | None = None
    ) -> Defined:
        """Define an agent as it was in an earlier version, also one that was deleted since.

        Raises: as `define`, for a definition that names what is no longer there; NotFound (code `no_such_agent_version`,
            `unknown_agent`, `agent_unreadable`).
        """
        self._check_name(agent_type)
        earlier = await self.version(tenant_id, agent_type, version)
        if earlier.deleted:
            raise NotFound(f"version {version} is the deletion of the agent", code="no_such_agent_version")
        await self._require_valid(tenant_id, earlier.definition)
        defined = await self._add(
            tenant_id, agent_type, earlier.definition, by=by, based_on=based_on, restored_from=version
        )
        return replace(defined, warnings=await self._warnings(tenant_id, earlier.definition))

    async def delete(self, tenant_id: str, agent_type: str, *, by: str, based_on: int | None = None) -> None:
        """Delete an agent: it begins no more runs, and open ones end as they began. Its memories stay. Idempotent.

        Raises: NotFound (code `unknown_agent`); Conflict (code `agent_changed`, `agent_of_repository`, and `agent_in_use`
            while another one delegates to it); Unavailable.
        """
        for _ in range(_TRIES):
            current, versions = await self._current(tenant_id, agent_type)
            if current is None:
                if self._agents.catalogue.has(agent_type):
                    self._check_name(agent_type)
                raise unknown(agent_type)
            if current.deleted:
                return
            _check_base(current, based_on)
            place = (tenant_id, agent_type, current.version)
            values = (*place, None, "", None, by, self._clock(), MAX_VERSIONS + MAX_AGENTS)
            added = await self._write(tenant_id, versions, _ADD.format(condition=_UNUSED), values)
            if added.rows:
                self._agents.note(tenant_id, agent_type, version_of(added.rows[0]))
                return
            users = (await self._sql.run(_USERS, tenant_id, agent_type)).rows
            if users:
                names = ", ".join(row["agent_type"] for row in users)
                raise Conflict(f"these agents delegate to it: {names}", code="agent_in_use")
        raise Contended("too many changes to the agent at once; try again")

    async def current(self, tenant_id: str, agent_type: str) -> AgentVersion:
        """Return the current version, which may be a deletion. Raises: NotFound (code `unknown_agent`); Unavailable."""
        found, _ = await self._current(tenant_id, agent_type)
        if found is None:
            raise unknown(agent_type)
        return found

    async def versions(self, tenant_id: str, agent_type: str, *, before: int, limit: int) -> list[AgentVersion]:
        """Return versions with smaller numbers than `before`, the newest first, without definitions.

        Raises: NotFound (code `unknown_agent`) for an agent without any; Unavailable.
        """
        rows = (await self._sql.run(_VERSIONS, tenant_id, agent_type, before, limit)).rows
        if not rows:
            await self.current(tenant_id, agent_type)
        return [version_of(row) for row in rows]

    async def version(self, tenant_id: str, agent_type: str, version: int) -> AgentVersion:
        """Return one version. Raises: NotFound (code `no_such_agent_version`, `unknown_agent`); Unavailable."""
        rows = (await self._sql.run(_ONE, tenant_id, agent_type, version)).rows
        if not rows:
            await self.current(tenant_id, agent_type)
            raise NotFound(f"the agent {agent_type} has no version {version}", code="no_such_agent_version")
        return version_of(rows[0])

    def _check_name(self, agent_type: str) -> None:
        if self._agents.catalogue.has(agent_type):
            raise Conflict(
                f"the agent {agent_type} is one of the repository: define yours under another name",
                code="agent_of_repository",
            )

    async def _require_valid(self, tenant_id: str, definition: AgentDefinition) -> None:
        problems = await self._problems(tenant_id, definition)
        if problems:
            raise invalid_definition(problems)

    async def _problems(self, tenant_id: str, definition: AgentDefinition) -> list[DefinitionProblem]:
        catalogue = self._agents.catalogue
        theirs = {name for name in definition.delegates if not catalogue.has(name)}
        known = set(definition.delegates) - theirs
        if theirs:
            known |= {
                row["agent_type"] for row in (await self._sql.run(_OTHERS, tenant_id, json.dumps(sorted(theirs)))).rows
            }
        script = definition.model.script
        found = reference_problems(
            definition,
            functions={name for name in definition.functions if catalogue.has_function(name)},
            scripts={script} if script is not None and catalogue.has_script(script) else (),
            delegates=known,
        )
        return found + memory_problems(definition) + self._models().problems(definition.model)

    async def _add(
        self,
        tenant_id: str,
        agent_type: str,
        definition: AgentDefinition,
        *,
        by: str,
        based_on: int | None,
        restored_from: int | None = None,
    ) -> Defined:
        text, digest = stored_text(definition), digest_of_definition(definition)
        for _ in range(_TRIES):
            current, versions = await self._current(tenant_id, agent_type)
            if current is not None and current.definition_text == text:
                if based_on is not None and based_on > current.version:  # no version there was, so no repeated request
                    _check_base(current, based_on)
                return Defined(current, added=False)
            _check_base(current, based_on)
            place = (tenant_id, agent_type, 0 if current is None else current.version)
            values = (*place, text, digest, restored_from, by, self._clock(), MAX_VERSIONS, MAX_AGENTS)
            added = await self._write(tenant_id, versions, _ADD.format(condition=_ROOM), values)
            if added.rows:
                version = version_of(added.rows[0])
                self._agents.note(tenant_id, agent_type, version)
                return Defined(version, added=True)
            again, versions = await self._current(tenant_id, agent_type)
            if again == current:
                raise _no_room(versions)
        raise Contended("too many changes to the agent at once; try again")

    async def _write(self, tenant_id: str, versions: int, statement: str, values: tuple[SqlValue, ...]) -> SqlResult:
        statements: list[Statement] = [(statement, values)]
        if versions >= MAX_VERSIONS:
            statements.insert(0, (_REMOVE, (tenant_id, self._clock() - VERSIONS_KEPT_MS, _REMOVED_AT_ONCE)))
        return (await self._sql.batch(statements))[-1]

    async def _current(self, tenant_id: str, agent_type: str) -> tuple[AgentVersion | None, int]:
        """Return the current version, None for none, and how many versions the tenant has."""
        latest, counted = await self._sql.batch([(_LATEST, (tenant_id, agent_type)), (_COUNT, (tenant_id,))])
        return version_of(latest.rows[0]) if latest.rows else None, int(counted.rows[0]["versions"])


def _check_base(current: AgentVersion | None, based_on: int | None) -> None:
    """Refuse a change that is based on another version than the current one. Raises: Conflict (code `agent_changed`)."""
    version = 0 if current is None else current.version
    if based_on is not None and based_on != version:
        raise Conflict(
            f"the agent has version {version}, and the change is based on {based_on}",
            code="agent_changed",
            version=version,
        )


def _no_room(versions: int) -> QuotaExceeded:
    if versions >= MAX_VERSIONS:
        why = f"a tenant keeps at most {MAX_VERSIONS} versions of its agents, and none of them is older than 90 days"
        return QuotaExceeded(why, code="too_many_agent_versions", limit=MAX_VERSIONS)
    return QuotaExceeded(
        f"a tenant has at most {MAX_AGENTS} agents of its own", code="too_many_agents", limit=MAX_AGENTS
    )
