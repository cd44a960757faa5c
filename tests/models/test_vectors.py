import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retain.errors import Misconfigured, UpstreamFailed
from retain.models.embedders.batches import batches, checked, embed_in_batches

numbers = st.floats(-1e50, 1e50) | st.integers(-(10**6), 10**6)


@given(st.lists(numbers, min_size=1, max_size=20))
def test_a_checked_vector_has_length_one_or_is_zero(values: list[float]) -> None:
    vector = checked(values, len(values))
    assert math.isclose(math.hypot(*vector), 1.0 if any(values) else 0.0, rel_tol=1e-9)


MALFORMED = {
    "nothing": None,
    "text": "0.1",
    "a word among numbers": [1.0, "2"],
    "null among numbers": [1.0, None],
    "not a number": [1.0, math.nan],
    "infinity": [math.inf, 1.0],
    "beyond a float": [10**400, 1],
}


@pytest.mark.parametrize("values", MALFORMED.values(), ids=MALFORMED)
def test_what_is_not_a_vector_of_finite_numbers_is_refused(values: object) -> None:
    with pytest.raises(UpstreamFailed) as caught:
        checked(values, 2)
    assert caught.value.code == "malformed_answer"


def test_a_vector_of_another_length_is_a_matter_of_configuration() -> None:
    with pytest.raises(Misconfigured) as caught:
        checked([1.0, 0.0, 0.0], 2)
    assert caught.value.code == "embedding_dimensions"
    assert caught.value.details == {"expected": 2, "found": 3}


@given(st.lists(st.text(max_size=12)), st.integers(1, 5), st.integers(1, 20))
def test_batches_hold_all_texts_that_are_not_blank_in_order_within_the_limits(
    texts: list[str], max_texts: int, max_characters: int
) -> None:
    groups = batches(texts, max_texts=max_texts, max_characters=max_characters)
    assert [place for group in groups for place in group] == [n for n, text in enumerate(texts) if text.strip()]
    for group in groups:
        assert 1 <= len(group) <= max_texts
        assert len(group) == 1 or sum(len(texts[place]) for place in group) <= max_characters


@given(st.lists(st.integers(1, 6), max_size=20), st.integers(1, 4), st.integers(1, 10))
def test_a_batch_ends_only_where_the_next_text_would_not_fit(
    sizes: list[int], max_texts: int, max_characters: int
) -> None:
    groups = batches(["x" * size for size in sizes], max_texts=max_texts, max_characters=max_characters)
    for group, following in pairwise(groups):
        filled = sum(sizes[place] for place in group)
        assert len(group) == max_texts or filled + sizes[following[0]] > max_characters


async def test_vectors_are_returned_at_the_positions_of_their_texts() -> None:
    sent: list[list[str]] = []

    async def embed(batch: list[str]) -> list[list[float]]:
        sent.append(batch)
        return [[float(text)] for text in batch]

    texts = ["1", "", "2", "3", " \n", "4"]
    vectors = await embed_in_batches(texts, embed, dimensions=1, max_texts=2, max_characters=100)
    assert vectors == [[1.0], [0.0], [2.0], [3.0], [0.0], [4.0]]
    assert sent == [["1", "2"], ["3", "4"]]
