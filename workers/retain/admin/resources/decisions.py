"""The administrator's routes for what happened: decisions with the memories that they rest on, and changes in KV."""

from __future__ import annotations

from pydantic import Field

from retain.admin.answers.runs import DecisionsJson, KvChangesJson
from retain.admin.context import AdminContext
from retain.http import Response, json_response
from retain.ledgers.decisions import list_decisions
from retain.ledgers.kv_audit import list_changes
from retain.routing.queries import AgentType, PageQuery, QueryString, WholeNumber
from retain.routing.requests import TypedRequest
from retain.routing.route import Answer, Resource, Route


class PeriodQuery(PageQuery):
    """Of which time to list."""

    since_ms: WholeNumber | None = Field(default=None, description="from this time, in epoch milliseconds")
    until_ms: WholeNumber | None = Field(default=None, description="before this time, in epoch milliseconds")


class DecisionsQuery(PeriodQuery):
    """Which decisions to list."""

    agent_type: AgentType | None = Field(default=None, description="only this agent's")
    decision: str | None = Field(default=None, max_length=32, description="only with this label, as it is spelt")
    memory: str | None = Field(
        default=None,
        max_length=128,
        description="only those that rest on the record, episode or procedure with this id",
    )


class ChangesQuery(PeriodQuery):
    """Which changes to list."""

    prefix: str | None = Field(default=None, min_length=1, max_length=512, description="only of keys that begin so")


async def get_decisions(context: AdminContext, request: TypedRequest[None, DecisionsQuery]) -> Response:
    """List what a tenant's agents, and the people who approve their calls, decided, newest first."""
    query = request.query
    page = await list_decisions(
        context.sql,
        request.tenant_id,
        agent_type=query.agent_type,
        decision=query.decision,
        memory_id=query.memory,
        since_ms=query.since_ms,
        until_ms=query.until_ms,
        limit=query.limit,
        cursor=query.cursor,
    )
    return json_response({"decisions": [entry.to_json() for entry in page.entries], "cursor": page.cursor})


async def get_changes(context: AdminContext, request: TypedRequest[None, ChangesQuery]) -> Response:
    """List who changed which keys of a tenant in KV, newest first; with a prefix, by key and then oldest first."""
    query = request.query
    page = await list_changes(
        context.sql,
        request.tenant_id,
        prefix=query.prefix,
        since_ms=query.since_ms,
        until_ms=query.until_ms,
        limit=query.limit,
        cursor=query.cursor,
    )
    return json_response({"changes": [entry.to_json() for entry in page.entries], "cursor": page.cursor})


RESOURCE: Resource[AdminContext] = Resource(
    "Decisions, and changes in KV",
    (
        Route(
            "GET",
            "/admin/agents/{tenant}/decisions",
            get_decisions,
            name="list_decisions",
            needs="viewer",
            query=QueryString(DecisionsQuery),
            answers=(
                Answer(
                    200,
                    '`{"decisions", "cursor"}`, each with `memories`: the `kind`, `id`, `version` and `source` of what it'
                    " rests on",
                    model=DecisionsJson,
                ),
            ),
            errors=("invalid_agent_type", "invalid_limit", "invalid_cursor"),
        ),
        Route(
            "GET",
            "/admin/tenants/{tenant}/kv-audit",
            get_changes,
            name="list_kv_changes",
            needs="viewer",
            query=QueryString(ChangesQuery),
            answers=(
                Answer(200, '`{"changes", "cursor"}`: keys, sizes and digests, never values', model=KvChangesJson),
            ),
            errors=("invalid_limit", "invalid_cursor"),
        ),
    ),
    about="See [the decision log](memory.md#the-decision-log) and [the KV audit](lifecycle.md#the-kv-audit).",
)
