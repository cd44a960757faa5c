"""Pydantic models that take their fields from a dataclass, so that an edge does not declare them a second time."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import MISSING, Field, fields
from typing import Any, Literal, TypeVar, get_type_hints

from pydantic import BaseModel, create_model
from pydantic import Field as ModelField

Model = TypeVar("Model", bound=BaseModel)
Presence = Literal["declared", "required", "optional"]


def with_fields_of(
    source: type, *, omit: Collection[str] = (), presence: Presence = "declared"
) -> Callable[[type[Model]], type[Model]]:
    """Return a class decorator that adds a dataclass's fields to a pydantic model, after the model's own.

    Constraints annotated on the dataclass are not copied: it checks them itself. A type
    checker does not see the added fields: read them with `model_dump`.

    omit: fields to leave out. presence: `declared`, a field may be absent if the dataclass has a default for it;
    `required`, none may; `optional`, any may: then `model_dump(exclude_unset=True)` gives those that were present, and
    the value of an absent one has no meaning.
    """
    hints = get_type_hints(source)
    added: dict[str, Any] = {
        one.name: (hints[one.name], _presence_of(one, presence)) for one in fields(source) if one.name not in omit
    }

    def add(model: type[Model]) -> type[Model]:
        return create_model(model.__name__, __base__=model, __module__=model.__module__, __doc__=model.__doc__, **added)

    return add


def _presence_of(one: Field[Any], presence: Presence) -> Any:
    if presence == "optional":
        return ModelField(default=None, json_schema_extra=_without_default)
    if presence == "required":
        return ...
    if one.default_factory is not MISSING:
        return ModelField(default_factory=one.default_factory)
    return ... if one.default is MISSING else one.default


def _without_default(schema: dict[str, Any]) -> None:
    """Remove the default from the schema of a field whose default has no meaning."""
    schema.pop("default", None)
