"""Request bodies: JSON checked against a pydantic model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import ErrorDetails

from retain.errors import InvalidInput
from retain.http import Request

Model = TypeVar("Model", bound=BaseModel)

_TYPES = ("str", "int", "float", "bool")
_OBJECT, _LIST = "Input should be an object", "Input should be a list"
_MESSAGES = {
    **dict.fromkeys(("model_type", "model_attributes_type", "dataclass_type", "dict_type", "mapping_type"), _OBJECT),
    **dict.fromkeys(("list_type", "tuple_type", "set_type", "frozen_set_type"), _LIST),
}


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
    """Return what is wrong, each problem once and with its path."""
    found = error.errors()
    places = [one["loc"] for one in found]
    # pydantic does not count members that are wrong: a list of one such member would have too few.
    counted = [one for one in found if one["type"] != "too_short" or not any(_within(place, one) for place in places)]
    return list(dict.fromkeys(f"{'.'.join(map(str, place_of(one))) or 'body'}: {message_of(one)}" for one in counted))


def _within(place: tuple[int | str, ...], found: ErrorDetails) -> bool:
    return len(place) > len(found["loc"]) and place[: len(found["loc"])] == found["loc"]


def place_of(found: ErrorDetails) -> tuple[int | str, ...]:
    """Return where a problem is, without the name of the type of Python that pydantic tried there."""
    *before, last = found["loc"] or ("",)
    is_type = isinstance(last, str) and (last in _TYPES or "[" in last) and found["type"].endswith("_type")
    return tuple(before) if is_type and before else found["loc"]


def message_of(found: ErrorDetails) -> str:
    """Return what is wrong in the words of JSON."""
    message = found["msg"].removeprefix("Value error, ").replace(" after validation", "")
    if message.startswith("Tuple should"):
        message = message.replace("Tuple", "List", 1)
    return _MESSAGES.get(found["type"], message)
