"""The comparison of two runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retain.errors import Conflict
from retain.evaluation.comparison import comparison, verdict
from retain.evaluation.dataset import Definition
from retain.evaluation.results import OUTCOMES, Outcome, Result
from retain.evaluation.runs import EvalRun
from retain.evaluation.scoring.scores import Score

RESULTS = st.builds(
    lambda outcome, values: result(outcome, *values),
    st.sampled_from(OUTCOMES),
    st.lists(st.sampled_from([0.0, 0.5, 1.0]), min_size=2, max_size=2),
)


def result(outcome: Outcome, *values: float, position: int = 0) -> Result:
    named = zip(("contains", "matches"), values, strict=False)
    scores = tuple(Score(name, value, value == 1) for name, value in named)  # type: ignore[arg-type]
    return Result(position, f"c{position}", "scored", outcome, scores=scores)


def run(results: Sequence[Result], **fields: Any) -> EvalRun:
    definition = Definition.model_validate({"target": {"agent": "sdr"}})
    placed = tuple(replace(one, position=number, case_id=f"c{number}") for number, one in enumerate(results))
    return replace(EvalRun("r", "acme", "set", "v1", definition, "completed", placed, 0, 0, 0), **fields)


@pytest.mark.parametrize(
    ("new", "old", "wanted"),
    [
        pytest.param(result("passed"), result("failed", 1.0), "better", id="it passes now"),
        pytest.param(result("errored"), result("failed"), "worse", id="an error is worse than a failure"),
        pytest.param(result("failed", 0.5, 1.0), result("failed", 1.0, 0.0), "better", id="it fails by less"),
        pytest.param(result("passed", 0.1, 0.2), result("passed", 0.2, 0.1), "equal", id="the same in sum"),
    ],
)
def test_a_case_is_judged_by_its_outcome_then_by_its_scores(new: Result, old: Result, wanted: str) -> None:
    assert verdict(new, old) == wanted


@given(RESULTS, RESULTS)
def test_a_verdict_is_reversed_with_its_runs(one: Result, other: Result) -> None:
    turned = {"better": "worse", "worse": "better", "equal": "equal"}
    assert verdict(one, other) == turned[verdict(other, one)]
    assert verdict(one, one) == "equal"


@given(st.lists(st.tuples(RESULTS, RESULTS), min_size=1, max_size=6))
def test_counts_and_differences_agree_with_the_cases(pairs: list[tuple[Result, Result]]) -> None:
    found = comparison(run([new for new, _ in pairs]), run([old for _, old in pairs], run_id="s"))
    assert sum(found["counts"].values()) == len(pairs)
    for name, count in found["counts"].items():
        assert count == sum(case["verdict"] == name for case in found["cases"])
    rate = found["averages"]["pass_rate"]
    passed = [sum(one.outcome == "passed" for one in side) for side in zip(*pairs, strict=True)]
    assert rate["delta"] == pytest.approx((passed[0] - passed[1]) / len(pairs))


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"version": "v2"}, "runs_not_comparable"),
        ({"dataset": "other"}, "runs_not_comparable"),
        ({"state": "running"}, "evaluation_running"),
    ],
)
def test_what_cannot_be_compared_is_refused(fields: dict[str, Any], code: str) -> None:
    one = run([result("passed", 1.0)])
    for pair in ((one, replace(one, **fields)), (replace(one, **fields), one)):
        with pytest.raises(Conflict) as refused:
            comparison(*pair)
        assert refused.value.code == code
    assert comparison(one, replace(one, state="cleaning"))["counts"]["equal"] == 1
