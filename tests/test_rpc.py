"""Errors and results across RPC: they arrive as they were sent."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retain import errors
from retain.errors.codes import ForeignCode
from retain.rpc import answer, opened, refusal

KINDS = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, errors.RetainError)]
details = st.dictionaries(
    st.from_regex(r"limit_[a-z]{1,8}", fullmatch=True),
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text()
    | st.lists(st.text(), max_size=3),
    max_size=4,
)
json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters()),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


@given(
    kind=st.sampled_from(KINDS),
    message=st.text(st.characters()),
    code=st.none() | st.from_regex(r"[a-z_]{1,20}", fullmatch=True).map(ForeignCode),
    details=details,
)
def test_an_error_keeps_its_class_code_message_and_details(
    kind: type[errors.RetainError], message: str, code: ForeignCode | None, details: dict[str, Any]
) -> None:
    error = kind(message, code=code, **details)
    with pytest.raises(errors.RetainError) as raised:
        opened(refusal(error))
    assert type(raised.value) is kind
    assert (raised.value.code, raised.value.message) == (error.code, message)
    assert raised.value.details == details
    assert error.code == (kind.code if code is None else code)


@given(result=st.dictionaries(st.text(), json_values, max_size=4))
def test_a_result_arrives_as_it_was_returned(result: dict[str, Any]) -> None:
    assert opened(answer(result)) == result


def test_a_result_that_looks_like_an_error_is_a_result() -> None:
    result = {"error": {"class": "NotFound", "code": "x", "message": "m", "details": {}}}
    assert opened(answer(result)) == result


def test_an_error_of_a_class_that_this_version_does_not_know_is_a_retain_error() -> None:
    envelope = refusal(errors.NotFound("gone", code=ForeignCode("gone"), id="x")).replace("NotFound", "OfTheFuture")
    with pytest.raises(errors.RetainError) as raised:
        opened(envelope)
    assert type(raised.value) is errors.RetainError
    assert (raised.value.code, raised.value.message, raised.value.details) == ("gone", "gone", {"id": "x"})


def test_every_class_of_error_has_a_code_and_says_what_to_do() -> None:
    assert len(KINDS) >= 10
    for kind in KINDS:
        assert kind.code == kind.code.lower()
        assert kind.__doc__
