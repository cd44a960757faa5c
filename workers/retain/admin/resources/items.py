"""The administrator's routes for items of tiered memory. Reads are checked: they never show an older version."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Annotated

from pydantic import AfterValidator, Field

from retain.admin.answers.memories import DeletedJson, ItemsJson
from retain.admin.context import AdminContext
from retain.errors import Misconfigured, NotFound
from retain.http import Response, json_response
from retain.identifiers import check_segment
from retain.items.client import FoundItem, MemoryClient, Stored
from retain.items.item_checks import MAX_USER_BYTES
from retain.items.resealing import Resealed, reseal
from retain.items.tiers.item_list import WantedItems, list_items
from retain.namespace import Namespace
from retain.routing.bodies import BodyModel, JsonBody
from retain.routing.parameters import SEGMENT, PathParameter
from retain.routing.queries import PageQuery, QueryString
from retain.routing.requests import PathRequest, TypedRequest
from retain.routing.route import Answer, Resource, Route

Segment = Annotated[str, AfterValidator(check_segment)]
"""A part of an item's key."""


class ItemBody(BodyModel):
    """The body of a put: the value, whose data it is, and a lifetime that replaces its data type's."""

    value: str
    user_id: str | None = None
    ttl_s: int | None = None


class ItemsQuery(PageQuery):
    """Which items to list."""

    service: Segment | None = Field(default=None, description="only this service's")
    session: Segment | None = Field(default=None, description="only this session's; needs `service`")
    kind: Segment | None = Field(default=None, description="only those of this data type; needs `session`")
    user_id: str | None = Field(default=None, max_length=MAX_USER_BYTES, description="only this user's")


async def list_of_items(context: AdminContext, request: TypedRequest[None, ItemsQuery]) -> Response:
    """List a tenant's items by their keys, without their values."""
    query = request.query
    wanted = WantedItems(query.service, query.session, query.kind, query.user_id)
    page = await list_items(
        context.sql, request.tenant_id, wanted, now_ms=context.clock(), limit=query.limit, cursor=query.cursor
    )
    return json_response({"items": [item.to_json() for item in page.items], "cursor": page.cursor})


async def put_item(context: AdminContext, request: TypedRequest[ItemBody, None]) -> Response:
    """Write a value into the tier of its data type."""
    memory, body = _memory(context, request.path), request.body
    stored = await memory.put(
        request.path["kind"], request.path["id"], body.value, user_id=body.user_id, ttl_s=body.ttl_s
    )
    return json_response(asdict(stored))


async def get_item(context: AdminContext, request: PathRequest) -> Response:
    """Show a value, its version and the tier that answered."""
    found = await _memory(context, request.path).find(request.path["kind"], request.path["id"])
    if found is None:
        raise NotFound("there is no such item, or it has expired", code="no_such_item")
    return json_response(asdict(found))


async def delete_item(context: AdminContext, request: PathRequest) -> Response:
    """Remove a value from every tier. Idempotent."""
    deleted = await _memory(context, request.path).delete(request.path["kind"], request.path["id"])
    return json_response({"deleted": deleted})


async def reseal_items(context: AdminContext, request: PathRequest) -> Response:
    """Seal again, with the current key, up to 100 items sealed with an older one; `left` is how many remain."""
    if context.stores.sealer is None:
        raise Misconfigured("the secret MEMORY_KEY is not set", code="memory_key_missing")
    return json_response(
        asdict(await reseal(context.sql, context.stores.sealer, request.tenant_id, context.stores.namespacing()))
    )


def _memory(context: AdminContext, path: Mapping[str, str]) -> MemoryClient:
    return context.items(Namespace(path["service"], path["tenant"], path["session"]))


_ITEM = "/admin/tenants/{tenant}/items/{service}/{session}/{kind}/{id}"
_ITEMS = "/admin/tenants/{tenant}/items"
_SEGMENTS: Mapping[str, PathParameter] = dict.fromkeys(("service", "session", "kind", "id"), SEGMENT)
RESOURCE: Resource[AdminContext] = Resource(
    "Items",
    (
        Route(
            "GET",
            _ITEMS,
            list_of_items,
            name="list_items",
            needs="viewer",
            scope="memory:read",
            query=QueryString(ItemsQuery),
            answers=(
                Answer(
                    200,
                    '`{"items", "cursor"}`: each with `service`, `session`, `kind`, `id`, `key`, `tier`, `version`,'
                    " `user_id`, `size_bytes`, `sealed`, `expires_at_ms`, `created_at_ms`, `updated_at_ms`. A page may have"
                    " fewer than were asked for before the last",
                    model=ItemsJson,
                ),
            ),
            errors=("invalid_namespace", "invalid_query", "invalid_limit", "invalid_cursor"),
        ),
        Route(
            "PUT",
            _ITEM,
            put_item,
            needs="operator",
            scope="memory:write",
            body=JsonBody(ItemBody),
            parameters=_SEGMENTS,
            takes="`value`: text; `user_id`: whose it is; `ttl_s`: lifetime in seconds, instead of the data type's",
            answers=(
                Answer(
                    200,
                    '`{"key", "version", "tier", "expires_at_ms", "hot_copy"}` ([tiers.md](tiers.md))',
                    model=Stored,
                ),
            ),
            errors=(
                "invalid_namespace",
                "unknown_data_type",
                "pii_outside_warm",
                "invalid_ttl",
                "invalid_user",
                "value_too_large",
                "value_too_deep",
                "tenant_erased",
                "item_erased",
                "reserved_service",
            ),
        ),
        Route(
            "GET",
            _ITEM,
            get_item,
            needs="viewer",
            scope="memory:read",
            parameters=_SEGMENTS,
            answers=(
                Answer(
                    200,
                    '`{"key", "value", "version", "tier", "expires_at_ms", "user_id"}`; `tier` is the one that answered;'
                    " `user_id` is null when it was the hot one",
                    model=FoundItem,
                ),
            ),
            errors=("no_such_item", "invalid_namespace", "unknown_data_type", "cold_value_missing", "item_unreadable"),
        ),
        Route(
            "DELETE",
            _ITEM,
            delete_item,
            needs="operator",
            scope="memory:write",
            parameters=_SEGMENTS,
            answers=(Answer(200, '`{"deleted"}`: whether there was one', model=DeletedJson),),
            errors=("invalid_namespace", "unknown_data_type"),
        ),
        Route(
            "POST",
            "/admin/tenants/{tenant}/items/reseal",
            reseal_items,
            needs="operator",
            answers=(
                Answer(
                    200,
                    '`{"resealed", "left", "unreadable"}`: up to 100 items with [PII](tiers.md#pii) are sealed with the'
                    " current key; those that no key of the deployment opens stay as they are",
                    model=Resealed,
                ),
            ),
            errors=("memory_key_missing", "invalid_memory_key"),
        ),
    ),
)
