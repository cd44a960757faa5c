"""The administrator's routes: tenants, runs, memories."""

from __future__ import annotations

from collections.abc import Mapping

from retain.admin import mcp
from retain.admin.context import AdminContext
from retain.admin.resources import evals, ingest, items, lifecycle, memories, namespaces, procedures
from retain.admin.resources.runs import list_events, list_runs, page_limit, show_run
from retain.errors import Conflict
from retain.http import Request, Response, Route, json_response
from retain.identifiers import check_agent_type


async def register_tenant(context: AdminContext, request: Request, parameters: Mapping[str, str]) -> Response:  # noqa: ARG001
    """Register a tenant. Idempotent. One that was erased begins anew."""
    try:
        created = await context.tenants.register(parameters["tenant"])
    except Conflict as error:
        raise Conflict("the tenant is being erased; finish that first", code="tenant_being_erased") from error
    return json_response({"tenant": parameters["tenant"]}, 201 if created else 200)


async def get_runs(context: AdminContext, request: Request, parameters: Mapping[str, str]) -> Response:
    """List a tenant's runs, newest first."""
    tenant_id = await context.tenants.require(parameters["tenant"])
    agent_type = request.query.get("agent_type")
    page = await list_runs(
        context.sql,
        tenant_id,
        agent_type=None if agent_type is None else check_agent_type(agent_type),
        status=request.query.get("status"),
        limit=page_limit(request.query.get("limit")),
        cursor=request.query.get("cursor"),
    )
    return json_response(page)


async def get_run(context: AdminContext, request: Request, parameters: Mapping[str, str]) -> Response:  # noqa: ARG001
    """Show one run with its episodes."""
    tenant_id = await context.tenants.require(parameters["tenant"])
    return json_response(await show_run(context.sql, tenant_id, parameters["run_id"]))


async def get_events(context: AdminContext, request: Request, parameters: Mapping[str, str]) -> Response:
    """Show a run's timeline."""
    tenant_id = await context.tenants.require(parameters["tenant"])
    page = await list_events(
        context.sql,
        tenant_id,
        parameters["run_id"],
        limit=page_limit(request.query.get("limit"), 200),
        cursor=request.query.get("cursor"),
    )
    return json_response(page)


ROUTES: tuple[Route[AdminContext], ...] = (
    Route("PUT", "/admin/tenants/{tenant}", register_tenant),
    Route("POST", "/admin/seed-memory", memories.seed),
    Route("GET", "/admin/tenants/{tenant}/memories", memories.list_memories),
    Route("POST", "/admin/tenants/{tenant}/memories", memories.store),
    Route("POST", "/admin/tenants/{tenant}/memories/recall", memories.recall),
    Route("POST", "/admin/tenants/{tenant}/memories/ingest", ingest.ingest),
    Route("GET", "/admin/tenants/{tenant}/memories/ingest/{job_id}", ingest.show_job),
    Route("GET", "/admin/tenants/{tenant}/memories/{id}", memories.get),
    Route("PATCH", "/admin/tenants/{tenant}/memories/{id}", memories.edit),
    Route("DELETE", "/admin/tenants/{tenant}/memories/{id}", memories.delete),
    Route("POST", "/admin/tenants/{tenant}/mcp", mcp.serve),
    Route("POST", "/admin/tenants/{tenant}/items/reseal", items.reseal_items),
    Route("PUT", "/admin/tenants/{tenant}/items/{service}/{session}/{kind}/{id}", items.put_item),
    Route("GET", "/admin/tenants/{tenant}/items/{service}/{session}/{kind}/{id}", items.get_item),
    Route("DELETE", "/admin/tenants/{tenant}/items/{service}/{session}/{kind}/{id}", items.delete_item),
    Route("GET", "/admin/tenants/{tenant}/export", lifecycle.export_memories),
    Route("POST", "/admin/tenants/{tenant}/import", lifecycle.import_memories),
    Route("POST", "/admin/tenants/{tenant}/reindex", lifecycle.reindex),
    Route("GET", "/admin/tenants/{tenant}/reindex/{job_id}", lifecycle.show_index_job),
    Route("POST", "/admin/tenants/{tenant}/verify", lifecycle.verify),
    Route("POST", "/admin/tenants/{tenant}/erase", lifecycle.erase),
    Route("GET", "/admin/tenants/{tenant}/erase/{receipt_id}", lifecycle.show_receipt),
    Route("GET", "/admin/tenants/{tenant}/history", lifecycle.show_history),
    Route("GET", "/admin/tenants/{tenant}/history/verify", lifecycle.verify_history),
    Route("GET", "/admin/tenants/{tenant}/evals/datasets", evals.list_datasets),
    Route("PUT", "/admin/tenants/{tenant}/evals/datasets/{name}", evals.put_dataset),
    Route("GET", "/admin/tenants/{tenant}/evals/datasets/{name}", evals.show_dataset),
    Route("DELETE", "/admin/tenants/{tenant}/evals/datasets/{name}", evals.delete_dataset),
    Route("GET", "/admin/tenants/{tenant}/evals/runs", evals.list_evaluations),
    Route("POST", "/admin/tenants/{tenant}/evals/runs", evals.start),
    Route("GET", "/admin/tenants/{tenant}/evals/runs/{run_id}", evals.show),
    Route("POST", "/admin/tenants/{tenant}/evals/runs/{run_id}", evals.go_on),
    Route("DELETE", "/admin/tenants/{tenant}/evals/runs/{run_id}", evals.delete),
    Route("GET", "/admin/tenants/{tenant}/evals/runs/{run_id}/compare/{against}", evals.compare),
    Route("GET", "/admin/namespaces", namespaces.show),
    Route("POST", "/admin/namespaces/phase", namespaces.advance),
    Route("POST", "/admin/namespaces/rollback", namespaces.roll_back),
    Route("POST", "/admin/namespaces/releases", namespaces.release),
    Route("POST", "/admin/namespaces/backfill", namespaces.backfill),
    Route("GET", "/admin/agents/{tenant}/runs", get_runs),
    Route("GET", "/admin/agents/{tenant}/runs/{run_id}", get_run),
    Route("GET", "/admin/agents/{tenant}/runs/{run_id}/events", get_events),
    Route("POST", "/admin/agents/{tenant}/runs/{run_id}/outcome", procedures.record_outcome),
    Route("GET", "/admin/agents/{tenant}/procedures", procedures.list_procedures),
)
