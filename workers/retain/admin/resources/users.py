"""The administrator's routes for users: list, show and describe them, and export what is kept of one."""

from __future__ import annotations

from pydantic import Field

from retain.admin.answers.lifecycle import ErasureJson
from retain.admin.answers.tenants import ShownUserJson, UsersJson
from retain.admin.context import AdminContext
from retain.admin.erasing import erase_whole_user
from retain.http import Response, json_response
from retain.lifecycle.user_export import export_user_page
from retain.memory.users import Users
from retain.routing.bodies import BodyModel, JsonBody
from retain.routing.queries import PageQuery, QueryModel, QueryString
from retain.routing.requests import PathRequest, TypedRequest
from retain.routing.route import Answer, Resource, Route


class ProfileBody(BodyModel):
    """What is known of a user. A field that is absent is taken away."""

    name: str | None = None
    locale: str | None = None
    timezone: str | None = None


class UserExportQuery(QueryModel):
    """Which page to export."""

    cursor: str | None = Field(default=None, description="`x-next-cursor` of the previous page")


async def list_users(context: AdminContext, request: TypedRequest[None, PageQuery]) -> Response:
    """List a tenant's users, by their ids."""
    query = request.query
    return json_response(
        (await _users(context, request.tenant_id).page(limit=query.limit, cursor=query.cursor)).to_json()
    )


async def show_user(context: AdminContext, request: PathRequest) -> Response:
    """Show a user's profile, and how much is kept of them."""
    return json_response(await _users(context, request.tenant_id).show(request.path["user"]))


async def put_user(context: AdminContext, request: TypedRequest[ProfileBody, None]) -> Response:
    """Set a user's profile, before a first run too. Idempotent."""
    users, user_id, body = _users(context, request.tenant_id), request.path["user"], request.body
    created = await users.put(user_id, body.name, body.locale, body.timezone)
    return json_response(await users.show(user_id), 201 if created else 200)


async def delete_user(context: AdminContext, request: PathRequest) -> Response:
    """Erase a user with everything that is kept of them, or resume it: 202 until it is complete."""
    return await erase_whole_user(context, request.tenant_id, request.path["user"])


async def export_user(context: AdminContext, request: TypedRequest[None, UserExportQuery]) -> Response:
    """Return a page of all that is kept of a user, as JSON lines; `x-next-cursor` has the next page's cursor."""
    page = await export_user_page(context.stores, request.tenant_id, request.path["user"], request.query.cursor)
    following = {} if page.cursor is None else {"x-next-cursor": page.cursor}
    return Response(200, page.text, {"content-type": _LINES, **following})


def _users(context: AdminContext, tenant_id: str) -> Users:
    return Users(context.sql, tenant_id, context.clock, context.time_zones)


_LINES = "application/x-ndjson"
_USERS = "/admin/tenants/{tenant}/users"
_SHOWN = '`{"id", "name", "locale", "timezone", "created_at_ms", "last_run_at_ms", "counts"}`'
RESOURCE: Resource[AdminContext] = Resource(
    "Users",
    (
        Route(
            "GET",
            _USERS,
            list_users,
            needs="viewer",
            scope="memory:read",
            query=QueryString(PageQuery),
            answers=(Answer(200, '`{"users", "cursor"}`, by their ids', model=UsersJson),),
            errors=("invalid_limit", "invalid_cursor"),
        ),
        Route(
            "GET",
            f"{_USERS}/{{user}}",
            show_user,
            name="get_user",
            needs="viewer",
            scope="memory:read",
            answers=(
                Answer(
                    200,
                    f"{_SHOWN}; `counts` is of `memories`, `conversations`, `runs` and `items`",
                    model=ShownUserJson,
                ),
            ),
            errors=("no_such_user", "invalid_user"),
        ),
        Route(
            "PUT",
            f"{_USERS}/{{user}}",
            put_user,
            needs="operator",
            scope="memory:write",
            body=JsonBody(ProfileBody),
            takes="`name`, `locale`, `timezone`, as in [a run](agents.md#users); one that is absent is taken away",
            answers=(
                Answer(201, "the user", model=ShownUserJson),
                Answer(200, "the user, who was known", model=ShownUserJson),
            ),
            errors=("invalid_user", "unknown_time_zone"),
        ),
        Route(
            "DELETE",
            f"{_USERS}/{{user}}",
            delete_user,
            needs="owner",
            scope="users:erase",
            answers=(
                Answer(
                    202,
                    '`{"receipt", "salt", "retry_after_ms"}` until it is complete: [an erasure](#an-erasure)',
                    ErasureJson,
                ),
                Answer(200, "the same, then", ErasureJson),
            ),
            errors=("invalid_user", "outbox_waits", "contended"),
        ),
        Route(
            "GET",
            f"{_USERS}/{{user}}/export",
            export_user,
            needs="owner",
            query=QueryString(UserExportQuery),
            answers=(
                Answer(
                    200,
                    "[JSON lines](lifecycle.md#a-users-export); header `x-next-cursor` until the last page",
                    media_types=(_LINES,),
                ),
            ),
            errors=("invalid_user", "invalid_cursor", "item_unreadable"),
        ),
    ),
    "List, recall and erase a user's memories with `user_id` at [memories](#memories), and `user` at [erase](#life-cycle).",
)
