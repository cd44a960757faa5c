"""What is believed of a workflow's success, and the choice between workflows. Pure.

Thompson sampling: draw a success rate from each workflow's Beta posterior and take the workflow with the highest draw.
Source: Thompson, "On the likelihood that one unknown probability exceeds another in view of the evidence of two
samples", Biometrika 25 (1933), https://doi.org/10.1093/biomet/25.3-4.285; regret logarithmic in the number of choices:
Agrawal and Goyal, https://proceedings.mlr.press/v23/agrawal12.html
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random

from retain.errors import InvalidInput

PRIOR_STRENGTH = 10.0
"""The most outcomes that others' learning counts as: enough to start well, few enough to unlearn soon."""


@dataclass(frozen=True, slots=True)
class Posterior:
    """Beta(alpha, beta) over a workflow's success rate. The default is uniform, for when nothing is known."""

    alpha: float = 1.0
    beta: float = 1.0

    def after(self, score: float, count: int = 1) -> Posterior:
        """Return the belief after `count` outcomes that sum to `score`. One between 0 and 1 adds to both parameters."""
        return Posterior(self.alpha + score, self.beta + count - score)

    @property
    def mean(self) -> float:
        """The expected success rate."""
        return self.alpha / (self.alpha + self.beta)


def choose(posteriors: Mapping[str, Posterior], random: Random) -> str:
    """Return the workflow with the highest draw, ties by id. Deterministic for equal posteriors and seeds.

    The order of the mapping does not matter. Raises: ValueError when there is no workflow.
    """
    draws = {name: random.betavariate(posteriors[name].alpha, posteriors[name].beta) for name in sorted(posteriors)}
    return max(sorted(draws), key=lambda name: draws[name])


def prior(score: float, count: int) -> Posterior:
    """Return the initial belief when others had `count` outcomes that sum to `score`."""
    weight = min(1.0, PRIOR_STRENGTH / count) if count else 0.0
    return Posterior(1.0 + weight * score, 1.0 + weight * (count - score))


def check_score(value: object) -> float:
    """Return an outcome's score. Raises: InvalidInput (code `invalid_score`) unless it is a number from 0 to 1."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise InvalidInput("a score is a number from 0 (failure) to 1 (success)", code="invalid_score")
    return float(value)
