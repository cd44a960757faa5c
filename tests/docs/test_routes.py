"""docs/http.md is what the route tables say, and the tables say what the documentation needs."""

from __future__ import annotations

import inspect
import re
import typing
from typing import Any

import pytest
from pydantic import BaseModel, RootModel

from retain.memory.records.record import EDITABLE
from retain.routing.requests import TypedRequest
from retain.routing.route import ErrorGroup, Route
from tests.docs.error_codes import error_codes
from tests.docs.markdown import page, spans
from tools.http_docs import ANSWERED, ERRORS, PAGE, written
from tools.paths import ROOT

ROUTES: dict[str, Route[Any]] = {
    f"{route.method} {route.path}": route for resource in ANSWERED for route in resource.routes
}


def test_the_page_is_what_the_route_tables_say() -> None:
    assert written(PAGE.read_text(), ERRORS.read_text()) == PAGE.read_text(), "run python -m tools.http_docs --write"


def test_writing_the_page_keeps_the_prose_around_the_routes() -> None:
    text = PAGE.read_text().replace("# HTTP\n", "# HTTP\n\nkept\n", 1) + "\nkept as well\n"
    assert written(text, ERRORS.read_text()) == text


def test_a_page_without_markers_is_not_written() -> None:
    with pytest.raises(ValueError, match="markers"):
        written("# HTTP\n", ERRORS.read_text())


def test_no_two_routes_have_one_method_and_path() -> None:
    assert len(ROUTES) == sum(len(resource.routes) for resource in ANSWERED)


@pytest.mark.parametrize("name", ROUTES)
def test_a_handler_receives_what_its_route_reads(name: str) -> None:
    route = ROUTES[name]
    hints = typing.get_type_hints(inspect.unwrap(route.handle))
    body, query = typing.get_args(next(hint for hint in hints.values() if typing.get_origin(hint) is TypedRequest))
    assert (body is type(None)) == (route.body is None)
    assert query == (type(None) if route.query is None else route.query.model)


@pytest.mark.parametrize("name", ROUTES)
def test_a_route_says_what_it_does_takes_and_answers(name: str) -> None:
    route = ROUTES[name]
    assert route.summary.endswith(".")
    assert route.answers
    assert bool(route.takes) == (route.body is not None)
    if route.query is not None:
        assert issubclass(route.query.model, BaseModel)
        undescribed = [field for field, info in route.query.model.model_fields.items() if not info.description]
        assert undescribed == []


def test_only_what_must_be_open_is_open() -> None:
    open_to = {name: route.guard for name, route in ROUTES.items() if route.guard != "Access"}
    assert open_to == {
        "GET /healthz": "anyone",
        "HEAD /healthz": "anyone",
        "GET /readyz": "anyone",
        "HEAD /readyz": "anyone",
        "POST /api/v1/tools/{tool_name}": "API key",
        "POST /mcp": "API key",
        "GET /.well-known/oauth-protected-resource/{resource}": "anyone",
    }
    guarded = ("/admin/", "/v1/agents/", "/v1/chat/", "/v1/models", "/client/v4/")
    assert all(name.split()[1].startswith(guarded) for name in ROUTES.keys() - open_to.keys())


def test_every_field_of_a_body_is_documented() -> None:
    named = set(spans(page("docs/http.md").prose))
    datasets = page("docs/evaluation.md").text
    bodies = {route.body.model for route in ROUTES.values() if route.body is not None and route.body.model is not None}
    fields = {
        f"{body.__name__}.{field.alias or name}"
        for body in bodies
        if issubclass(body, BaseModel) and not issubclass(body, RootModel)  # whose fields are those of another page
        for name, field in body.model_fields.items()
    }
    assert {"RunBody.input", "RecallBody.explain", "IngestBody.messages"} <= fields
    of_datasets = {field for field in fields if field.startswith("Dataset.")}
    assert {field for field in fields - of_datasets if field.split(".")[1] not in named} == set()
    assert {field for field in of_datasets if field.split(".")[1] not in datasets} == set()
    assert set(EDITABLE) <= named


def test_a_link_to_a_section_has_one_target() -> None:
    headings = [line for line in PAGE.read_text().splitlines() if line.startswith("## ")]
    assert sorted(set(headings)) == sorted(headings)


def test_every_code_of_a_route_exists() -> None:
    codes = {
        code
        for route in ROUTES.values()
        for error in route.errors
        for code in (error.codes if isinstance(error, ErrorGroup) else (error,))
    }
    assert codes
    assert codes - set(error_codes()) == set()


def test_the_examples_define_other_agents_than_the_repository() -> None:
    text = (ROOT / "docs" / "runtime-agents.md").read_text()
    named = re.findall(r"^(?:PUT|POST) /v1/tenants/\{tenant\}/agents/(\w+)", text, re.MULTILINE)
    assert named
    assert not set(named) & {path.stem for path in (ROOT / "agents").glob("*.yaml")}
