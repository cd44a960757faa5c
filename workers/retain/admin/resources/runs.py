"""The administrator's routes for agents' runs, read from D1: by tenant, newest first."""

from __future__ import annotations

import asyncio
import json
import re
from dataclasses import replace
from typing import Any, Literal

from pydantic import Field, model_validator

from retain.admin.answers.runs import CancelledRunsJson, InspectedRunJson, RunEventsJson, RunsJson
from retain.admin.context import AdminContext
from retain.admin.run_list import IN_QUEUE, OPEN, STATUSES, WantedRuns, run_rows
from retain.agents.calls.client import InstanceClient
from retain.agents.calls.requests import CancelRequest
from retain.agents.identity import instance_of
from retain.errors import InvalidInput, NotFound, RetainError
from retain.http import Response, json_response
from retain.identifiers import check_agent_type, check_id
from retain.json_text import read_own_json
from retain.limits.pages import cut, sized
from retain.models.prices import ModelPrices
from retain.ports import AgentInstances, Row, Sql
from retain.roles.principals import person_named
from retain.routing.bodies import BodyModel, JsonBody
from retain.routing.queries import MAX_LIMIT, AgentType, PageLimit, PageQuery, QueryString, WholeNumber
from retain.routing.requests import PathRequest, TypedRequest
from retain.routing.route import Answer, Resource, Route

_POSITIONS = f"""
SELECT run_id, ROW_NUMBER() OVER (PARTITION BY agent_type, instance_id ORDER BY run_id) AS queue_position
FROM agent_runs INDEXED BY agent_runs_waiting
WHERE tenant_id = ? AND status = 'waiting' AND {IN_QUEUE} AND instance_id IN (SELECT value FROM json_each(?))
"""  # noqa: S608
_EVENT_CURSOR = re.compile(r"[0-9]{1,15}")


_PAID = ("model_answered", "answer_dropped")
_COUNTS = ("input_tokens", "output_tokens", "cached_input_tokens")
"""Events of calls that cost tokens."""
MAX_TEXT = 200
"""Longest text to search runs for, in characters."""
MAX_CANCELLED = 50
"""Most runs that one request cancels."""


class RunsQuery(PageQuery):
    """Which runs to list."""

    agent_type: AgentType | None = Field(default=None, description="only this agent's")
    instance_id: str | None = Field(default=None, max_length=64, description="only this instance's; needs `agent_type`")
    status: str | None = Field(
        default=None,
        description=f"only runs with this status: {', '.join(STATUSES)}; `{OPEN}`: any that have not ended",
    )
    by: str | None = Field(
        default=None,
        max_length=512,
        description="only those that this principal started: `person:` and a name, `key:` and an id, `agent:` and a type,"
        " or `retain`",
    )
    user_id: str | None = Field(default=None, max_length=128, description="only those that acted for this user")
    since_ms: WholeNumber | None = Field(default=None, description="only those that began at or after this time")
    until_ms: WholeNumber | None = Field(default=None, description="only those that began before this time")
    text: str | None = Field(
        default=None,
        min_length=1,
        max_length=MAX_TEXT,
        description="only those with this text in their input or answer; ASCII letters in either case",
    )


class EventsQuery(PageQuery):
    """Which part of a run's timeline to list."""

    limit: PageLimit = MAX_LIMIT


async def get_runs(context: AdminContext, request: TypedRequest[None, RunsQuery]) -> Response:
    """List a tenant's runs, newest first, or search them. The token of a user has the user's own."""
    query, bound = request.query, request.http.bound
    wanted = WantedRuns(
        agent_type=query.agent_type,
        instance_id=query.instance_id,
        status=query.status,
        by=query.by,
        user_id=query.user_id,
        since_ms=query.since_ms,
        until_ms=query.until_ms,
        text=query.text,
    )
    if bound is not None:
        own = None if wanted.instance_id is None else bound.instance(wanted.instance_id)
        wanted = replace(
            wanted, user_id=bound.user_id, agent_type=bound.agent_type or wanted.agent_type, instance_id=own
        )
    page = await list_runs(context.sql, request.tenant_id, wanted, limit=query.limit, cursor=query.cursor)
    return json_response({**page, "runs": _priced(page["runs"], context.prices())})


class CancelRunsBody(BodyModel):
    """Which open runs to cancel, and why. limit: how many at most. cursor: of the answer before."""

    agent_type: str | None = None
    instance_id: str | None = Field(default=None, max_length=64)
    user_id: str | None = Field(default=None, max_length=128)
    by: str | None = Field(default=None, max_length=512)
    status: Literal["queued", "running", "waiting"] | None = None
    reason: str | None = Field(default=None, max_length=1000)
    limit: int = Field(default=20, ge=1, le=MAX_CANCELLED)
    cursor: str | None = None

    @model_validator(mode="after")
    def _names_which(self) -> CancelRunsBody:
        if all(one is None for one in (self.agent_type, self.user_id, self.by, self.status)):
            raise ValueError("name the agent, the user, who started the runs, or their status")
        return self


async def cancel_runs(context: AdminContext, request: TypedRequest[CancelRunsBody, None]) -> Response:
    """Cancel the newest of the open runs that are named, each as when it is cancelled alone."""
    body, http = request.body, request.http
    wanted = WantedRuns(
        agent_type=None if body.agent_type is None else check_agent_type(body.agent_type),
        instance_id=body.instance_id,
        status=body.status or OPEN,
        by=body.by,
        user_id=body.user_id,
    )
    page = await run_rows(context.sql, request.tenant_id, wanted, limit=body.limit, cursor=body.cursor)
    by = http.principal or person_named(http.caller or "unknown")
    done = await asyncio.gather(*(_cancelled(context.stores.instances, row, by, body.reason) for row in page.rows))
    return json_response({"runs": done, "cursor": page.cursor})


async def _cancelled(instances: AgentInstances, row: Row, by: str, reason: str | None) -> dict[str, object]:
    """Cancel one run; return its status after that, or why it was not cancelled."""
    run_id = row["run_id"]
    named = {name: row[name] for name in ("run_id", "agent_type", "instance_id")}
    instance = InstanceClient(instances, instance_of(row["tenant_id"], row["agent_type"], row["instance_id"]))
    try:
        report = await instance.cancel(CancelRequest(run_id, by, reason))
    except RetainError as error:
        return {**named, "status": row["status"], "error": {"code": error.code, "message": error.message}}
    return {**named, "status": report.status, "error": None}


async def get_run(context: AdminContext, request: PathRequest) -> Response:
    """Show one run with its episodes."""
    run = await show_run(context.sql, request.tenant_id, request.path["run_id"])
    return json_response(_priced([run], context.prices())[0])


async def get_events(context: AdminContext, request: TypedRequest[None, EventsQuery]) -> Response:
    """Show a run's timeline, oldest first."""
    query = request.query
    run = await run_row(context.sql, request.tenant_id, request.path["run_id"])
    page = await events_of(context.sql, run, limit=query.limit, cursor=query.cursor)
    prices, model = context.prices(), run["model"]
    for event in page["events"]:
        if event["kind"] in _PAID:
            counts = (event["data"].get(name, 0) for name in _COUNTS)
            event["cost"] = prices.cost(model, *counts)
    return json_response(page)


async def list_runs(sql: Sql, tenant_id: str, wanted: WantedRuns, *, limit: int, cursor: str | None) -> dict[str, Any]:
    """Return {"runs", "cursor"}: newest first; the cursor is None on the last page. Raises: as `run_rows`."""
    page = await run_rows(sql, tenant_id, wanted, limit=limit, cursor=cursor)
    return {"runs": await _shown(sql, tenant_id, [{**row} for row in page.rows]), "cursor": page.cursor}


_LEFT = """
SELECT episode_id, turn, content, created_at_ms FROM memory_episodes WHERE run_id = ? AND tenant_id = ? ORDER BY turn
"""
_READ = """
SELECT episode_id, run_id, turn, content, created_at_ms FROM memory_episodes
WHERE episode_id IN (SELECT value FROM json_each(?)) AND +tenant_id = ?
"""
_DELEGATED = (
    "SELECT run_id, agent_type, status FROM agent_runs WHERE parent_run_id = ? AND tenant_id = ? ORDER BY run_id"
)


async def show_run(sql: Sql, tenant_id: str, run_id: str) -> dict[str, Any]:
    """Return a run with its input and context, the episodes that it left, and the runs that it delegated.

    The row refers to the episodes in its context. Those that are still there are shown with their texts, the others
    as `gone`.
    Raises: NotFound (code `no_such_run`), also for another tenant's run; InvalidInput; Unavailable.
    """
    row = await run_row(sql, tenant_id, run_id)
    logged = read_own_json(row["input"])
    ids = [str(episode["episode_id"]) for episode in logged.get("episodes", [])]
    left, read, children = await sql.batch(
        [
            (_LEFT, (run_id, tenant_id)),
            (_READ, (json.dumps(ids), tenant_id)),
            (_DELEGATED, (run_id, tenant_id)),
        ]
    )
    there = {str(episode["episode_id"]): episode for episode in read.rows}
    if ids:
        logged["episodes"] = [
            {**there[one], "gone": False} if one in there else {"episode_id": one, "gone": True} for one in ids
        ]
    [shown] = await _shown(sql, tenant_id, [{**row}])
    return {
        **shown,
        "input": logged,
        "error": _parsed(row["error"]),
        "learning": _parsed(row["learning"]),
        "episodes": [dict(episode) for episode in left.rows],
        "delegated": [dict(child) for child in children.rows],
    }


_EVENTS = """
SELECT seq, turn, kind, data, at_ms FROM run_events WHERE run_id = ? AND tenant_id = ? AND seq > ? ORDER BY seq LIMIT ?
"""


async def list_events(sql: Sql, tenant_id: str, run_id: str, *, limit: int, cursor: str | None) -> dict[str, Any]:
    """Return {"events", "cursor"}: the run's timeline, oldest first. Raises: as `show_run`."""
    return await events_of(sql, await run_row(sql, tenant_id, run_id), limit=limit, cursor=cursor)


async def events_of(sql: Sql, run: Row, *, limit: int, cursor: str | None) -> dict[str, Any]:
    """Return a page of the timeline of a run whose row is known, as `list_events` does."""
    if cursor is not None and _EVENT_CURSOR.fullmatch(cursor) is None:
        raise InvalidInput("the cursor is not valid", code="invalid_cursor")
    result = await sql.run(
        sized(_EVENTS, "seq", "data"),
        run["run_id"],
        run["tenant_id"],
        int(cursor or 0),
        limit + 1,
    )
    rows, more = cut(result.rows, limit)
    shown = [{name: row[name] for name in ("seq", "turn", "kind", "data", "at_ms")} for row in rows]
    events = [{**row, "data": read_own_json(row["data"])} for row in shown]
    return {"events": events, "cursor": str(events[-1]["seq"]) if more else None}


async def _shown(sql: Sql, tenant_id: str, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return runs as they are shown: a queued one with its position in the queue of its instance."""
    runs = [_renamed({**row, "waiting_for": _parsed(row["waiting_for"])}) for row in rows]
    queued = [run for run in runs if run["status"] == "waiting" and (run["waiting_for"] or {}).get("kind") == "queue"]
    if queued:
        instances = json.dumps(sorted({run["instance_id"] for run in queued}))
        positions = {
            row["run_id"]: row["queue_position"] for row in (await sql.run(_POSITIONS, tenant_id, instances)).rows
        }
        for run in queued:  # one that has begun since it was read has none
            run |= {"status": "queued", "waiting_for": None, "queue_position": positions.get(run["run_id"])}
    return runs


def _priced(runs: list[dict[str, Any]], prices: ModelPrices) -> list[dict[str, Any]]:
    """Return the runs, each with the cost of its own tokens: those of delegated runs and of learning are not among them."""
    return [{**run, "cost": prices.cost(run["model"], *(run[name] for name in _COUNTS))} for run in runs]


def _renamed(row: dict[str, Any]) -> dict[str, Any]:
    """Return a run with `by`, which is a reserved word in SQL, instead of `started_by`."""
    return {("by" if name == "started_by" else name): value for name, value in row.items()}


def _parsed(text: str | None) -> Any:
    return None if text is None else read_own_json(text)


async def run_row(sql: Sql, tenant_id: str, run_id: str) -> Row:
    """Return the run's row. Raises: InvalidInput; NotFound (code `no_such_run`); Unavailable."""
    rows = (
        await sql.run("SELECT * FROM agent_runs WHERE run_id = ? AND tenant_id = ?", check_id(run_id), tenant_id)
    ).rows
    if not rows:
        raise NotFound("there is no such run", code="no_such_run")
    return rows[0]


_RUNS = "/admin/agents/{tenant}/runs"
RESOURCE: Resource[AdminContext] = Resource(
    "Runs of a tenant",
    (
        Route(
            "GET",
            _RUNS,
            get_runs,
            name="list_runs",
            needs="viewer",
            scope="runs",
            for_users=True,
            query=QueryString(RunsQuery),
            answers=(
                Answer(
                    200,
                    '`{"runs", "cursor"}`, newest first. A page may have fewer runs than were asked for, or none, before the'
                    " last: conditions that no index answers are tried on 500 runs for a page. A waiting one has in"
                    " `waiting_for` what is asked, a [queued](agents.md#a-busy-instance) one its `queue_position`",
                    model=RunsJson,
                ),
            ),
            errors=("invalid_agent_type", "invalid_status", "invalid_query", "invalid_limit", "invalid_cursor"),
        ),
        Route(
            "POST",
            f"{_RUNS}/cancel",
            cancel_runs,
            needs="operator",
            scope="runs",
            body=JsonBody(CancelRunsBody),
            takes="`agent_type`, with `instance_id` if it is one instance; `user_id`; `by`: who started them; `status`:"
            " `queued`, `running` or `waiting`; at least one of the four. `limit`, 20 unless given, 50 at most; `reason`,"
            " and the `cursor` of the answer before",
            answers=(
                Answer(
                    200,
                    '`{"runs", "cursor"}`: each with its `status` after that (`cancelled`, or `running` while'
                    " [a call ends](agents.md#cancelling)), or the `error` with which its instance refused. A `cursor` means"
                    " that there may be more",
                    model=CancelledRunsJson,
                ),
            ),
            errors=("invalid_agent_type", "invalid_query", "invalid_cursor"),
        ),
        Route(
            "GET",
            f"{_RUNS}/{{run_id}}",
            get_run,
            name="inspect_run",
            needs="viewer",
            scope="runs",
            answers=(
                Answer(
                    200,
                    "the run, with its `input` (and what was in its context: an episode with its text, or `gone`), the"
                    " `episodes` it left, the runs it `delegated`, and what was [learned](agents.md#learning) from it"
                    " (`learning`). `texts`: `kept`, or `removed` after 90 days",
                    model=InspectedRunJson,
                ),
            ),
            errors=("no_such_run", "invalid_id"),
        ),
        Route(
            "GET",
            f"{_RUNS}/{{run_id}}/events",
            get_events,
            name="list_run_events",
            needs="viewer",
            scope="runs",
            query=QueryString(EventsQuery),
            answers=(Answer(200, '`{"events", "cursor"}`: the timeline, oldest first', model=RunEventsJson),),
            errors=("no_such_run", "invalid_id", "invalid_limit", "invalid_cursor"),
        ),
    ),
)
