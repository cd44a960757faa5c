"""Request bodies: JSON checked against a pydantic model."""

from __future__ import annotations

from typing import TypeVar

from pydantic import BaseModel, ValidationError

from retain.errors import InvalidInput
from retain.http import Request

Body = TypeVar("Body", bound=BaseModel)


def parsed(model: type[Body], request: Request) -> Body:
    """Return the body as the model.

    Raises: InvalidInput (code `malformed_json`, or `invalid_body` with `problems` naming each place).
    """
    return validated(model, request.json())


def validated(model: type[Body], value: object) -> Body:
    """Return a parsed body as the model. Raises: InvalidInput (code `invalid_body` with `problems` naming each place)."""
    try:
        return model.model_validate(value)
    except ValidationError as error:
        problems = [f"{'.'.join(map(str, found['loc'])) or 'body'}: {found['msg']}" for found in error.errors()]
        raise InvalidInput("the body does not fit", code="invalid_body", problems=problems) from error
