"""Problems of bodies are in the words of JSON, not of Python."""

from __future__ import annotations

import pytest
from pydantic import Field, JsonValue

from retain.errors import InvalidInput
from retain.routing.bodies import BodyModel, validated


class Part(BodyModel):
    """A part of a body."""

    size: int = 0


class Body(BodyModel):
    """A body with what bodies have."""

    text: str | dict[str, JsonValue] = ""
    parts: tuple[Part, ...] = Field(default=(Part(),), min_length=1)
    names: list[str] = Field(default_factory=list)


@pytest.mark.parametrize(
    ("body", "problems"),
    [
        ([], ["body: Input should be an object"]),
        ("text", ["body: Input should be an object"]),
        ({"text": 3}, ["text: Input should be a valid string", "text: Input should be an object"]),
        ({"parts": "x"}, ["parts: Input should be a list"]),
        ({"parts": ()}, ["parts: List should have at least 1 item, not 0"]),
        ({"parts": ("x",)}, ["parts.0: Input should be an object"]),
        ({"parts": ({"size": "x"},)}, ["parts.0.size: Input should be a valid integer"]),
        ({"names": {}}, ["names: Input should be a list"]),
        ({"other": 1}, ["other: Extra inputs are not permitted"]),
    ],
)
def test_a_problem_names_where_it_is_and_what_json_has_there(body: object, problems: list[str]) -> None:
    with pytest.raises(InvalidInput) as refused:
        validated(Body, body)
    assert (refused.value.code, refused.value.details["problems"]) == ("invalid_body", problems)
