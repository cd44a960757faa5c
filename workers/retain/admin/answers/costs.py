"""Costs of a tenant."""

from __future__ import annotations

from typing_extensions import TypedDict

from retain.models.prices import CostJson


class DayCostJson(TypedDict):
    """What one agent's runs that ended on one day, in UTC, spent on one model.

    input_tokens, output_tokens: of the runs' own answers. learning_…: of what was learned from them. cost: of all these
    tokens; null for a model without a price.
    """

    day: str
    agent_type: str
    model: str
    runs: int
    input_tokens: int
    output_tokens: int
    learning_input_tokens: int
    learning_output_tokens: int
    cost: CostJson | None


class CostsJson(TypedDict):
    """A page of costs, the last day first."""

    costs: list[DayCostJson]
    cursor: str | None
