"""The existing agents and tenants, and what the agents' routes work with."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import bindings
from bindings import Platform
from retain.admin.definitions.checking import DefinitionProblem, TenantModels
from retain.admin.definitions.defining import DefinedAgents
from retain.agents.catalogue import AgentCatalogue
from retain.agents.context import AgentsContext
from retain.agents.definitions import AgentDefinition
from retain.agents.versions.tenant_agents import TenantAgents
from retain.attachments.store import Attachments
from retain.errors import NotFound, Unavailable
from retain.tenants.register import Tenants

if TYPE_CHECKING:
    from assembly.root import Assembly


LOOKED_UP = 32
"""Most tools of a definition for which it is looked whether the tenant has them."""


def agents_context(root: Assembly) -> AgentsContext:
    """Return what the agents' routes work with."""
    directory, platform = root.directory, root.platform
    return AgentsContext(
        directory.tenants,
        directory.agents,
        platform.instances,
        platform.sql,
        bindings.now_ms,
        directory.attachments,
    )


def tenant_models(root: Assembly) -> TenantModels:
    """Return the models that tenants' own agents may name."""
    settings = root.platform.settings
    chat, more = settings.chat, settings.agent_models.split()
    return TenantModels(chat.provider, chat.name, root.directory.catalogue.models(), more)


def defined_agents(root: Assembly) -> DefinedAgents:
    """Return the agents that tenants define themselves."""

    async def warnings(tenant_id: str, definition: AgentDefinition) -> list[DefinitionProblem]:
        named = [(f"/tools/{place}", name) for place, name in enumerate(definition.tools)]
        named += [(f"/mcp_servers/{name}", name) for name in definition.mcp_servers]
        looked_up = named[:LOOKED_UP]
        try:
            found = await root.gateway.tools.describe_each(tenant_id, [name for _, name in looked_up])
        except Unavailable:  # the version is added already, and a warning is not worth its answer
            return []
        return [
            DefinitionProblem(pointer, f"the tenant has no tool {name} in the gateway: a run would fail")
            for (pointer, name), tool in zip(looked_up, found, strict=True)
            if isinstance(tool, NotFound)
        ]

    return DefinedAgents(
        root.directory.agents, root.platform.sql, bindings.now_ms, lambda: tenant_models(root), warnings
    )


class Directory:
    """The agents that were staged, those of the tenants, and the register of tenants."""

    def __init__(self, platform: Platform) -> None:
        self._platform = platform

    @cached_property
    def catalogue(self) -> AgentCatalogue:
        """The agents that were staged with this Worker."""
        return AgentCatalogue.from_json(bindings.staged_text("agents.json"))

    @cached_property
    def tenants(self) -> Tenants:
        """The register of tenants."""
        shards = self._platform.shards
        if shards is None:
            return Tenants(self._platform.sql, bindings.now_ms)
        from retain.shards.everywhere import ShardedTenants

        return ShardedTenants(self._platform.sql, bindings.now_ms, shards.placement)

    @cached_property
    def attachments(self) -> Attachments:
        """The files that messages bring."""
        return Attachments(self._platform.sql, self._platform.objects, bindings.now_ms)

    @cached_property
    def agents(self) -> TenantAgents:
        """The agents of every tenant."""
        return TenantAgents(self.catalogue, self._platform.sql, bindings.now_ms)
