"""Put the parts together: what each area works with, made from the platform. The composition root.

Everything is made on first use and kept for the isolate's life; imports follow the path that needs them, so that the
proxy's first request loads the gateway alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

import bindings
from bindings import Platform

if TYPE_CHECKING:
    from retain.admin.access import AccessSettings, AccessVerifier
    from retain.admin.context import AdminContext
    from retain.agents.catalogue import AgentCatalogue
    from retain.agents.definitions import AgentDefinition
    from retain.agents.instance_ports import InstancePorts
    from retain.agents.routes import AgentsContext
    from retain.agents.tools.built_in import Tool
    from retain.evaluation.dataset import Stub
    from retain.evaluation.runner import Runner
    from retain.evaluation.scoring.judge import Judge
    from retain.gateway.routes import Gateway
    from retain.items.client import MemoryClient
    from retain.items.demotion import Demotion
    from retain.items.pii import Sealer
    from retain.items.placement import Matrix
    from retain.items.rekeying.backfill import Backfill
    from retain.items.rekeying.flags import Namespacing
    from retain.items.rekeying.migration import Migration
    from retain.items.rekeying.reads import Reads
    from retain.items.rules import HotReads
    from retain.items.tiers.protocols import ItemCatalogue
    from retain.lifecycle.stores import Stores
    from retain.memory.indexer import Indexer
    from retain.memory.ingest.extraction import Extractor
    from retain.memory.ingest.ingestion import Ingestion
    from retain.memory.scope import Scope
    from retain.memory.semantic import SemanticMemory
    from retain.models.chat import ChatModel
    from retain.models.embedding import Embedder
    from retain.models.reranking import Reranker
    from retain.models.selection import ChatPorts
    from retain.namespace import Namespace
    from retain.tenants.register import Tenants

EMBEDDING_TABLE = "static-minilm-256-i8.bin"


_isolate: dict[str, Assembly] = {}


def assembly_of(env: Any) -> Assembly:
    """Return the isolate's parts, made from the first `env` seen: an isolate only ever serves one deployment."""
    if "parts" not in _isolate:
        from retain.log import configure

        configure()
        _isolate["parts"] = Assembly(bindings.platform_of(env))
    return _isolate["parts"]


class Assembly:
    """The parts of one isolate."""

    def __init__(self, platform: Platform) -> None:
        self.platform = platform

    @cached_property
    def gateway(self) -> Gateway:
        """The tool proxy: it gets KV, a fetch, cryptography, a clock and its own settings, and nothing else."""
        from retain.gateway.routes import Gateway
        from retain.gateway.settings import GatewaySettings

        platform = self.platform
        settings = GatewaySettings(
            credentials_key=platform.settings.credentials_key,
            previous_credentials_key=platform.settings.previous_credentials_key,
            allow_loopback=platform.settings.development,
        )
        return Gateway(platform.kv, bindings.fetch, platform.crypto, bindings.now_ms, settings)

    @cached_property
    def access(self) -> AccessSettings:
        """What the deployment says about Cloudflare Access."""
        from retain.admin.access import AccessSettings

        settings = self.platform.settings
        return AccessSettings(settings.access_team_domain, settings.access_audience, settings.environment)

    @cached_property
    def verifier(self) -> AccessVerifier:
        """What checks Cloudflare Access tokens."""
        from retain.admin.access import AccessVerifier

        return AccessVerifier(bindings.fetch, self.platform.crypto, bindings.now_ms, self.access)

    @cached_property
    def catalogue(self) -> AgentCatalogue:
        """The agents that were staged with this Worker."""
        from retain.agents.catalogue import AgentCatalogue

        return AgentCatalogue.from_json(bindings.staged_text("agents.json"))

    @cached_property
    def tenants(self) -> Tenants:
        """The register of tenants."""
        from retain.tenants.register import Tenants

        return Tenants(self.platform.sql, bindings.now_ms)

    @cached_property
    def embedder(self) -> Embedder:
        """The configured embedding model."""
        from retain.models.selection import embedder

        settings = self.platform.settings
        return embedder(
            settings.embedding,
            settings.embedding_dimensions,
            fetch=bindings.fetch,
            ai=self.platform.ai,
            table=lambda: bindings.staged_bytes(EMBEDDING_TABLE),
        )

    @cached_property
    def reranker(self) -> Reranker | None:
        """The configured reranker, if any."""
        from retain.models.selection import reranker

        settings = self.platform.settings
        return reranker(settings.rerank_model, self.platform.ai, allow_requests=settings.chat.allow_requests)

    @cached_property
    def agents(self) -> AgentsContext:
        """What the agents' routes work with."""
        from retain.agents.routes import AgentsContext

        return AgentsContext(self.tenants, self.catalogue, self.platform.instances)

    @cached_property
    def admin(self) -> AdminContext:
        """What the administrator's routes work with."""
        from retain.admin.context import AdminContext

        return AdminContext(
            tenants=self.tenants,
            house_of=lambda agent_type: self.catalogue.agent(agent_type).house,
            sql=self.platform.sql,
            semantic=self.semantic,
            clock=bindings.now_ms,
            ingestion=self.ingestion,
            background=bindings.in_background,
            stores=self.stores,
            items=lambda namespace: self.items(namespace, hot_reads="checked"),
            migration=self.migration,
            backfill=self.backfill,
            evaluation=self.evaluation,
        )

    @cached_property
    def namespacing(self) -> Namespacing:
        """Which keys of tiered memory are read and written."""
        from retain.items.rekeying.flags import namespacing

        return namespacing(self.platform.settings.namespaces)

    @cached_property
    def namespace_reads(self) -> Reads:
        """What counts the reads of layered tiers, and permits their copies."""
        from retain.items.rekeying.reads import Reads

        return Reads(self.platform.sql, bindings.now_ms, bindings.in_background)

    def migration(self) -> Migration:
        """Return the migration of tiered memory's keys."""
        from retain.items.rekeying.migration import Migration

        return Migration(self.platform.sql, bindings.now_ms, self.namespacing)

    def backfill(self) -> Backfill:
        """Return what copies legacy values under canonical keys."""
        from retain.items.rekeying.backfill import Backfill
        from retain.items.rekeying.sources import AdoptingSource, LegacySource, WarmSource

        sql, objects = self.platform.sql, self.platform.objects
        sources: dict[str, LegacySource] = {
            "warm": WarmSource(sql, bindings.now_ms),
            "cold": AdoptingSource(sql, objects, bindings.now_ms),
        }
        return Backfill(sql, bindings.now_ms, self.namespacing, sources)

    @cached_property
    def stores(self) -> Stores:
        """Every store in which a tenant leaves something."""
        from retain.lifecycle.stores import Stores

        platform = self.platform
        return Stores(
            sql=platform.sql,
            kv=platform.kv,
            objects=platform.objects,
            index=platform.index,
            instances=platform.instances,
            embedder=lambda: self.embedder,
            clock=bindings.now_ms,
            sealer=self.sealer,
        )

    @cached_property
    def sealer(self) -> Sealer:
        """What seals the PII of tiered memory."""
        from retain.items.pii import Sealer, read_fields

        settings = self.platform.settings
        fields = read_fields(settings.memory_pii_fields)
        return Sealer(self.platform.crypto, settings.memory_key, settings.previous_memory_key, fields)

    @cached_property
    def placements(self) -> Matrix:
        """Which data type belongs in which tier."""
        from retain.items.placement import read_placements

        return read_placements(self.platform.settings.memory_placements)

    def items(self, namespace: Namespace, *, hot_reads: HotReads = "session") -> MemoryClient:
        """Return the tiered memory of a namespace, on KV, D1 and R2."""
        from retain.items.builder import MemoryBuilder
        from retain.items.tiers.stores import KvHot, ObjectsCold

        platform = self.platform
        return (
            MemoryBuilder(namespace, bindings.now_ms)
            .with_hot(KvHot(platform.kv))
            .with_warm(self._catalogue(namespace.tenant_id))
            .with_cold(ObjectsCold(platform.objects))
            .with_rules(read_fallback=True, promote_on_read=True, write_through=True, hot_reads=hot_reads)
            .with_placements(self.placements)
            .with_pii(self.sealer)
            .build()
        )

    def _catalogue(self, tenant_id: str) -> ItemCatalogue:
        """Return a tenant's warm tier, over legacy keys as well where the deployment has some.

        Hot copies have canonical keys alone: they carry the version of what this catalogue knows.
        """
        from retain.items.tiers.sql_warm import SqlWarm

        sql = self.platform.sql
        warm = SqlWarm(sql, tenant_id, bindings.now_ms)
        if not self.namespacing.patterns:
            return warm
        from retain.items.rekeying.catalogue import LayeredCatalogue
        from retain.items.rekeying.sources import SqlItems

        items = SqlItems(sql, tenant_id, bindings.now_ms)
        return LayeredCatalogue(warm, items, self.namespacing, self.namespace_reads, bindings.now_ms)

    def demotion(self) -> Demotion:
        """Return what demotes items of tiered memory, by the built-in policy."""
        from retain.items.demotion import AgedDemotion, Demotion
        from retain.items.tiers.stores import ObjectsCold

        platform = self.platform
        cold = ObjectsCold(platform.objects)
        return Demotion(platform.sql, cold, self.placements, bindings.now_ms, AgedDemotion())

    def semantic(self, scope: Scope) -> SemanticMemory:
        """Return the semantic memory of a scope."""
        from retain.memory.semantic import SemanticMemory

        platform = self.platform
        return SemanticMemory(
            scope, platform.sql, platform.index, self.embedder, bindings.now_ms, reranker=self.reranker
        )

    def ingestion(self, scope: Scope) -> Ingestion:
        """Return the ingest of a scope."""
        from retain.memory.ingest.ingestion import Ingestion

        return Ingestion(self.semantic(scope), self.platform.sql, self._extractor, bindings.now_ms)

    def _extractor(self) -> Extractor:
        from retain.memory.ingest.selection import extractor

        settings = self.platform.settings
        return extractor(settings.extractor, self._extraction_model)

    def _extraction_model(self) -> ChatModel:
        from retain.models.selection import chat_model

        return chat_model(self.platform.settings.chat, self.chat_ports, lambda: self.catalogue.script("extraction"))

    def indexer(self) -> Indexer:
        """Return what makes the vector index agree with D1."""
        from retain.memory.indexer import Indexer

        return Indexer(self.platform.sql, self.platform.index, self.embedder, bindings.now_ms)

    def instance_ports(self, storage: Any) -> InstancePorts:
        """Return what an instance works with. storage: the Durable Object's."""
        from retain.agents.instance_ports import InstancePorts

        platform = self.platform
        return InstancePorts(
            local=bindings.DurableSql(storage),
            alarm=bindings.DurableAlarm(storage),
            sql=platform.sql,
            kv=platform.kv,
            index=platform.index,
            embedder=lambda: self.embedder,
            reranker=lambda: self.reranker,
            chat=self._chat,
            catalogue=self.catalogue,
            instances=platform.instances,
            gateway_tools=self._gateway_tools,
            stubs=self._stubs,
            fetch=bindings.fetch,
            clock=bindings.now_ms,
            background=bindings.in_background,
        )

    def evaluation(self) -> Runner:
        """Return what goes on with evaluations."""
        from retain.evaluation.runner import EvaluationPorts, Runner

        return Runner(
            EvaluationPorts(
                stores=self.stores,
                semantic=self.semantic,
                house_of=lambda agent_type: self.catalogue.agent(agent_type).house,
                judge=self._judge,
            )
        )

    def _judge(self) -> Judge:
        from retain.evaluation.scoring.judge import chosen_judge
        from retain.models.selection import chat_model

        settings = self.platform.settings
        return chosen_judge(
            settings.evaluation_judge,
            lambda: chat_model(settings.chat, self.chat_ports, lambda: self.catalogue.script("judge")),
        )

    async def _stubs(self, tenant_id: str) -> Mapping[str, Stub] | None:
        from retain.evaluation.scratch import stubs_of

        return await stubs_of(self.platform.sql, tenant_id)

    async def _gateway_tools(self, tenant_id: str, names: tuple[str, ...]) -> list[Tool]:
        from retain.agents.tools.proxied import ProxiedTool
        from retain.models.chat import ToolSpec

        proxy = self.gateway.tools

        async def proxied(name: str) -> Tool:
            described = await proxy.describe(tenant_id, name)

            async def upstream(arguments: Mapping[str, Any], idempotency_key: str) -> tuple[int, bytes]:
                answer = await proxy.call(tenant_id, name, arguments, idempotency_key=idempotency_key)
                return answer.status, answer.body

            return ProxiedTool(
                ToolSpec(name, described.description, described.parameters), described.idempotent, upstream
            )

        return [await proxied(name) for name in names]

    @cached_property
    def chat_ports(self) -> ChatPorts:
        """What chat models are reached through."""
        from retain.models.selection import ChatPorts

        ai = self.platform.ai
        return ChatPorts(bindings.fetch, bindings.fetch_stream, ai, ai.stream)

    def _chat(self, definition: AgentDefinition) -> ChatModel:
        from retain.models.selection import chat_model, chosen_chat

        wish = definition.model
        settings = chosen_chat(self.platform.settings, provider=wish.provider, name=wish.name)
        return chat_model(settings, self.chat_ports, lambda: self.catalogue.script(wish.script))
