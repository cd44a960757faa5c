"""The administrator's routes for evaluation: datasets, runs over them, comparison."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from retain.admin.answers.evaluation import (
    ComparisonJson,
    DatasetInfoJson,
    DatasetsJson,
    EvaluationJson,
    EvaluationProgressJson,
    EvaluationsJson,
    ShownDatasetJson,
)
from retain.admin.context import AdminContext
from retain.admin.resources.memories import OF_A_MEMORY
from retain.evaluation.comparison import comparison
from retain.evaluation.dataset import DATASET_NAME, Dataset, check_dataset_name
from retain.evaluation.datasets import Datasets
from retain.evaluation.runner import Progress
from retain.evaluation.runs import EvalRuns
from retain.http import Response, idempotency_key, json_response
from retain.routing.bodies import BodyModel, JsonBody
from retain.routing.parameters import PathParameter
from retain.routing.queries import Cursor, IdPageQuery, PageQuery, QueryModel, QueryString, WholeNumber, naming
from retain.routing.requests import PathRequest, TypedRequest
from retain.routing.route import Answer, Resource, Route

_LAST_ID = "7" + "Z" * 25


class StartBody(BodyModel):
    """What to evaluate: the dataset's current version."""

    dataset: str


class DatasetsQuery(PageQuery):
    """Which datasets to list."""

    cursor: Annotated[Cursor, naming(check_dataset_name)] = None


class EvaluationsQuery(IdPageQuery):
    """Which runs to list."""

    dataset: str | None = Field(default=None, description="only runs over this dataset")


async def list_datasets(context: AdminContext, request: TypedRequest[None, DatasetsQuery]) -> Response:
    """List the tenant's datasets by name."""
    query = request.query
    found = await _datasets(context).page(request.tenant_id, after=query.cursor or "", limit=query.limit)
    cursor = found[-1].name if len(found) == query.limit else None
    return json_response({"datasets": [dataset.to_json() for dataset in found], "cursor": cursor})


async def put_dataset(context: AdminContext, request: TypedRequest[Dataset, None]) -> Response:
    """Store a dataset under its name. Idempotent: 201 if the content is new, otherwise 200."""
    info, new = await _datasets(context).put(request.tenant_id, request.path["name"], request.body)
    return json_response(info.to_json(), 201 if new else 200)


async def show_dataset(context: AdminContext, request: PathRequest) -> Response:
    """Show a dataset with its cases; an erased case is null."""
    datasets = _datasets(context)
    info = await datasets.info(request.tenant_id, request.path["name"])
    cases = await datasets.cases(request.tenant_id, info.name, info.version)
    return json_response({**info.to_json(), "cases": cases})


async def delete_dataset(context: AdminContext, request: PathRequest) -> Response:
    """Delete a dataset; the results of its runs stay."""
    await _datasets(context).delete(request.tenant_id, request.path["name"])
    return Response(204, "")


async def list_evaluations(context: AdminContext, request: TypedRequest[None, EvaluationsQuery]) -> Response:
    """List runs, newest first, without their results."""
    query = request.query
    found = await _runs(context).page(
        request.tenant_id, dataset=query.dataset, before=query.cursor or _LAST_ID, limit=query.limit
    )
    following = found[-1]["run_id"] if len(found) == query.limit else None
    return json_response({"runs": found, "cursor": following})


async def start(context: AdminContext, request: TypedRequest[StartBody, None]) -> Response:
    """Start a run and execute its first cases: 202 until it is completed."""
    tenant_id, key = request.tenant_id, idempotency_key(request.http)
    info = await _datasets(context).info(tenant_id, request.body.dataset)
    recall = info.target.recall
    agent_type = info.target.agent if recall is None else recall.agent_type
    if agent_type is not None:
        await context.agents.definition(tenant_id, agent_type)
    run_id, _ = await _runs(context).start(tenant_id, info, key)
    return _shown(await context.evaluation().advance(tenant_id, run_id))


async def resume(context: AdminContext, request: PathRequest) -> Response:
    """Resume a run: 202 until it is completed."""
    return _shown(await context.evaluation().advance(request.tenant_id, request.path["run_id"]))


async def cancel(context: AdminContext, request: PathRequest) -> Response:
    """Cancel a run: its open cases are errored, and no further one begins. Idempotent."""
    return _shown(await context.evaluation().cancel(request.tenant_id, request.path["run_id"]))


class ResultsQuery(QueryModel):
    """Which results of a run to show."""

    cursor: WholeNumber | None = Field(default=None, description="`cursor` of the previous page")


async def show(context: AdminContext, request: TypedRequest[None, ResultsQuery]) -> Response:
    """Show a run with its results so far."""
    after = -1 if request.query.cursor is None else request.query.cursor
    return json_response((await _runs(context).get(request.tenant_id, request.path["run_id"], after=after)).to_json())


async def delete(context: AdminContext, request: PathRequest) -> Response:
    """Delete a completed run with its results."""
    await _runs(context).delete(request.tenant_id, request.path["run_id"])
    return Response(204, "")


async def compare(context: AdminContext, request: PathRequest) -> Response:
    """Compare a run with another one over the same version of a dataset."""
    runs = _runs(context)
    run = await runs.get(request.tenant_id, request.path["run_id"])
    return json_response(comparison(run, await runs.get(request.tenant_id, request.path["against"])))


def _shown(progress: Progress) -> Response:
    shown = {"run": progress.run.to_json(), "retry_after_ms": progress.retry_after_ms}
    return json_response(shown, 200 if progress.retry_after_ms is None else 202)


def _datasets(context: AdminContext) -> Datasets:
    return Datasets(context.sql, context.clock)


def _runs(context: AdminContext) -> EvalRuns:
    return EvalRuns(context.sql, context.clock)


_DATASETS = "/admin/tenants/{tenant}/evals/datasets"
_DATASET = {"name": PathParameter(DATASET_NAME.pattern, check_dataset_name)}
_RUNS = "/admin/tenants/{tenant}/evals/runs"
_RUN = f"{_RUNS}/{{run_id}}"
_PROGRESS = (
    Answer(202, '[`{"run", "retry_after_ms"}`](#an-evaluation) until it is completed', model=EvaluationProgressJson),
    Answer(200, "the same, then", model=EvaluationProgressJson),
)
RESOURCE: Resource[AdminContext] = Resource(
    "Evaluation",
    (
        Route(
            "GET",
            _DATASETS,
            list_datasets,
            needs="viewer",
            query=QueryString(DatasetsQuery),
            answers=(Answer(200, '`{"datasets", "cursor"}`, by name, without their cases', model=DatasetsJson),),
            errors=("invalid_limit", "invalid_cursor"),
        ),
        Route(
            "PUT",
            f"{_DATASETS}/{{name}}",
            put_dataset,
            needs="operator",
            body=JsonBody(Dataset),
            parameters=_DATASET,
            takes="[a dataset](evaluation.md#a-dataset)",
            answers=(
                Answer(
                    201,
                    '`{"name", "version", "description", "target", "thresholds", "cases", "created_at_ms",'
                    ' "updated_at_ms"}`',
                    model=DatasetInfoJson,
                ),
                Answer(200, "the same, when it already has this content", model=DatasetInfoJson),
            ),
            errors=("invalid_dataset_name", "too_many_datasets", OF_A_MEMORY),
        ),
        Route(
            "GET",
            f"{_DATASETS}/{{name}}",
            show_dataset,
            name="get_dataset",
            needs="viewer",
            parameters=_DATASET,
            answers=(Answer(200, "the dataset, with its `cases`", model=ShownDatasetJson),),
            errors=("no_such_dataset", "invalid_dataset_name"),
        ),
        Route(
            "DELETE",
            f"{_DATASETS}/{{name}}",
            delete_dataset,
            needs="operator",
            parameters=_DATASET,
            answers=(Answer(204, "results of its runs stay"),),
            errors=("no_such_dataset", "invalid_dataset_name", "evaluation_running"),
        ),
        Route(
            "GET",
            _RUNS,
            list_evaluations,
            needs="viewer",
            query=QueryString(EvaluationsQuery),
            answers=(Answer(200, '`{"runs", "cursor"}`, newest first, with their counts', model=EvaluationsJson),),
            errors=("invalid_limit", "invalid_cursor"),
        ),
        Route(
            "POST",
            _RUNS,
            start,
            name="start_evaluation",
            needs="operator",
            body=JsonBody(StartBody),
            takes="`dataset`: its name",
            headers={"idempotency-key": "1 to 255 bytes: a repeated request gets the same run"},
            answers=_PROGRESS,
            errors=(
                "invalid_dataset_name",
                "no_such_dataset",
                "unknown_agent",
                "agent_deleted",
                "agent_unreadable",
                "dataset_changed",
                "idempotency_key_reused",
                "invalid_idempotency_key",
            ),
        ),
        Route(
            "GET",
            _RUN,
            show,
            name="get_evaluation",
            needs="viewer",
            query=QueryString(ResultsQuery),
            answers=(
                Answer(
                    200,
                    "the run, with a page of its results so far; with its `cursor` the next page is shown",
                    model=EvaluationJson,
                ),
            ),
            errors=("no_such_evaluation", "invalid_id"),
        ),
        Route(
            "POST",
            _RUN,
            resume,
            name="resume_evaluation",
            needs="operator",
            answers=_PROGRESS,
            errors=("no_such_evaluation", "invalid_id"),
        ),
        Route(
            "POST",
            f"{_RUN}/cancel",
            cancel,
            name="cancel_evaluation",
            needs="operator",
            answers=_PROGRESS,
            errors=("no_such_evaluation", "invalid_id"),
        ),
        Route(
            "DELETE",
            _RUN,
            delete,
            name="delete_evaluation",
            needs="operator",
            answers=(Answer(204, "a completed run is deleted with its results"),),
            errors=("no_such_evaluation", "invalid_id", "evaluation_running"),
        ),
        Route(
            "GET",
            f"{_RUN}/compare/{{against}}",
            compare,
            name="compare_evaluations",
            needs="viewer",
            answers=(
                Answer(
                    200,
                    '`{"dataset", "version", "run_id", "against", "counts", "averages", "cases"}`',
                    model=ComparisonJson,
                ),
            ),
            errors=("no_such_evaluation", "invalid_id", "runs_not_comparable", "evaluation_running"),
        ),
    ),
)
