"""The administrator's routes: every resource, one table."""

from __future__ import annotations

from retain.admin import mcp
from retain.admin.context import AdminContext
from retain.admin.resources import (
    backups,
    costs,
    decisions,
    errors,
    evals,
    ingest,
    items,
    lifecycle,
    memories,
    namespaces,
    procedures,
    runs,
    tenants,
    users,
)
from retain.admin.resources.access import keys, own, roles
from retain.admin.resources.automation import agents, schedules, webhooks
from retain.admin.resources.placement import shards
from retain.routing.router import Router

ROUTER: Router[AdminContext] = Router(
    (
        tenants.RESOURCE,
        shards.RESOURCE,
        costs.RESOURCE,
        own.RESOURCE,
        roles.RESOURCE,
        keys.RESOURCE,
        webhooks.RESOURCE,
        agents.RESOURCE,
        users.RESOURCE,
        memories.RESOURCE,
        ingest.RESOURCE,
        mcp.RESOURCE,
        items.RESOURCE,
        lifecycle.RESOURCE,
        backups.RESOURCE,
        evals.RESOURCE,
        namespaces.RESOURCE,
        runs.RESOURCE,
        schedules.RESOURCE,
        procedures.RESOURCE,
        decisions.RESOURCE,
        errors.RESOURCE,
    ),
    guard="Access",
    tenants=lambda context: context.tenants,
)
