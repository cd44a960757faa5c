"""Agents: those of the repository, and those that the tenant defines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from retain_client.api import AuthenticatedClient
from retain_client.api.api.agents import list_agents
from retain_client.api.api.tenants_own_agents import (
    check_agent,
    define_agent,
    delete_agent,
    get_agent_definition,
    get_agent_version,
    list_agent_versions,
    roll_back_agent,
)
from retain_client.api.models.agent_version import AgentVersion
from retain_client.api.models.agent_versions import AgentVersions
from retain_client.api.models.agents import Agents as AgentsPage
from retain_client.api.models.checked_agent import CheckedAgent
from retain_client.api.models.defined_agent import DefinedAgent
from retain_client.api.models.definition_body import DefinitionBody
from retain_client.api.models.listed_agent import ListedAgent
from retain_client.api.models.roll_back_body import RollBackBody
from retain_client.api.models.shown_agent import ShownAgent
from retain_client.api.models.shown_version import ShownVersion
from retain_client.api.types import UNSET, Unset
from retain_client.asynchronous.pages import AsyncPages
from retain_client.values import answered, or_unset


class AsyncAgents:
    """The agents of a tenant. if_match: the version that must be current; 0 for an agent that must not be there."""

    def __init__(self, api: AuthenticatedClient, tenant: str) -> None:
        self._api = api
        self._tenant = tenant

    def list(self, *, limit: int | None = None) -> AsyncPages[ListedAgent]:
        """Return the agents by their types. limit: of one page."""

        async def read(cursor: str | Unset) -> tuple[Sequence[ListedAgent], str | None]:
            response = await list_agents.asyncio_detailed(
                self._tenant, client=self._api, cursor=cursor, limit=or_unset(limit)
            )
            page = answered(response, AgentsPage)
            return page.agents, page.cursor

        return AsyncPages(read)

    async def get(self, agent_type: str) -> ShownAgent:
        """Return an agent as it is defined now; one of the repository without its definition. Raises: RetainError."""
        response = await get_agent_definition.asyncio_detailed(self._tenant, agent_type, client=self._api)
        return answered(response, ShownAgent)

    async def define(
        self, agent_type: str, definition: Mapping[str, Any], *, if_match: int | None = None
    ) -> DefinedAgent:
        """Define an agent, or change it. definition: the fields of a file in `agents/`. Raises: RetainError."""
        response = await define_agent.asyncio_detailed(
            self._tenant,
            agent_type,
            client=self._api,
            body=DefinitionBody.from_dict(definition),
            if_match=_named(if_match),
        )
        return answered(response, DefinedAgent)

    async def check(self, agent_type: str, definition: Mapping[str, Any]) -> CheckedAgent:
        """Return what is wrong with a definition, without defining the agent. Raises: RetainError."""
        response = await check_agent.asyncio_detailed(
            self._tenant, agent_type, client=self._api, body=DefinitionBody.from_dict(definition)
        )
        return answered(response, CheckedAgent)

    def versions(self, agent_type: str, *, limit: int | None = None) -> AsyncPages[AgentVersion]:
        """Return the versions of an agent of the tenant, the newest first. limit: of one page."""

        async def read(cursor: str | Unset) -> tuple[Sequence[AgentVersion], str | None]:
            response = await list_agent_versions.asyncio_detailed(
                self._tenant, agent_type, client=self._api, cursor=cursor, limit=or_unset(limit)
            )
            page = answered(response, AgentVersions)
            return page.versions, page.cursor

        return AsyncPages(read)

    async def version(self, agent_type: str, version: int) -> ShownVersion:
        """Return one version with its definition. Raises: RetainError."""
        response = await get_agent_version.asyncio_detailed(self._tenant, agent_type, str(version), client=self._api)
        return answered(response, ShownVersion)

    async def roll_back(self, agent_type: str, version: int, *, if_match: int | None = None) -> DefinedAgent:
        """Define an agent as it was in an earlier version, which adds a version. Raises: RetainError."""
        response = await roll_back_agent.asyncio_detailed(
            self._tenant,
            agent_type,
            client=self._api,
            body=RollBackBody.from_dict({"version": version}),
            if_match=_named(if_match),
        )
        return answered(response, DefinedAgent)

    async def delete(self, agent_type: str, *, if_match: int | None = None) -> None:
        """Delete an agent of the tenant: it begins no more runs. Its versions and memories stay. Raises: RetainError."""
        await delete_agent.asyncio_detailed(self._tenant, agent_type, client=self._api, if_match=_named(if_match))


def _named(version: int | None) -> str | Unset:
    return UNSET if version is None else f'"{version}"'
