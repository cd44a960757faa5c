"""The comparison of two runs over the same version of a dataset. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, Literal

from retain.errors import Conflict
from retain.evaluation.results import EXACTNESS, OUTCOMES, Result, summary
from retain.evaluation.runs import EvalRun

Verdict = Literal["better", "worse", "equal"]


def comparison(run: EvalRun, against: EvalRun) -> dict[str, Any]:
    """Return the comparison of a run with another one: each case's verdict, and the differences of the averages.

    Raises: Conflict (code `runs_not_comparable`) for runs over different datasets or versions, (code `evaluation_running`)
        while one of them has open cases.
    """
    if (run.dataset, run.version) != (against.dataset, against.version):
        raise Conflict("the runs are over different datasets or versions", code="runs_not_comparable")
    if run.state == "running" or against.state == "running":
        raise Conflict("a run can be compared once all its cases are scored", code="evaluation_running")
    pairs = list(zip(run.results, against.results, strict=True))
    verdicts = [verdict(result, other) for result, other in pairs]
    new, old = summary(run.results, {}).averages or {}, summary(against.results, {}).averages or {}
    counts = Counter(verdicts)
    return {
        "dataset": run.dataset,
        "version": run.version,
        "run_id": run.run_id,
        "against": against.run_id,
        "counts": {name: counts[name] for name in ("better", "worse", "equal")},
        "averages": {
            metric: {
                "run": new.get(metric),
                "against": old.get(metric),
                "delta": _delta(new.get(metric), old.get(metric)),
            }
            for metric in sorted({*new, *old})
        },
        "cases": [
            {
                "case_id": result.case_id,
                "verdict": found,
                "run": result.outcome,
                "against": other.outcome,
                "deltas": _deltas(result, other),
            }
            for found, (result, other) in zip(verdicts, pairs, strict=True)
        ],
    }


def verdict(result: Result, against: Result) -> Verdict:
    """Return how a scored result of a case compares with another: by outcome, then by the mean of its scores."""
    ranks = [OUTCOMES.index(one.outcome) if one.outcome is not None else -1 for one in (result, against)]
    if ranks[0] != ranks[1]:
        return "better" if ranks[0] > ranks[1] else "worse"
    difference = _mean(result) - _mean(against)
    if abs(difference) <= EXACTNESS:
        return "equal"
    return "better" if difference > 0 else "worse"


def _mean(result: Result) -> float:
    values: Sequence[float] = [score.value for score in result.scores]
    return sum(values) / len(values) if values else 0.0


def _deltas(result: Result, against: Result) -> dict[str, float]:
    old = {score.name: score.value for score in against.scores}
    found = {score.name: score.value - old[score.name] for score in result.scores if score.name in old}
    return {name: round(delta, 9) for name, delta in found.items()}


def _delta(new: float | None, old: float | None) -> float | None:
    return None if new is None or old is None else round(new - old, 9)
