"""What an instance of an agent works with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import bindings
from retain.agents.instance_ports import InstancePorts
from retain.agents.tools.built_in import Tool
from retain.agents.tools.proxied import ProxiedTool
from retain.agents.tools.stubbed import Stubs
from retain.attachments.attachment import MAX_SENT_BYTES
from retain.errors import RetainError
from retain.gateway.guarded_fetch import GuardedFetch
from retain.gateway.resolver import Resolver
from retain.json_text import JsonObject
from retain.limits.room import RECALLING_BYTES, Room
from retain.memory.writing.remote import RemoteWriter
from retain.models.chat import ToolSpec
from retain.ports import HttpResponse, Until
from retain.sealing.pii import read_fields

if TYPE_CHECKING:
    from cloudflare_bindings import DurableStorage

    from assembly.root import Assembly
    from retain.agents.definitions import McpServerConfig
    from retain.agents.tools.kept_lists import KeptLists
    from retain.agents.tools.served import ServedTools
    from retain.gateway.proxy import ToolDescription


_recalling = Room(RECALLING_BYTES, bindings.now_ms)
_sending = Room(MAX_SENT_BYTES, bindings.now_ms)


class InstanceParts:
    """What the instances of agents work with."""

    def __init__(self, root: Assembly) -> None:
        self._root = root
        self._servers: ServedTools | None = None
        url = root.platform.settings.resolver_url
        resolver = Resolver(url, bindings.fetch, bindings.now_ms) if url else None
        self._fetch = GuardedFetch(bindings.fetch, resolver, allow_loopback=root.platform.settings.development)

    def ports(self, storage: DurableStorage) -> InstancePorts:
        """Return what one instance works with. storage: the Durable Object's."""
        root, platform = self._root, self._root.platform
        return InstancePorts(
            local=bindings.DurableSql(storage),
            alarm=bindings.DurableAlarm(storage),
            sql=platform.sql,
            kv=platform.kv,
            index=platform.index,
            embedder=lambda: root.models.embedder,
            reranker=lambda: root.models.reranker,
            chat=lambda definition: root.models.chat(definition),
            catalogue=root.directory.catalogue,
            agents=root.directory.agents,
            instances=platform.instances,
            gateway_tools=self._gateway_tools,
            served_tools=self._served_tools,
            prepare_libraries=bindings.prepare_libraries,
            stubs=self._stubs,
            fetch=self._fetch,
            clock=bindings.now_ms,
            time_zones=bindings.time_zones,
            background=bindings.in_background,
            recalling=_recalling,
            signatures=lambda: root.models.signatures,
            pii_fields=read_fields(platform.settings.memory_pii_fields),
            exporter=root.exporter,
            writer=RemoteWriter(platform.writers),
            sender=root.webhooks.sender,
            attachments=root.directory.attachments,
            sending=_sending,
        )

    async def _stubs(self, tenant_id: str) -> Stubs | None:
        from retain.evaluation.stubs import stubs_of  # only for runs: an erasure or an alarm does not load it

        return await stubs_of(self._root.platform.sql, tenant_id)

    async def _gateway_tools(self, tenant_id: str, names: tuple[str, ...]) -> list[Tool]:
        described = await self._root.gateway.tools.describe_each(tenant_id, names)
        return [self._gateway_tool(tenant_id, tool) for tool in described]

    def _gateway_tool(self, tenant_id: str, described: ToolDescription | RetainError) -> Tool:
        if isinstance(described, RetainError):
            raise described
        proxy, name = self._root.gateway.tools, described.name

        async def upstream(arguments: JsonObject, idempotency_key: str) -> tuple[int, bytes]:
            answer = await proxy.call(tenant_id, name, arguments, idempotency_key=idempotency_key, audience="agents")
            return answer.status, answer.body

        spec = ToolSpec(name, described.description, described.parameters)
        return ProxiedTool(spec, described.idempotent, upstream)

    async def _served_tools(self, tenant_id: str, server: str, config: McpServerConfig, kept: KeptLists) -> list[Tool]:
        from retain.agents.tools.served import ServedTools  # only for agents that name MCP servers
        from retain.gateway.mcp import MAX_ANSWER_BYTES
        from retain.mcp.client import McpClient

        proxy = self._root.gateway.tools

        async def exchange(
            message: JsonObject, headers: Mapping[str, str], key: str | None, until: Until | None
        ) -> HttpResponse:
            passed = ("content-type", "mcp-session-id")
            answer = await proxy.call(
                tenant_id,
                server,
                message,
                idempotency_key=key,
                headers=headers,
                passed=passed,
                audience="agents alone",
                until=until,
                most_bytes=MAX_ANSWER_BYTES,
            )
            return HttpResponse(answer.status, answer.headers, answer.content)

        if self._servers is None:
            self._servers = ServedTools(bindings.now_ms)
        return await self._servers.tools(tenant_id, server, config, McpClient(exchange), kept)
