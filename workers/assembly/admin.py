"""What the administrator's routes work with."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import bindings
from assembly.directory import defined_agents
from assembly.scheduled import continued, repeatable, restoring_of
from retain.admin.context import AdminContext
from retain.admin.replaying import Replaying, ReplayPorts
from retain.errors import Conflict
from retain.json_text import JsonObject
from retain.models.prices import read_prices

if TYPE_CHECKING:
    from assembly.root import Assembly
    from retain.routing.route import Route


def admin_context(root: Assembly) -> AdminContext:
    """Return the context. What only some routes need is made when a request needs it."""
    return AdminContext(
        tenants=root.directory.tenants,
        agents=root.directory.agents,
        defined=lambda: defined_agents(root),
        sql=root.platform.sql,
        semantic=lambda view: root.memory.semantic(view.scope, view),
        clock=bindings.now_ms,
        time_zones=bindings.time_zones,
        ingestion=lambda scope: root.memory.ingestion(scope),
        background=bindings.in_background,
        stores=root.lifecycle.stores,
        items=lambda namespace: root.items.client(namespace, hot_reads="checked"),
        migration=lambda: root.items.migration(),
        backfill=lambda: root.items.backfill(),
        evaluation=lambda: root.evaluation.runner(),
        replaying=lambda: replaying_of(root),
        grants=root.access.grants,
        keys=root.access.keys,
        tokens=root.access.tokens,
        webhooks=lambda: root.webhooks.webhooks,
        deliveries=lambda: root.webhooks.deliveries,
        backups=lambda: root.lifecycle.backups,
        restoring=lambda: restoring_of(root),
        prices=lambda: read_prices(root.platform.settings.model_prices),
        routes=_routes,
        shards=root.platform.shards,
        mover=lambda: root.lifecycle.mover,
    )


def _routes() -> Iterator[Route[Any]]:
    """Yield the routes of all areas that ask for a role."""
    from retain.admin.routes import ROUTER as ADMIN
    from retain.agents.front_ends.chat_routes import ROUTER as CHAT
    from retain.agents.routes import ROUTER as AGENTS

    for router in (ADMIN, AGENTS, CHAT):
        yield from router.routes


def replaying_of(root: Assembly) -> Replaying:
    """Return what replays parked errors, with every part that may own one."""

    async def step(name: str) -> object:
        known = repeatable(root)
        if name not in known:
            raise Conflict("the daily brief has no such step any more", code="not_replayable")
        return await known[name]()

    async def call_tool(tenant_id: str, name: str, arguments: JsonObject, key: str) -> tuple[int, bytes]:
        # An agent of the tenant made the call: the tool may be one that no API key reaches.
        answer = await root.gateway.tools.call(tenant_id, name, arguments, idempotency_key=key, audience="agents")
        return answer.status, answer.body

    return Replaying(
        ReplayPorts(
            stores=root.lifecycle.stores,
            ingestion=root.memory.ingestion,
            evaluation=root.evaluation.runner,
            demotion=root.items.demotion,
            backup=lambda tenant_id, job_id: continued(root, tenant_id, job_id),
            step=step,
            call_tool=call_tool,
        )
    )
