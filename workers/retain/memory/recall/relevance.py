"""How much a record has to do with a query, from 0 to 1: what `min_score` is compared with.

The score orders the candidates of one query. Its scale differs between queries, because it also counts dates, ages,
neighbours' heat, importance and confidence. Relevance has only the parts that mean the same for every query:

    meaning   = (cosine - unrelated) / (1 - unrelated)
    words     = WORDS * rarity * the words component of the score, without its weight
    relevance = sqrt(meaning^2 + words^2) - LONG * ln(the record's parts)

and at least the square root of the share of the query's addresses, ids and numbers that the record has. It is 1 for a record
of the times of a query that asks for nothing else.

`unrelated` is the mean cosine that the model gives to texts which have nothing to do with each other. `rarity` is 1 if the
query's words are together as rare as a word that only one record has, and more if some are in none; it falls with the square
for a query of common words ("Yes please", "Thanks a lot"). For a query without a vector, or mostly in another script than
the Latin one, words count in full: they may be all that finds the answer. A long record has more parts, of which one may be
near by chance.

docs/decisions/0020-floor.md says what was measured.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from retain.limits.deadlines import QUERY_EMBEDDING_MS
from retain.memory.recall.preparation import PART_CHARACTERS
from retain.memory.recall.query import MAX_EXACT_TERMS, QUOTATION, Query
from retain.memory.recall.ranking import Candidate
from retain.memory.recall.sources.statistics import inverse_frequency
from retain.memory.recall.weights import Weights
from retain.memory.recall.words import fold
from retain.models.embedding import Embedder, embed_in_time
from retain.ports import Vector

MIN_SCORE = 0.3
"""The floor of an agent's recall unless its definition has another; chosen by `benchmarks.floor`."""
WORDS = 0.4
WORDS_ALONE = 1.0
"""Instead of `WORDS`, for a query that the model may not understand."""
LONG = 0.03
CONTEXT = 0.3
"""How much the vector of the turns before a query counts in the query's."""
UNRELATED_TEXTS = (
    "The harvest was late that year.",
    "Press the green button twice.",
    "Two violins and a cello played.",
    "The ferry leaves at noon.",
    "Copper conducts heat well.",
    "She painted the fence white.",
    "Taxes are due in spring.",
    "A fox crossed the snowy field.",
    "The lecture covered Roman law.",
    "Add a pinch of salt.",
    "His knee hurts after running.",
    "The software update failed.",
)
"""Texts whose cosines show what a model gives to texts that have nothing to do with each other."""
_MOST_UNRELATED = 0.95
_ONLY_QUOTATIONS = (QUOTATION + 1 / MAX_EXACT_TERMS) / 2
"""Between the share of a record that has all of a query's quotations, and of one that has the least share of its ids."""

_unrelated: dict[str, float] = {}
"""By model, for as long as the process lives: the same vectors in every call (E1 of `Embedder`) give the same mean."""


@dataclass(frozen=True, slots=True)
class Relevance:
    """The scale of one query.

    unrelated: of the embedding model. rarity: of the query's words. obscure: the model may not understand the query.
    only_dated: the query only asks for what was said at its times.
    """

    unrelated: float
    rarity: float
    obscure: bool
    weights: Weights
    only_dated: bool = False

    def of(self, candidate: Candidate) -> float:
        """Return the relevance of a ranked candidate."""
        if self.only_dated and candidate.components["dated"]:
            return 1.0
        known = candidate.components["words"] / self.weights.words
        found = (WORDS_ALONE if self.obscure else WORDS) * min(1.0, self.rarity * known)
        meaning = max(0.0, (candidate.cosine - self.unrelated) / (1.0 - self.unrelated))
        parts = max(1.0, candidate.length / PART_CHARACTERS)
        whole = math.hypot(meaning, found) - LONG * math.log(parts)
        exact = math.sqrt(candidate.exact) if candidate.exact > _ONLY_QUOTATIONS else 0.0
        return min(1.0, max(0.0, whole, exact))


def obscure(text: str, vector: Vector) -> bool:
    """Return whether the model may not understand a query: it has no vector, or is mostly in another script than Latin."""
    letters = [letter for letter in fold(text) if letter.isalpha()]
    return not any(vector) or 2 * sum(letter.isascii() for letter in letters) < len(letters)


def rarity(query: Query, idf: Mapping[str, float], records: int) -> float:
    """Return how much the query's words tell; 0 when it has only stop words, or no word at all.

    idf: of the query's words among this many records. A word that no record has counts as much as one that one has: in a
    small memory it would otherwise outweigh those that are found.
    """
    if not query.stems or not (query.telling or query.context):
        return 0.0
    most = inverse_frequency(max(records, 1), 1)
    own = [idf[stem] for stem in query.stems]
    whole = sum(min(one, most) for one in own)
    return min(1.0, whole / most) ** 2 * sum(own) / whole


async def embedded(embedder: Embedder, query: Query) -> tuple[Vector, float]:
    """Return a query's vector, and the model's mean cosine of unrelated texts, in one call of the model.

    The vector is turned a little towards that of the query's context; half-way if the query itself says nothing.
    Raises: as `embed_in_time`.
    """
    known = _unrelated.get(embedder.model)
    texts = [query.text, *([query.context] if query.context else ())]
    wanted = [*texts, *(UNRELATED_TEXTS if known is None else ())]
    vectors = await embed_in_time(embedder, wanted, QUERY_EMBEDDING_MS)
    if known is None:
        _unrelated[embedder.model] = known = mean_cosine(vectors[len(texts) :])
    share = CONTEXT if query.telling else 1.0
    return (_turned(vectors[0], vectors[1], share) if query.context else vectors[0]), known


def _turned(vector: Vector, context: Vector, share: float) -> Vector:
    """Return a normalised vector between two; one of them if the other is zero."""
    mixed = [one + share * other for one, other in zip(vector, context, strict=True)]
    norm = math.sqrt(sum([one * one for one in mixed]))
    return tuple([one / norm for one in mixed]) if norm else vector


def mean_cosine(vectors: Sequence[Vector]) -> float:
    """Return the mean cosine of every two of the normalised vectors, within 0 and 0.95; zero vectors do not count."""
    known = [vector for vector in vectors if any(vector)]
    if len(known) < 2:
        return 0.0
    squared: float = sum(sum(column) ** 2 for column in zip(*known, strict=True))
    return min(_MOST_UNRELATED, max(0.0, (squared - len(known)) / (len(known) * (len(known) - 1))))
