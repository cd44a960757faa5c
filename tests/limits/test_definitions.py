"""Each bound of a field of an agent's definition: the bound itself is accepted, and what is beyond it is refused by name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, get_args, get_origin

import pytest
from annotated_types import Ge, Gt, Le, MaxLen, MinLen
from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo

from retain.agents import definitions

REQUIRED: Mapping[str, Mapping[str, object]] = {
    "AgentDefinition": {"type": "desk", "description": "d", "instructions": "i"},
    "DecisionConfig": {"labels": ["yes"]},
}
_MODELS = [
    model
    for model in vars(definitions).values()
    if isinstance(model, type) and issubclass(model, BaseModel) and model.__module__ == definitions.__name__
]


def _step(field: FieldInfo) -> float:
    return 0.25 if float in (field.annotation, *get_args(field.annotation)) else 1


def _sized(field: FieldInfo, size: int) -> object:
    """Return a value of this length for a text, a list of names, the MCP servers, or the procedures."""
    if field.annotation is str or (type(None) in get_args(field.annotation) and str in get_args(field.annotation)):
        return "語" * size
    if definitions.McpServerConfig in get_args(field.annotation):
        return {f"server{number}": definitions.McpServerConfig(tools=("search",)) for number in range(size)}
    if get_origin(field.annotation) is dict:
        return {f"task{number}": {f"work{number}": "Do it."} for number in range(size)}
    return [f"label{number}" for number in range(size)]


def _bounds() -> Iterator[tuple[type[BaseModel], str, object, object]]:
    for model in _MODELS:
        for name, field in model.model_fields.items():
            for mark in field.metadata:
                step = _step(field)
                match mark:
                    case Ge(ge=int() | float() as least):
                        yield model, name, least, least - step
                    case Gt(gt=int() | float() as open_):
                        yield model, name, open_ + step, open_
                    case Le(le=int() | float() as most):
                        yield model, name, most, most + step
                    case MinLen(min_length=least):
                        yield model, name, _sized(field, least), _sized(field, least - 1)
                    case MaxLen(max_length=most):
                        yield model, name, _sized(field, most), _sized(field, most + 1)


_BOUNDS = list(_bounds())


def _made(model: type[BaseModel], name: str, value: object) -> Any:
    return getattr(model.model_validate({**REQUIRED.get(model.__name__, {}), name: value}), name)


@pytest.mark.parametrize(
    ("model", "name", "at", "beyond"),
    _BOUNDS,
    ids=[f"{model.__name__}.{name}-{number}" for number, (model, name, _, _) in enumerate(_BOUNDS)],
)
def test_a_bound_of_a_definition(model: type[BaseModel], name: str, at: object, beyond: object) -> None:
    kept = _made(model, name, at)
    assert (list(kept) if isinstance(kept, tuple) else kept) == at
    with pytest.raises(ValidationError) as refused:
        _made(model, name, beyond)
    assert {error["loc"][0] for error in refused.value.errors()} == {name}


def test_the_bounds_are_found() -> None:
    found = {f"{model.__name__}.{name}" for model, name, _, _ in _BOUNDS}
    assert len(_BOUNDS) > 40
    assert {"Limits.max_turns", "Limits.approval_hours", "MemoryConfig.top_k", "AgentDefinition.instructions"} <= found
