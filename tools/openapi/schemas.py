"""The schemas of what requests and answers have, from the types that read and write them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from retain.routing.route import Route

Json = dict[str, Any]
Mode = Literal["validation", "serialization"]
Key = tuple[Any, Mode]
"""A type, and whether it is read or written: a field with a default may be absent only from what is read."""

REF = "#/components/schemas/{model}"
PROBLEM_SCHEMA: Json = {
    "type": "object",
    "description": "Why a request was refused. Programs decide by `code`. Further members depend on it.",
    "required": ["type", "title", "status", "detail", "code", "request_id"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "code": {"type": "string"},
        "request_id": {"type": "string"},
    },
}
_WRITTEN = re.compile(r"\w+Json$")


def types_of(routes: Sequence[Route[Any]]) -> list[Key]:
    """Return every type that the routes read or write, by name."""
    found = {key for route in routes for key in _types(route)}
    return sorted(found, key=lambda key: (str(key[0]), key[1]))


def _types(route: Route[Any]) -> Iterator[Key]:
    if route.body is not None and route.body.model is not None:
        yield route.body.model, "validation"
    for answer in route.answers:
        if answer.model is not None:
            yield answer.model, "serialization"


def components(types: Sequence[Key]) -> tuple[Mapping[Key, Json], Json]:
    """Return a reference for each type, and the schemas that they lead to.

    A type whose name ends in `Json` loses the ending: it is what is written of the thing that has the name.
    Raises: ValueError when two schemas then have one name.
    """
    adapters: list[tuple[Any, Mode, TypeAdapter[Any]]] = [(kind, mode, TypeAdapter(kind)) for kind, mode in types]
    found, schema = TypeAdapter.json_schemas(adapters, ref_template=REF, schema_generator=_WithDefaults)
    defined = schema.get("$defs", {})
    names = {name: name.removesuffix("Json") if _WRITTEN.fullmatch(name) else name for name in defined}
    if len(set(names.values())) != len(names):
        raise ValueError(f"two schemas have one name: {sorted(names.values())}")
    renamed = _renamed(defined, names)
    references = {(kind, mode): _renamed(found[kind, mode], names) for kind, mode in types}
    return references, {names[name]: _tidy(renamed[name]) for name in sorted(defined, key=names.__getitem__)}


class _WithDefaults(GenerateJsonSchema):
    """Knows that a dataclass is written with every field: its defaults are of no concern to who reads it."""

    def dataclass_schema(self, schema: core_schema.DataclassSchema) -> JsonSchemaValue:
        """Return the schema of a dataclass."""
        found = super().dataclass_schema(schema)
        return {**found, "required": [*found["properties"]]} if self.mode == "serialization" else found


def _renamed(schema: Json, names: Mapping[str, str]) -> Json:
    text = json.dumps(schema)
    for old, new in names.items():
        if old != new:
            text = text.replace(f'"{REF.format(model=old)}"', f'"{REF.format(model=new)}"')
    renamed: Json = json.loads(text)
    return renamed


_TEXT: Json = {"type": "string"}


def _tidy(schema: Any) -> Any:
    """Return the schema without the titles that repeat the names of fields, and with descriptions in one line.

    A default of null is left out: who does not name a field need not name null instead. So are the texts that an
    alternative allows where another one allows any text.
    """
    if isinstance(schema, list):
        return [_tidy(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    kept: Json = {}
    for name, part in schema.items():
        if name == "properties":
            kept[name] = {field: _tidy(one) for field, one in part.items()}
        elif name == "description" and isinstance(part, str):
            kept[name] = re.sub(r"\s+", " ", part).strip()
        elif name == "anyOf" and _TEXT in part and all(one.get("type") == "string" for one in part):
            kept |= _TEXT
        elif name != "title" and (name, part) != ("default", None):
            kept[name] = _tidy(part) if name not in ("default", "examples", "enum", "const") else part
    return kept


def query_fields(model: type) -> tuple[Json, Sequence[str]]:
    """Return the schemas of the fields of a query string, and those that are required."""
    schema = TypeAdapter(model).json_schema(ref_template=REF)
    return schema["properties"], schema.get("required", ())


_UNUSED = ("default", "title", "anyOf")
_KEYWORDS = {"ge": "minimum", "le": "maximum"}
"""Keywords that pydantic leaves as its own where a validator of ours comes before its check."""


def without_null(schema: Json) -> Json:
    """Return the schema of a parameter: one that is absent has no value, and none is null."""
    kept = {_KEYWORDS.get(name, name): value for name, value in schema.items() if name not in _UNUSED}
    some = [one for one in schema.get("anyOf", ()) if one != {"type": "null"}]
    return {**kept, **(some[0] if len(some) == 1 else {"anyOf": some})} if some else kept
