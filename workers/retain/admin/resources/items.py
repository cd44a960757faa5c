"""The administrator's handlers for items of tiered memory. Reads are checked: they never show an older version."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict

from pydantic import BaseModel, ConfigDict, StrictInt, StrictStr

from retain.admin.context import AdminContext
from retain.bodies import parsed
from retain.errors import Misconfigured, NotFound
from retain.http import Request, Response, json_response
from retain.items.client import MemoryClient
from retain.items.resealing import reseal
from retain.namespace import Namespace


class ItemBody(BaseModel):
    """The body of a put: the value, whose data it is, and how long it lives instead of its data type's time."""

    model_config = ConfigDict(extra="forbid")

    value: StrictStr
    user_id: StrictStr | None = None
    ttl_s: StrictInt | None = None


async def put_item(context: AdminContext, request: Request, parameters: Mapping[str, str]) -> Response:
    """Write a value where its data type belongs."""
    body = parsed(ItemBody, request)
    memory = await _memory(context, parameters)
    stored = await memory.put(parameters["kind"], parameters["id"], body.value, user_id=body.user_id, ttl_s=body.ttl_s)
    return json_response(asdict(stored))


async def get_item(context: AdminContext, request: Request, parameters: Mapping[str, str]) -> Response:  # noqa: ARG001
    """Show a value, its version and the tier that answered."""
    memory = await _memory(context, parameters)
    found = await memory.find(parameters["kind"], parameters["id"])
    if found is None:
        raise NotFound("there is no such item, or it has expired", code="no_such_item")
    return json_response(asdict(found))


async def delete_item(context: AdminContext, request: Request, parameters: Mapping[str, str]) -> Response:  # noqa: ARG001
    """Remove a value from every tier. Idempotent."""
    memory = await _memory(context, parameters)
    return json_response({"deleted": await memory.delete(parameters["kind"], parameters["id"])})


async def reseal_items(context: AdminContext, request: Request, parameters: Mapping[str, str]) -> Response:  # noqa: ARG001
    """Seal up to 100 items that an older key seals with the present one; `left` says how many remain."""
    tenant_id = await context.tenants.require(parameters["tenant"])
    if context.stores.sealer is None:
        raise Misconfigured("the secret MEMORY_KEY is not set", code="memory_key_missing")
    return json_response(asdict(await reseal(context.sql, context.stores.sealer, tenant_id)))


async def _memory(context: AdminContext, parameters: Mapping[str, str]) -> MemoryClient:
    tenant_id = await context.tenants.require(parameters["tenant"])
    return context.items(Namespace(parameters["service"], tenant_id, parameters["session"]))
