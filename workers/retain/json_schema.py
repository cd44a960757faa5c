"""JSON Schema: values are checked by a function that is compiled from the schema once."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

_MAX_SHOWN = 200


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

    Understands drafts 4, 6, 7 and 2019-09. Defaults are not filled in. References may point only inside the schema.

    Raises: ValueError for a schema that cannot be compiled.
    Source: https://horejsek.github.io/python-fastjsonschema/
    """
    # Imported here because the compiler is slow to import, and only the first use needs it.
    import fastjsonschema

    try:
        validate = fastjsonschema.compile(dict(schema), handlers=_RefusedReferences(), use_default=False)
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError, SyntaxError, re.error) as error:
        # fastjsonschema does not validate the schema itself: an invalid one can raise anything.
        raise ValueError("this is not a usable JSON Schema") from error
    violation = fastjsonschema.JsonSchemaValueException

    def check(value: object) -> Violation | None:
        try:
            validate(value)
        except violation as error:
            # Not the exception's own text: it quotes the value.
            return _described(error.path, error.rule, error.rule_definition)
        return None

    return check


def _described(path: list[str], rule: str | None, expected: object) -> Violation:
    pointer = "".join(f"/{part}" for part in path[1:])[:_MAX_SHOWN]
    shown = json.dumps(expected)
    if len(shown) > _MAX_SHOWN:
        return Violation(pointer, f"it breaks the schema's rule '{rule}'")
    return Violation(pointer, f"it breaks the schema's rule '{rule}': {shown}")


def _refuse_reference(_uri: str) -> NoReturn:
    raise ValueError("a reference leads outside the schema")
