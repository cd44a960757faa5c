from __future__ import annotations

import json
from typing import Any

import pytest

from retain.errors import InvalidInput, LimitExceeded
from retain.gateway.provisioning import tool_entry
from retain.gateway.tool_config import ToolAuth, parse_tool_config
from tests.gateway.setting import PARAMETERS, TENANT, TOOL, config


def parsed(**changes: Any) -> Any:
    return parse_tool_config(json.dumps(config(**changes)))


def test_a_configuration_is_read_with_its_defaults() -> None:
    value = config(auth={"kind": "header", "name": "x-token"}, headers={"accept": "text/csv"})
    del value["timeout_ms"]
    tool = parse_tool_config(json.dumps(value))
    assert tool.auth == ToolAuth("header", "x-token")
    assert tool.headers == {"accept": "text/csv"}
    assert (tool.timeout_ms, tool.max_response_bytes) == (10_000, 1_048_576)
    assert tool.parameters == PARAMETERS


WRONG: dict[str, dict[str, Any]] = {
    "an unknown field": {"timeout": 5},
    "version zero": {"version": 0},
    "a version that is a text": {"version": "1"},
    "a version that is a truth value": {"version": True},
    "an empty description": {"description": ""},
    "a description that is too long": {"description": "x" * 4097},
    "a host that is not the url's": {"host": "evil.example"},
    "an unknown method": {"method": "HEAD"},
    "a method in lower case": {"method": "post"},
    "idempotent as a text": {"idempotent": "no"},
    "no timeout": {"timeout_ms": 0},
    "a timeout that is too long": {"timeout_ms": 60_001},
    "agents_only as a text": {"agents_only": "yes"},
    "a response that is too large": {"max_response_bytes": 10 * 1_048_576 + 1},
    "auth as a text": {"auth": "bearer"},
    "an unknown kind of auth": {"auth": {"kind": "basic"}},
    "a name where none belongs": {"auth": {"kind": "bearer", "name": "x"}},
    "no name where one belongs": {"auth": {"kind": "header"}},
    "a secret beside auth": {"auth": {"kind": "bearer", "token": "s"}},
    "an auth header in capitals": {"auth": {"kind": "header", "name": "X-Token"}},
    "an auth header that is the connection's": {"auth": {"kind": "header", "name": "host"}},
    "an auth header with a line break": {"auth": {"kind": "header", "name": "x\r\ny"}},
    "an auth parameter with an ampersand": {"auth": {"kind": "query", "name": "a&b"}},
    "headers as a list": {"headers": ["a"]},
    "too many headers": {"headers": {f"x-{n}": "1" for n in range(33)}},
    "a header with a line break": {"headers": {"x-a": "1\r\nx-b: 2"}},
    "a header that is not ascii": {"headers": {"x-a": "\u00fc"}},
    "a header that is a number": {"headers": {"x-a": 1}},
    "a header that sets the host": {"headers": {"host": "evil.example"}},
    "a header that sets cookies": {"headers": {"cookie": "a=b"}},
    "a header that sets the length": {"headers": {"content-length": "0"}},
    "a secret in a header": {"headers": {"authorization": "Bearer x"}},
    "a header that is the credential's": {
        "auth": {"kind": "header", "name": "x-token"},
        "headers": {"x-token": "x"},
    },
    "parameters as a list": {"parameters": []},
    "parameters that are no object": {"parameters": {"type": "string"}},
    "properties as a list": {"parameters": {"type": "object", "properties": []}},
    "required as a text": {"parameters": {"type": "object", "required": "a"}},
    "a place that no parameter fills": {"url": "https://api.example.com/{order}"},
    "a place whose parameter is optional": {"url": "https://api.example.com/{quantity}"},
    "a parameter that the query sets": {"method": "GET", "url": "https://api.example.com/?order_id=1"},
    "a credential that the query sets": {
        "auth": {"kind": "query", "name": "token"},
        "url": "https://api.example.com/?token=1",
    },
    "a credential that a parameter sets": {"auth": {"kind": "query", "name": "order_id"}},
    "a schema that cannot be compiled": {
        "parameters": {"type": "object", "properties": {"a": {"type": "string", "pattern": "("}}}
    },
    "a schema of an unknown type": {"parameters": {"type": "object", "properties": {"a": {"type": "text"}}}},
    "a schema that refers to another": {
        "parameters": {"type": "object", "properties": {"a": {"$ref": "https://evil.example/schema.json"}}}
    },
    "a schema that refers to a file": {
        "parameters": {"type": "object", "properties": {"a": {"$ref": "file:///etc/passwd"}}}
    },
    "a schema that refers to what is not there": {
        "parameters": {"type": "object", "properties": {"a": {"$ref": "#/definitions/never"}}}
    },
}


@pytest.mark.parametrize("changes", WRONG.values(), ids=WRONG.keys())
def test_a_wrong_configuration_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput) as refused:
        tool_entry(TENANT, TOOL, config(**changes))
    assert refused.value.code == "invalid_tool_configuration"


@pytest.mark.parametrize("name", sorted(config().keys() - {"timeout_ms"}))
def test_a_missing_field_is_named(name: str) -> None:
    value = config()
    del value[name]
    with pytest.raises(InvalidInput, match=name):
        tool_entry(TENANT, TOOL, value)


@pytest.mark.parametrize("text", ["", "[]", "null", '"x"', "{", '{"version":' + "[" * 100_000])
def test_a_text_that_is_not_a_configuration_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        parse_tool_config(text)
    assert refused.value.code == "invalid_tool_configuration"


def test_a_post_may_set_a_query_parameter_that_is_also_an_argument() -> None:
    assert parsed(url="https://api.example.com/?order_id=1").url.query == "order_id=1"


def test_invariant_8_a_configuration_has_a_limit() -> None:
    with pytest.raises(LimitExceeded) as refused:
        tool_entry(TENANT, TOOL, config(parameters={"type": "object", "description": "x" * 65_536}))
    assert refused.value.code == "tool_configuration_too_large"


def test_a_configuration_that_is_not_json_is_refused() -> None:
    with pytest.raises(InvalidInput):
        tool_entry(TENANT, TOOL, config(parameters={"type": "object", "default": float("nan")}))
