"""Erasures as the routes answer them: the same work, whether it is asked for by `erase` or by `DELETE`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from retain.admin.context import AdminContext
from retain.errors import InvalidInput, NotFound
from retain.http import Response, json_response
from retain.lifecycle.erasure.eraser import Erasure, Outcome
from retain.lifecycle.erasure.receipts import Receipts


async def erase_whole_tenant(context: AdminContext, tenant_id: str, confirm: str | None) -> Response:
    """Erase a tenant, or resume it. confirm: its id again.

    Raises: InvalidInput (code `not_confirmed`); NotFound (code `unknown_tenant`) for one that never was; Unavailable.
    """
    if confirm != tenant_id:
        raise InvalidInput("confirm the erasure of a whole tenant with its id", code="not_confirmed")
    await require_tenant_or(context, tenant_id, _was_erased)
    outcome = await Erasure(context.stores).erase_tenant(tenant_id)
    context.tenants.forget(tenant_id)
    context.agents.forget(tenant_id)
    return shown_erasure(outcome)


async def erase_whole_user(context: AdminContext, tenant_id: str, user_id: str) -> Response:
    """Erase a user, or resume it. Raises: InvalidInput (code `invalid_user`); NotFound; Unavailable."""
    await context.tenants.require(tenant_id)
    return shown_erasure(await Erasure(context.stores).erase_user(tenant_id, user_id))


def shown_erasure(outcome: Outcome) -> Response:
    """Return the answer to an erasure: 202 until it is complete."""
    shown = {"receipt": outcome.receipt.to_json(), "salt": outcome.salt, "retry_after_ms": outcome.retry_after_ms}
    return json_response(shown, 200 if outcome.retry_after_ms is None else 202)


async def require_tenant_or(
    context: AdminContext, tenant_id: str, known: Callable[[AdminContext, str], Awaitable[bool]]
) -> None:
    """Require a tenant that is registered, or for which `known` returns True. Raises: as `Tenants.require`."""
    try:
        await context.tenants.require(tenant_id)
    except NotFound:
        if not await known(context, tenant_id):
            raise


async def _was_erased(context: AdminContext, tenant_id: str) -> bool:
    return await Receipts(context.sql).last_of_tenant(tenant_id) is not None
