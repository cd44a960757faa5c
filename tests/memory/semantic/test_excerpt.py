"""Passages of long records: within the bound, marked where they are cut, and about the query."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retain.memory.recall.excerpt import MARK, excerpt

FILLER = " ".join(f"Paragraph {number} of the manual describes the casing." for number in range(200))
ANSWER = "The valve opens at eleven bar."


def test_a_text_that_fits_is_returned_as_it_is() -> None:
    assert excerpt(ANSWER, "valve", len(ANSWER)) == ANSWER


@pytest.mark.parametrize(
    ("text", "begins", "ends"),
    [
        pytest.param(f"{ANSWER} {FILLER}", f"{ANSWER}", MARK, id="at the beginning"),
        pytest.param(f"{FILLER} {ANSWER} {FILLER}", MARK, MARK, id="in the middle"),
        pytest.param(f"{FILLER} {ANSWER}", MARK, ANSWER, id="at the end"),
    ],
)
def test_the_passage_that_answers_is_in_it_wherever_it_is(text: str, begins: str, ends: str) -> None:
    found = excerpt(text, "At what pressure does the valve open?", 1_000)
    assert ANSWER in found
    assert found.startswith(begins)
    assert found.endswith(ends)


def test_a_query_without_a_word_of_the_text_gets_its_beginning() -> None:
    assert excerpt(FILLER, "tea", 100).startswith("Paragraph 0 of the manual")


@given(st.text(max_size=3_000), st.text(max_size=60), st.integers(0, 400))
def test_a_passage_is_never_longer_than_the_bound_nor_than_the_mark(text: str, query: str, limit_bytes: int) -> None:
    size = len(excerpt(text, query, limit_bytes).encode("utf-8", "replace"))
    assert size <= max(limit_bytes, len(MARK))
