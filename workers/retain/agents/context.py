"""What the agents' routes work with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from retain.agents.calls.client import InstanceClient
from retain.agents.identity import instance_of
from retain.agents.versions.tenant_agents import TenantAgents
from retain.attachments.store import Attachments
from retain.ports import AgentInstances, Clock, Sql
from retain.tenants.register import Tenants


@dataclass(frozen=True, slots=True)
class AgentsContext:
    """What the routes work with."""

    tenants: Tenants
    agents: TenantAgents
    instances: AgentInstances
    sql: Sql
    clock: Clock
    attachments: Attachments

    async def instance(self, tenant_id: str, agent_type: str, instance_id: str) -> InstanceClient:
        """Return the client of an instance of an agent that exists, or did until it was deleted.

        Raises: NotFound (code `unknown_agent`); InvalidInput; Unavailable.
        """
        await self.agents.require(tenant_id, agent_type)
        return InstanceClient(self.instances, instance_of(tenant_id, agent_type, instance_id))

    async def instance_in(self, path: Mapping[str, str]) -> InstanceClient:
        """Return the client of the instance that a path names. Raises: as `instance`."""
        return await self.instance(path["tenant"], path["agent_type"], path["instance_id"])
