"""Request bodies: JSON checked against a pydantic model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from retain.errors import InvalidInput
from retain.http import Request

Model = TypeVar("Model", bound=BaseModel)


class BodyModel(BaseModel):
    """The base of request bodies: an unknown field is refused, and a value of another type is not converted."""

    model_config = ConfigDict(extra="forbid", strict=True)


@dataclass(frozen=True, slots=True)
class JsonBody(Generic[Model]):
    """Reads a body as a model. required: if False, an empty body gives the model's defaults."""

    model: type[Model]
    required: bool = True
    media_type: str = "application/json"
    streamed: bool = False

    def read(self, request: Request) -> Model:
        """Return the model.

        Raises: InvalidInput (code `malformed_json`, or `invalid_body` with `problems` naming each place).
        """
        if not self.required and not request.body.strip():
            return self.model()
        return validated(self.model, request.json())


def validated(model: type[Model], value: object) -> Model:
    """Return a parsed body as the model. Raises: InvalidInput (code `invalid_body` with `problems` naming each place)."""
    try:
        return model.model_validate(value)
    except ValidationError as error:
        raise InvalidInput("the body does not fit", code="invalid_body", problems=problems_of(error)) from error


def problems_of(error: ValidationError) -> list[str]:
    """Return what is wrong, with the path of each problem."""
    return [f"{'.'.join(map(str, found['loc'])) or 'body'}: {found['msg']}" for found in error.errors()]
