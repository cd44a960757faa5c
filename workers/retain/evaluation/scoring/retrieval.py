"""Retrieval metrics: the share of the relevant memories that was found, and their ranks. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import log2

from retain.evaluation.expectations import ExpectedMemories, RetrievalMetric
from retain.evaluation.scoring.scores import Score


def retrieval(retrieved: Sequence[str], wanted: ExpectedMemories) -> list[Score]:
    """Score what was retrieved, best first, by every metric; those with a bound decide whether the case passes."""
    ranked = list(dict.fromkeys(retrieved))
    grades, k = wanted.grades, wanted.k
    values: dict[RetrievalMetric, float] = {
        "recall": recall_at(ranked, grades, k),
        "precision": precision_at(ranked, grades, k),
        "mrr": reciprocal_rank(ranked, grades, k),
        "ndcg": ndcg_at(ranked, grades, k),
    }
    missed = [memory for memory in grades if memory not in ranked[:k]]
    detail = f"not among the first {k}: {', '.join(missed[:5])}" if missed else None
    return [
        Score(name, value, value >= wanted.at_least[name] if name in wanted.at_least else None, detail)
        for name, value in values.items()
    ]


def recall_at(ranked: Sequence[str], grades: Mapping[str, int], k: int) -> float:
    """Return recall at k: the share of the relevant ids that are in the top k.

    Source: https://nlp.stanford.edu/IR-book/html/htmledition/evaluation-of-ranked-retrieval-results-1.html
    """
    return _found(ranked, grades, k) / len(grades)


def precision_at(ranked: Sequence[str], grades: Mapping[str, int], k: int) -> float:
    """Return precision at k: the share of the top k ranks that hold a relevant id, empty ranks included.

    Source: https://nlp.stanford.edu/IR-book/html/htmledition/evaluation-of-ranked-retrieval-results-1.html
    """
    return _found(ranked, grades, k) / k


def reciprocal_rank(ranked: Sequence[str], grades: Mapping[str, int], k: int) -> float:
    """Return the reciprocal rank of the first relevant id in the top k, or 0. The mean over cases is MRR.

    Source: https://en.wikipedia.org/wiki/Mean_reciprocal_rank
    """
    return next((1 / rank for rank, memory in enumerate(ranked[:k], start=1) if memory in grades), 0.0)


def ndcg_at(ranked: Sequence[str], grades: Mapping[str, int], k: int) -> float:
    """Return the discounted cumulative gain of the top k, divided by that of the ideal order, with gain 2^grade - 1.

    Source: https://en.wikipedia.org/wiki/Discounted_cumulative_gain
    """
    ideal = _dcg(sorted(grades.values(), reverse=True)[:k])
    return min(1.0, _dcg([grades.get(memory, 0) for memory in ranked[:k]]) / ideal)


def _dcg(grades: Sequence[int]) -> float:
    return sum((2.0**grade - 1) / log2(rank + 1) for rank, grade in enumerate(grades, start=1))


def _found(ranked: Sequence[str], grades: Mapping[str, int], k: int) -> int:
    return sum(memory in grades for memory in ranked[:k])
