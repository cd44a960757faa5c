"""Costs of a tenant."""

from __future__ import annotations

from typing_extensions import TypedDict

from retain.models.prices import CostJson
from retain.tenants.model_use import Purpose


class DayCostJson(TypedDict):
    """What was spent on one model on one day, in UTC, for one purpose: by runs that ended then, or by other calls.

    agent_type: empty for what belongs to no agent. runs: 0 for another purpose than `run`. calls: how often the model was
    asked; null for runs. input_tokens, output_tokens: of the runs' own answers, or of
    the calls. cached_input_tokens: those of the input tokens that the cache of the model's server supplied. learning_…: of
    what was learned from the runs. cost: of all these tokens; null for a model without a price.
    """

    day: str
    agent_type: str
    purpose: Purpose
    model: str
    runs: int
    calls: int | None
    input_tokens: int
    cached_input_tokens: int
    output_tokens: int
    learning_input_tokens: int
    learning_cached_input_tokens: int
    learning_output_tokens: int
    cost: CostJson | None


class CostsJson(TypedDict):
    """A page of costs, the last day first."""

    costs: list[DayCostJson]
    cursor: str | None
