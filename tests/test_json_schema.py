"""Schemas that somebody wrote to hurt: their code, and the checks that it does, are bounded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from retain.json_schema import compile_object_schema, compile_schema
from retain.json_schema.code import MAX_CODE_CHARACTERS, generated

REFERENCES: dict[str, Any] = {"type": "object", "allOf": [{"$ref": "#"}] * 1_200}


def nested(levels: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(levels):
        schema = {"type": "object", "properties": {"k" * 250: schema}}
    return schema


def doubling(levels: int) -> dict[str, Any]:
    """Return a schema that follows two references at each level."""
    last = {f"a{levels}": {"type": "string"}}
    steps = {f"a{level}": {"allOf": [{"$ref": f"#/$defs/a{level + 1}"}] * 2} for level in range(levels)}
    return {"$defs": steps | last, "allOf": [{"$ref": "#/$defs/a0"}]}


def test_code_does_not_repeat_what_a_reference_names() -> None:
    def kept() -> None: ...

    validate, _ = generated(REFERENCES, {}, kept)
    code = validate.__code__
    assert all(len(str(one)) < 100 for one in code.co_consts)
    assert len(code.co_code) < MAX_CODE_CHARACTERS


@pytest.mark.parametrize(
    "schema",
    [
        nested(30),
        {"const": {"k" * 8_000: [1] * 2_500}},
        {"enum": [{"k" * 8_000: [1] * 2_500}]},
        {"dependencies": {"a": [str(number) for number in range(1_800)]}},
    ],
    ids=["long paths", "a constant", "an enumeration", "dependencies"],
)
def test_a_schema_whose_code_would_be_too_long_is_refused(schema: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="not a usable JSON Schema") as caught:
        compile_schema(schema)
    assert str(caught.value.__cause__) == "the schema has too many rules"


def _levels(count: int, around: Callable[[dict[str, Any]], dict[str, Any]]) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(count):
        schema = around(schema)
    return schema


@pytest.mark.parametrize(
    ("around", "most"),
    [(lambda one: {"type": "object", "properties": {"a": one}}, 48), (lambda one: {"type": "array", "items": one}, 20)],
    ids=["objects", "arrays"],
)
def test_a_valid_schema_that_is_too_large_says_of_what_it_has_too_much(
    around: Callable[[dict[str, Any]], dict[str, Any]], most: int
) -> None:
    assert compile_schema(_levels(most, around))("text") is not None
    with pytest.raises(ValueError, match="it is nested too deeply"):
        compile_schema(_levels(most + 1, around))
    with pytest.raises(ValueError, match="it is nested too deeply"):
        compile_schema(_levels(2_000, around))
    with pytest.raises(ValueError, match="it has too many rules"):
        compile_schema({"properties": {f"p{number}": around({"type": "string"}) for number in range(1_000)}})


def test_a_large_schema_of_an_ordinary_kind_compiles() -> None:
    properties = {f"field{number}": {"type": "string", "maxLength": 7} for number in range(250)}
    check = compile_schema({"type": "object", "properties": properties, "required": list(properties)})
    assert check(dict.fromkeys(properties, "text")) is None
    assert check(dict.fromkeys(properties, "long text")) is not None


@pytest.mark.parametrize("schema", [REFERENCES, doubling(40)], ids=["without end", "doubling"])
def test_a_check_that_follows_too_many_references_is_a_violation(schema: dict[str, Any]) -> None:
    violation = compile_schema(schema)({} if schema is REFERENCES else "text")
    assert violation is not None
    assert violation.problem == "the schema's references take too many steps to check it"


def test_every_check_has_all_steps() -> None:
    check = compile_schema(doubling(10))
    assert [check("text") for _ in range(300)] == [None] * 300


@pytest.mark.parametrize("names", [("A", "a"), ("a-b", "a_b")], ids=["case", "punctuation"])
def test_definitions_with_similar_names_are_different(names: tuple[str, str]) -> None:
    text, number = names
    check = compile_schema(
        {
            "definitions": {text: {"type": "string"}, number: {"type": "integer"}},
            "properties": {"x": {"$ref": f"#/definitions/{text}"}, "y": {"$ref": f"#/definitions/{number}"}},
        }
    )
    assert check({"x": "text", "y": 1}) is None
    assert check({"x": 1, "y": 1}) is not None
    assert check({"x": "text", "y": "text"}) is not None


def test_a_violation_shows_a_short_rule_and_names_a_long_one() -> None:
    short = compile_schema({"properties": {"a": {"enum": ["one", None]}}})({"a": 1})
    assert short is not None
    assert (short.path, short.problem) == ("/a", """it breaks the schema's rule 'enum': ["one", null]""")
    long = compile_schema({"enum": ["one" * 100]})(1)
    assert long is not None
    assert long.problem == "it breaks the schema's rule 'enum'"


@pytest.mark.parametrize("divisor", [0, 0.0, -2])
def test_a_divisor_that_divides_nothing_is_refused(divisor: float) -> None:
    with pytest.raises(ValueError, match="multipleOf must be above 0"):
        compile_schema({"properties": {"a": {"multipleOf": divisor}}})


@pytest.mark.parametrize("schema", [{"maximum": float("inf")}, {"enum": [float("nan")]}], ids=["infinite", "NaN"])
def test_a_schema_with_what_json_has_no_numbers_for_is_refused(schema: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="not a usable JSON Schema"):
        compile_schema({"properties": {"a": schema}})


def test_a_number_with_which_a_rule_cannot_be_computed_is_a_violation() -> None:
    violation = compile_schema({"properties": {"a": {"multipleOf": 0.01}}})({"a": 10**400})
    assert violation is not None
    assert "too large" in violation.problem


@pytest.mark.parametrize(
    ("schema", "fitting", "breaking"),
    [
        pytest.param(
            {"prefixItems": [{"type": "integer"}, {"type": "string"}]}, [1, "a", None], ["a"], id="prefixItems"
        ),
        pytest.param(
            {"prefixItems": [{"type": "integer"}], "items": {"type": "string"}}, [1, "a"], [1, 2], id="and items"
        ),
        pytest.param({"prefixItems": [{}], "items": False}, [1], [1, 2], id="and no more"),
        pytest.param({"dependentRequired": {"a": ["b"]}}, {"a": 1, "b": 1}, {"a": 1}, id="dependentRequired"),
        pytest.param(
            {"dependentSchemas": {"a": {"required": ["b"]}}, "allOf": [{"required": ["c"]}]},
            {"a": 1, "b": 1, "c": 1},
            {"a": 1, "c": 1},
            id="dependentSchemas",
        ),
        pytest.param(
            {"minContains": 0, "contains": {"type": "string"}, "maxItems": 1}, [1], [1, 2], id="minContains: 0"
        ),
        pytest.param({"minContains": 2, "contains": {"type": "string"}}, ["a", 1, "b"], ["a", 1], id="minContains"),
        pytest.param({"maxContains": 1, "contains": {"type": "string"}}, ["a", 1], ["a", "b"], id="maxContains"),
        pytest.param({"maxContains": 1, "contains": {"type": "string"}}, ["a", 1], [1], id="and not none"),
        pytest.param({"contains": False, "minContains": 0}, [1], None, id="contains nothing"),
        pytest.param({"prefixItems": [True, False]}, [1], [1, 2], id="prefixItems that are true or false"),
        pytest.param(
            {"$ref": "#/$defs/named", "required": ["b"]}, {"a": 1, "b": 1}, {"a": 1}, id="next to a reference"
        ),
        pytest.param({"$ref": "#/$defs/named", "required": ["b"]}, {"a": 1, "b": 1}, {"b": 1}, id="and the reference"),
    ],
)
def test_keywords_of_later_drafts_are_checked(schema: dict[str, Any], fitting: object, breaking: object) -> None:
    named = {"type": "object", "required": ["a"]}
    check = compile_schema({"properties": {"value": {"not": {"type": "null"}, **schema}}, "$defs": {"named": named}})
    assert check({"value": fitting}) is None
    assert check({"value": breaking}) is not None


@pytest.mark.parametrize(
    "of_text",
    [
        pytest.param({"prefixItems": [{"type": "string"}]}, id="prefixItems"),
        pytest.param({"dependentSchemas": {"0": {"type": "string"}}}, id="dependentSchemas"),
        pytest.param({"prefixItems": [{}], "items": {"type": "string"}}, id="items"),
        pytest.param({"contains": {"type": "string"}, "minContains": 0}, id="contains"),
    ],
)
def test_a_reference_may_lead_into_a_keyword_of_a_later_draft(of_text: dict[str, Any]) -> None:
    keyword = next(name for name, value in of_text.items() if "string" in str(value))
    place = keyword if "type" in of_text[keyword] else f"{keyword}/0"
    check = compile_schema({"properties": {"a": {"$ref": f"#/$defs/one/{place}"}}, "$defs": {"one": of_text}})
    assert check({"a": "text"}) is None
    assert check({"a": 1}) is not None


@pytest.mark.parametrize("name", ["multipleOf", "prefixItems", "patternProperties"])
def test_what_is_named_as_a_keyword_and_is_not_one_is_left_as_it_is(name: str) -> None:
    check = compile_schema({"dependentRequired": {name: ["b"]}, "example": {name: [], "required": 1}})
    assert check({name: 1, "b": 1}) is None
    assert check({name: 1}) is not None


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string"},
        {"type": ["array", "null"]},
        {"const": "yes"},
        {"enum": ["yes", 1]},
        {"type": "object", "enum": []},
    ],
)
def test_a_schema_that_no_object_can_match_is_refused_where_an_answer_is_an_object(schema: dict[str, Any]) -> None:
    assert compile_schema(schema) is not None
    with pytest.raises(ValueError, match="no object can match"):
        compile_object_schema(schema)


@pytest.mark.parametrize(
    "schema", [{}, {"type": "object"}, {"type": ["null", "object"]}, {"const": {"a": 1}}, {"enum": [1, {}]}]
)
def test_a_schema_that_an_object_can_match_is_one_of_objects(schema: dict[str, Any]) -> None:
    check = compile_object_schema(schema)
    assert None in [check(value) for value in ({}, {"a": 1})]


BROKEN: dict[str, tuple[dict[str, Any], object, str]] = {
    "dependentRequired": ({"dependentRequired": {"a": ["b"]}}, {"a": 1}, """rule 'dependentRequired': {"a": ["b"]}"""),
    "minContains": ({"minContains": 2, "contains": {}}, [1], "rule 'minContains': 2"),
    "maxContains": ({"maxContains": 1, "contains": {}}, [1, 2], "rule 'maxContains': 1"),
    "items after others": ({"prefixItems": [{}], "items": {"type": "null"}}, [1, 2], """rule 'type': "null\""""),
}


@pytest.mark.parametrize(("schema", "value", "rule"), BROKEN.values(), ids=BROKEN)
def test_a_violation_names_the_rule_as_the_schema_does(schema: dict[str, Any], value: object, rule: str) -> None:
    violation = compile_schema(schema)(value)
    assert violation is not None
    assert violation.problem == f"it breaks the schema's {rule}"


def test_what_is_next_to_a_reference_is_ignored_in_a_draft_that_ignores_it() -> None:
    schema = {"$ref": "#/definitions/one", "required": ["b"], "definitions": {"one": {"type": "object"}}}
    assert compile_schema({"$schema": "http://json-schema.org/draft-07/schema#", **schema})({}) is None
    assert compile_schema(schema)({}) is not None
