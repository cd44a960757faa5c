"""The administrator's routes for schedules: runs that begin at a time, or at every time of a cron expression."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, JsonValue, model_validator

from retain.admin.answers.runs import ScheduleJson, SchedulesJson
from retain.admin.context import AdminContext
from retain.admin.schedules.listed import WantedSchedules, schedule_of, schedule_page, shown
from retain.agents.calls.asked import AskedRun, UserBody
from retain.agents.calls.client import InstanceClient
from retain.agents.calls.schedule import NamedSchedule, NewSchedule, ScheduleState
from retain.agents.calls.timing import Timing
from retain.agents.calls.user import User
from retain.agents.identity import instance_of
from retain.agents.queueing.schedules import MAX_SCHEDULES
from retain.errors.codes import Code
from retain.http import Response, idempotency_key, json_response
from retain.identifiers import check_agent_type
from retain.routing.bodies import BodyModel, JsonBody
from retain.routing.queries import AgentType, PageQuery, QueryString
from retain.routing.requests import PathRequest, TypedRequest
from retain.routing.route import Answer, Resource, Route


class ScheduleBody(BodyModel):
    """A schedule to create.

    instance_id: where its runs are; a new instance unless given. user: for whom they act. cron: five fields, in `timezone`:
    IANA, the user's unless given, or UTC. at_ms: the time of the only run, instead.
    """

    agent_type: str
    input: str | dict[str, JsonValue]
    instance_id: str | None = None
    metadata: dict[str, JsonValue] = Field(default_factory=dict)
    output_schema: dict[str, JsonValue] | None = None
    user: UserBody | None = None
    cron: str | None = None
    timezone: str | None = None
    at_ms: int | None = None

    @model_validator(mode="after")
    def _due_in_one_way(self) -> ScheduleBody:
        if (self.cron is None) is (self.at_ms is None):
            raise ValueError("a schedule has either cron or at_ms")
        if self.timezone is not None and self.cron is None:
            raise ValueError("timezone is that of cron")
        return self

    def timing(self, user: User | None) -> Timing:
        """Return when it is due. user: for whom its runs act."""
        of_user = None if user is None else user.timezone
        return Timing(self.cron, None if self.cron is None else self.timezone or of_user or "UTC", self.at_ms)


class ScheduleStateBody(BodyModel):
    """What a schedule is to be."""

    state: Literal["active", "paused"]


class SchedulesQuery(PageQuery):
    """Which schedules to list."""

    agent_type: AgentType | None = Field(default=None, description="only this instance's; needs `instance_id`")
    instance_id: str | None = Field(default=None, max_length=64, description="only this instance's; needs `agent_type`")
    user_id: str | None = Field(default=None, max_length=128, description="only those whose runs act for this user")
    state: ScheduleState | None = Field(default=None, description="only `active`, `paused` or `ended` ones")


async def list_schedules(context: AdminContext, request: TypedRequest[None, SchedulesQuery]) -> Response:
    """List the schedules of the tenant, the newest first."""
    query = request.query
    wanted = WantedSchedules(query.agent_type, query.instance_id, query.user_id, query.state)
    page = await schedule_page(context.sql, request.tenant_id, wanted, limit=query.limit, cursor=query.cursor)
    return json_response({"schedules": [one.to_json() for one in page.schedules], "cursor": page.cursor})


async def create_schedule(context: AdminContext, request: TypedRequest[ScheduleBody, None]) -> Response:
    """Create a schedule: runs that begin without being asked for."""
    body, http = request.body, request.http
    await context.agents.require(request.tenant_id, check_agent_type(body.agent_type))
    instance_id, asked = AskedRun(
        body.input,
        body.metadata,
        body.instance_id,
        idempotency_key(http),
        user=None if body.user is None else body.user.to_user(),
        output_schema=body.output_schema,
    ).checked(http)
    instance = InstanceClient(context.stores.instances, instance_of(request.tenant_id, body.agent_type, instance_id))
    made = await instance.schedule(NewSchedule(asked, body.timing(asked.user)))
    return json_response(shown(instance.identity, {**made}), 201)


async def get_schedule(context: AdminContext, request: PathRequest) -> Response:
    """Show one schedule."""
    known = await schedule_of(context.sql, request.tenant_id, request.path["schedule_id"])
    return json_response(known.to_json())


async def change_schedule(context: AdminContext, request: TypedRequest[ScheduleStateBody, None]) -> Response:
    """Pause a schedule, or let it be due again. What was due while it was paused does not begin."""
    instance, schedule_id = await _instance(context, request.tenant_id, request.path["schedule_id"])
    changed = await instance.change_schedule(NamedSchedule(schedule_id, request.body.state))
    return json_response(shown(instance.identity, {**changed}))


async def delete_schedule(context: AdminContext, request: PathRequest) -> Response:
    """Delete a schedule. Its runs stay, also one that is under way."""
    instance, schedule_id = await _instance(context, request.tenant_id, request.path["schedule_id"])
    await instance.delete_schedule(NamedSchedule(schedule_id))
    return Response(204, "")


async def _instance(context: AdminContext, tenant_id: str, schedule_id: str) -> tuple[InstanceClient, str]:
    """Return the instance of a schedule. Raises: NotFound (code `no_such_schedule`); Unavailable."""
    known = await schedule_of(context.sql, tenant_id, schedule_id)
    return InstanceClient(context.stores.instances, known.instance), schedule_id


_SCHEDULES = "/admin/tenants/{tenant}/schedules"
_SCHEDULE = f"{_SCHEDULES}/{{schedule_id}}"
_OF_A_SCHEDULE: tuple[Code, ...] = ("no_such_schedule", "invalid_id", "invalid_tenant", "unknown_tenant")
RESOURCE: Resource[AdminContext] = Resource(
    "Schedules",
    (
        Route(
            "GET",
            _SCHEDULES,
            list_schedules,
            needs="viewer",
            scope="runs",
            query=QueryString(SchedulesQuery),
            answers=(Answer(200, '`{"schedules", "cursor"}`, the newest first', model=SchedulesJson),),
            errors=(
                "invalid_agent_type",
                "invalid_query",
                "invalid_limit",
                "invalid_cursor",
                "invalid_tenant",
                "unknown_tenant",
            ),
        ),
        Route(
            "POST",
            _SCHEDULES,
            create_schedule,
            needs="operator",
            scope="runs",
            body=JsonBody(ScheduleBody),
            takes="`agent_type`, and as [a run](#a-run) `input`, `instance_id`, `metadata`, `output_schema`, `user`; either"
            f" `cron` with `timezone`, or `at_ms`. An instance has at most {MAX_SCHEDULES} that have not ended",
            headers={
                "idempotency-key": "1 to 255 bytes: a repeated request gets the same schedule, until a week after it ended"
            },
            answers=(
                Answer(
                    201,
                    "the schedule. `next_at_ms`: when its next run is to begin; `last_run_id`, `last_at_ms`, `last_error`:"
                    " the result of the last one",
                    model=ScheduleJson,
                ),
            ),
            errors=(
                "invalid_cron",
                "unknown_time_zone",
                "invalid_at_ms",
                "too_many_schedules",
                "unknown_agent",
                "agent_deleted",
                "agent_unreadable",
                "invalid_agent_type",
                "invalid_instance_id",
                "invalid_user",
                "wrong_user",
                "invalid_idempotency_key",
                "idempotency_key_reused",
                "instance_busy",
                "input_too_large",
                "metadata_too_large",
                "schema_too_large",
                "invalid_schema",
                "unknown_task_type",
                "invalid_tenant",
                "unknown_tenant",
            ),
        ),
        Route(
            "GET",
            _SCHEDULE,
            get_schedule,
            needs="viewer",
            scope="runs",
            answers=(Answer(200, "the schedule", model=ScheduleJson),),
            errors=_OF_A_SCHEDULE,
        ),
        Route(
            "PATCH",
            _SCHEDULE,
            change_schedule,
            needs="operator",
            scope="runs",
            body=JsonBody(ScheduleStateBody),
            takes="`state`: `paused`, or `active` again",
            answers=(Answer(200, "the schedule", model=ScheduleJson),),
            errors=("schedule_ended", "outbox_waits", "instance_busy", "wrong_user", "unknown_agent", *_OF_A_SCHEDULE),
        ),
        Route(
            "DELETE",
            _SCHEDULE,
            delete_schedule,
            needs="operator",
            scope="runs",
            answers=(Answer(204, media_types=()),),
            errors=_OF_A_SCHEDULE,
        ),
    ),
    about="Runs that begin without being asked for: see [schedules](schedules.md).",
)
