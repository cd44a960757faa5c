"""The administrator's routes for procedures: record the outcome of a run, show what was learned."""

from __future__ import annotations

from pydantic import Field

from retain.admin.answers.runs import ProceduresJson, RunOutcomeJson
from retain.admin.context import AdminContext
from retain.admin.resources.runs import run_row
from retain.errors import Conflict
from retain.http import Response, json_response
from retain.identifiers import namespace_key
from retain.json_text import read_own_json
from retain.memory.procedures.posterior import check_score
from retain.routing.bodies import BodyModel, JsonBody
from retain.routing.queries import AgentType, QueryModel, QueryString
from retain.routing.requests import TypedRequest
from retain.routing.route import Answer, Resource, Route

_LEARNED = """
SELECT agent_type, task_type, workflow_id, COUNT(*) AS outcomes, AVG(score) AS mean_score FROM procedure_outcomes
WHERE tenant_id = ? AND (? IS NULL OR agent_type = ?)
GROUP BY agent_type, task_type, workflow_id ORDER BY agent_type, task_type, workflow_id
"""


class OutcomeBody(BodyModel):
    """The outcome of a run. score: 0 (failure) to 1 (success); a score in between counts partly as each."""

    score: float


class LearnedQuery(QueryModel):
    """Whose workflows to show."""

    agent_type: AgentType | None = Field(default=None, description="only this agent's")


async def record_outcome(context: AdminContext, request: TypedRequest[OutcomeBody, None]) -> Response:
    """Record the outcome of a run that followed a workflow. Idempotent; another score replaces the first."""
    tenant_id = request.tenant_id
    score = check_score(request.body.score)
    run = await run_row(context.sql, tenant_id, request.path["run_id"])
    followed = read_own_json(run["input"]).get("procedure")
    if followed is None:
        raise Conflict("the run followed no workflow: its agent has no procedures", code="no_procedure")
    outcome = {
        "tenant_id": tenant_id,
        "agent_type": run["agent_type"],
        "instance_id": run["instance_id"],
        "run_id": run["run_id"],
        "task_type": followed["task_type"],
        "workflow_id": followed["workflow_id"],
        "score": score,
    }
    name = namespace_key(run["agent_type"], tenant_id, run["instance_id"])
    learned = await context.stores.instances.call(name, "record_outcome", outcome)
    return json_response({**{key: outcome[key] for key in ("run_id", "task_type", "workflow_id", "score")}, **learned})


async def list_procedures(context: AdminContext, request: TypedRequest[None, LearnedQuery]) -> Response:
    """Show what the tenant's agents learned of their workflows, over all their instances."""
    agent_type = request.query.agent_type
    rows = (await context.sql.run(_LEARNED, request.tenant_id, agent_type, agent_type)).rows
    return json_response({"procedures": [dict(row) for row in rows]})


RESOURCE: Resource[AdminContext] = Resource(
    "Procedures",
    (
        Route(
            "POST",
            "/admin/agents/{tenant}/runs/{run_id}/outcome",
            record_outcome,
            name="record_run_outcome",
            needs="operator",
            scope="runs",
            body=JsonBody(OutcomeBody),
            takes="`score`: 0 (failure) to 1 (success)",
            answers=(
                Answer(
                    200,
                    '`{"run_id", "task_type", "workflow_id", "score", "posterior"}`: what the instance believes of the'
                    " workflow now; recording the same score again changes nothing, another score replaces the first",
                    model=RunOutcomeJson,
                ),
            ),
            errors=("no_such_run", "invalid_id", "invalid_score", "no_procedure", "outbox_waits"),
        ),
        Route(
            "GET",
            "/admin/agents/{tenant}/procedures",
            list_procedures,
            needs="viewer",
            scope="runs",
            query=QueryString(LearnedQuery),
            answers=(
                Answer(
                    200,
                    '`{"procedures"}`: for each workflow the number of `outcomes` and their `mean_score`, over all'
                    " instances",
                    model=ProceduresJson,
                ),
            ),
            errors=("invalid_agent_type",),
        ),
    ),
)
