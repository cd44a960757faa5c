"""The administrator's routes for databases: what is on each, where a tenant lives, and its moves."""

from __future__ import annotations

from collections.abc import Sequence

from retain.admin.answers.tenants import MoveJson, MovesJson, ShardsJson, TenantShardJson
from retain.admin.context import AdminContext
from retain.errors import Conflict
from retain.errors.codes import Code
from retain.http import Response, json_response
from retain.identifiers import check_id
from retain.lifecycle.moving.mover import Mover
from retain.lifecycle.moving.moves import Move
from retain.routing.bodies import BodyModel, JsonBody
from retain.routing.queries import IdPageQuery, QueryString
from retain.routing.requests import PathRequest, TypedRequest
from retain.routing.route import Answer, Resource, Route
from retain.shards.place import HOME


class MoveBody(BodyModel):
    """Where a tenant is to live. shard: the name of a database's binding."""

    shard: str


async def list_shards(context: AdminContext, _: PathRequest) -> Response:
    """List the databases with what is on each."""
    loads = [] if context.shards is None else await context.shards.placement.loads()
    return json_response({"shards": [load.to_json() for load in loads]})


async def list_moves(context: AdminContext, request: TypedRequest[None, IdPageQuery]) -> Response:
    """List moves of tenants, the newest first."""
    mover = context.mover()
    moves: Sequence[Move] = ()
    cursor = None
    if mover is not None:
        moves, cursor = await mover.moves.page(before=request.query.cursor, limit=request.query.limit)
    return json_response({"moves": [move.to_json() for move in moves], "cursor": cursor})


async def show_shard(context: AdminContext, request: PathRequest) -> Response:
    """Show on which database a tenant lives, and its open move."""
    mover = context.mover()
    if mover is None or context.shards is None:
        return json_response({"tenant": request.tenant_id, "shard": HOME, "move": None})
    shard = await context.shards.directory.follow(request.tenant_id, HOME)
    move = await mover.moves.find(request.tenant_id)
    return json_response(
        {"tenant": request.tenant_id, "shard": shard, "move": None if move is None else move.to_json()}
    )


async def move_tenant(context: AdminContext, request: TypedRequest[MoveBody, None]) -> Response:
    """Move a tenant to another database, or continue: 202 until it is completed."""
    mover = _mover(context)
    move = await mover.start(request.tenant_id, request.body.shard, request.http.principal or request.http.caller)
    return _shown(await mover.advance(move))


async def show_move(context: AdminContext, request: PathRequest) -> Response:
    """Show a move of the tenant."""
    return json_response((await _mover(context).moves.get(request.tenant_id, request.path["move_id"])).to_json())


async def cancel_move(context: AdminContext, request: PathRequest) -> Response:
    """Cancel a move before its switch, or continue to undo it: 202 until the tenant's copy is removed. Idempotent."""
    mover = _mover(context)
    move = await mover.moves.get(request.tenant_id, check_id(request.path["move_id"]))
    return _shown(await (mover.advance(move) if move.step == "undo" else mover.cancel(move)))


def _mover(context: AdminContext) -> Mover:
    mover = context.mover()
    if mover is None:
        raise Conflict("the deployment has one database: bind another one first", code="one_database")
    return mover


def _shown(move: Move) -> Response:
    return json_response(move.to_json(), 202 if move.state == "running" else 200)


_TENANT = "/admin/tenants/{tenant}"
_REFUSED: tuple[Code, ...] = (
    "one_database",
    "unknown_shard",
    "same_shard",
    "tenant_busy",
    "other_move",
    "copy_differs",
    "row_refused",
    "tenant_moving",
)
_MOVE = Answer(202, "[the move](shards.md#moving-a-tenant), which the next call continues", model=MoveJson)
_ENDED = Answer(200, "the move, when it has ended", model=MoveJson)
RESOURCE: Resource[AdminContext] = Resource(
    "Databases",
    (
        Route(
            "GET",
            "/admin/shards",
            list_shards,
            needs="viewer",
            answers=(Answer(200, '`{"shards"}`; none for a deployment with one database', model=ShardsJson),),
        ),
        Route(
            "GET",
            "/admin/moves",
            list_moves,
            needs="viewer",
            query=QueryString(IdPageQuery),
            answers=(Answer(200, '`{"moves", "cursor"}`', model=MovesJson),),
            errors=("invalid_limit", "invalid_cursor"),
        ),
        Route(
            "GET",
            f"{_TENANT}/shard",
            show_shard,
            name="get_tenant_shard",
            needs="viewer",
            tenant_in="deployment",
            answers=(Answer(200, '`{"tenant", "shard", "move"}`; `move`: null without an open one', TenantShardJson),),
        ),
        Route(
            "POST",
            f"{_TENANT}/shard",
            move_tenant,
            needs="owner",
            tenant_in="deployment",
            body=JsonBody(MoveBody),
            takes="`shard`: the name of a database's binding",
            answers=(_MOVE, _ENDED),
            errors=_REFUSED,
        ),
        Route(
            "GET",
            f"{_TENANT}/moves/{{move_id}}",
            show_move,
            name="get_move",
            needs="viewer",
            tenant_in="deployment",
            answers=(Answer(200, "the move", model=MoveJson),),
            errors=("one_database", "no_such_move"),
        ),
        Route(
            "DELETE",
            f"{_TENANT}/moves/{{move_id}}",
            cancel_move,
            needs="owner",
            tenant_in="deployment",
            answers=(_MOVE, _ENDED),
            errors=("one_database", "no_such_move", "unknown_shard", "move_switched", "tenant_moving"),
        ),
    ),
    about="A deployment may have [several databases](shards.md). A tenant lives on one, and can be moved while it is used.",
)
