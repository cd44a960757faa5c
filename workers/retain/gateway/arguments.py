"""A tool's arguments, checked against its JSON Schema by a function that is compiled once."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from retain.errors import InvalidInput
from retain.gateway.target import invalid_argument
from retain.json_schema import compile_schema

Check = Callable[[Mapping[str, object]], None]


def compile_check(schema: Mapping[str, object]) -> Check:
    """Return a function that raises InvalidInput (code `invalid_arguments`) for arguments that do not fit the schema.

    See `compile_schema` for what it understands.

    Raises: InvalidInput (code `invalid_tool_configuration`) for a schema that cannot be compiled.
    """
    try:
        violation_of = compile_schema(schema)
    except ValueError as error:
        raise InvalidInput(f"parameters: {error}", code="invalid_tool_configuration") from error

    def check(arguments: Mapping[str, object]) -> None:
        violation = violation_of(arguments)
        if violation is not None:
            raise invalid_argument(violation.path, violation.problem)

    return check
