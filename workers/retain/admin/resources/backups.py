"""The administrator's routes for backups and restores."""

from __future__ import annotations

from pydantic import Field

from retain.admin.answers.lifecycle import BackupJobJson, BackupsJson
from retain.admin.context import AdminContext
from retain.http import Response, json_response
from retain.identifiers import check_id, check_tenant
from retain.lifecycle.backups.jobs import BackupJob, BackupJobs
from retain.lifecycle.backups.objects import Manifest
from retain.lifecycle.backups.restoring import RestoreRequest
from retain.routing.bodies import BodyModel, JsonBody
from retain.routing.permission import require_role
from retain.routing.queries import Cursor, QueryModel, QueryString
from retain.routing.requests import PathRequest, TypedRequest
from retain.routing.route import Answer, ErrorGroup, Resource, Route


class BackupsQuery(QueryModel):
    """Which backups to list."""

    cursor: Cursor = None


class RestoreBody(BodyModel):
    """The body of a restore."""

    source: str | None = Field(default=None, alias="from")
    backup: str | None = None
    at_ms: int | None = Field(default=None, ge=0)


async def back_up(context: AdminContext, request: PathRequest) -> Response:
    """Start a backup of the tenant, or continue the open one: 202 until it is completed."""
    return _shown(await context.backups().advance(request.tenant_id))


async def list_backups(context: AdminContext, request: TypedRequest[None, BackupsQuery]) -> Response:
    """List the tenant's complete backups, oldest first, even for a tenant that is not registered any more."""
    page = await context.backups().of(request.tenant_id).listed(after=request.query.cursor)
    return json_response({"backups": [one.to_json() for one in page.manifests], "cursor": page.cursor})


async def show_backup(context: AdminContext, request: PathRequest) -> Response:
    """Show a complete backup."""
    return json_response((await context.backups().of(request.tenant_id).get(request.path["backup_id"])).to_json())


async def remove_backup(context: AdminContext, request: PathRequest) -> Response:
    """Remove a backup and its objects."""
    await context.backups().remove(request.tenant_id, request.path["backup_id"])
    return Response(204, "")


async def restore(context: AdminContext, request: TypedRequest[RestoreBody, None]) -> Response:
    """Start a restore into the tenant, or continue the open one: 202 until it is completed."""
    body = request.body
    source = request.tenant_id if body.source is None else check_tenant(body.source)
    if source != request.tenant_id:
        await require_role(request.http.authority, "owner", source)
    backup_id = None if body.backup is None else check_id(body.backup)
    return _shown(await context.restoring().advance(request.tenant_id, RestoreRequest(source, backup_id, body.at_ms)))


async def show_restore(context: AdminContext, request: PathRequest) -> Response:
    """Show the progress of a restore."""
    return json_response((await BackupJobs(context.stores).get(request.tenant_id, request.path["job_id"])).to_json())


def _shown(job: BackupJob) -> Response:
    return json_response(job.to_json(), 200 if job.state == "completed" else 202)


_TENANT = "/admin/tenants/{tenant}"
_STOPPED = ErrorGroup("what stopped it: the job continues with the next call, or with the daily work")
RESOURCE: Resource[AdminContext] = Resource(
    "Backups",
    (
        Route(
            "POST",
            f"{_TENANT}/backups",
            back_up,
            name="start_backup",
            needs="operator",
            answers=(
                Answer(202, "[the job](lifecycle.md#backups), which the next call continues", model=BackupJobJson),
                Answer(200, "the job, when it is completed; its `job_id` is the backup's id", model=BackupJobJson),
            ),
            errors=("erasure_running", _STOPPED),
        ),
        Route(
            "GET",
            f"{_TENANT}/backups",
            list_backups,
            needs="viewer",
            query=QueryString(BackupsQuery),
            tenant="any",
            answers=(Answer(200, '`{"backups", "cursor"}`, oldest first, 40 on a page', model=BackupsJson),),
            errors=("invalid_cursor",),
        ),
        Route(
            "GET",
            f"{_TENANT}/backups/{{backup_id}}",
            show_backup,
            name="get_backup",
            needs="viewer",
            tenant="any",
            answers=(Answer(200, "the backup", model=Manifest),),
            errors=("no_such_backup", "invalid_id"),
        ),
        Route(
            "DELETE",
            f"{_TENANT}/backups/{{backup_id}}",
            remove_backup,
            name="delete_backup",
            needs="owner",
            tenant="any",
            answers=(Answer(204, "nothing"),),
            errors=("no_such_backup", "invalid_id"),
        ),
        Route(
            "POST",
            f"{_TENANT}/restore",
            restore,
            name="start_restore",
            needs="owner",
            body=JsonBody(RestoreBody),
            takes="[a restore](lifecycle.md#restore), each field optional: `from`, the tenant whose backups are read;"
            " `backup`, the id of one; `at_ms`, the point in time",
            answers=(
                Answer(202, "[the job](lifecycle.md#restore), which the same call continues", model=BackupJobJson),
                Answer(200, "the job, when it is completed", model=BackupJobJson),
            ),
            errors=(
                "invalid_body",
                "invalid_id",
                "invalid_tenant",
                "no_such_backup",
                "role_required",
                "restore_running",
                "erasure_running",
                "backup_incomplete",
                "item_unreadable",
                _STOPPED,
            ),
        ),
        Route(
            "GET",
            f"{_TENANT}/restore/{{job_id}}",
            show_restore,
            name="get_restore_job",
            needs="viewer",
            answers=(Answer(200, "the job", model=BackupJobJson),),
            errors=("no_such_job", "invalid_id"),
        ),
    ),
    about="Backups in R2, and restores to a point in time: see [backups](lifecycle.md#backups).",
)
