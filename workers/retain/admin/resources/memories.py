"""The administrator's routes for memories: seed, store, list, read with history, edit, delete, recall."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import BeforeValidator, Field, JsonValue

from retain.admin.answers.memories import (
    MemoriesJson,
    MemoryJson,
    MemoryWithEventsJson,
    RecallJson,
    SimilarMemoriesJson,
    StoredMemoriesJson,
    StoredMemoryJson,
)
from retain.admin.context import AdminContext
from retain.admin.memories.memory_bodies import EditBody, RecallBody, SeedBody, StoreBody, texts_of
from retain.admin.memories.memory_desk import MemoryDesk, Owner
from retain.errors import InvalidInput
from retain.errors.codes import Code
from retain.http import Response, json_response
from retain.identifiers import check_id
from retain.json_text import JsonObject, read_strict_json
from retain.limits.room import REQUEST_BYTES
from retain.memory.records.similar import similar_records
from retain.routing.bodies import JsonBody
from retain.routing.queries import MAX_LIMIT, Flag, IdCursor, PageLimit, PageQuery, QueryModel, QueryString
from retain.routing.requests import PathRequest, TypedRequest
from retain.routing.route import Answer, ErrorGroup, Resource, Route
from retain.shards.place import in_tenant

_TIME = re.compile(r"[0-9]{1,16}")
_QUOTED = re.compile(r'(?:W/)?"([^"]*)"')


def _conditions(text: str) -> JsonObject:
    try:
        wanted = read_strict_json(text)
    except ValueError as error:
        raise InvalidInput("the filter must be a JSON object", code="invalid_filter") from error
    if not isinstance(wanted, dict):
        raise InvalidInput("the filter must be a JSON object", code="invalid_filter")
    return wanted


def _time(text: str) -> int:
    if _TIME.fullmatch(text) is None:
        raise InvalidInput("valid_at_ms must be epoch milliseconds", code="invalid_valid_at")
    return int(text)


def _past(text: str) -> int:
    if _TIME.fullmatch(text) is None:
        raise InvalidInput("as_of_ms must be epoch milliseconds", code="invalid_as_of")
    return int(text)


class ListQuery(PageQuery):
    """Which memories to list."""

    agent_type: str | None = Field(default=None, description="only this agent's own memories; not with `house`")
    house: str | None = Field(default=None, description="only what belongs to this house and its agents")
    user_id: str | None = Field(
        default=None,
        description="only what belongs to this user: in every agent, or with `agent_type` what this agent alone knows",
    )
    filter: Annotated[dict[str, JsonValue], BeforeValidator(_conditions)] = Field(
        default_factory=dict,
        description="conditions on metadata and fields, as JSON: [memory.md](memory.md#recall); a page may then have fewer"
        " memories than were asked for, or none, before the last",
    )
    all: Flag = Field(default=False, description="`true`: include those that are not valid; not with `valid_at_ms`")
    valid_at_ms: Annotated[int | None, BeforeValidator(_time)] = Field(
        default=None, description="those that were, or will be, valid at this time, as far as is known now"
    )
    as_of_ms: Annotated[int | None, BeforeValidator(_past)] = Field(
        default=None,
        description="what was [known at this time](memory.md#two-times), in the state that it had then; a page may then have"
        " fewer memories than were asked for, or none, before the last",
    )


async def seed(context: AdminContext, request: TypedRequest[SeedBody, None]) -> Response:
    """Store memories in an agent's scope, all or none. Idempotent by content."""
    body = request.body
    desk = MemoryDesk(context, await context.tenants.require(body.tenant), request.http.caller)
    with in_tenant(body.tenant):
        stored = await desk.store_all(Owner(body.agent_type), [memory.to_record() for memory in body.memories])
    return json_response(
        {
            "ids": [result.id for result in stored],
            "created": sum(result.created for result in stored),
            "results": [result.to_json() for result in stored],
        },
        201,
    )


async def store(context: AdminContext, request: TypedRequest[StoreBody, None]) -> Response:
    """Store one memory. Idempotent by content."""
    body = request.body
    result = await MemoryDesk(context, request.tenant_id, request.http.caller).store(
        Owner(body.agent_type, body.house, body.user_id), body.to_record()
    )
    return json_response(result.to_json(), 201 if result.created else 200)


async def list_memories(context: AdminContext, request: TypedRequest[None, ListQuery]) -> Response:
    """List memories at or below a scope, oldest first."""
    query = request.query
    page = await MemoryDesk(context, request.tenant_id, request.http.caller).list(
        Owner(query.agent_type, query.house, query.user_id),
        conditions=query.filter,
        closed_too=query.all,
        valid_at_ms=query.valid_at_ms,
        as_of_ms=query.as_of_ms,
        limit=query.limit,
        cursor=query.cursor,
    )
    return json_response(page.to_json())


class LearningQuery(QueryModel):
    """Which learning events of a memory to show."""

    limit: PageLimit = MAX_LIMIT
    cursor: IdCursor = None


async def get(context: AdminContext, request: TypedRequest[None, LearningQuery]) -> Response:
    """Show one memory with its learning events, oldest first."""
    desk = MemoryDesk(context, request.tenant_id, request.http.caller)
    after, limit = request.query.cursor or "", request.query.limit
    return json_response((await desk.get(Owner(), request.path["id"], after=after, limit=limit)).to_json())


async def edit(context: AdminContext, request: TypedRequest[EditBody, None]) -> Response:
    """Change fields of one memory, close it or open it again. Its history keeps the earlier text."""
    changes = request.body.model_dump(exclude_unset=True)
    desk = MemoryDesk(context, request.tenant_id, request.http.caller)
    based_on = request.http.headers.get("if-match")
    if based_on is not None:
        based_on = check_id(_QUOTED.sub(r"\1", based_on.strip()))
    return json_response((await desk.edit(Owner(), request.path["id"], changes, based_on=based_on)).to_json())


async def delete(context: AdminContext, request: PathRequest) -> Response:
    """Delete one memory: it is no longer found. [An erasure](lifecycle.md#erasure) also removes the text of its events."""
    await MemoryDesk(context, request.tenant_id, request.http.caller).forget(Owner(), request.path["id"])
    return Response(204, "")


class SimilarQuery(PageQuery):
    """A page of groups of similar memories."""

    limit: PageLimit = 20


async def list_similar(context: AdminContext, request: TypedRequest[None, SimilarQuery]) -> Response:
    """List groups of memories that may say the same, which no rule merges. Delete or close those that do."""
    query = request.query
    page = await similar_records(
        context.sql, request.tenant_id, at_ms=context.clock(), limit=query.limit, cursor=query.cursor
    )
    return json_response(page.to_json())


async def recall(context: AdminContext, request: TypedRequest[RecallBody, None]) -> Response:
    """Recall as an agent or house would, or over the whole tenant."""
    body = request.body
    found = await MemoryDesk(context, request.tenant_id, request.http.caller).recall(
        Owner(body.agent_type, body.house, body.user_id),
        body.query,
        top_k=body.top_k,
        as_of_ms=body.as_of_ms,
        valid_at_ms=body.valid_at_ms,
        conditions=body.filter,
        min_score=body.min_score,
        turns=texts_of(body.context),
        runners_up=body.runners_up,
    )
    return json_response(found.to_json(explain=body.explain))


OF_A_MEMORY = ErrorGroup(
    "those of [a memory](#a-memory)",
    (
        "empty_content",
        "invalid_content",
        "content_too_large",
        "invalid_metadata",
        "metadata_too_large",
        "invalid_kind",
        "invalid_subject",
        "invalid_predicate",
        "invalid_object",
        "invalid_confidence",
        "invalid_importance",
        "invalid_valid_from_ms",
        "invalid_expires_at_ms",
    ),
)
OF_A_SCOPE: tuple[Code, ...] = (
    *("unknown_agent", "agent_unreadable", "invalid_agent_type", "invalid_house", "invalid_scope", "invalid_user"),
)
_RESULT = (
    '`{"id", "created", "merged", "kept"}`, as [storing again](memory.md#storing-a-content-again) says, and `degraded` if'
    " the vector index [is owed it](memory.md#without-the-index-or-the-model)"
)
_MEMORIES = "/admin/tenants/{tenant}/memories"
RESOURCE: Resource[AdminContext] = Resource(
    "Memories",
    (
        Route(
            "POST",
            "/admin/seed-memory",
            seed,
            name="seed_memories",
            needs="operator",
            scope="memory:write",
            tenant_in="body",
            body=JsonBody(SeedBody),
            takes="`tenant`, `agent_type`, `memories`: 1 to 100 [memories](#a-memory)",
            answers=(
                Answer(
                    201,
                    f'`{{"ids", "created", "results"}}`, in order, {_RESULT} in `results`; all are stored or none',
                    model=StoredMemoriesJson,
                ),
            ),
            errors=(*OF_A_SCOPE, "invalid_tenant", "unknown_tenant", "contended", "memory_quota", OF_A_MEMORY),
        ),
        Route(
            "GET",
            _MEMORIES,
            list_memories,
            needs="viewer",
            scope="memory:read",
            query=QueryString(ListQuery),
            answers=(Answer(200, '`{"memories", "cursor"}`, oldest first', model=MemoriesJson),),
            errors=(
                "invalid_filter",
                "filter_too_large",
                "invalid_limit",
                "invalid_cursor",
                "invalid_valid_at",
                "invalid_as_of",
                "unknown_scope",
                *OF_A_SCOPE,
            ),
        ),
        Route(
            "POST",
            _MEMORIES,
            store,
            name="create_memory",
            needs="operator",
            scope="memory:write",
            body=JsonBody(StoreBody),
            takes="[a memory](#a-memory), with `agent_type`, `house` or `user_id`; without them it is the whole tenant's",
            answers=(
                Answer(201, _RESULT, model=StoredMemoryJson),
                Answer(200, "the same, when the scope already had the content", model=StoredMemoryJson),
            ),
            errors=(*OF_A_SCOPE, "contended", "user_memory_limit", "memory_quota", OF_A_MEMORY),
        ),
        Route(
            "POST",
            f"{_MEMORIES}/recall",
            recall,
            name="recall_memories",
            needs="viewer",
            scope="memory:read",
            answer_bytes=REQUEST_BYTES,
            body=JsonBody(RecallBody),
            takes="[a recall](#a-recall)",
            answers=(
                Answer(
                    200,
                    '`{"memories", "degraded"}`: best first, each with `score`, `relevance`, and `components` when asked to'
                    " explain; and what the recall [did without](memory.md#without-the-index-or-the-model)",
                    model=RecallJson,
                ),
            ),
            errors=(
                "empty_query",
                "query_too_large",
                "context_too_large",
                "invalid_top_k",
                "invalid_min_score",
                "invalid_runners_up",
                "invalid_as_of",
                "invalid_valid_at",
                "invalid_filter",
                "filter_too_large",
                "too_many_scopes",
                "unknown_scope",
                *OF_A_SCOPE,
            ),
        ),
        Route(
            "GET",
            f"{_MEMORIES}/similar",
            list_similar,
            name="list_similar_memories",
            needs="viewer",
            scope="memory:read",
            answer_bytes=REQUEST_BYTES,
            query=QueryString(SimilarQuery),
            answers=(
                Answer(
                    200,
                    '`{"groups", "cursor"}`: groups of 2 to 20 memories of equal scope whose words have equal stems, oldest'
                    " first, as the last [consolidation](lifecycle.md#consolidation) found them; at most 50 groups",
                    model=SimilarMemoriesJson,
                ),
            ),
            errors=("invalid_limit", "invalid_cursor"),
        ),
        Route(
            "GET",
            f"{_MEMORIES}/{{id}}",
            get,
            name="get_memory",
            needs="viewer",
            scope="memory:read",
            query=QueryString(LearningQuery),
            answers=(
                Answer(
                    200,
                    "the memory, and `events`: how it came to be; `cursor` for those that follow",
                    model=MemoryWithEventsJson,
                ),
            ),
            errors=("no_such_memory", "invalid_id", "invalid_limit", "invalid_cursor"),
        ),
        Route(
            "PATCH",
            f"{_MEMORIES}/{{id}}",
            edit,
            name="update_memory",
            needs="operator",
            scope="memory:write",
            body=JsonBody(EditBody),
            headers={"if-match": "`last_event_id` of the memory on which the change is based"},
            takes="the fields of [a memory](#a-memory) to change, all except `valid_from_ms`; or `valid_to_ms` alone:"
            " a time closes the memory, null opens it again",
            answers=(Answer(200, "the memory", model=MemoryJson),),
            errors=(
                "no_such_memory",
                "invalid_id",
                "invalid_edit",
                "duplicate_content",
                "memory_changed",
                "contended",
                OF_A_MEMORY,
            ),
        ),
        Route(
            "DELETE",
            f"{_MEMORIES}/{{id}}",
            delete,
            name="delete_memory",
            needs="operator",
            scope="memory:write",
            answers=(Answer(204),),
            errors=("no_such_memory", "invalid_id", "contended"),
        ),
    ),
)
