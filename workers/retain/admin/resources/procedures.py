"""The administrator's handlers for procedures: telling what came of a run, and reading what was learned."""

from __future__ import annotations

import json
from collections.abc import Mapping

from pydantic import BaseModel, ConfigDict

from retain.admin.context import AdminContext
from retain.admin.resources.runs import run_row
from retain.bodies import parsed
from retain.errors import Conflict
from retain.http import Request, Response, json_response
from retain.identifiers import check_agent_type, namespace_key
from retain.memory.procedures.posterior import check_score

_LEARNED = """
SELECT agent_type, task_type, workflow_id, COUNT(*) AS outcomes, AVG(score) AS mean_score FROM procedure_outcomes
WHERE tenant_id = ? AND (? IS NULL OR agent_type = ?)
GROUP BY agent_type, task_type, workflow_id ORDER BY agent_type, task_type, workflow_id
"""


class OutcomeBody(BaseModel):
    """What came of a run. score: 0 (failure) to 1 (success); one in between counts in part to each."""

    model_config = ConfigDict(extra="forbid", strict=True)

    score: float


async def record_outcome(context: AdminContext, request: Request, parameters: Mapping[str, str]) -> Response:
    """Tell what came of a run that followed a workflow. Idempotent; another score takes the place of the first."""
    tenant_id = await context.tenants.require(parameters["tenant"])
    score = check_score(parsed(OutcomeBody, request).score)
    run = await run_row(context.sql, tenant_id, parameters["run_id"])
    followed = json.loads(run["input"]).get("procedure")
    if followed is None:
        raise Conflict("the run followed no workflow: its agent has no procedures", code="no_procedure")
    told = {
        "tenant_id": tenant_id,
        "agent_type": run["agent_type"],
        "instance_id": run["instance_id"],
        "run_id": run["run_id"],
        "task_type": followed["task_type"],
        "workflow_id": followed["workflow_id"],
        "score": score,
    }
    name = namespace_key(run["agent_type"], tenant_id, run["instance_id"])
    learned = await context.stores.instances.call(name, "record_outcome", told)
    return json_response({**{key: told[key] for key in ("run_id", "task_type", "workflow_id", "score")}, **learned})


async def list_procedures(context: AdminContext, request: Request, parameters: Mapping[str, str]) -> Response:
    """Show what the tenant's agents learned of their workflows, over all their instances."""
    tenant_id = await context.tenants.require(parameters["tenant"])
    agent_type = request.query.get("agent_type")
    if agent_type is not None:
        check_agent_type(agent_type)
    rows = (await context.sql.run(_LEARNED, tenant_id, agent_type, agent_type)).rows
    return json_response({"procedures": [dict(row) for row in rows]})
