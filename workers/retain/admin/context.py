"""What the administrator's routes work with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from retain.errors import InvalidInput
from retain.evaluation.runner import Runner
from retain.identifiers import check_agent_type
from retain.ingest.ingestion import Ingestion
from retain.items.client import MemoryClient
from retain.items.rekeying.backfill import Backfill
from retain.items.rekeying.migration import Migration
from retain.lifecycle.stores import Stores
from retain.memory.scope import Scope, View
from retain.memory.semantic import SemanticMemory
from retain.namespace import Namespace
from retain.ports import Background, Clock, Sql
from retain.tenants.register import Tenants


@dataclass(frozen=True, slots=True)
class AdminContext:
    """What the routes work with.

    house_of: an agent's house, raising NotFound for an agent that does not exist. shares_users: whether the agent knows
    what others that say so know of their users, raising alike. semantic: returns the semantic memory of a view, which
    stores into the view's scope. ingestion: returns the ingest of a scope. stores: every store that holds data of a
    tenant. items: returns the tiered memory of a namespace. migration, backfill: of its keys; all three raise
    Misconfigured for invalid legacy patterns. evaluation: returns what advances evaluations.
    """

    tenants: Tenants
    house_of: Callable[[str], str | None]
    shares_users: Callable[[str], bool]
    sql: Sql
    semantic: Callable[[View], SemanticMemory]
    clock: Clock
    ingestion: Callable[[Scope], Ingestion]
    background: Background
    stores: Stores
    items: Callable[[Namespace], MemoryClient]
    migration: Callable[[], Migration]
    backfill: Callable[[], Backfill]
    evaluation: Callable[[], Runner]

    def scope(
        self, tenant_id: str, agent_type: str | None = None, house: str | None = None, user_id: str | None = None
    ) -> Scope:
        """Return the scope of an agent, of a house, of a user, or of the whole tenant when none is given.

        user_id: with an agent, what this agent alone knows of the user; without, what all agents may know.

        Raises: InvalidInput; NotFound (code `unknown_agent`).
        """
        if agent_type is not None and house is not None:
            raise InvalidInput("name an agent or a house, not both", code="invalid_scope")
        if agent_type is not None:
            house = self.house_of(check_agent_type(agent_type))
        return Scope(tenant_id, agent_type, house, user_id=user_id)
