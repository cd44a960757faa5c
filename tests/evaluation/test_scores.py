"""The scorers: what each gives, and laws that hold for all inputs."""

from __future__ import annotations

import json
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retain.evaluation.expectations import ExpectedCall, ExpectedCalls, ExpectedMemories
from retain.evaluation.scoring import scores
from retain.evaluation.scoring.retrieval import ndcg_at, precision_at, recall_at, reciprocal_rank, retrieval
from retain.evaluation.scoring.scores import Called
from retain.evaluation.scoring.trace import calls, fits_arguments

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text("abc", max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abc", max_size=2), inner, max_size=3),
    max_leaves=8,
)
TOOLS = st.sampled_from("abc")
MADE = st.lists(TOOLS, max_size=6)
RANKED = st.lists(st.sampled_from("abcdefgh"), unique=True)
GRADES = st.dictionaries(st.sampled_from("abcdefgh"), st.integers(1, 3), min_size=1)


@pytest.mark.parametrize(
    ("output", "wanted", "value"),
    [
        pytest.param("yes", "yes", 1, id="the same text"),
        pytest.param("yes ", "yes", 0, id="another text"),
        pytest.param('{"b": 2, "a": 1.0}', {"a": 1, "b": 2}, 1, id="the same JSON, spelt otherwise"),
        pytest.param('{"a": true}', {"a": 1}, 0, id="true is not 1"),
        pytest.param("{", {"a": 1}, 0, id="not JSON"),
        pytest.param("[1]", [1, 2], 0, id="a shorter list"),
        pytest.param("[" * 5000, [1], 0, id="nested too deeply to be read"),
    ],
)
def test_exact(output: str, wanted: Any, value: float) -> None:
    score = scores.exact(output, wanted)
    assert (score.value, score.passed) == (value, value == 1)


@given(JSON.filter(lambda value: isinstance(value, dict | list)))
def test_every_json_value_is_exactly_itself(value: Any) -> None:
    assert scores.exact(json.dumps(value), value).passed


@given(st.text(), st.lists(st.text("ab", min_size=1, max_size=3), min_size=1, max_size=5))
def test_contains_and_excludes_are_complementary(output: str, texts: list[str]) -> None:
    held, absent = scores.contains(output, texts), scores.excludes(output, texts)
    assert held.value + absent.value == pytest.approx(1)
    assert held.value == sum(text in output for text in texts) / len(texts)
    assert held.passed == all(text in output for text in texts)
    assert (held.detail is None) == held.passed


def test_a_pattern_is_found_anywhere_unless_it_is_anchored() -> None:
    assert scores.matches("say APPROVE now", ["APPROVE", r"\bnow$"]).passed
    half = scores.matches("say APPROVE now", ["^APPROVE", "now"])
    assert (half.value, half.passed, half.detail) == (0.5, False, "not found: ^APPROVE")


def test_a_score_says_that_an_output_was_too_long_to_be_searched() -> None:
    pattern = "^APPROVE.{0,300}$"
    assert scores.matches("APPROVE now", [pattern]).passed
    unread = scores.matches("APPROVE now\n" * 5000, [pattern])
    assert (unread.passed, unread.detail) == (False, f"the output is too long to search for: {pattern}")


@pytest.mark.parametrize(
    ("output", "passed"), [('{"a": 1}', True), ('{"a": "1"}', False), ("{}", False), ("none", False)]
)
def test_a_schema_fits_the_output_read_as_json(output: str, passed: bool) -> None:
    wanted = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
    assert scores.schema(output, wanted).passed is passed


@pytest.mark.parametrize(
    ("value", "wanted", "subset", "fits"),
    [
        pytest.param({"a": 1, "b": 2}, {"a": 1}, True, True, id="more than is wanted"),
        pytest.param({"a": 1, "b": 2}, {"a": 1}, False, False, id="more than is wanted, exactly"),
        pytest.param({"a": {"b": 1, "c": 2}}, {"a": {"b": 1}}, True, True, id="more, further in"),
        pytest.param({"a": "order AB-1"}, {"a": {"$matches": "AB-[0-9]"}}, False, True, id="a pattern"),
        pytest.param({"a": 12}, {"a": {"$matches": "1"}}, True, False, id="a pattern matches only texts"),
        pytest.param({"a": [1, 2]}, {"a": [1]}, True, False, id="a list has its length"),
        pytest.param({"a": True}, {"a": 1}, True, False, id="true is not 1"),
        pytest.param({}, {"a": None}, True, False, id="absent is not null"),
    ],
)
def test_arguments(value: Any, wanted: Any, subset: bool, fits: bool) -> None:
    assert fits_arguments(value, wanted, subset=subset) is fits


def _score(made: list[str], wanted: list[str], order: Any) -> scores.Score:
    expected = ExpectedCalls(order=order, calls=tuple(ExpectedCall(tool=tool) for tool in wanted))
    return calls([Called("me", tool, {}) for tool in made], expected, "me")


@given(MADE, st.lists(TOOLS, min_size=1, max_size=4))
def test_a_trace_is_scored_by_the_best_pairing(made: list[str], wanted: list[str]) -> None:
    pairs = sum(min(made.count(tool), wanted.count(tool)) for tool in set(wanted))
    assert _score(made, wanted, "any").value == pytest.approx(pairs / len(wanted))
    kept = _score(made, wanted, "kept")
    assert kept.value <= _score(made, wanted, "any").value
    rest = iter(made)
    assert kept.passed == all(tool in rest for tool in wanted)
    assert _score(made, wanted, "exact").passed == (made == wanted)
    assert _score(made, wanted, "exact").value <= kept.value


@given(MADE, st.lists(TOOLS, min_size=1, max_size=4), st.randoms())
def test_without_an_expected_order_the_order_does_not_count(made: list[str], wanted: list[str], random: Any) -> None:
    shuffled = random.sample(made, len(made))
    assert _score(made, wanted, "any").value == _score(shuffled, wanted, "any").value


def test_a_call_that_fits_two_expectations_satisfies_the_one_that_has_no_other() -> None:
    made = [Called("me", "t", {"a": 1, "b": 1}), Called("me", "t", {"a": 1})]
    both = [ExpectedCall(tool="t", arguments={"a": 1}), ExpectedCall(tool="t", arguments={"b": 1})]
    for order in permutations(both):
        assert calls(made, ExpectedCalls(calls=order), "me").passed


def test_an_empty_trace_is_expected_as_such() -> None:
    assert _score([], [], "exact").passed
    assert _score(["a"], [], "exact").value == 0


def test_a_delegates_calls_count_where_they_are_named() -> None:
    made = [Called("me", "delegate", {}), Called("other", "a", {}, failed=True)]
    own = ExpectedCalls(order="exact", calls=(ExpectedCall(tool="delegate"),))
    assert calls(made, own, "me").passed
    theirs = ExpectedCall(tool="a", agent="other")
    assert calls(made, ExpectedCalls(calls=(theirs,)), "me").passed
    assert not calls(made, ExpectedCalls(calls=(theirs.model_copy(update={"failed": False}),)), "me").passed


def test_the_metrics_of_retrieval_by_hand() -> None:
    ranked, grades = ["x", "a", "y", "b"], {"a": 2, "b": 1, "c": 1}
    assert recall_at(ranked, grades, 4) == pytest.approx(2 / 3)
    assert precision_at(ranked, grades, 4) == 0.5
    assert precision_at(ranked, grades, 10) == 0.2
    assert reciprocal_rank(ranked, grades, 4) == 0.5
    assert reciprocal_rank(ranked, grades, 1) == 0
    # gains 3 at rank 2 and 1 at rank 4; the best order has gains 3, 1, 1
    assert ndcg_at(ranked, grades, 4) == pytest.approx((3 / 1.584962 + 1 / 2.321928) / (3 + 1 / 1.584962 + 1 / 2))


@given(RANKED, GRADES, st.integers(1, 10))
def test_metrics_lie_between_0_and_1(ranked: list[str], grades: dict[str, int], k: int) -> None:
    for metric in (recall_at, precision_at, reciprocal_rank, ndcg_at):
        assert 0 <= metric(ranked, grades, k) <= 1


@given(RANKED, GRADES, st.integers(1, 10))
def test_moving_a_relevant_one_up_lowers_no_metric(ranked: list[str], grades: dict[str, int], k: int) -> None:
    for place in range(1, len(ranked)):
        if grades.get(ranked[place], 0) > grades.get(ranked[place - 1], 0):
            better = [*ranked[: place - 1], ranked[place], ranked[place - 1], *ranked[place + 1 :]]
            for metric in (recall_at, precision_at, reciprocal_rank, ndcg_at):
                assert metric(better, grades, k) >= metric(ranked, grades, k) - 1e-12


@given(GRADES, st.integers(1, 10))
def test_the_best_order_is_perfect(grades: dict[str, int], k: int) -> None:
    best = sorted(grades, key=lambda memory: -grades[memory])
    assert ndcg_at(best, grades, k) == pytest.approx(1)
    assert reciprocal_rank(best, grades, k) == 1
    assert recall_at(best, grades, max(k, len(grades))) == 1


@given(RANKED, GRADES, st.integers(1, 10))
def test_recall_never_falls_with_k(ranked: list[str], grades: dict[str, int], k: int) -> None:
    assert recall_at(ranked, grades, k + 1) >= recall_at(ranked, grades, k)


def test_a_memory_found_twice_counts_once_and_only_bounded_metrics_decide() -> None:
    wanted = ExpectedMemories(relevant=("a", "b"), k=2, at_least={"recall": 0.5})
    found = {score.name: score for score in retrieval(["a", "a", "b"], wanted)}
    assert found["recall"].value == 1
    assert found["recall"].passed is True
    assert {found[name].passed for name in ("precision", "mrr", "ndcg")} == {None}
    assert {score.name: score.passed for score in retrieval([], wanted)}["recall"] is False
