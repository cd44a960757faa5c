"""The router: which route a request meets, what is checked before its handler, and in which order."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retain.errors import InvalidInput, NotFound, RetainError
from retain.host.clock import ManualClock
from retain.http import Request, Response, json_response, problem
from retain.routing.bodies import BodyModel, JsonBody
from retain.routing.health import ROUTER as HEALTH
from retain.routing.health import Readiness
from retain.routing.parameters import PathParameter
from retain.routing.queries import PageQuery, QueryString
from retain.routing.requests import PathRequest, StreamedBody, TextBody, TypedRequest
from retain.routing.route import Answer, Resource, Route
from retain.routing.router import Router, admitting


class Register:
    """A register with one tenant, which records whom it was asked for."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def require(self, tenant_id: str) -> str:
        self.asked.append(tenant_id)
        if tenant_id != "acme":
            raise NotFound("there is no such tenant", code="unknown_tenant")
        return tenant_id


class Note(BodyModel):
    """A body."""

    text: str


def _handler(name: str) -> Callable[[Register, PathRequest], Awaitable[Response]]:
    async def handle(_: Register, request: PathRequest) -> Response:
        return json_response({"handler": name, **request.path})

    return handle


async def take(_: Register, request: TypedRequest[Note, PageQuery]) -> Response:
    """Take a note."""
    return json_response({"tenant": request.tenant_id, "text": request.body.text, "limit": request.query.limit})


async def echo(_: Register, request: TypedRequest[str, None]) -> Response:
    """Answer with the text that was received."""
    return Response(200, request.body)


ANY = PathParameter(".*", lambda text: text)
OK = (Answer(200),)
ROUTER: Router[Register] = Router(
    (
        Resource(
            "Runs",
            (
                Route("POST", "/v1/agents/{tenant}/{agent_type}/run", _handler("run"), answers=OK),
                Route("GET", "/admin/agents/{tenant}/runs/{run_id}", _handler("show"), answers=OK),
                Route("GET", "/admin/agents/{tenant}/runs", _handler("list"), answers=OK),
                Route("POST", "/admin/agents/{tenant}/runs", _handler("seed"), answers=OK),
                Route(
                    "GET",
                    "/texts/{a}/{b}",
                    _handler("texts"),
                    parameters={"a": ANY, "b": ANY},
                    answers=OK,
                ),
            ),
        ),
        Resource(
            "Notes",
            (
                Route(
                    "POST",
                    "/notes/{tenant}",
                    take,
                    body=JsonBody(Note),
                    query=QueryString(PageQuery),
                    answers=OK,
                ),
                Route("PUT", "/notes/{tenant}", _handler("named"), tenant="any", answers=OK),
                Route("GET", "/rest/{+tool_name}", _handler("rest"), answers=OK),
                Route("POST", "/echo", echo, body=TextBody("text/plain"), same_origin=True, answers=OK),
                Route("POST", "/piecemeal", _handler("piecemeal"), answers=OK),
            ),
        ),
    ),
    guard="Access",
    tenants=lambda register: register,
)


def request(
    method: str, path: str, body: str = "", query: dict[str, str] | None = None, headers: dict[str, str] | None = None
) -> Request:
    return Request(method, path, query or {}, headers or {}, body, "retain.example", "request-1")


async def answered(asked: Request, register: Register | None = None) -> Any:
    answer = await ROUTER.handle(register or Register(), asked)
    return json.loads(answer.body)


RUN_ID = "01ARZ3NDEKTSV4RRFFQ69G5FAV"


@pytest.mark.parametrize(
    ("method", "path", "found"),
    [
        pytest.param(
            "POST",
            "/v1/agents/acme/sdr/run",
            {"handler": "run", "tenant": "acme", "agent_type": "sdr"},
            id="two parameters",
        ),
        pytest.param("GET", "/admin/agents/acme/runs", {"handler": "list", "tenant": "acme"}, id="by method, get"),
        pytest.param("POST", "/admin/agents/acme/runs", {"handler": "seed", "tenant": "acme"}, id="by method, post"),
        pytest.param(
            "GET",
            f"/admin/agents/acme/runs/{RUN_ID}",
            {"handler": "show", "tenant": "acme", "run_id": RUN_ID},
            id="a longer one",
        ),
        pytest.param(
            "GET",
            "/texts/a%2Fb/%C3%A9%20%3A",
            {"handler": "texts", "a": "a/b", "b": "é :"},
            id="decoded after splitting",
        ),
        pytest.param("GET", "/texts//x", {"handler": "texts", "a": "", "b": "x"}, id="an empty parameter"),
    ],
)
async def test_the_first_route_that_matches_answers_with_its_parameters(
    method: str, path: str, found: dict[str, str]
) -> None:
    assert await answered(request(method, path)) == found


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
async def test_a_path_that_no_route_has_is_not_found(path: str) -> None:
    with pytest.raises(NotFound) as raised:
        await answered(request("POST", path))
    assert raised.value.code == "no_such_route"


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("GET", "/v1/agents/acme/sdr/run", ["POST"]),
        ("DELETE", "/admin/agents/acme/runs", ["GET", "POST"]),
        ("get", "/admin/agents/acme/runs/R1", ["GET"]),
    ],
)
async def test_a_path_with_only_other_methods_says_which(method: str, path: str, allowed: list[str]) -> None:
    with pytest.raises(RetainError) as raised:
        await answered(request(method, path))
    assert raised.value.code == "method_not_allowed"
    assert raised.value.details["allowed"] == allowed
    assert problem(raised.value, "r").headers["allow"] == ", ".join(allowed)


_TEXT = st.text(st.characters(exclude_categories=["Cs"]))


@given(_TEXT, _TEXT)
async def test_a_quoted_parameter_arrives_as_it_was(first: str, second: str) -> None:
    path = f"/texts/{quote(first, safe='')}/{quote(second, safe='')}"
    assert await answered(request("GET", path)) == {"handler": "texts", "a": first, "b": second}


@pytest.mark.parametrize("rest", ["", "a/b", "create%5Forder", "Tool"], ids=["empty", "longer", "encoded", "grammar"])
async def test_the_rest_of_a_path_is_checked_as_it_was_sent(rest: str) -> None:
    assert await answered(request("GET", "/rest/create_order")) == {"handler": "rest", "tool_name": "create_order"}
    with pytest.raises(InvalidInput) as raised:
        await answered(request("GET", f"/rest/{rest}"))
    assert raised.value.code == "invalid_tool_name"


async def test_a_handler_receives_the_parsed_body_and_query() -> None:
    taken = await answered(request("POST", "/notes/acme", '{"text": "hi"}', {"limit": "7"}))
    assert taken == {"tenant": "acme", "text": "hi", "limit": 7}


@pytest.mark.parametrize(
    ("path", "body", "query", "code"),
    [
        pytest.param("/notes/*", "{", {"limit": "0"}, "invalid_tenant", id="path first"),
        pytest.param("/notes/nobody", "{", {"limit": "0"}, "invalid_limit", id="then the query"),
        pytest.param("/notes/nobody", "{", {}, "malformed_json", id="then the body"),
        pytest.param("/notes/nobody", "{}", {}, "invalid_body", id="and its fields"),
        pytest.param("/notes/nobody", '{"text": ""}', {}, "unknown_tenant", id="the tenant last"),
    ],
)
async def test_what_costs_nothing_is_checked_before_the_tenant_is_looked_up(
    path: str, body: str, query: dict[str, str], code: str
) -> None:
    register = Register()
    with pytest.raises(RetainError) as raised:
        await answered(request("POST", path, body, query), register)
    assert raised.value.code == code
    assert register.asked == (["nobody"] if code == "unknown_tenant" else [])


@pytest.mark.parametrize(
    ("method", "path"), [("GET", "/admin/agents/acme/runs"), ("POST", "/notes/acme"), ("PUT", "/notes/acme")]
)
async def test_a_parameter_that_the_route_does_not_read_is_refused_by_name(method: str, path: str) -> None:
    with pytest.raises(InvalidInput) as raised:
        await answered(request(method, path, '{"text": ""}', {"agent": "probe"}))
    assert raised.value.code == "invalid_query"
    assert str(raised.value.details["problems"]).startswith("['agent: ")


async def test_a_repeated_parameter_is_refused_by_name() -> None:
    asked = replace(request("POST", "/notes/acme", '{"text": ""}', {"limit": "2"}), repeated=["limit"])
    with pytest.raises(InvalidInput) as raised:
        await answered(asked)
    assert raised.value.code == "invalid_query"
    assert raised.value.details["problems"] == ["limit: given more than once"]


async def test_a_route_for_anyone_ignores_what_a_probe_appends() -> None:
    assert (
        await HEALTH.handle(Readiness({}, ManualClock()), request("GET", "/healthz", query={"probe": "7"}))
    ).status == 200


async def test_a_body_is_not_converted_to_another_type() -> None:
    for text in ("7", "true", "null", '["x"]'):
        with pytest.raises(InvalidInput) as raised:
            await answered(request("POST", "/notes/acme", f'{{"text": {text}}}'))
        assert raised.value.code == "invalid_body"


async def test_a_tenant_is_looked_up_once_and_not_where_it_need_not_exist() -> None:
    register = Register()
    await answered(request("POST", "/notes/acme", '{"text": ""}'), register)
    await answered(request("PUT", "/notes/nobody"), register)
    assert register.asked == ["acme"]


@pytest.mark.parametrize("origin", ["https://evil.example", "null"])
async def test_a_page_of_another_origin_is_refused_where_the_route_says_so(origin: str) -> None:
    with pytest.raises(RetainError) as raised:
        await ROUTER.handle(Register(), request("POST", "/echo", "x", headers={"origin": origin}))
    assert raised.value.code == "cross_origin"
    here = {"origin": "https://retain.example"}
    assert (await ROUTER.handle(Register(), request("POST", "/echo", "x", headers=here))).body == "x"


def test_a_match_says_what_the_body_may_be_before_it_is_read() -> None:
    def piecemeal(_: Register, request: TypedRequest[Any, None]) -> Any:
        return request

    router: Router[Register] = Router(
        (
            Resource(
                "Large",
                (
                    Route(
                        "POST",
                        "/large",
                        piecemeal,
                        body=StreamedBody("application/json"),
                        max_body_bytes=7,
                        guard="API key",
                        answers=OK,
                    ),
                ),
            ),
        ),
        guard="Access",
    )
    found = router.match("POST", "/large", admitting(Register))
    assert (found.guard, found.max_body_bytes) == ("API key", 7)
    missed = router.match("POST", "/larger", admitting(Register))
    assert missed.guard == "Access"


def test_a_path_parameter_without_a_grammar_is_a_mistake_in_the_table() -> None:
    with pytest.raises(KeyError, match="unheard_of"):
        Route("GET", "/{unheard_of}", _handler("x"), answers=OK)
