"""The parts of one isolate, by area. An area and its imports are loaded on first use and kept for the isolate's lifetime."""

from __future__ import annotations

from collections.abc import Awaitable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cached_property, partial
from typing import TYPE_CHECKING

import bindings
from adapters.turns import spare_turns
from bindings import Platform
from retain.http import Request, Response
from retain.log import configure

if TYPE_CHECKING:
    from cloudflare_bindings import DurableStorage, Env

    from assembly.access import AccessParts
    from assembly.directory import Directory
    from assembly.evaluation import EvaluationParts
    from assembly.instances import InstanceParts
    from assembly.items import ItemParts
    from assembly.lifecycle import LifecycleParts
    from assembly.memory import MemoryParts
    from assembly.models import ModelParts
    from assembly.webhooks import WebhookParts
    from retain.admin.context import AdminContext
    from retain.agent_memory.context import AgentMemoryContext
    from retain.agents.context import AgentsContext
    from retain.gateway.routes import Gateway
    from retain.ledgers.failures import Failures
    from retain.ledgers.kv_audit import KvChange
    from retain.ports import VectorIndex
    from retain.routing.health import Readiness
    from retain.routing.protected_resources import ProtectedResources
    from retain.telemetry.exporter import SpanExporter

_isolate: dict[str, Assembly] = {}


def assembly_of(env: Env) -> Assembly:
    """Return the isolate's parts, made from the first `env` seen: an isolate only ever serves one deployment."""
    if "parts" not in _isolate:
        configure()
        spare_turns()
        _isolate["parts"] = Assembly(bindings.platform_of(env))
    return _isolate["parts"]


async def set_alarm(storage: DurableStorage, after_ms: int) -> None:
    """Set a Durable Object's alarm by its storage alone, even if an invalid setting forbids an assembly."""
    await bindings.DurableAlarm(storage).set(bindings.now_ms() + after_ms)


class Assembly:
    """The parts of one isolate."""

    def __init__(self, platform: Platform) -> None:
        self.platform = platform

    @cached_property
    def gateway(self) -> Gateway:
        """The tool proxy and its MCP server."""
        from assembly.gateway import gateway_of

        return gateway_of(self.platform)

    @cached_property
    def readiness(self) -> Readiness:
        """Whether the stores answer."""
        from retain.routing.health import Readiness

        platform = self.platform
        databases = {"DB": platform.sql} if platform.shards is None else platform.shards.databases
        return Readiness(
            {
                **{
                    f"d1{name.removeprefix('DB').lower()}": partial(sql.run, "SELECT 1")
                    for name, sql in databases.items()
                },
                "kv": partial(platform.kv.get, "readyz"),
                "r2": partial(platform.objects.get, "readyz"),
                **{store: partial(index.get_by_ids, ("readyz",)) for store, index in self._indexes.items()},
            },
            bindings.now_ms,
        )

    @property
    def _indexes(self) -> dict[str, VectorIndex]:
        """The vector indexes by the names that readiness has for them."""
        shards = self.platform.shards
        if shards is None:
            return {"vectorize": self.platform.index}
        return {f"vectorize{name.removeprefix('DB').lower()}": index for name, index in shards.indexes.items()}

    def located(self, tenant_id: str | None) -> AbstractContextManager[None]:
        """Let what is done meanwhile be asked of the database of a tenant; None: of that of the deployment.

        Where there is one database, this does nothing.
        """
        if self.platform.shards is None:
            return nullcontext()
        from retain.shards.place import at_home, in_tenant

        return at_home() if tenant_id is None else in_tenant(tenant_id)

    def reading_everywhere(self) -> AbstractContextManager[None]:
        """Let what is read meanwhile be that of all databases. Where there is one, this does nothing."""
        if self.platform.shards is None:
            return nullcontext()
        from retain.shards.place import everywhere

        return everywhere()

    @cached_property
    def protected_resources(self) -> ProtectedResources:
        """Who issues the tokens of the MCP servers."""
        from retain.routing.protected_resources import ProtectedResources

        return ProtectedResources(self.platform.settings.authorization_servers)

    @cached_property
    def access(self) -> AccessParts:
        """Decides who may call the routes that Cloudflare Access protects."""
        from assembly.access import AccessParts

        return AccessParts(self)

    @contextmanager
    def changes_of(self, principal: str) -> Iterator[None]:
        """Attribute what a request changes in D1 and KV to who sent it: `person:` or `key:`, and their name.

        The changes in KV are collected, and written to the audit when the request has its answer.
        """
        from retain.ledgers.kv_audit import changes_of
        from retain.tenants.attribution import acting

        with acting(principal), changes_of(principal, self.write_changes):
            yield

    def write_changes(self, changes: Sequence[KvChange]) -> None:
        """Write changes in KV to the audit, through waitUntil."""
        from retain.ledgers.kv_audit import write_changes

        bindings.in_background(write_changes(self.platform.sql, changes))

    @cached_property
    def failures(self) -> Failures:
        """The unexpected failures that this isolate has noted."""
        from retain.ledgers.failures import Failures

        return Failures(bindings.now_ms)

    def note_failure(self, route: str, failure: Exception) -> None:
        """Enter an unexpected failure of a request into the error ledger, through waitUntil."""
        from retain.ledgers.errors import park

        trouble = self.failures.noted(route, failure)
        if trouble is not None:
            with self.located(trouble.tenant_id or None):
                bindings.in_background(park(self.platform.sql, trouble))

    @cached_property
    def admin(self) -> AdminContext:
        """What the administrator's routes work with."""
        from assembly.admin import admin_context

        return admin_context(self)

    @cached_property
    def agent_memory(self) -> AgentMemoryContext:
        """What the routes of Cloudflare Agent Memory's interface work with."""
        from assembly.memory import agent_memory_context

        return agent_memory_context(self)

    @cached_property
    def agents(self) -> AgentsContext:
        """What the agents' routes work with."""
        from assembly.directory import agents_context

        return agents_context(self)

    @cached_property
    def directory(self) -> Directory:
        """The existing agents and tenants."""
        from assembly.directory import Directory

        return Directory(self.platform)

    @cached_property
    def webhooks(self) -> WebhookParts:
        """Where applications hear of runs."""
        from assembly.webhooks import WebhookParts

        return WebhookParts(self)

    @cached_property
    def instances(self) -> InstanceParts:
        """What the instances of agents work with."""
        from assembly.instances import InstanceParts

        return InstanceParts(self)

    @cached_property
    def exporter(self) -> SpanExporter | None:
        """What exports spans, None where telemetry is not configured."""
        collector = self.platform.settings.collector
        if collector is None:
            return None
        from assembly.telemetry import exporter_of

        return exporter_of(collector, self.platform.settings.environment)

    async def observed(self, route: str, request: Request, work: Awaitable[Response]) -> Response:
        """Return what a request is answered. What it does with memory becomes a span, where telemetry is configured."""
        exporter = self.exporter
        if exporter is None or not route.startswith(("POST /admin/", "PATCH /admin/", "DELETE /admin/")):
            return await work
        from assembly.telemetry import observed

        return await observed(exporter, route, request, work)

    @cached_property
    def models(self) -> ModelParts:
        """The models of the deployment."""
        from assembly.models import ModelParts

        return ModelParts(self)

    @cached_property
    def memory(self) -> MemoryParts:
        """What agents remember."""
        from assembly.memory import MemoryParts

        return MemoryParts(self)

    @cached_property
    def items(self) -> ItemParts:
        """Tiered memory."""
        from assembly.items import ItemParts

        return ItemParts(self)

    @cached_property
    def lifecycle(self) -> LifecycleParts:
        """Every store that holds a tenant's data."""
        from assembly.lifecycle import LifecycleParts

        return LifecycleParts(self)

    @cached_property
    def evaluation(self) -> EvaluationParts:
        """Evaluations of agents."""
        from assembly.evaluation import EvaluationParts

        return EvaluationParts(self)
