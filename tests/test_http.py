"""HTTP as plain values: requests, responses, problems and the route table."""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retain import errors
from retain.errors import InvalidInput, NotFound, RetainError
from retain.http import Handle, Request, Response, Route, find_route, json_response, problem


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


def _handler(name: str) -> Handle[None]:
    async def handle(context: None, request: Request, parameters: Mapping[str, str]) -> Response:
        return json_response({"handler": name, **parameters})

    return handle


_RUN, _SHOW, _LIST, _SEED, _LATER = (_handler(name) for name in ("run", "show", "list", "seed", "later"))
_ROUTES: tuple[Route[None], ...] = (
    Route("POST", "/v1/agents/{tenant}/{agent_type}/run", _RUN),
    Route("GET", "/admin/agents/{tenant}/runs/{run_id}", _SHOW),
    Route("GET", "/admin/agents/{tenant}/runs", _LIST),
    Route("POST", "/admin/agents/{tenant}/runs", _SEED),
    Route("GET", "/admin/agents/{tenant}/{anything}", _LATER),
)


@pytest.mark.parametrize(
    ("method", "path", "handle", "parameters"),
    [
        pytest.param("POST", "/v1/agents/acme/sdr/run", _RUN, {"tenant": "acme", "agent_type": "sdr"}, id="two"),
        pytest.param("GET", "/admin/agents/acme/runs", _LIST, {"tenant": "acme"}, id="by_method_get"),
        pytest.param("POST", "/admin/agents/acme/runs", _SEED, {"tenant": "acme"}, id="by_method_post"),
        pytest.param("GET", "/admin/agents/acme/runs/R1", _SHOW, {"tenant": "acme", "run_id": "R1"}, id="longer"),
        pytest.param("GET", "/admin/agents/acme/x", _LATER, {"tenant": "acme", "anything": "x"}, id="later_route"),
        pytest.param(
            "GET",
            "/admin/agents/a%2Fb/runs/%C3%A9%20%3A",
            _SHOW,
            {"tenant": "a/b", "run_id": "é :"},
            id="decoded_after_splitting",
        ),
        pytest.param("GET", "/admin/agents//runs", _LIST, {"tenant": ""}, id="empty_parameter"),
    ],
)
def test_the_first_route_that_matches_is_found_with_its_parameters(
    method: str, path: str, handle: Handle[None], parameters: dict[str, str]
) -> None:
    assert find_route(_ROUTES, method, path) == (handle, parameters)


@pytest.mark.parametrize(
    "path",
    [
        "",
        "/",
        "/v1",
        "/v1/agents/acme/sdr/run/",
        "/v1/agents/acme/sdr/RUN",
        "//v1/agents/acme/sdr/run",
        "/v1/agents%2Facme/sdr/run",
    ],
)
def test_a_path_of_no_route_is_not_found(path: str) -> None:
    with pytest.raises(NotFound) as raised:
        find_route(_ROUTES, "POST", path)
    assert raised.value.code == "no_such_route"


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("GET", "/v1/agents/acme/sdr/run", ["POST"]),
        ("DELETE", "/admin/agents/acme/runs", ["GET", "POST", "GET"]),
        ("get", "/admin/agents/acme/runs/R1", ["GET"]),
    ],
)
def test_a_path_with_only_other_methods_says_which(method: str, path: str, allowed: list[str]) -> None:
    with pytest.raises(RetainError) as raised:
        find_route(_ROUTES, method, path)
    assert raised.value.code == "method_not_allowed"
    assert set(allowed) == set(raised.value.details["allowed"])  # type: ignore[arg-type]
    assert json.loads(problem(raised.value, "r").body)["code"] == "method_not_allowed"


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1), st.text(st.characters(exclude_categories=["Cs"])))
def test_a_quoted_parameter_arrives_as_it_was(tenant: str, run_id: str) -> None:
    path = f"/admin/agents/{quote(tenant, safe='')}/runs/{quote(run_id, safe='')}"
    assert find_route(_ROUTES, "GET", path) == (_SHOW, {"tenant": tenant, "run_id": run_id})


async def test_a_found_handler_answers_the_request() -> None:
    handle, parameters = find_route(_ROUTES, "GET", "/admin/agents/acme/runs")
    response = await handle(None, _request(), parameters)
    assert json.loads(response.body) == {"handler": "list", "tenant": "acme"}
