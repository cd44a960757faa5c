from __future__ import annotations

import json
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retain.errors import InvalidInput
from retain.gateway.tool_config import ToolConfig, parse_tool_config
from retain.gateway.upstream import build_request
from tests.gateway.setting import config

ANYTHING: dict[str, Any] = {"type": "object"}
ORDER: dict[str, Any] = {"type": "object", "properties": {"order": {}}, "required": ["order"]}


def tool(**changes: Any) -> ToolConfig:
    return parse_tool_config(json.dumps(config(**{"parameters": ANYTHING, **changes})))


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH"])
def test_arguments_become_the_json_body(method: str) -> None:
    request = build_request(tool(method=method), {"a": [1, None], "b": "\u00fc\ud800"}, None)
    assert request.method == method
    assert request.url == "https://api.example.com/orders"
    assert request.headers["content-type"] == "application/json"
    assert json.loads(request.body or "") == {"a": [1, None], "b": "\u00fc\ud800"}
    assert (request.body or "").isascii()


@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_arguments_become_the_query(method: str) -> None:
    arguments = {"q": "a b&c=d", "tags": ["x", "y"], "none": None, "deep": True, "n": 1.5}
    request = build_request(tool(method=method), arguments, None)
    assert request.body is None
    assert "content-type" not in request.headers
    assert request.url == "https://api.example.com/orders?q=a%20b%26c%3Dd&tags=x&tags=y&deep=true&n=1.5"


def test_arguments_in_the_path_are_not_sent_again() -> None:
    parts = {"url": "https://api.example.com/orders/{order}", "parameters": ORDER}
    posted = build_request(tool(**parts), {"order": "A 1", "note": "x"}, None)
    assert (posted.url, posted.body) == ("https://api.example.com/orders/A%201", '{"note":"x"}')
    got = build_request(tool(method="GET", **parts), {"order": "A 1", "note": "x"}, None)
    assert got.url == "https://api.example.com/orders/A%201?note=x"


@pytest.mark.parametrize(
    ("auth", "header", "query"),
    [
        pytest.param({"kind": "none"}, None, "fixed=1", id="none"),
        pytest.param({"kind": "bearer"}, ("authorization", "Bearer s+1"), "fixed=1", id="bearer"),
        pytest.param({"kind": "header", "name": "x-token"}, ("x-token", "s+1"), "fixed=1", id="header"),
        pytest.param({"kind": "query", "name": "token"}, None, "fixed=1&token=s%2B1", id="query"),
    ],
)
def test_the_credential_is_sent_where_the_configuration_says(
    auth: dict[str, str], header: tuple[str, str] | None, query: str
) -> None:
    credential = None if auth["kind"] == "none" else "s+1"
    request = build_request(tool(url="https://api.example.com/orders?fixed=1", auth=auth), {}, credential)
    assert urlsplit(request.url).query == query
    assert header is None or request.headers[header[0]] == header[1]
    shown = json.dumps([dict(request.headers), request.url])
    assert shown.count("s+1") + shown.count("s%2B1") == (0 if credential is None else 1)


def test_a_request_does_not_show_its_credential() -> None:
    request = build_request(tool(auth={"kind": "query", "name": "token"}), {"a": "private"}, "swordfish")
    assert "swordfish" not in repr(request)
    assert "private" not in repr(request)


@pytest.mark.parametrize("name", ["fixed", "token"])
def test_an_undeclared_argument_cannot_replace_what_the_configuration_sets(name: str) -> None:
    set_ = tool(method="GET", url="https://api.example.com/?fixed=1", auth={"kind": "query", "name": "token"})
    with pytest.raises(InvalidInput) as refused:
        build_request(set_, {name: "mine"}, "secret")
    assert refused.value.code == "invalid_arguments"


@pytest.mark.parametrize("method", ["POST", "GET"])
@pytest.mark.parametrize("number", [float("nan"), float("inf"), -float("inf")])
def test_a_number_that_json_does_not_have_is_refused(method: str, number: float) -> None:
    with pytest.raises(InvalidInput) as refused:
        build_request(tool(method=method), {"a": number}, None)
    assert refused.value.code == "invalid_arguments"


def test_a_structure_is_refused_in_a_query() -> None:
    with pytest.raises(InvalidInput, match="/a"):
        build_request(tool(method="GET"), {"a": {"b": 1}}, None)


def test_the_configurations_headers_win_over_the_usual_ones() -> None:
    assert build_request(tool(), {}, None).headers["accept"] == "application/json"
    request = build_request(tool(headers={"accept": "text/csv", "user-agent": "acme"}), {}, None)
    assert (request.headers["accept"], request.headers["user-agent"]) == ("text/csv", "acme")


Names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)
Scalars = st.text(st.characters(exclude_categories=["Cs"])) | st.integers()


@given(st.dictionaries(Names, Scalars))
def test_a_query_decodes_to_the_arguments(arguments: dict[str, str | int]) -> None:
    url = build_request(tool(method="GET"), arguments, None).url
    pairs = parse_qsl(urlsplit(url).query, keep_blank_values=True, strict_parsing=bool(arguments))
    assert pairs == [(name, str(value)) for name, value in arguments.items()]


Json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


@given(st.dictionaries(st.text(), Json, max_size=5))
def test_a_body_decodes_to_the_arguments(arguments: dict[str, Any]) -> None:
    assert json.loads(build_request(tool(), arguments, None).body or "") == arguments
