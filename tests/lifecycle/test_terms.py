"""Exact terms: which texts name them and which do not."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retain.errors import InvalidInput
from retain.lifecycle.terms import Term


@pytest.mark.parametrize(
    ("term", "text", "named"),
    [
        ("ann@shop.example", "From <Ann@Shop.Example>: hello", True),
        ("ann@shop.example", "joann@shop.example", False),
        ("ann@shop.example", "ann@shop.example.com", True),
        ("ann@shop.example", "ann at shop example", False),
        ("Ann Smith", "Is that Ann  SMITH's?", True),
        ("Ann Smith", "Ann and Smith", False),
        ("Ann", "Annabel", False),
        ("Zoë", "zoe was here", True),
        ("zoe", "ZOË!", True),
        ("4411", "order SO-4411.", True),
        ("4411", "44110", False),
        ("ann ann bob", "ann ann ann bob", True),
        ("\u674e\u96f7", "\u674e\u96f7", True),
    ],
)
def test_a_term_is_named_by_its_words_in_order(term: str, text: str, named: bool) -> None:
    assert Term.of(term).in_text(text) is named
    assert Term.of(term).in_json({"a": [1, {"b": text}]}) is named
    assert Term.of(term).in_json({text: None}) is named
    assert Term.of(term).in_stored(json.dumps([text])) is named
    assert Term.of(term).in_stored(text) is named


def test_adjacent_strings_do_not_name_a_term_together() -> None:
    assert not Term.of("ann smith").in_json(["ann", "smith"])


def test_numbers_count_as_they_are_written() -> None:
    assert Term.of("4411").in_json({"order": 4411})
    assert not Term.of("4411").in_json({"order": 14411, "none": None})
    assert not Term.of("none").in_stored(None)


@pytest.mark.parametrize("text", ["", " ", "…", "@", "x" * 513])
def test_a_term_has_words_and_is_not_too_long(text: str) -> None:
    with pytest.raises(InvalidInput):
        Term.of(text)


@given(st.lists(st.from_regex(r"[a-z0-9]{1,8}", fullmatch=True), min_size=1, max_size=4), st.text(), st.text())
def test_a_term_between_spaces_is_always_found(found: list[str], before: str, after: str) -> None:
    text = f"{before} {' '.join(found)} {after}"
    assert Term.of(" ".join(found).upper()).in_text(text)
    assert Term.of(" ".join(found)).in_stored(json.dumps({"x": text}))
