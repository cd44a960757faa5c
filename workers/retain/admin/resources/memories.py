"""The administrator's handlers for memories: seed, store, list, read with history, edit, delete, recall."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from retain.admin.context import AdminContext
from retain.admin.resources.runs import page_limit
from retain.bodies import parsed
from retain.dataclass_models import with_fields_of
from retain.errors import InvalidInput
from retain.http import Request, Response, json_response
from retain.json_text import read_json
from retain.memory.recall.recall import Hit
from retain.memory.records.limits import END_OF_NUMBERS
from retain.memory.records.listing import Listing, list_records
from retain.memory.records.record import EditableFields, NewRecord, RecordSource
from retain.memory.semantic import RecallQuery

_PERSON = RecordSource("person")


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid")


@with_fields_of(NewRecord, omit=("utterance",))
class MemoryBody(_Body):
    """One memory to store."""


class SeedBody(_Body):
    """The body of `POST /admin/seed-memory`."""

    tenant: str
    agent_type: str
    memories: list[MemoryBody] = Field(min_length=1, max_length=100)


class StoreBody(MemoryBody):
    """The body that stores one memory; without agent and house it belongs to the whole tenant."""

    agent_type: str | None = None
    house: str | None = None


@with_fields_of(EditableFields, presence="optional")
class EditBody(BaseModel):
    """The changed fields of one memory. A field that cannot be edited is let through, to be refused by name."""

    model_config = ConfigDict(extra="allow", strict=True)

    valid_to_ms: int | None = Field(default=None, ge=0, lt=END_OF_NUMBERS)


class RecallBody(_Body):
    """The body of a recall. Without agent and house, every memory of the tenant is searched."""

    query: str
    top_k: int = 5
    agent_type: str | None = None
    house: str | None = None
    as_of_ms: int | None = None
    filter: dict[str, Any] = Field(default_factory=dict)
    explain: bool = False


async def seed(context: AdminContext, request: Request, parameters: Mapping[str, str]) -> Response:  # noqa: ARG001
    """Store memories in an agent's scope, all or none; answer their ids in order. Idempotent by content."""
    body = parsed(SeedBody, request)
    scope = await context.scope(body.tenant, body.agent_type)
    news = [NewRecord(**memory.model_dump()) for memory in body.memories]
    stored = await context.semantic(scope).store_all(news, _PERSON)
    return json_response(
        {"ids": [result.id for result in stored], "created": sum(result.created for result in stored)}, 201
    )


async def store(context: AdminContext, request: Request, parameters: Mapping[str, str]) -> Response:
    """Store one memory. Idempotent by content."""
    body = parsed(StoreBody, request)
    scope = await context.scope(parameters["tenant"], body.agent_type, body.house)
    new = NewRecord(**body.model_dump(exclude={"agent_type", "house"}))
    result = await context.semantic(scope).store(new, _PERSON)
    return json_response({"id": result.id, "created": result.created}, 201 if result.created else 200)


async def list_memories(context: AdminContext, request: Request, parameters: Mapping[str, str]) -> Response:
    """List memories at or below a scope, oldest first; those that hold now unless `all=true`."""
    query = request.query
    scope = await context.scope(parameters["tenant"], query.get("agent_type"), query.get("house"))
    wanted = Listing(
        filter=_filter(query.get("filter")),
        held_at_ms=None if query.get("all") == "true" else context.clock(),
        cursor=query.get("cursor"),
        limit=page_limit(query.get("limit")),
    )
    records, cursor = await list_records(context.sql, scope, wanted)
    return json_response({"memories": [record.to_json() for record in records], "cursor": cursor})


async def get(context: AdminContext, request: Request, parameters: Mapping[str, str]) -> Response:  # noqa: ARG001
    """Show one memory with the events that made it."""
    scope = await context.scope(parameters["tenant"])
    record, events = await context.semantic(scope).get(parameters["id"])
    return json_response({**record.to_json(), "events": [asdict(event) for event in events]})


async def edit(context: AdminContext, request: Request, parameters: Mapping[str, str]) -> Response:
    """Change fields of one memory; `{"valid_to_ms": …}` alone closes it, `{"valid_to_ms": null}` opens it again."""
    scope = await context.scope(parameters["tenant"])
    memory = context.semantic(scope)
    body = parsed(EditBody, request)
    changes = body.model_dump(exclude_unset=True)
    if set(changes) == {"valid_to_ms"}:
        if body.valid_to_ms is None:
            return json_response((await memory.restore(parameters["id"], _PERSON)).to_json())
        return json_response((await memory.invalidate(parameters["id"], body.valid_to_ms, _PERSON)).to_json())
    return json_response((await memory.edit(parameters["id"], changes, _PERSON)).to_json())


async def delete(context: AdminContext, request: Request, parameters: Mapping[str, str]) -> Response:  # noqa: ARG001
    """Forget one memory."""
    scope = await context.scope(parameters["tenant"])
    await context.semantic(scope).delete(parameters["id"], _PERSON)
    return Response(204, "")


async def recall(context: AdminContext, request: Request, parameters: Mapping[str, str]) -> Response:
    """Recall as an agent or house would, or over the whole tenant.

    Raises: NotFound (code `unknown_scope`) for a house that nothing was stored for and no agent of which was at work.
    """
    body = parsed(RecallBody, request)
    scope = await context.scope(parameters["tenant"], body.agent_type, body.house)
    wanted = RecallQuery(
        body.query, body.top_k, body.as_of_ms, body.filter, below=body.agent_type is None and body.house is None
    )
    # An agent is in the catalogue and the tenant registered; a house may be misspelt.
    hits = await context.semantic(scope).search(wanted, register=body.house is None)
    return json_response({"memories": [_shown(hit, explain=body.explain) for hit in hits]})


def _shown(hit: Hit, *, explain: bool) -> dict[str, Any]:
    shown = {**hit.record.to_json(), "score": round(hit.score, 6)}
    if explain:
        shown["components"] = {name: round(value, 6) for name, value in hit.components.items()}
    return shown


def _filter(text: str | None) -> dict[str, Any]:
    if text is None:
        return {}
    try:
        wanted = read_json(text)
    except ValueError as error:
        raise InvalidInput("the filter must be a JSON object", code="invalid_filter") from error
    if not isinstance(wanted, dict):
        raise InvalidInput("the filter must be a JSON object", code="invalid_filter")
    return wanted
