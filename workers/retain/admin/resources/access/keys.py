"""The administrator's routes for the keys of a tenant's applications."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field

from retain.admin.answers.tenants import CreatedKeyJson, KeyJson, KeysJson, RotatedKeyJson, TokenJson
from retain.admin.context import AdminContext
from retain.application_keys.origins import MAX_ORIGINS, check_origins
from retain.application_keys.scope import KEY_SCOPES, KeyScope
from retain.application_keys.tokens import MAX_MINUTES, BoundUser
from retain.errors import Forbidden
from retain.http import Response, json_response
from retain.identifiers import check_agent_type, check_user_id
from retain.roles.principals import key_with_id
from retain.routing.bodies import BodyModel, JsonBody
from retain.routing.queries import IdPageQuery, QueryString
from retain.routing.requests import PathRequest, TypedRequest
from retain.routing.route import Answer, Resource, Route

_DAY_MS = 86_400_000
_MINUTE_MS = 60_000


def _printable(name: str) -> str:
    """Return the name of a key, which lists and logs show. Raises: ValueError."""
    if not (name.isprintable() and name.strip()):
        raise ValueError("must have printable characters only, and not only spaces")
    return name


KeyName = Annotated[str, Field(min_length=1, max_length=100), AfterValidator(_printable)]


class KeyBody(BodyModel):
    """A key to create. origins: whose pages may use it. days: after how many it expires, None for never."""

    name: KeyName
    scopes: list[KeyScope] = Field(min_length=1, max_length=len(KEY_SCOPES))
    origins: list[str] = Field(default_factory=list, max_length=MAX_ORIGINS)
    days: int | None = Field(default=None, ge=1, le=3650)


class ChangeBody(BodyModel):
    """What of a key to change. What is left out stays."""

    name: KeyName | None = None
    origins: list[str] | None = Field(default=None, max_length=MAX_ORIGINS)


class RotateBody(BodyModel):
    """For how long the old key is still accepted, so that applications can be given the new one."""

    grace_minutes: int = Field(default=60, ge=0, le=10_080)


class TokenBody(BodyModel):
    """Whose token to make. agent_type: the only agent that it reaches; None for each."""

    user: str
    agent_type: str | None = None
    minutes: int = Field(default=15, ge=1, le=MAX_MINUTES)


async def list_keys(context: AdminContext, request: TypedRequest[None, IdPageQuery]) -> Response:
    """List the keys of the tenant's applications, the newest first: also those that were revoked or have expired."""
    page = await context.keys.page(request.tenant_id, after=request.query.cursor, limit=request.query.limit)
    return json_response({"keys": [key.to_json() for key in page.keys], "cursor": page.cursor})


async def create_key(context: AdminContext, request: TypedRequest[KeyBody, None]) -> Response:
    """Create a key for an application. Its text is in this answer alone."""
    body = request.body
    expires_at_ms = None if body.days is None else context.clock() + body.days * _DAY_MS
    key, text = await context.keys.create(
        request.tenant_id,
        body.name,
        body.scopes,
        by=request.http.caller,
        origins=check_origins(body.origins),
        expires_at_ms=expires_at_ms,
    )
    return json_response({**key.to_json(), "key": text}, 201)


async def change_key(context: AdminContext, request: TypedRequest[ChangeBody, None]) -> Response:
    """Change a key's name, or the origins whose pages may use it. They are in use everywhere after ten seconds."""
    name, origins = request.body.name, request.body.origins
    key = await context.keys.change(
        request.tenant_id,
        request.path["key_id"],
        name=name,
        origins=None if origins is None else check_origins(origins),
    )
    return json_response(key.to_json())


async def rotate_key(context: AdminContext, request: TypedRequest[RotateBody, None]) -> Response:
    """Create a key like this one, which stays valid for a while. The new key's text is in this answer alone."""
    old, new, text = await context.keys.rotate(
        request.tenant_id,
        request.path["key_id"],
        by=request.http.caller,
        grace_ms=request.body.grace_minutes * _MINUTE_MS,
    )
    return json_response({**new.to_json(), "key": text, "replaces": old.to_json()}, 201)


async def revoke_key(context: AdminContext, request: PathRequest) -> Response:
    """Revoke a key. Idempotent. It may still work for ten seconds, in isolates that have read it."""
    return json_response((await context.keys.revoke(request.tenant_id, request.path["key_id"])).to_json())


async def make_token(context: AdminContext, request: TypedRequest[TokenBody, None]) -> Response:
    """Make a short-lived token for a user of the application that asks, to be used in their browser."""
    caller, body = request.http.principal, request.body
    key_id = caller.removeprefix(key_with_id(""))
    if key_id == caller:
        raise Forbidden("a token is made with the key of an application", code="key_required")
    agent_type = None if body.agent_type is None else check_agent_type(body.agent_type)
    bound = BoundUser(check_user_id(body.user), agent_type)
    text, expires_at_ms = await context.tokens.issue(request.tenant_id, key_id, bound, minutes=body.minutes)
    return json_response({"token": text, "expires_at_ms": expires_at_ms}, 201)


_KEYS = "/admin/tenants/{tenant}/keys"
_KEY = f"{_KEYS}/{{key_id}}"
RESOURCE: Resource[AdminContext] = Resource(
    "Keys of applications",
    (
        Route(
            "GET",
            _KEYS,
            list_keys,
            needs="owner",
            query=QueryString(IdPageQuery),
            answers=(
                Answer(
                    200,
                    '`{"keys", "cursor"}`: each with `key_id`, `name`, `scopes`, `origins`, `created_by`,'
                    " `created_at_ms`, `expires_at_ms`, `revoked_at_ms`, `last_used_at_ms` (to the minute)",
                    model=KeysJson,
                ),
            ),
            errors=("invalid_limit", "invalid_cursor", "invalid_tenant", "unknown_tenant"),
        ),
        Route(
            "POST",
            _KEYS,
            create_key,
            needs="owner",
            body=JsonBody(KeyBody),
            takes="`name`, `scopes` (`runs`, `memory:read`, `memory:write`, `users:erase`, `admin`), `origins`"
            " whose pages may use it (10 at most), and `days` if it is to expire",
            answers=(Answer(201, "the key, as in the list, with its text as `key`", model=CreatedKeyJson),),
            errors=("too_many_keys", "invalid_origin", "invalid_tenant", "unknown_tenant"),
        ),
        Route(
            "PATCH",
            _KEY,
            change_key,
            needs="owner",
            body=JsonBody(ChangeBody),
            takes="`name`, `origins` or both; what is left out stays",
            answers=(Answer(200, "the key, as in the list", model=KeyJson),),
            errors=("no_such_key", "invalid_origin", "invalid_id", "invalid_tenant", "unknown_tenant"),
        ),
        Route(
            "POST",
            f"{_KEY}/rotate",
            rotate_key,
            needs="owner",
            body=JsonBody(RotateBody, required=False),
            takes="`grace_minutes`: how long the old key is still accepted, 60 unless given",
            answers=(
                Answer(201, "the new key, as when it is created, and the old one in `replaces`", model=RotatedKeyJson),
            ),
            errors=("no_such_key", "too_many_keys", "invalid_id", "invalid_tenant", "unknown_tenant"),
        ),
        Route(
            "DELETE",
            _KEY,
            revoke_key,
            needs="owner",
            answers=(Answer(200, "the key, as in the list", model=KeyJson),),
            errors=("no_such_key", "invalid_id", "invalid_tenant", "unknown_tenant"),
        ),
        Route(
            "POST",
            "/admin/tenants/{tenant}/tokens",
            make_token,
            name="create_token",
            needs="operator",
            scope="runs",
            body=JsonBody(TokenBody),
            takes="`user`, `agent_type` if it is to reach one agent alone, and `minutes` (1 to 60, 15 unless given)",
            answers=(Answer(201, '`{"token", "expires_at_ms"}`', model=TokenJson),),
            errors=(
                "key_required",
                "token_key_missing",
                "invalid_token_key",
                "invalid_user",
                "invalid_agent_type",
                "invalid_tenant",
                "unknown_tenant",
            ),
        ),
    ),
    about="What applications present instead of a token of Access: see [keys](deployment.md#keys-of-applications).",
)
