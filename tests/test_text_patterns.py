"""Patterns from outside: those that hang a backtracking engine are searched in linear time, or refused."""

from __future__ import annotations

import re
from importlib import import_module
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retain.evaluation.expectations import Expected
from retain.evaluation.scoring.scores import matches
from retain.evaluation.scoring.trace import fits_arguments
from retain.json_schema import MAX_FORMATTED, compile_schema
from retain.text_patterns import MAX_CHARACTERS, MAX_STEPS, TextPattern

parser: Any = import_module("re._parser")
kinds: Any = import_module("re._constants")

HANGING = ["^(a+)+$", "^(a|a)*$", "^(a|aa)+$", r"^(\w+\s?)*$", "(a*)*b", "^(.*a){12}$", r"^(([a-z])+.)+[A-Z]([a-z])+$"]
"""Each takes longer than anybody waits in a text of a hundred letters and a mark, when an engine backtracks."""
TEXT = "a" * 20_000 + "!"


@pytest.mark.parametrize("pattern", HANGING)
def test_a_pattern_that_hangs_a_backtracking_engine_is_searched_at_once(pattern: str) -> None:
    assert not TextPattern(pattern).found_in(TEXT)
    assert not matches(TEXT, [pattern]).passed
    assert not fits_arguments({"a": TEXT}, {"a": {"$matches": pattern}}, subset=True)
    assert compile_schema({"type": "object", "properties": {"a": {"type": "string", "pattern": pattern}}})({"a": TEXT})


REFUSED = {
    "back-reference": r"(a)\1",
    "look-ahead": "a(?=b)",
    "look-behind": "(?<!a)b",
    "atomic group": "(?>a)",
    "flag for comments": "(?x)((?:a{30} #)\n){30}",
    "not a pattern": "(",
    "not one in Python": r"\p{L}",
    "not one in Rust": r"a\Z",
    "too long": "a" * (MAX_CHARACTERS + 1),
    "nested counts": "((a{1,20}){1,20}){1,20}b",
    "counted nothing": "(?:(){100}){100}",
    "a count of classes that are large": r"\w{900}",
    "brackets within brackets": "(" * 400 + ")" * 400,
}


@pytest.mark.parametrize("pattern", REFUSED.values(), ids=list(REFUSED))
def test_a_pattern_that_is_not_linear_or_too_large_is_refused(pattern: str) -> None:
    with pytest.raises(ValueError, match=r"pattern|expression|repeats"):
        TextPattern(pattern)
    with pytest.raises(ValueError, match=r"pattern|expression|repeats"):
        Expected(matches=(pattern,))
    with pytest.raises(ValueError, match="JSON Schema"):
        compile_schema({"patternProperties": {pattern: {}}})


def test_a_pattern_is_found_anywhere_and_ends_where_the_text_ends() -> None:
    assert TextPattern("b+").found_in("abba")
    assert TextPattern("(?i)^AB").found_in("abba")
    assert not TextPattern("^b").found_in("abba")
    assert not TextPattern("a$").found_in("abba\n")


def test_a_text_that_is_too_long_for_a_pattern_is_not_searched() -> None:
    pattern = TextPattern("x{100}")
    assert not pattern.found_in("a" * (MAX_STEPS // pattern.size))
    with pytest.raises(ValueError, match="searched"):
        pattern.found_in("a" * (MAX_STEPS // pattern.size + 1))
    assert not matches("a" * (MAX_STEPS // 2), ["x{100}"]).passed


ATOMS = st.sampled_from(["a", ".", r"\d", r"\)", "[ab]", "[^)]", r"[\]{9}]", "[(]", "^", r"\\", "()", "(?:)"])
COUNTS = st.sampled_from(["", "", "*", "+", "?", "*?", "{3}", "{2,}", "{0,4}", "{1,3}?"])
GROUPS = st.sampled_from(["({})", "(?:{})", "(?i:{})", "(?s:{})"])


def _grown(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    group = st.builds(lambda mark, part: mark.replace("{}", part), GROUPS, inner)
    joined = st.lists(st.builds(str.__add__, ATOMS | group, COUNTS), min_size=1, max_size=3).map("".join)
    return joined | st.lists(joined, min_size=2, max_size=3).map("|".join)


PATTERNS = st.recursive(st.builds(str.__add__, ATOMS, COUNTS), _grown, max_leaves=12)


def _copies(parsed: Any) -> int:
    """Return how many parts a pattern has with its repetitions written out, as Python's own parser reads it."""
    total = 0
    for kind, held in parsed:
        if kind in (kinds.MAX_REPEAT, kinds.MIN_REPEAT):
            low, high, inner = held
            times = low if high == kinds.MAXREPEAT else high
            total += max(1, times) * max(1, _copies(inner))
        elif kind == kinds.SUBPATTERN:
            total += max(1, _copies(held[3]))
        elif kind == kinds.BRANCH:
            total += sum(max(1, _copies(branch)) for branch in held[1])
        else:
            total += 1
    return total


@given(PATTERNS)
def test_the_size_that_bounds_the_steps_is_never_less_than_the_parts_of_the_pattern(pattern: str) -> None:
    try:
        found = TextPattern(pattern)
    except ValueError:
        return
    assert found.size >= _copies(parser.parse(pattern))


@given(PATTERNS, st.text("ab)(]{9\\", max_size=30))
def test_a_pattern_finds_what_python_finds(pattern: str, text: str) -> None:
    try:
        found = TextPattern(pattern)
    except ValueError:
        return
    assert found.found_in(text) == (re.search(pattern, text) is not None)


SLOW = "^(a+)+$"


def test_a_schema_s_own_keywords_never_search_with_a_backtracking_engine() -> None:
    """The compiler tries patterns on the names that are required: with an engine of its own, while it compiles."""
    schema = {"patternProperties": {SLOW: {}}, "required": [TEXT[-200:]], "additionalProperties": False}
    named = {"properties": {"enum": schema}, "allOf": [schema]}
    for one in (schema, named, {"anyOf": [schema]}):
        assert compile_schema(one)({}) is not None
    assert (
        compile_schema({"patternProperties": {"^x-": {}}, "required": ["x-a"], "additionalProperties": False})(
            {"x-a": 1}
        )
        is None
    )


def test_values_in_a_schema_are_not_taken_for_schemas() -> None:
    value = {"patternProperties": {"a": 1}, "required": ["b"]}
    check = compile_schema({"properties": {"a": {"const": value}, "const": {"pattern": "^a$"}}})
    assert check({"a": value, "const": "a"}) is None
    assert check({"const": "b"}) is not None


def test_a_text_with_a_format_has_a_longest_length() -> None:
    """The compiler's pattern of a mail address takes quadratic time."""
    check = compile_schema({"type": "string", "format": "email"})
    assert check("ann@shop.example") is None
    assert check("a@" + "a." * MAX_FORMATTED + "com") is not None
    assert compile_schema({"type": "string", "pattern": "email_re_pattern", "format": "email"})("x") is not None
