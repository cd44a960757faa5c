"""The administrator's routes for the migration of tiered memory's keys, which covers all tenants of the deployment."""

from __future__ import annotations

from retain.admin.answers.lifecycle import KeyMigrationJson
from retain.admin.context import AdminContext
from retain.http import Response, json_response
from retain.routing.bodies import BodyModel, JsonBody
from retain.routing.requests import PathRequest, TypedRequest
from retain.routing.route import Answer, Resource, Route


class PhaseBody(BodyModel):
    """The body of an advance. baseline: the lowest acceptable canonical hit rate, only with phase 1."""

    to: int
    baseline: float | None = None


class RollbackBody(BodyModel):
    """The body of a rollback."""

    to: int


class ReleaseBody(BodyModel):
    """The body that records a release."""

    release: str


class BackfillBody(BodyModel):
    """The body of a step of the backfill. again: start from the beginning."""

    again: bool = False


async def show(context: AdminContext, _: PathRequest) -> Response:
    """Show phase, flags, measured cycles, backfill, and the obstacles to the next phase."""
    migration = context.migration()
    return json_response(migration.shown(await migration.standing()))


async def advance(context: AdminContext, request: TypedRequest[PhaseBody, None]) -> Response:
    """Start the next phase. Idempotent."""
    body, migration = request.body, context.migration()
    return json_response(migration.shown(await migration.advance(body.to, body.baseline)))


async def roll_back(context: AdminContext, request: TypedRequest[RollbackBody, None]) -> Response:
    """Return to the previous phase. Idempotent; removes nothing."""
    body, migration = request.body, context.migration()
    return json_response(migration.shown(await migration.roll_back(body.to)))


async def release(context: AdminContext, request: TypedRequest[ReleaseBody, None]) -> Response:
    """Record a release, which closes a cycle and opens the next. Idempotent by its name."""
    body, migration = request.body, context.migration()
    return json_response(migration.shown(await migration.release(body.release)))


async def backfill(context: AdminContext, request: TypedRequest[BackfillBody, None]) -> Response:
    """Copy a page of legacy values: 202 until all are done."""
    body, work, migration = request.body, context.backfill(), context.migration()
    if body.again:
        await work.again()
    done = await work.step()
    return json_response(migration.shown(await migration.standing()), 200 if done else 202)


RESOURCE: Resource[AdminContext] = Resource(
    "Migration of keys",
    (
        Route(
            "GET",
            "/admin/namespaces",
            show,
            name="get_key_migration",
            needs="viewer",
            answers=(Answer(200, "[the state of the migration](#the-migration-of-keys)", model=KeyMigrationJson),),
            errors=("invalid_legacy_pattern", "ambiguous_legacy_pattern"),
        ),
        Route(
            "POST",
            "/admin/namespaces/phase",
            advance,
            name="advance_key_migration",
            needs="operator",
            body=JsonBody(PhaseBody),
            takes="`to`: the next phase, `baseline` (with phase 1; 0.99)",
            answers=(
                Answer(
                    200,
                    "the migration's state; a request for the current phase changes nothing",
                    model=KeyMigrationJson,
                ),
            ),
            errors=("not_ready", "wrong_phase", "invalid_baseline", "migration_moved"),
        ),
        Route(
            "POST",
            "/admin/namespaces/rollback",
            roll_back,
            name="roll_back_key_migration",
            needs="operator",
            body=JsonBody(RollbackBody),
            takes="`to`: the previous phase",
            answers=(Answer(200, "the migration's state. Removes nothing", model=KeyMigrationJson),),
            errors=("wrong_phase", "migration_moved"),
        ),
        Route(
            "POST",
            "/admin/namespaces/releases",
            release,
            name="record_release",
            needs="operator",
            body=JsonBody(ReleaseBody),
            takes="`release`: its name",
            answers=(Answer(200, "the migration's state; idempotent by name", model=KeyMigrationJson),),
            errors=("invalid_release", "wrong_phase", "migration_moved"),
        ),
        Route(
            "POST",
            "/admin/namespaces/backfill",
            backfill,
            name="backfill_keys",
            needs="operator",
            body=JsonBody(BackfillBody),
            takes="`again`: true to start from the beginning",
            answers=(
                Answer(202, "the migration's state, until all is copied", model=KeyMigrationJson),
                Answer(200, "the same, then", model=KeyMigrationJson),
            ),
            errors=("backfill_not_allowed",),
        ),
    ),
)
