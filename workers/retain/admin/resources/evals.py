"""The administrator's handlers for evaluation: datasets, runs over them, comparison."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import BaseModel, ConfigDict

from retain.admin.context import AdminContext
from retain.admin.resources.runs import page_limit
from retain.bodies import parsed
from retain.errors import InvalidInput
from retain.evaluation.comparison import comparison
from retain.evaluation.dataset import Dataset
from retain.evaluation.datasets import Datasets
from retain.evaluation.runner import Progress
from retain.evaluation.runs import EvalRuns
from retain.http import Request, Response, json_response
from retain.identifiers import check_id

_LAST_ID = "7" + "Z" * 25


class StartBody(BaseModel):
    """What to evaluate: the dataset's current version."""

    model_config = ConfigDict(extra="forbid")

    dataset: str


async def list_datasets(context: AdminContext, request: Request, parameters: Mapping[str, str]) -> Response:
    """List the tenant's datasets by name."""
    tenant_id = await context.tenants.require(parameters["tenant"])
    limit = page_limit(request.query.get("limit"))
    found = await _datasets(context).page(tenant_id, after=request.query.get("cursor", ""), limit=limit)
    cursor = found[-1].name if len(found) == limit else None
    return json_response({"datasets": [dataset.to_json() for dataset in found], "cursor": cursor})


async def put_dataset(context: AdminContext, request: Request, parameters: Mapping[str, str]) -> Response:
    """Let a name stand for a dataset. Idempotent: 201 for another content than before, else 200."""
    tenant_id = await context.tenants.require(parameters["tenant"])
    info, new = await _datasets(context).put(tenant_id, parameters["name"], parsed(Dataset, request))
    return json_response(info.to_json(), 201 if new else 200)


async def show_dataset(context: AdminContext, request: Request, parameters: Mapping[str, str]) -> Response:  # noqa: ARG001
    """Show a dataset with its cases; an erased case is null."""
    tenant_id = await context.tenants.require(parameters["tenant"])
    datasets = _datasets(context)
    info = await datasets.info(tenant_id, parameters["name"])
    cases = await datasets.cases(tenant_id, info.name, info.version)
    return json_response({**info.to_json(), "cases": cases})


async def delete_dataset(context: AdminContext, request: Request, parameters: Mapping[str, str]) -> Response:  # noqa: ARG001
    """Forget a dataset; the results of its runs stay."""
    tenant_id = await context.tenants.require(parameters["tenant"])
    await _datasets(context).delete(tenant_id, parameters["name"])
    return Response(204, "")


async def list_evaluations(context: AdminContext, request: Request, parameters: Mapping[str, str]) -> Response:
    """List runs, newest first, without their results."""
    tenant_id = await context.tenants.require(parameters["tenant"])
    limit, cursor = page_limit(request.query.get("limit")), request.query.get("cursor")
    before = _LAST_ID if cursor is None else check_id(cursor)
    found = await _runs(context).page(tenant_id, dataset=request.query.get("dataset"), before=before, limit=limit)
    following = found[-1]["run_id"] if len(found) == limit else None
    return json_response({"runs": found, "cursor": following})


async def start(context: AdminContext, request: Request, parameters: Mapping[str, str]) -> Response:
    """Start a run and carry out its first cases: 202 until it is completed."""
    tenant_id = await context.tenants.require(parameters["tenant"])
    body = parsed(StartBody, request)
    key = request.headers.get("idempotency-key")
    if key is not None and not 1 <= len(key.encode()) <= 255:
        raise InvalidInput("an idempotency key has 1 to 255 bytes", code="invalid_idempotency_key")
    info = await _datasets(context).info(tenant_id, body.dataset)
    recall = info.target.get("recall") or {}
    agent_type = info.target.get("agent") or recall.get("agent_type")
    if agent_type is not None:
        context.house_of(agent_type)
    run_id, _ = await _runs(context).start(tenant_id, info, key)
    return _shown(await context.evaluation().advance(tenant_id, run_id))


async def go_on(context: AdminContext, request: Request, parameters: Mapping[str, str]) -> Response:  # noqa: ARG001
    """Go on with a run: 202 until it is completed."""
    tenant_id = await context.tenants.require(parameters["tenant"])
    return _shown(await context.evaluation().advance(tenant_id, parameters["run_id"]))


async def show(context: AdminContext, request: Request, parameters: Mapping[str, str]) -> Response:  # noqa: ARG001
    """Show a run with its results so far."""
    tenant_id = await context.tenants.require(parameters["tenant"])
    return json_response((await _runs(context).get(tenant_id, parameters["run_id"])).to_json())


async def delete(context: AdminContext, request: Request, parameters: Mapping[str, str]) -> Response:  # noqa: ARG001
    """Forget a completed run with its results."""
    tenant_id = await context.tenants.require(parameters["tenant"])
    await _runs(context).delete(tenant_id, parameters["run_id"])
    return Response(204, "")


async def compare(context: AdminContext, request: Request, parameters: Mapping[str, str]) -> Response:  # noqa: ARG001
    """Compare a run with another one over the same version of a dataset."""
    tenant_id = await context.tenants.require(parameters["tenant"])
    runs = _runs(context)
    run = await runs.get(tenant_id, parameters["run_id"])
    return json_response(comparison(run, await runs.get(tenant_id, parameters["against"])))


def _shown(progress: Progress) -> Response:
    shown = {"run": progress.run.to_json(), "retry_after_ms": progress.retry_after_ms}
    return json_response(shown, 200 if progress.retry_after_ms is None else 202)


def _datasets(context: AdminContext) -> Datasets:
    return Datasets(context.sql, context.clock)


def _runs(context: AdminContext) -> EvalRuns:
    return EvalRuns(context.sql, context.clock)
