"""The outcome of a run: its results, their averages, and the thresholds for these. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Literal

from retain.evaluation.expectations import Metric
from retain.evaluation.scoring.scores import Score
from retain.json_text import JsonObject, read_own_json
from retain.ports import Row

Outcome = Literal["passed", "failed", "errored"]
OUTCOMES: tuple[Outcome, ...] = ("errored", "failed", "passed")
"""From worst to best."""
EXACTNESS = 1e-9
"""Averages of floats that differ by less are equal."""


@dataclass(frozen=True, slots=True)
class Result:
    """The result of one case. outcome: None until it is scored; `errored` is neither passed nor failed, and counts as 0."""

    position: int
    case_id: str
    state: Literal["pending", "running", "scored"]
    outcome: Outcome | None = None
    output: str | None = None
    observed: JsonObject | None = None
    scores: tuple[Score, ...] = ()
    error: Mapping[str, str] | None = None
    started_at_ms: int | None = None
    scored_at_ms: int | None = None

    def to_json(self) -> JsonObject:
        """Return the result as shown."""
        return asdict(self)


def result_of(row: Row, texts: Row | None) -> Result:
    """Return the result in a row. texts: what the case answered and did, None to leave it out."""
    scores = [Score(**score) for score in read_own_json(row["scores"] or "[]")]
    return Result(
        int(row["position"]),
        row["case_id"],
        row["state"],
        row["outcome"],
        None if texts is None else texts["output"],
        None if texts is None or not texts["observed"] else read_own_json(texts["observed"]),
        tuple(scores),
        read_own_json(row["error"]) if row["error"] else None,
        row["started_at_ms"],
        row["scored_at_ms"],
    )


@dataclass(frozen=True, slots=True)
class Summary:
    """A run in numbers.

    averages: `pass_rate` over all cases, and each metric over the cases that have it, and those of which nobody could read
    what is scored; None until every case is scored.
    below: the metrics whose threshold is not reached; empty while `averages` is None.
    """

    total: int
    passed: int
    failed: int
    errored: int
    open: int
    averages: Mapping[Metric, float] | None
    below: tuple[Metric, ...]

    def to_json(self) -> JsonObject:
        """Return it as shown; thresholds_met: None until every case is scored."""
        return {**asdict(self), "thresholds_met": None if self.averages is None else not self.below}


def summary(results: Sequence[Result], thresholds: Mapping[Metric, float]) -> Summary:
    """Return a run in numbers."""
    counts = {outcome: sum(result.outcome == outcome for result in results) for outcome in OUTCOMES}
    waiting = sum(result.outcome is None for result in results)
    averages = None if waiting else _averages(results)
    below = tuple(
        metric
        for metric, bound in thresholds.items()
        if averages is not None and averages.get(metric, 0.0) < bound - EXACTNESS
    )
    return Summary(len(results), counts["passed"], counts["failed"], counts["errored"], waiting, averages, below)


def _averages(results: Sequence[Result]) -> dict[Metric, float]:
    values: dict[Metric, list[float]] = {}
    for result in results:
        for score in result.scores:
            values.setdefault(score.name, []).append(score.value)
    unread = sum(result.outcome == "errored" and not result.scores for result in results)
    averages = {metric: sum(found) / (len(found) + unread) for metric, found in values.items()}
    return {"pass_rate": sum(result.outcome == "passed" for result in results) / len(results), **averages}
