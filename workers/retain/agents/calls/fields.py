"""The fields of a JSON object from another isolate, read with their types."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from retain.errors import InvalidInput
from retain.json_text import JsonObject


@dataclass(frozen=True, slots=True)
class Fields:
    """One JSON object. Every method raises InvalidInput (code `invalid_request`) for a field of another type."""

    content: JsonObject

    def text(self, name: str) -> str:
        """Return a required text."""
        value = self.text_or_none(name)
        if value is None:
            raise _invalid(name)
        return value

    def text_or_none(self, name: str) -> str | None:
        """Return a text, or None when it is null or absent."""
        value = self.content.get(name)
        if value is not None and not isinstance(value, str):
            raise _invalid(name)
        return value

    def integer(self, name: str, default: int | None = None) -> int:
        """Return an integer. default: of an absent field; without one the field is required."""
        value = self.integer_or_none(name)
        value = default if value is None else value
        if value is None:
            raise _invalid(name)
        return value

    def integer_or_none(self, name: str) -> int | None:
        """Return an integer, or None when it is null or absent."""
        value = self.content.get(name)
        if value is not None and (not isinstance(value, int) or isinstance(value, bool)):
            raise _invalid(name)
        return value

    def number(self, name: str) -> float:
        """Return a required number."""
        value = self.content.get(name)
        if not isinstance(value, int | float) or isinstance(value, bool):
            raise _invalid(name)
        return value

    def flag(self, name: str, default: bool | None = None) -> bool:
        """Return a boolean. default: of an absent field; without one the field is required."""
        value = self.content.get(name, default)
        if not isinstance(value, bool):
            raise _invalid(name)
        return value

    def object(self, name: str) -> Fields:
        """Return a required object."""
        found = self.object_or_none(name)
        if found is None:
            raise _invalid(name)
        return found

    def object_or_none(self, name: str) -> Fields | None:
        """Return an object, or None when it is null or absent."""
        value = self.content.get(name)
        if value is None:
            return None
        if not isinstance(value, Mapping):
            raise _invalid(name)
        return Fields(value)

    def objects(self, name: str) -> list[Fields]:
        """Return a required list of objects."""
        value = self.content.get(name)
        if not isinstance(value, Sequence) or isinstance(value, str):
            raise _invalid(name)
        found = [Fields(item) for item in value if isinstance(item, Mapping)]
        if len(found) < len(value):
            raise _invalid(name)
        return found

    def text_or_object(self, name: str) -> str | JsonObject:
        """Return a required text or object."""
        value = self.content.get(name)
        if not isinstance(value, str | Mapping):
            raise _invalid(name)
        return value


def _invalid(name: str) -> InvalidInput:
    return InvalidInput(f"the request has no valid {name}", code="invalid_request")
