"""Scratch tenants: a case runs in one, so that it sees only its fixtures and leaves nothing behind.

Each case has one, named after its run and position. It is registered together with a row that names it, and that row is
deleted once the tenant's erasure is complete: a crash in between leaves a row that names what must still be erased.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from retain.errors import Conflict
from retain.evaluation.dataset import Case, stored
from retain.json_text import read_own_json
from retain.lifecycle.erasure.eraser import SLICES_TO_COMPLETE, Erasure
from retain.lifecycle.stores import Stores
from retain.tenants.quotas import quotas_of

_BEGIN = """
INSERT INTO eval_scratches (scratch_id, tenant_id, run_id, position, stubs, at_ms) VALUES (?, ?, ?, ?, ?, ?)
"""
_AGENTS = """
INSERT INTO agent_versions (tenant_id, agent_type, version, definition, digest, created_by, created_at_ms)
WITH RECURSIVE wanted (agent_type) AS (
  SELECT ?3
  UNION
  SELECT delegate.value FROM wanted w JOIN agent_versions v ON v.tenant_id = ?2 AND v.agent_type = w.agent_type
    AND v.version = (SELECT MAX(version) FROM agent_versions WHERE tenant_id = ?2 AND agent_type = w.agent_type)
  JOIN json_each(v.definition, '$.delegates') delegate
)
SELECT ?1, v.agent_type, v.version, v.definition, v.digest, v.created_by, v.created_at_ms
FROM wanted w JOIN agent_versions v ON v.tenant_id = ?2 AND v.agent_type = w.agent_type
  AND v.version = (SELECT MAX(version) FROM agent_versions WHERE tenant_id = ?2 AND agent_type = w.agent_type)
WHERE v.definition IS NOT NULL
"""
# What the runs of a scratch tenant spent is moved to whose case it is, with its day: to its costs, and to the quota of that
# day if it is the last one that counts.
_SPENT = """
INSERT INTO spent_calls (tenant_id, day, agent_type, purpose, model, input_tokens, cached_input_tokens, output_tokens)
SELECT s.tenant_id, u.day, u.agent_type, 'evaluation', u.model, u.input_tokens + u.learning_input_tokens,
  u.cached_input_tokens + u.learning_cached_input_tokens, u.output_tokens + u.learning_output_tokens
FROM eval_scratches s JOIN model_use u ON u.tenant_id = s.scratch_id WHERE s.scratch_id = ?1
"""
_RAN = """
UPDATE tenant_use SET runs = runs + (SELECT SUM(runs) FROM model_use WHERE tenant_id = ?1 AND day = tenant_use.day)
WHERE tenant_id = (SELECT tenant_id FROM eval_scratches WHERE scratch_id = ?1)
  AND EXISTS (SELECT 1 FROM model_use WHERE tenant_id = ?1 AND day = tenant_use.day)
"""
_MOVED = """
DELETE FROM model_use WHERE tenant_id = ?1 AND EXISTS (SELECT 1 FROM eval_scratches WHERE scratch_id = ?1)
"""
_LEFT = """
SELECT s.scratch_id FROM eval_scratches s JOIN eval_results r ON r.run_id = s.run_id AND r.position = s.position
WHERE s.run_id = ? AND r.state = 'scored' ORDER BY s.at_ms, s.scratch_id LIMIT ?
"""


def scratch_id(run_id: str, position: int) -> str:
    """Return the name of a case's scratch tenant."""
    return f"eval-{run_id.lower()}-{position}"


@dataclass(frozen=True, slots=True)
class Scratch:
    """A case's scratch tenant. tenant_id: whose case it is. records: fixture ids by record id, None until stored."""

    scratch_id: str
    tenant_id: str
    records: Mapping[str, str] | None


class Scratches:
    """Registers, finds and erases scratch tenants."""

    def __init__(self, stores: Stores) -> None:
        self._stores = stores
        self._sql = stores.sql

    async def begin(self, tenant_id: str, run_id: str, position: int, case: Case, agent: str | None) -> Scratch:
        """Return the case's scratch tenant, registered and recorded in one transaction. Idempotent.

        agent: that runs in it, None for none. If it is one of the tenant's own, it gets its current definition, with those
        of the agents to which it may delegate.

        Raises: QuotaExceeded (code `run_quota`, `token_quota`) when the tenant may begin no run today; Conflict (code
            `scratch_taken`) when it cannot be registered: its tenant is being erased, or its name is in use.
        """
        name = scratch_id(run_id, position)
        known = await self._known(tenant_id, name)
        if known is not None:
            return known
        if agent is not None:
            (await quotas_of(self._sql, tenant_id, self._stores.clock())).check_run()
        await self._stores.places.place_with(name, tenant_id)
        stubs = json.dumps({tool: read_own_json(stored(stub)) for tool, stub in case.tools.items()})
        now = self._stores.clock()
        try:
            await self._sql.batch(
                [
                    (_BEGIN, (name, tenant_id, run_id, position, stubs, now)),
                    ("INSERT INTO tenants (tenant_id, created_at_ms) VALUES (?, ?)", (name, now)),
                    *([] if agent is None else [(_AGENTS, (name, tenant_id, agent))]),
                ]
            )
        except Conflict as error:
            known = await self._known(tenant_id, name)  # begun by somebody else at the same time
            if known is None:
                raise Conflict("the scratch tenant cannot be registered", code="scratch_taken") from error
            return known
        return Scratch(name, tenant_id, None)

    async def seeded(self, name: str, records: Mapping[str, str]) -> None:
        """Record which record each fixture became."""
        await self._sql.run(
            "UPDATE eval_scratches SET records = ? WHERE scratch_id = ?", json.dumps(dict(records)), name
        )

    async def left(self, run_id: str, limit: int) -> list[str]:
        """Return scratch tenants of scored cases, oldest first."""
        return [str(row["scratch_id"]) for row in (await self._sql.run(_LEFT, run_id, limit)).rows]

    async def erase(self, name: str) -> int | None:
        """Erase a scratch tenant; return None once that is complete, otherwise in how many milliseconds to continue.

        What its runs spent is counted before, for whose case it is: once, because the counts are moved.
        Raises: what stopped it; call it again.
        """
        await self._sql.batch([(statement, (name,)) for statement in (_SPENT, _RAN, _MOVED)])
        outcome = await Erasure(self._stores, slices=SLICES_TO_COMPLETE).erase_tenant(name)
        if outcome.retry_after_ms is None:
            await self._sql.run("DELETE FROM eval_scratches WHERE scratch_id = ?", name)
        return outcome.retry_after_ms

    async def _known(self, tenant_id: str, name: str) -> Scratch | None:
        rows = (await self._sql.run("SELECT records FROM eval_scratches WHERE scratch_id = ?", name)).rows
        if not rows:
            return None
        return Scratch(name, tenant_id, None if rows[0]["records"] is None else read_own_json(rows[0]["records"]))
