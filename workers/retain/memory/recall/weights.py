"""The weights of the ranking formula: docs/decisions/0007-recall.md says why each is what it is."""

from __future__ import annotations

from dataclasses import dataclass, replace

from retain.memory.recall.query import Query


@dataclass(frozen=True, slots=True)
class Weights:
    """The parameters that were chosen by measurement.

    before, after: how much a word counts that is one, two, three turns earlier or later: answers follow their questions.
    reported: `dated` where only turns of conversations were found. short: the most characters of a record with
    shortness 1.
    """

    vector: float = 6.0
    words: float = 9.0
    related: float = 2.0
    around: float = 2.0
    recency: float = 0.5
    following: float = 2.0
    answering: float = 2.0
    temporal: float = 2.0
    dated: float = 3.0
    reported: float = 1.5
    only_dated: float = 30.0
    fullness: float = 1.0
    standing: float = 2.0
    preference: float = 2.5
    speaker: float = 0.5
    alone: float = 1.0
    asking: float = -1.0
    assistant: float = -1.5
    exact: float = 9.0
    importance: float = 1.0
    confidence: float = 1.0
    outdated: float = -2.0
    repeated: float = -3.0
    before: tuple[float, ...] = (0.9, 0.7, 0.5)
    after: tuple[float, ...] = (0.6, 0.4, 0.3)
    short: int = 400

    def for_query(self, query: Query) -> Weights:
        """Return the weights for a query: of one that asks for a time alone, this time decides, not its words."""
        if not query.only_dated:
            return self
        return replace(
            self, dated=self.only_dated, vector=0.0, words=0.0, following=0.0, answering=0.0, speaker=0.0, related=0.0
        )
