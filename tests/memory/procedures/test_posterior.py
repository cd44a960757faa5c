"""Posteriors of workflows, and the choice between workflows."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retain.errors import InvalidInput
from retain.memory.procedures.posterior import PRIOR_STRENGTH, Posterior, check_score, choose, prior

SCORES = st.floats(0, 1)
POSTERIORS = st.dictionaries(
    st.text("abcdef", min_size=1, max_size=3),
    st.builds(Posterior, st.floats(1, 500), st.floats(1, 500)),
    min_size=1,
    max_size=6,
)


@given(st.lists(SCORES, max_size=30))
def test_each_outcome_adds_a_success_and_a_failure_share_that_sum_to_one(scores: list[float]) -> None:
    belief = Posterior()
    for score in scores:
        belief = belief.after(score)
    assert belief.alpha + belief.beta == pytest.approx(2 + len(scores))
    assert belief.alpha == pytest.approx(1 + sum(scores))


@given(st.permutations([0.0, 0.25, 0.5, 1.0, 1.0]))
def test_the_order_of_outcomes_does_not_matter(scores: list[float]) -> None:
    one_by_one = Posterior()
    for score in scores:
        one_by_one = one_by_one.after(score)
    assert one_by_one == Posterior().after(sum(scores), len(scores))


@given(st.integers(0, 10_000), SCORES)
def test_a_prior_from_others_keeps_its_mean_and_has_little_weight(count: int, mean: float) -> None:
    begun = prior(mean * count, count)
    strength = begun.alpha + begun.beta - 2
    assert strength == pytest.approx(min(count, PRIOR_STRENGTH))
    assert begun.alpha - 1 == pytest.approx(mean * strength)


@given(POSTERIORS, st.integers())
def test_the_same_seed_makes_the_same_choice_in_any_order_of_workflows(
    posteriors: dict[str, Posterior], seed: int
) -> None:
    backwards = dict(reversed(posteriors.items()))
    assert choose(posteriors, Random(seed)) == choose(backwards, Random(seed))


def test_a_choice_follows_the_posteriors_and_still_explores() -> None:
    posteriors = {"good": Posterior(8, 3), "poor": Posterior(3, 8), "unknown": Posterior()}
    chosen = Counter(choose(posteriors, Random(seed)) for seed in range(2000))
    assert chosen["good"] > chosen["unknown"] > chosen["poor"] > 0


def test_equal_draws_are_decided_by_id() -> None:
    class Level(Random):
        def betavariate(self, alpha: float, beta: float) -> float:
            return 0.5

    assert choose({"b": Posterior(), "a": Posterior()}, Level()) == "a"


def test_a_choice_among_no_workflows_is_refused() -> None:
    with pytest.raises(ValueError, match="empty"):
        choose({}, Random(0))


@pytest.mark.parametrize("value", [-0.1, 1.1, float("nan"), float("inf"), True, "1", None], ids=str)
def test_a_score_is_a_number_from_0_to_1(value: object) -> None:
    with pytest.raises(InvalidInput) as refused:
        check_score(value)
    assert refused.value.code == "invalid_score"
