"""What the administrator's routes work with."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from retain.admin.definitions.defining import DefinedAgents
from retain.admin.replaying import Replaying
from retain.agents.versions.tenant_agents import TenantAgents
from retain.application_keys.keys import ApplicationKeys
from retain.application_keys.tokens import UserTokens
from retain.errors import InvalidInput
from retain.evaluation.runner import Runner
from retain.identifiers import check_agent_type
from retain.ingest.ingestion import Ingestion
from retain.items.client import MemoryClient
from retain.items.rekeying.backfill import Backfill
from retain.items.rekeying.migration import Migration
from retain.lifecycle.backups.backing_up import Backups
from retain.lifecycle.backups.restoring import Restoring
from retain.lifecycle.moving.mover import Mover
from retain.lifecycle.stores import Stores
from retain.memory.scope import Scope, View
from retain.memory.semantic import SemanticMemory
from retain.models.prices import ModelPrices
from retain.namespace import Namespace
from retain.ports import Background, Clock, Sql, TimeZones
from retain.roles.grants import Grants
from retain.routing.route import Route
from retain.shards.shards import Shards
from retain.tenants.register import Tenants
from retain.webhooks.delivery_log import DeliveryLog
from retain.webhooks.endpoints import Webhooks

_AGENTS = """
SELECT substr(s.parent_id, 7) AS agent, CASE WHEN a.parent_id GLOB 'house.*' THEN substr(a.parent_id, 7) END AS house
FROM scopes s JOIN scopes a ON a.tenant_id = s.tenant_id AND a.scope_id = s.parent_id
WHERE s.tenant_id = ? AND s.user_id = ? AND s.parent_id GLOB 'agent.*' ORDER BY s.parent_id
"""
"""The agents that know something of a user, with the houses that D1 has them in."""


@dataclass(frozen=True, slots=True)
class AdminContext:
    """What the routes work with.

    agents: of every tenant. defined: returns those that tenants define themselves.
    semantic: returns the semantic memory of a view, which
    stores into the view's scope. ingestion: returns the ingest of a scope. stores: every store that holds data of a
    tenant. items: returns the tiered memory of a namespace. migration, backfill: of its keys; all three raise
    Misconfigured for invalid legacy patterns. evaluation: returns what advances evaluations. replaying: returns what replays
    parked errors. grants: who holds which role. keys, tokens: of applications and of their users. webhooks,
    deliveries: return where applications hear of runs, and the log of it. backups, restoring: return
    what backs tenants up, and what restores them. prices: returns those of models, raising Misconfigured for an invalid
    setting. routes: returns those of all areas. shards, mover: the databases, where there
    are several, and what moves tenants between them.
    """

    tenants: Tenants
    agents: TenantAgents
    defined: Callable[[], DefinedAgents]
    sql: Sql
    semantic: Callable[[View], SemanticMemory]
    clock: Clock
    time_zones: TimeZones
    ingestion: Callable[[Scope], Ingestion]
    background: Background
    stores: Stores
    items: Callable[[Namespace], MemoryClient]
    migration: Callable[[], Migration]
    backfill: Callable[[], Backfill]
    evaluation: Callable[[], Runner]
    replaying: Callable[[], Replaying]
    grants: Grants
    keys: ApplicationKeys
    tokens: UserTokens
    webhooks: Callable[[], Webhooks]
    deliveries: Callable[[], DeliveryLog]
    backups: Callable[[], Backups]
    restoring: Callable[[], Restoring]
    prices: Callable[[], ModelPrices]
    routes: Callable[[], Iterable[Route[Any]]]
    shards: Shards | None = None
    mover: Callable[[], Mover | None] = lambda: None

    async def scope(
        self, tenant_id: str, agent_type: str | None = None, house: str | None = None, user_id: str | None = None
    ) -> Scope:
        """Return the scope of an agent, of a house, of a user, or of the whole tenant when none is given.

        user_id: with an agent, what this agent alone knows of the user; without, what all agents may know.

        Raises: InvalidInput; NotFound (code `unknown_agent`); Unavailable.
        """
        if agent_type is not None and house is not None:
            raise InvalidInput("name an agent or a house, not both", code="invalid_scope")
        if agent_type is not None:
            house = await self.agents.house_of(tenant_id, check_agent_type(agent_type))
        return Scope(tenant_id, agent_type, house, user_id=user_id)

    async def view(self, tenant_id: str, agent_type: str | None, house: str | None, user_id: str | None) -> View:
        """Return what the owner of a scope sees.

        Of a user with an agent: what a run of the agent for that user sees. Of a user alone: all their scopes, and what is
        visible from them. Raises: as `scope`.
        """
        scope = await self.scope(tenant_id, agent_type, house, user_id)
        if user_id is None:
            return View(scope)
        everywhere = Scope(tenant_id, user_id=user_id)
        if agent_type is not None:
            shares = (await self.agents.last_definition(tenant_id, agent_type)).memory_config.user == "shared"
            return View(scope, (everywhere,) if shares else ())
        rows = (await self.sql.run(_AGENTS, tenant_id, user_id)).rows
        return View(everywhere, tuple(Scope(tenant_id, row["agent"], row["house"], user_id=user_id) for row in rows))
