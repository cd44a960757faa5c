"""Pydantic models with the fields of a dataclass."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal

import pytest
from pydantic import BaseModel, ConfigDict, ValidationError

from retain.dataclass_models import Presence, with_fields_of


@dataclass(frozen=True)
class Parcel:
    """What the models take their fields from."""

    address: Annotated[str, "a limit of its own"]
    labels: Mapping[str, object] = field(default_factory=dict)
    size: Literal["small", "large"] = "small"
    weight_g: int | None = None


def model(presence: Presence = "declared") -> type[BaseModel]:
    @with_fields_of(Parcel, omit=("weight_g",), presence=presence)
    class Body(BaseModel):
        """A body."""

        model_config = ConfigDict(extra="forbid")
        urgent: bool = False

    return Body


def test_a_model_gets_names_types_and_defaults() -> None:
    body = model().model_validate({"address": "Lisbon", "urgent": True})
    assert body.model_dump() == {"urgent": True, "address": "Lisbon", "labels": {}, "size": "small"}
    assert (model().__name__, model().__doc__, model().__module__) == ("Body", "A body.", __name__)


@pytest.mark.parametrize(
    "wrong", [{}, {"address": 5}, {"address": "Lisbon", "size": "huge"}, {"address": "Lisbon", "weight_g": 3}]
)
def test_what_the_dataclass_would_not_take_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        model().model_validate(wrong)


def test_a_default_that_is_made_is_made_for_each() -> None:
    one, other = (model().model_validate({"address": "Lisbon"}).model_dump()["labels"] for _ in range(2))
    assert one is not other


def test_required_fields_have_no_default() -> None:
    with pytest.raises(ValidationError) as raised:
        model("required").model_validate({"address": "Lisbon"})
    assert [error["loc"] for error in raised.value.errors()] == [("labels",), ("size",)]


def test_it_is_known_which_optional_fields_were_given() -> None:
    body = model("optional").model_validate({"size": "large"})
    assert body.model_dump(exclude_unset=True) == {"size": "large"}
    assert "default" not in model("optional").model_json_schema()["properties"]["size"]
