"""The existing agents and tenants, and what the agents' routes work with."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import bindings
from bindings import Platform
from retain.agents.catalogue import AgentCatalogue
from retain.agents.context import AgentsContext
from retain.attachments.store import Attachments
from retain.tenants.register import Tenants

if TYPE_CHECKING:
    from assembly.root import Assembly


def agents_context(root: Assembly) -> AgentsContext:
    """Return what the agents' routes work with."""
    directory, platform = root.directory, root.platform
    return AgentsContext(
        directory.tenants,
        directory.catalogue,
        platform.instances,
        platform.sql,
        bindings.now_ms,
        directory.attachments,
    )


class Directory:
    """The agents that were staged, and the register of tenants."""

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

    def house_of(self, agent_type: str) -> str | None:
        """Return an agent's house. Raises: NotFound for an agent that does not exist."""
        return self.catalogue.agent(agent_type).house

    def shares_users(self, agent_type: str) -> bool:
        """Return whether an agent knows what others know of their users. Raises: as `house_of`."""
        return self.catalogue.agent(agent_type).memory_config.user == "shared"
