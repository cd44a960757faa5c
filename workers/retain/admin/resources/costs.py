"""The route for costs: what a tenant spent, by day, agent, purpose and model, with the deployment's prices."""

from __future__ import annotations

from datetime import date
from typing import Annotated

from pydantic import BeforeValidator, Field

from retain.admin.answers.costs import CostsJson
from retain.admin.context import AdminContext
from retain.errors import InvalidInput
from retain.http import Response, json_response
from retain.models.prices import ModelPrices
from retain.routing.queries import AgentType, PageQuery, QueryString
from retain.routing.requests import TypedRequest
from retain.routing.route import Answer, Resource, Route
from retain.tenants.model_use import EPOCH, ModelUse, Purpose, WantedUse, model_use


def _day(text: object) -> date:
    """Return the day, as YYYY-MM-DD. Raises: ValueError."""
    try:
        day = date.fromisoformat(text) if isinstance(text, str) else None
    except ValueError:
        day = None
    if day is None or day.isoformat() != text or day < EPOCH:
        raise ValueError("must be a day from 1970 on, as 2026-01-31")
    return day


Day = Annotated[date, BeforeValidator(_day)]


class CostsQuery(PageQuery):
    """Which costs to list."""

    agent_type: AgentType | None = Field(default=None, description="only this agent's")
    purpose: Purpose | None = Field(default=None, description="only what was spent for this")
    since: Day | None = Field(default=None, description="only of this day and later ones, in UTC, as `2026-01-31`")
    until: Day | None = Field(default=None, description="only of days before this one")


async def list_costs(context: AdminContext, request: TypedRequest[None, CostsQuery]) -> Response:
    """List what a tenant spent, by the day on which its runs ended or its models answered, agent, purpose and model.

    The last day first.
    """
    query = request.query
    if query.since is not None and query.until is not None and query.since >= query.until:
        raise InvalidInput("since must be before until", code="invalid_query")
    prices = context.prices()
    wanted = WantedUse(query.agent_type, query.purpose, query.since, query.until)
    page = await model_use(context.sql, request.tenant_id, wanted, limit=query.limit, cursor=query.cursor)
    return json_response({"costs": [_shown(use, prices) for use in page.uses], "cursor": page.cursor})


def _shown(use: ModelUse, prices: ModelPrices) -> dict[str, object]:
    read, written = use.input_tokens + use.learning_input_tokens, use.output_tokens + use.learning_output_tokens
    return {
        "day": use.day.isoformat(),
        "agent_type": use.agent_type,
        "purpose": use.purpose,
        "model": use.model,
        "runs": use.runs,
        "calls": use.calls,
        "input_tokens": use.input_tokens,
        "cached_input_tokens": use.cached_input_tokens,
        "output_tokens": use.output_tokens,
        "learning_input_tokens": use.learning_input_tokens,
        "learning_cached_input_tokens": use.learning_cached_input_tokens,
        "learning_output_tokens": use.learning_output_tokens,
        "cost": prices.cost(use.model, read, written, use.cached_input_tokens + use.learning_cached_input_tokens),
    }


RESOURCE: Resource[AdminContext] = Resource(
    "Costs",
    (
        Route(
            "GET",
            "/admin/tenants/{tenant}/costs",
            list_costs,
            needs="viewer",
            scope="runs",
            query=QueryString(CostsQuery),
            answers=(
                Answer(
                    200,
                    '`{"costs", "cursor"}`, the last day first: for each `day`, `agent_type`, `purpose` and `model` the'
                    " `runs` that ended then, their tokens, and those of what was learned from them; for another purpose"
                    " than `run` the `calls` of the model, with an `agent_type` if they belong to an agent. `cost`: of all"
                    " these tokens,"
                    ' `{"value", "currency"}`, null for a model without a [price](costs.md#prices)',
                    model=CostsJson,
                ),
            ),
            errors=("invalid_agent_type", "invalid_query", "invalid_limit", "invalid_cursor", "invalid_setting"),
        ),
    ),
)
