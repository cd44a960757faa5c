"""The states of an item: its entry in the catalogue, a new state to write, and its value in the hot tier."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

Tier = Literal["hot", "warm", "cold"]

_HELD = re.compile(r"retain1 ([0-9]{1,16}) ([0-9]{1,16})\n")


@dataclass(frozen=True, slots=True)
class Draft:
    """A new state of an item. tier: where its value is stored. value: in `warm`. object_key: in `cold`.

    key_id: names the key that seals the value; None for plain text. size_bytes: of the value as it was given.
    """

    tier: Tier
    value: str | None
    size_bytes: int
    object_key: str | None = None
    user_id: str | None = None
    key_id: str | None = None
    expires_at_ms: int | None = None


@dataclass(frozen=True, slots=True)
class ItemEntry:
    """An item as its catalogue knows it. Fields as in `Draft`; in `cold`, value is a copy that a read promoted.

    read_at_ms: the last read that was counted. updated_at_ms: the last write.
    """

    version: int
    tier: Tier
    value: str | None
    object_key: str | None = None
    user_id: str | None = None
    key_id: str | None = None
    size_bytes: int = 0
    expires_at_ms: int | None = None
    read_at_ms: int = 0
    updated_at_ms: int = 0
    deleted: bool = False

    def shown(self, now_ms: int) -> bool:
        """Return whether a read finds the item: it is not deleted and has not expired."""
        return not self.deleted and (self.expires_at_ms is None or now_ms < self.expires_at_ms)


@dataclass(frozen=True, slots=True)
class Buried:
    """A deleted item. version: of the delete. found: whether there was an item. object_key: of the object with its value."""

    version: int
    found: bool
    object_key: str | None = None


@dataclass(frozen=True, slots=True)
class Held:
    """A value in the hot tier. As text: a line with its version and expiry, followed by the unchanged value."""

    value: str
    version: int
    expires_at_ms: int | None = None

    def __str__(self) -> str:
        return f"retain1 {self.version} {self.expires_at_ms or 0}\n{self.value}"

    @staticmethod
    def parse(text: str) -> Held:
        """Return the value in the text. A text without the line was written by another program, and has version 0."""
        found = _HELD.match(text)
        if found is None:
            return Held(text, 0)
        return Held(text[found.end() :], int(found[1]), int(found[2]) or None)

    def shown(self, now_ms: int) -> bool:
        """Return whether it has not expired."""
        return self.expires_at_ms is None or now_ms < self.expires_at_ms
