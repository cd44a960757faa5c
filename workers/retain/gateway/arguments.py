"""Arguments of a tool: checked against its JSON Schema by a function that is compiled once."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from retain.errors import InvalidInput
from retain.gateway.target import invalid_argument

Check = Callable[[Mapping[str, object]], None]
_MAX_SHOWN = 200


class _RefusedReferences(dict[str, Callable[[str], Any]]):
    """Claims every URI scheme, so that no schema makes the compiler fetch another one."""

    def __contains__(self, scheme: object) -> bool:
        return True

    def __missing__(self, scheme: str) -> Callable[[str], Any]:
        return _refuse_reference


def compile_check(schema: Mapping[str, Any]) -> Check:
    """Return a function that raises InvalidInput (code `invalid_arguments`) for arguments that do not fit the schema.

    Understands drafts 4, 6, 7 and 2019-09. Defaults are not filled in. References may point only inside the schema.

    Raises: InvalidInput (code `invalid_tool_configuration`) for a schema that cannot be compiled.
    Source: https://horejsek.github.io/python-fastjsonschema/
    """
    # Here, and not above: the compiler takes long to import, and only the first call of a tool needs it.
    import fastjsonschema

    try:
        validate = fastjsonschema.compile(dict(schema), handlers=_RefusedReferences(), use_default=False)
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError, SyntaxError, re.error) as error:
        # fastjsonschema does not check a schema as a whole: a wrong one fails wherever it stumbles.
        raise InvalidInput(
            "parameters is not a JSON Schema that can be used", code="invalid_tool_configuration"
        ) from error
    violation = fastjsonschema.JsonSchemaValueException

    def check(arguments: Mapping[str, object]) -> None:
        try:
            validate(arguments)
        except violation as error:
            # Without the cause: it holds the value.
            raise _described(error.path, error.rule, error.rule_definition) from None

    return check


def _described(path: list[str], rule: str | None, expected: object) -> InvalidInput:
    pointer = "".join(f"/{part}" for part in path[1:])[:_MAX_SHOWN]
    shown = json.dumps(expected)
    if len(shown) > _MAX_SHOWN:
        return invalid_argument(pointer, f"it breaks the schema's rule '{rule}'")
    return invalid_argument(pointer, f"it breaks the schema's rule '{rule}': {shown}")


def _refuse_reference(_uri: str) -> NoReturn:
    raise ValueError("a reference leads outside the schema")
