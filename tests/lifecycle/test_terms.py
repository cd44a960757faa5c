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
        ("\u6797", "\u6797\u3055\u3093\u306f\u6765\u307e\u3057\u305f", True),
        ("\u738b", "\u738b\u5148\u751f\u4f4f\u5728\u5317\u4eac", True),
        ("\u5c71\u7530\u592a\u90ce", "\u5c71\u7530 \u592a\u90ce\u3067\u3059", True),
        ("\u5c71\u7530 \u592a\u90ce", "\u5c71\u7530\u592a\u90ce\u3067\u3059", True),
        ("\u5c71\u7530\u592a\u90ce", "\u5c71\u7530\u6b21\u90ce\u3067\u3059", False),
        ("1\u4e01\u76ee", "21\u4e01\u76ee", False),
        ("\u9648\u5c0f\u660e", "\u9673\u5c0f\u660e\u4f4f\u5728\u53f0\u5317", True),
        ("\u9673\u5c0f\u660e", "\u9648\u5c0f\u660e\u4f4f\u5728\u53f0\u5317", True),
        ("\u9673\u5c0f\u660e", "\u9648\u5927\u660e\u4f4f\u5728\u53f0\u5317", False),
        ("I\u015f\u0131l", "I\u015eIL HANIM", True),
        ("Lukasz", "\u0141ukasz", True),
        ("J\u00f8rgen", "JORGEN", True),
        ("1.50", "1.50", True),
        ("1e5", "1e5", True),
        ("Noah", "CORP\\noah", True),
    ],
)
def test_a_term_is_named_by_its_words_in_order(term: str, text: str, named: bool) -> None:
    assert Term.of(term).in_text(text) is named
    assert Term.of(term).in_json({"a": [1, {"b": text}]}) is named
    assert Term.of(term).in_json({text: None}) is named
    assert Term.of(term).in_stored(json.dumps([text])) is named
    assert Term.of(term).in_stored(text) is named


@pytest.mark.parametrize("depth", range(5))
@pytest.mark.parametrize("ascii_only", [True, False])
@pytest.mark.parametrize(
    ("term", "text"),
    [
        ("Zelda Quux", "Regards,\nZelda Quux"),
        ("Zelda Quux", "Regards,\r\n\tZelda\tQuux"),
        ("Zo\u00eb", "Call Zo\u00eb."),
        ("\U00020bb7\u7530", "\U00020bb7\u7530\u3055\u3093"),
        ("No\u00ebl Smith", "CORP\\no\u00ebl\nSmith"),
        ("1.50", "1.50"),
    ],
)
def test_a_term_is_found_in_json_within_json(term: str, text: str, ascii_only: bool, depth: int) -> None:
    for _ in range(depth):
        text = json.dumps({"body": text}, ensure_ascii=ascii_only)
    assert Term.of(term).in_stored(text)
    assert Term.of(term).in_text(text)
    assert Term.of(term).in_json([text])


def test_a_term_is_found_in_a_part_of_a_json_text() -> None:
    for cut in ('{"a":"Regards,\\nZelda Quux","b', 'data: {"a":"Regards,\\nZelda Qu\\u0075x"}'):
        assert Term.of("Zelda Quux").in_stored(cut)


def test_a_term_is_found_in_either_of_two_members_with_one_name() -> None:
    assert Term.of("Zelda").in_stored('{"a":"Zelda","a":"Ann"}')
    assert Term.of("1.50").in_stored('{"price":1.50}')
    assert not Term.of("1.5").in_stored('{"price":1.50}')


def test_a_text_that_nests_texts_three_hundred_deep_is_searched() -> None:
    text = "to Zelda."
    for _ in range(300):
        text = '"' + text.replace("\\", "\\u005c").replace('"', "\\u0022") + '"'
    assert Term.of("Zelda").in_stored(text)
    assert not Term.of("Ann").in_stored(text)


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
    assert Term.of(" ".join(found)).in_stored(json.dumps({"x": json.dumps([text])}))
