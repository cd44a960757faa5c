"""What an instance works with: the ports that its deployment gives it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from retain.agents.catalogue import AgentCatalogue
from retain.agents.definitions import AgentDefinition, McpServerConfig
from retain.agents.tools.built_in import Tool
from retain.agents.tools.kept_lists import KeptLists
from retain.agents.tools.stubbed import Stubs
from retain.agents.versions.tenant_agents import TenantAgents
from retain.attachments.store import Attachments
from retain.limits.room import Room
from retain.memory.recall.sources.fresh import KeptSignatures
from retain.memory.writing.calls import Writer
from retain.models.chat import ChatModel
from retain.models.embedding import Embedder
from retain.models.reranking import Reranker
from retain.models.retry import Sleep
from retain.ports import AgentInstances, Alarm, Background, Clock, Fetch, Kv, ObjectSql, Sql, TimeZones, VectorIndex
from retain.sealing.pii import FIELDS
from retain.telemetry.exporter import SpanExporter
from retain.webhooks.sender import Sender


async def _no_stubs(tenant_id: str) -> None:
    """Return None: the tenant calls its real tools."""


async def _no_servers(
    tenant_id: str,  # noqa: ARG001
    server: str,  # noqa: ARG001
    config: McpServerConfig,  # noqa: ARG001
    kept: KeptLists,  # noqa: ARG001
) -> list[Tool]:
    """Return no tools: the deployment reaches no MCP servers."""
    return []


@dataclass(frozen=True)
class InstancePorts:
    """What an instance works with. local, alarm: its object's. gateway_tools: the tenant's tools in the gateway, by name.

    agents: of every tenant. served_tools: a definition's tools of one of the tenant's MCP servers, with the lists that the
    instance keeps.
    fetch: the HTTP client of function tools. prepare_libraries: lets synchronous HTTP libraries use it.
    stubs: a tenant's stubbed tools, None for a tenant that calls its real ones.
    pii_fields: the names of fields whose values stay out of KV. exporter: of spans, where telemetry is configured.
    writer: stores records, None for one of each memory's own. recalling: room for what recalls compare, of all instances in
    the isolate. sender: of messages to webhooks. attachments: what messages bring, None for a deployment without them.
    sending: room for their content while models are asked, of all instances in the isolate. signatures: what its recalls
    have read of what the vector index may not show yet, None where they share nothing.
    """

    local: ObjectSql
    alarm: Alarm
    sql: Sql
    kv: Kv
    index: VectorIndex
    embedder: Callable[[], Embedder]
    chat: Callable[[AgentDefinition], ChatModel]
    catalogue: AgentCatalogue
    agents: TenantAgents
    instances: AgentInstances
    gateway_tools: Callable[[str, tuple[str, ...]], Awaitable[list[Tool]]]
    fetch: Fetch
    clock: Clock
    time_zones: TimeZones
    background: Background
    recalling: Room
    sleep: Sleep = asyncio.sleep
    reranker: Callable[[], Reranker | None] = lambda: None
    served_tools: Callable[[str, str, McpServerConfig, KeptLists], Awaitable[list[Tool]]] = _no_servers
    stubs: Callable[[str], Awaitable[Stubs | None]] = _no_stubs
    prepare_libraries: Callable[[], None] = lambda: None
    pii_fields: Sequence[str] = FIELDS
    exporter: SpanExporter | None = None
    writer: Writer | None = None
    sender: Sender | None = None
    attachments: Attachments | None = None
    sending: Room | None = None
    signatures: Callable[[], KeptSignatures | None] = lambda: None
