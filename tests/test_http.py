"""HTTP as plain values: requests, responses and problems."""

from __future__ import annotations

import inspect
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retain import errors
from retain.errors import InvalidInput, NotFound, RetainError
from retain.http import Request, idempotency_key, json_response, problem


def _request(body: str = "") -> Request:
    return Request("POST", "/", {}, {}, body, "localhost", "req-1")


@pytest.mark.parametrize("body", ['{"a": [1, null, "é"]}', "[]", '"text"', "0", "null"])
def test_a_json_body_is_parsed(body: str) -> None:
    assert _request(body).json() == json.loads(body)


@pytest.mark.parametrize("body", ["", "{", "{'a': 1}", "undefined", '{"a": 1} trailing', "\0"], ids=repr)
def test_a_body_that_is_not_json_is_invalid_input(body: str) -> None:
    with pytest.raises(InvalidInput) as raised:
        _request(body).json()
    assert raised.value.code == "malformed_json"


@pytest.mark.parametrize(
    "body",
    [
        r'"x \ud83d y"',
        r'{"a": ["\uDE00"]}',
        r'{"\udfff": 1}',
        '"\ud83d"',
        "NaN",
        '{"a": -Infinity}',
        "[1e999]",
        "[-1E+4000]",
        "1" + "0" * 400 + ".0",
        '{"a": -2' + "0" * 308 + "}",
    ],
    ids=ascii,
)
def test_a_body_whose_texts_or_numbers_are_invalid_is_refused(body: str) -> None:
    with pytest.raises(InvalidInput) as raised:
        _request(body).json()
    assert raised.value.code == "malformed_json"


@pytest.mark.parametrize("body", ['{"a": 1, "a": 1}', '[{"b": {"c": 1, "d": 2, "\\u0063": 3}}]'])
def test_a_body_that_names_a_member_twice_is_refused_and_says_so(body: str) -> None:
    with pytest.raises(InvalidInput) as raised:
        _request(body).json()
    assert raised.value.code == "malformed_json"
    assert "two members of one name" in raised.value.message


@pytest.mark.parametrize(
    ("body", "value"),
    [
        (r'"\ud83d\ude00"', "\U0001f600"),
        (r'"\\ud83d"', r"\ud83d"),
        ('"NaN, Infinity, 1e999"', "NaN, Infinity, 1e999"),
        ("[1e100]", [1e100]),
        ("1" + "0" * 308, 10**308),
        ('"' + "9" * 400 + '"', "9" * 400),
    ],
    ids=ascii,
)
def test_a_body_that_only_looks_invalid_is_read(body: str, value: object) -> None:
    assert _request(body).json() == value


@given(st.text(st.characters(codec=None)) | st.floats())
def test_what_a_body_holds_can_be_sent_and_stored(value: object) -> None:
    try:
        read = _request(json.dumps(value)).json()
    except InvalidInput:
        return
    json.dumps(read, ensure_ascii=False, allow_nan=False).encode()


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists, max_leaves=5))
def test_a_json_response_holds_the_value(value: object) -> None:
    response = json_response(value, 201)
    assert json.loads(response.body) == value
    assert (response.status, response.headers) == (201, {"content-type": "application/json"})


@pytest.mark.parametrize(
    ("error", "status", "title"),
    [
        (errors.InvalidInput("m"), 400, "Invalid input"),
        (errors.LimitExceeded("m"), 413, "Limit exceeded"),
        (errors.Unauthenticated("m"), 401, "Unauthenticated"),
        (errors.Forbidden("m"), 403, "Forbidden"),
        (errors.NotFound("m"), 404, "Not found"),
        (errors.Conflict("m"), 409, "Conflict"),
        (errors.QuotaExceeded("m"), 507, "Quota exceeded"),
        (errors.UpstreamFailed("m"), 502, "Upstream failed"),
        (errors.Unavailable("m"), 503, "Unavailable"),
        (errors.Misconfigured("m"), 500, "Misconfigured"),
        (errors.RetainError("m"), 500, "Internal error"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, RetainError) else "",
)
def test_a_problem_says_what_the_error_says(error: RetainError, status: int, title: str) -> None:
    response = problem(error, "req-1")
    assert response.status == status
    assert response.headers["content-type"] == "application/problem+json"
    assert json.loads(response.body) == {
        "type": "about:blank",
        "title": title,
        "status": status,
        "detail": "m",
        "code": error.code,
        "request_id": "req-1",
    }


def test_every_class_of_error_with_codes_of_its_own_has_a_status_of_its_own() -> None:
    classes = [kind for kind in _errors() if "__init__" in vars(kind)]
    titles = {_title(kind) for kind in classes}
    assert len(titles) == len(classes) >= 11
    assert "Internal error" not in titles


def test_a_class_of_one_code_has_the_status_of_its_parent() -> None:
    singled_out = [kind for kind in _errors() if "__init__" not in vars(kind)]
    assert singled_out
    assert [_title(kind) for kind in singled_out] == [_title(kind.mro()[1]) for kind in singled_out]


def _errors() -> list[type[RetainError]]:
    classes = [kind for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, RetainError)]
    return [kind for kind in classes if kind is not RetainError]


def _title(kind: type[RetainError]) -> object:
    return json.loads(problem(kind("m"), "r").body)["title"]


def test_a_problem_carries_the_errors_own_code_and_details() -> None:
    error = errors.LimitExceeded("too long", code="value_too_large", limit_bytes=10, names=["a", "b"])
    body = json.loads(problem(error, "req-1").body)
    assert (body["code"], body["limit_bytes"], body["names"]) == ("value_too_large", 10, ["a", "b"])


@given(st.dictionaries(st.sampled_from(["type", "title", "status", "detail", "request_id", "other"]), st.integers()))
def test_details_cannot_replace_the_members_of_a_problem(details: dict[str, int]) -> None:
    body = json.loads(problem(NotFound("m", code=None, **details), "req-1").body)
    assert (body["type"], body["title"], body["status"]) == ("about:blank", "Not found", 404)
    assert (body["detail"], body["code"], body["request_id"]) == ("m", "not_found", "req-1")
    assert body.get("other") == details.get("other")


def test_a_problem_does_not_show_its_cause() -> None:
    try:
        try:
            raise ValueError("hunter2")
        except ValueError as cause:
            raise errors.Unavailable("away") from cause
    except errors.Unavailable as error:
        response = problem(error, "req-1")
    assert "hunter2" not in str(response.body)


@pytest.mark.parametrize("key", [None, "k", "k" * 255])
def test_an_idempotency_key_is_read_from_its_header(key: str | None) -> None:
    headers = {} if key is None else {"idempotency-key": key}
    assert idempotency_key(Request("POST", "/", {}, headers, "", "localhost", "req-1")) == key


@pytest.mark.parametrize(
    "key", ["", "k" * 256, "é" * 128, "caf\ufffd"], ids=["empty", "too long", "too many bytes", "broken"]
)
def test_any_other_idempotency_key_is_refused(key: str) -> None:
    with pytest.raises(InvalidInput) as raised:
        idempotency_key(Request("POST", "/", {}, {"idempotency-key": key}, "", "localhost", "req-1"))
    assert raised.value.code == "invalid_idempotency_key"
