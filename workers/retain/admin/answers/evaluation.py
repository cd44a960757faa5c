"""Datasets, evaluations and comparisons."""

from __future__ import annotations

from typing import Literal

from typing_extensions import TypedDict

from retain.evaluation.results import Outcome, Result
from retain.json_text import JsonObject


class DatasetInfoJson(TypedDict):
    """A dataset without its cases. cases: how many it has."""

    name: str
    version: str
    description: str
    target: JsonObject
    thresholds: dict[str, float]
    cases: int
    created_at_ms: int
    updated_at_ms: int


class DatasetsJson(TypedDict):
    """A page of datasets, by name."""

    datasets: list[DatasetInfoJson]
    cursor: str | None


class ShownDatasetJson(TypedDict):
    """A dataset with its cases; an erased one is null."""

    name: str
    version: str
    description: str
    target: JsonObject
    thresholds: dict[str, float]
    cases: list[JsonObject | None]
    created_at_ms: int
    updated_at_ms: int


class ListedEvaluationJson(TypedDict):
    """A run over a dataset in a list, with its counts."""

    run_id: str
    dataset: str
    version: str
    state: str
    created_at_ms: int
    scored_at_ms: int | None
    completed_at_ms: int | None
    total: int
    passed: int
    failed: int
    errored: int


class EvaluationsJson(TypedDict):
    """A page of runs over datasets, newest first."""

    runs: list[ListedEvaluationJson]
    cursor: str | None


class SummaryOfResultsJson(TypedDict):
    """An evaluation in numbers. averages, thresholds_met: null until every case is scored."""

    total: int
    passed: int
    failed: int
    errored: int
    open: int
    averages: dict[str, float] | None
    below: list[str]
    thresholds_met: bool | None


class EvaluationJson(TypedDict):
    """A run over a dataset, with a page of its results."""

    run_id: str
    dataset: str
    version: str
    target: JsonObject
    thresholds: dict[str, float]
    state: str
    summary: SummaryOfResultsJson
    results: list[Result]
    cursor: str | None
    created_at_ms: int
    scored_at_ms: int | None
    completed_at_ms: int | None


class EvaluationProgressJson(TypedDict):
    """An evaluation, and when to ask again: null once it is completed."""

    run: EvaluationJson
    retry_after_ms: int | None


class ComparedAverageJson(TypedDict):
    """The average of a metric in both runs; null where a run does not have it."""

    run: float | None
    against: float | None
    delta: float | None


class ComparedCaseJson(TypedDict):
    """The results of a case in both runs."""

    case_id: str
    verdict: Literal["better", "worse", "equal"]
    run: Outcome | None
    against: Outcome | None
    deltas: dict[str, float]


class ComparisonJson(TypedDict):
    """A run compared with another one."""

    dataset: str
    version: str
    run_id: str
    against: str
    counts: dict[str, int]
    averages: dict[str, ComparedAverageJson]
    cases: list[ComparedCaseJson]
