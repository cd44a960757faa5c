"""The administrator's handlers for the migration of tiered memory's keys. It is the deployment's, not a tenant's."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import BaseModel, ConfigDict

from retain.admin.context import AdminContext
from retain.bodies import parsed
from retain.http import Request, Response, json_response


class PhaseBody(BaseModel):
    """The body of an advance. baseline: the least canonical hit rate, given with phase 1 or not at all."""

    model_config = ConfigDict(extra="forbid")

    to: int
    baseline: float | None = None


class RollbackBody(BaseModel):
    """The body of a rollback."""

    model_config = ConfigDict(extra="forbid")

    to: int


class ReleaseBody(BaseModel):
    """The body that records a release."""

    model_config = ConfigDict(extra="forbid")

    release: str


class BackfillBody(BaseModel):
    """The body of a step of the backfill. again: begin anew."""

    model_config = ConfigDict(extra="forbid")

    again: bool = False


async def show(context: AdminContext, request: Request, parameters: Mapping[str, str]) -> Response:  # noqa: ARG001
    """Show phase, flags, measured cycles, backfill, and what stands in the way of the next phase."""
    migration = context.migration()
    return json_response(migration.shown(await migration.standing()))


async def advance(context: AdminContext, request: Request, parameters: Mapping[str, str]) -> Response:  # noqa: ARG001
    """Begin the next phase. Idempotent."""
    body, migration = parsed(PhaseBody, request), context.migration()
    return json_response(migration.shown(await migration.advance(body.to, body.baseline)))


async def roll_back(context: AdminContext, request: Request, parameters: Mapping[str, str]) -> Response:  # noqa: ARG001
    """Go back one phase. Idempotent; removes nothing."""
    body, migration = parsed(RollbackBody, request), context.migration()
    return json_response(migration.shown(await migration.roll_back(body.to)))


async def release(context: AdminContext, request: Request, parameters: Mapping[str, str]) -> Response:  # noqa: ARG001
    """Record a release, which closes a cycle and opens the next. Idempotent by its name."""
    body, migration = parsed(ReleaseBody, request), context.migration()
    return json_response(migration.shown(await migration.release(body.release)))


async def backfill(context: AdminContext, request: Request, parameters: Mapping[str, str]) -> Response:  # noqa: ARG001
    """Copy a page of legacy values: 202 until all are done."""
    body, work, migration = parsed(BackfillBody, request), context.backfill(), context.migration()
    if body.again:
        await work.again()
    done = await work.step()
    return json_response(migration.shown(await migration.standing()), 200 if done else 202)
