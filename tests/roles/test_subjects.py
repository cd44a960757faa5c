"""Subjects: their grammar, and which of them a token names."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retain.errors import InvalidInput
from retain.roles.subjects import MAX_SUBJECTS, check_subject, read_subjects, subjects_of
from tests.ports import raises

SUBJECTS = {
    "an address": ("email:Ada@Example.com", "email:ada@example.com"),
    "a domain": ("domain:Example.COM", "domain:example.com"),
    "a service token": ("service:8f3c.access", "service:8f3c.access"),
    "a group with spaces": ("group:Platform Team", "group:Platform Team"),
    "a claim": ("claim:department=Support", "claim:department=Support"),
    "the longest": ("group:" + "g" * 200, "group:" + "g" * 200),
}
INVALID = {
    "no kind": "ada@example.com",
    "another kind": "user:ada",
    "no value": "group:",
    "an address without a domain": "email:ada",
    "two addresses": "email:ada@a.example@b.example",
    "a domain without a dot": "domain:example",
    "a domain with an at": "domain:@example.com",
    "a claim without a value": "claim:department=",
    "a claim without a name": "claim:=support",
    "a comma": "group:a,b",
    "a space at its end": "group:a ",
    "a control character": "group:a\nb",
    "every tenant's sign alone": "*",
    "one too long": "group:" + "g" * 201,
}


@pytest.mark.parametrize(("given_text", "spelling"), SUBJECTS.values(), ids=list(SUBJECTS))
def test_a_subject_has_one_spelling(given_text: str, spelling: str) -> None:
    assert check_subject(given_text) == spelling == check_subject(spelling)


@pytest.mark.parametrize("text", INVALID.values(), ids=list(INVALID))
def test_what_is_not_a_subject_is_refused(text: str) -> None:
    with raises(InvalidInput, code="invalid_role_subject"):
        check_subject(text)


def test_a_list_of_subjects_is_read_without_spaces_and_empty_parts() -> None:
    assert read_subjects(" email:Ada@example.com, group:Platform Team ,,") == {
        "email:ada@example.com",
        "group:Platform Team",
    }
    assert read_subjects("") == frozenset()
    with raises(InvalidInput, code="invalid_role_subject"):
        read_subjects("email:ada@example.com, everyone")


TOKENS = {
    "a user": ({"email": "Ada@Example.com"}, ["email:ada@example.com", "domain:example.com"]),
    "a service token": ({"common_name": "8f3c.access"}, ["service:8f3c.access"]),
    "a user is not a service": (
        {"email": "ada@example.com", "common_name": "8f3c.access"},
        ["email:ada@example.com", "domain:example.com"],
    ),
    "groups": (
        {"email": "ada@example.com", "custom": {"groups": ["ops", "dev"]}},
        [
            "email:ada@example.com",
            "domain:example.com",
            "group:ops",
            "group:dev",
            "claim:groups=ops",
            "claim:groups=dev",
        ],
    ),
    "groups at the top": ({"groups": ["ops"]}, ["group:ops"]),
    "a custom claim": ({"custom": {"department": "support"}}, ["claim:department=support"]),
    "shapes that are not texts": ({"email": 1, "groups": {"a": 1}, "custom": {"groups": [1, None, ["x"]], "n": 2}}, []),
    "values that are not subjects": ({"email": "ada", "custom": {"groups": ["", " ", "a,b", "g" * 300]}}, []),
    "custom is a text": ({"custom": "groups"}, []),
}


@pytest.mark.parametrize(("claims", "expected"), TOKENS.values(), ids=list(TOKENS))
def test_a_token_names_these_subjects(claims: dict[str, object], expected: list[str]) -> None:
    assert list(subjects_of(claims)) == expected


def test_a_caller_has_at_most_two_hundred_subjects() -> None:
    many = subjects_of({"email": "ada@example.com", "groups": [f"g{number}" for number in range(500)]})
    assert len(many) == MAX_SUBJECTS == 200
    assert many[0] == "email:ada@example.com"


@given(st.dictionaries(st.text(max_size=5), st.recursive(st.text(max_size=8) | st.none(), st.lists, max_leaves=5)))
def test_whatever_a_token_holds_its_subjects_fit_the_grammar(custom: dict[str, object]) -> None:
    for subject in subjects_of({"custom": custom, "groups": custom.get("g")}):
        assert check_subject(subject) == subject
