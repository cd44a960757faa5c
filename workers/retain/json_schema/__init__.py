"""JSON Schema: values are checked by a function that is compiled from the schema once."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from retain.text_patterns import TextPattern

_MAX_SHOWN = 200
MAX_FORMATTED = 2_048
"""Longest text that has a format, in characters: the compiler's own patterns take quadratic time."""
MAX_STEPS = 250_000
"""Most references that the check of one value follows: a few that name each other twice would take years."""
_VALUES = frozenset(("const", "enum", "default", "examples", "example", "dependentRequired"))
"""The keywords of a schema that have values, not schemas. Source: https://spec.openapis.org/oas/v3.0.3 (`example`)"""
_NAMED_SCHEMAS = frozenset(
    ("properties", "patternProperties", "$defs", "definitions", "dependencies", "dependentSchemas")
)
"""The keywords whose names are somebody's own, not keywords."""


@dataclass(frozen=True, slots=True)
class Violation:
    """Where a value breaks its schema, and how. path: a JSON Pointer, cut to 200 characters. The value is not quoted."""

    path: str
    problem: str


Check = Callable[[object], Violation | None]


class _RefusedReferences(dict[str, Callable[[str], Any]]):
    """Claims every URI scheme, so that no schema makes the compiler fetch another one."""

    def __contains__(self, scheme: object) -> bool:
        return True

    def __missing__(self, scheme: str) -> Callable[[str], Any]:
        return _refuse_reference


def compile_schema(schema: Mapping[str, object]) -> Check:
    """Return a function that returns a value's first violation of the schema, or None.

    Understands drafts 4, 6 and 7 where `$schema` names one, otherwise 2020-12 without `unevaluatedItems`,
    `unevaluatedProperties`, `$dynamicRef` and `$anchor`, which are not checked. Defaults are not filled in. References may
    point only inside the schema.

    Patterns are `retain.text_patterns.TextPattern`; no text is searched that is too long for them, or of a format and too
    long: that is a violation.

    A value that needs more than `MAX_STEPS` references, or references without end, is a violation too, and so is a number
    with which the rule of another cannot be computed.

    Raises: ValueError for a schema that cannot be compiled; it says so if that has too many rules, or too many levels.
    Source: https://horejsek.github.io/python-fastjsonschema/
    """
    # Imported here because the compiler is slow to import, and only the first use needs it.
    from fastjsonschema import JsonSchemaValueException

    from retain.json_schema.code import generated

    steps = _SchemaSteps()
    try:
        json.dumps(dict(schema), allow_nan=False)
        validate, patterns = generated(_rewritten(dict(schema)), _RefusedReferences(), steps.take)
        patterns.update({written: _linear(written, compiled) for written, compiled in patterns.items()})
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError, SyntaxError, re.error) as error:
        # fastjsonschema does not validate the schema itself: an invalid one can raise anything.
        raise ValueError(f"this is not a usable JSON Schema{_excess(error)}") from error

    def check(value: object) -> Violation | None:
        steps.left = MAX_STEPS
        try:
            validate(value)
        except JsonSchemaValueException as error:
            # Not the exception's own text: it quotes the value.
            return _described(error.path, error.rule, error.rule_definition)
        except (RecursionError, _TooManySteps):
            return Violation("", "the schema's references take too many steps to check it")
        except ArithmeticError:
            return Violation("", "it has a number that is too large for the schema's rules")
        return None

    return check


def compile_object_schema(schema: Mapping[str, Any]) -> Check:
    """Return the check of a schema that objects alone are checked by.

    Raises: ValueError as `compile_schema`, and when its `type`, `enum` or `const` admit no object.
    """
    check = compile_schema(schema)
    values = [schema["const"]] if "const" in schema else schema.get("enum", [{}])
    if "object" not in schema.get("type", "object") or not any(isinstance(value, dict) for value in values):
        raise ValueError("no object can match this JSON Schema")
    return check


def _excess(error: Exception) -> str:
    """Return of what a schema has too much, or which rule nothing can meet; "" for one that is invalid.

    Python compiles at most 20 loops, and 100 blocks, in one another.
    """
    from retain.json_schema.code import TooManyRules

    if isinstance(error, _ImpossibleRule):
        return f": {error}"
    if isinstance(error, TooManyRules):
        return ": it has too many rules, or too many levels of them"
    nested = isinstance(error, RecursionError | IndentationError) or "nested blocks" in str(error)
    return ": it is nested too deeply" if nested else ""


class _ImpossibleRule(ValueError):
    """A rule that no value can be checked against."""


class _TooManySteps(Exception):
    """A check followed more references than it may."""


class _SchemaSteps:
    """Counts the references that one check follows."""

    def __init__(self) -> None:
        self.left = 0

    def take(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise _TooManySteps


class _SearchedPattern:
    """A pattern of the schema's author, as the compiled function calls it."""

    def __init__(self, pattern: str) -> None:
        self._pattern = TextPattern(pattern)

    def search(self, text: str) -> bool:
        try:
            return self._pattern.found_in(text)
        except ValueError:
            return False

    match = search


class _FormatPattern:
    """A pattern of the compiler's own for a format, as the compiled function calls it."""

    def __init__(self, compiled: re.Pattern[str]) -> None:
        self._compiled = compiled

    def match(self, text: str) -> bool:
        return len(text) <= MAX_FORMATTED and self._compiled.match(text) is not None


def _linear(written: str, compiled: re.Pattern[str]) -> _SearchedPattern | _FormatPattern:
    from fastjsonschema.draft04 import CodeGeneratorDraft04
    from fastjsonschema.draft2019 import CodeGeneratorDraft2019

    known = {*CodeGeneratorDraft04.FORMAT_REGEXS.values(), *CodeGeneratorDraft2019.FORMAT_REGEXS.values()}
    own = written.endswith("_re_pattern") and compiled.pattern in known
    return _FormatPattern(compiled) if own else _SearchedPattern(written)


def _rewritten(schema: Any) -> Any:
    """Return a schema that means the same, with `required` in a part of its own where `patternProperties` is next to it.

    The compiler would try each pattern on each required name there, with Python's engine.
    Raises: _ImpossibleRule for a divisor that is not above 0.
    """
    if isinstance(schema, list):
        return [_rewritten(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    parts = {name: _part(name, part) for name, part in schema.items()}
    if not parts.get("multipleOf", 1) > 0:
        raise _ImpossibleRule("multipleOf must be above 0")
    if isinstance(parts.get("patternProperties"), dict) and "required" in parts:
        parts["allOf"] = [*parts.get("allOf", []), {"required": parts.pop("required")}]
    return parts


def _part(keyword: str, part: Any) -> Any:
    if keyword in _NAMED_SCHEMAS and isinstance(part, dict):
        return {name: _rewritten(schema) for name, schema in part.items()}
    return part if keyword in _VALUES else _rewritten(part)


def _described(path: list[str], rule: str | None, shown: str | None) -> Violation:
    pointer = "".join(f"/{part}" for part in path[1:])[:_MAX_SHOWN]
    problem = "nothing is allowed there" if rule is None else f"it breaks the schema's rule '{rule}'"
    return Violation(pointer, problem if shown is None else f"{problem}: {shown}")


def _refuse_reference(_uri: str) -> NoReturn:
    raise ValueError("a reference leads outside the schema")
