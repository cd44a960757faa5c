"""The kept texts of statements: each is that of its own arguments, and few are kept."""

from __future__ import annotations

import itertools

from retain.memory.filters import UNCONDITIONAL
from retain.memory.recall import candidates
from retain.memory.recall.candidates import EARLIER, KEPT_STATEMENTS, PRESENT, Visible, with_neighbours
from retain.memory.recall.query import analyse
from retain.memory.recall.sources import full_text
from retain.memory.scope import Reach

QUERIES = [analyse(text, 0) for text in ("tea", "green tea", "el té verde de la montaña", "tea and the house of tea")]
VISIBLE = [
    Visible(Reach(tenant, scopes, whole=whole), at_ms, known_at_ms, condition, values)
    for tenant, scopes, whole in (("acme", ("tenant",), False), ("globex", ("tenant", "user.1"), True))
    for at_ms, known_at_ms in ((5, None), (7, 7), (9, 8))
    for condition, values in ((UNCONDITIONAL, ()), ("r.kind = ?", ("fact",)))
]


def test_a_kept_text_is_that_of_its_arguments() -> None:
    kept = (full_text._sql, candidates._with_neighbours)
    cases = list(itertools.product(VISIBLE, QUERIES, (PRESENT, EARLIER), (None, {"a": 1}), (None, "en", "es")))

    def made(case: int) -> list[object]:
        visible, query, texts, met, language = cases[case]
        stems = [query.terms(stem) for stem in query.counted_stems]
        return [
            full_text.full_text(visible, query, texts),
            with_neighbours(visible, ["a"], stems, adjacent=True, met=met, preferring=language),
        ]

    found = [made(case) for case in range(len(cases))]
    assert found == [made(case) for case in range(len(cases))]
    for one in kept:
        assert one.cache_info().currsize == one.cache_info().maxsize == KEPT_STATEMENTS
    for case in range(len(cases)):
        for one in kept:
            one.cache_clear()
        assert made(case) == found[case]
