"""The rules by which values move between the tiers, and what a client has seen of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from retain.errors import Misconfigured
from retain.items.placement import MIN_TTL_S

HotReads = Literal["session", "checked"]


@dataclass(frozen=True, slots=True)
class MemoryRules:
    """How a client reads and writes. None: as the tiers that it has allow.

    read_fallback: a read asks the hot tier first, and the slower ones after it; without it, only the tier in which the
    item's value lies. promote_on_read: a value found in a slower tier is copied to the faster ones. write_through: what
    belongs in the hot tier is written to the warm one, which then decides, and every write leaves a hot copy.
    hot_ttl: seconds that a hot copy of something that belongs elsewhere lives at most. hot_reads: whether a hot value
    is compared with the versions that this client has seen, or with the warm tier's (docs/tiers.md).

    Raises: Misconfigured (code `contradictory_rules`).
    """

    read_fallback: bool | None = None
    promote_on_read: bool | None = None
    write_through: bool | None = None
    hot_ttl: int | None = None
    hot_reads: HotReads = "session"

    def __post_init__(self) -> None:
        if self.read_fallback is False and (self.promote_on_read or self.write_through):
            raise contradiction("without read_fallback nothing reads what promotion or write_through would copy")
        if self.hot_ttl is not None and self.hot_ttl < MIN_TTL_S:
            raise contradiction(f"hot_ttl is at least {MIN_TTL_S} seconds: Workers KV keeps no key for less")
        if self.hot_reads not in ("session", "checked"):
            raise contradiction("hot_reads is 'session' or 'checked'")


def contradiction(message: str) -> Misconfigured:
    """Return the error for rules that contradict each other or the tiers."""
    return Misconfigured(message, code="contradictory_rules")


@dataclass(frozen=True, slots=True)
class Seen:
    """The newest that a session knows of an item: its version, and whether it was there. until_ms: when it expires."""

    version: int = 0
    present: bool = False
    until_ms: int | None = None


class Session:
    """What one user of memory has seen: no read of the same session shows anything older.

    Grows by one small entry for every item that was touched. `known` can be handed to another client.
    """

    def __init__(self, known: Mapping[str, Seen] | None = None) -> None:
        self._known = dict(known or {})

    @property
    def known(self) -> Mapping[str, Seen]:
        """What was seen, by key."""
        return dict(self._known)

    def of(self, key: str) -> Seen:
        """Return what was seen of an item."""
        return self._known.get(key, _NOTHING)

    def saw(self, key: str, seen: Seen) -> None:
        """Note what was seen, unless something newer was."""
        if seen.version >= self.of(key).version:
            self._known[key] = seen


_NOTHING = Seen()
