from __future__ import annotations

from typing import Any

import pytest

from retain.errors import InvalidInput
from retain.gateway.arguments import compile_check

SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 5, "pattern": "^[a-z]+$"},
        "count": {"type": "integer", "minimum": 1, "default": 7},
        "kind": {"enum": ["a", "b"]},
        "lines": {"type": "array", "maxItems": 2, "items": {"$ref": "#/definitions/line"}},
    },
    "definitions": {"line": {"type": "object", "required": ["sku"]}},
    "required": ["name"],
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    ("arguments", "path", "rule"),
    [
        pytest.param({}, "", "required", id="missing"),
        pytest.param({"name": 1}, "/name", "type", id="type"),
        pytest.param({"name": "toolong"}, "/name", "maxLength", id="length"),
        pytest.param({"name": "a1"}, "/name", "pattern", id="pattern"),
        pytest.param({"name": "a", "count": 0}, "/count", "minimum", id="minimum"),
        pytest.param({"name": "a", "count": True}, "/count", "type", id="a truth value is not a number"),
        pytest.param({"name": "a", "kind": "c"}, "/kind", "enum", id="enum"),
        pytest.param({"name": "a", "lines": [{"sku": 1}, {}]}, "/lines/1", "required", id="inside a list"),
        pytest.param({"name": "a", "other": 1}, "", "additionalProperties", id="unknown"),
    ],
)
def test_a_violation_names_its_path_and_rule(arguments: dict[str, Any], path: str, rule: str) -> None:
    with pytest.raises(InvalidInput, match=rule) as refused:
        compile_check(SCHEMA)(arguments)
    assert refused.value.code == "invalid_arguments"
    assert refused.value.details["path"] == path


def test_a_violation_does_not_keep_the_value() -> None:
    with pytest.raises(InvalidInput) as refused:
        compile_check(SCHEMA)({"name": "my-password"})
    assert refused.value.__cause__ is None
    assert refused.value.__context__ is None or refused.value.__suppress_context__
    assert "my-password" not in f"{refused.value!r}{refused.value.details}"


def test_a_rule_that_is_long_is_named_and_not_quoted() -> None:
    schema = {"type": "object", "properties": {"a": {"enum": [f"value-{n}" for n in range(100)]}}}
    with pytest.raises(InvalidInput) as refused:
        compile_check(schema)({"a": 1})
    assert refused.value.message == "argument '/a': it breaks the schema's rule 'enum'"


def test_arguments_that_fit_are_left_as_they_are() -> None:
    arguments: dict[str, Any] = {"name": "ab", "lines": [{"sku": "x"}]}
    compile_check(SCHEMA)(arguments)
    assert arguments == {"name": "ab", "lines": [{"sku": "x"}]}


def test_a_schema_without_properties_takes_anything() -> None:
    compile_check({"type": "object"})({"a": [1, None]})
