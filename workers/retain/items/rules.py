"""The rules by which values move between tiers, and what a client has seen of the items."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Literal

from retain.errors import Misconfigured
from retain.items.entry import Tier
from retain.items.placement import MIN_TTL_S
from retain.items.tiers.protocols import HOT_TTL_S

HotReads = Literal["session", "checked"]


@dataclass(frozen=True, slots=True)
class MemoryRules:
    """How a client reads and writes. None: as the client's tiers allow.

    read_fallback: a read asks the hot tier first, then the slower ones; without it, only the tier in which the item's
    value is stored. promote_on_read: a value found in a slower tier is copied to the faster ones. write_through: an item
    of the hot tier is written to the warm one, which becomes authoritative, and every write leaves a hot copy. hot_ttl:
    longest lifetime in seconds of a hot copy of an item that belongs elsewhere. hot_reads: whether a hot value is
    compared with the versions that this client has seen, or with the warm tier's (docs/tiers.md).

    Raises: Misconfigured (code `contradictory_rules`).
    """

    read_fallback: bool | None = None
    promote_on_read: bool | None = None
    write_through: bool | None = None
    hot_ttl: int | None = None
    hot_reads: HotReads = "session"

    def __post_init__(self) -> None:
        if self.read_fallback is False and (self.promote_on_read or self.write_through):
            raise _contradiction("without read_fallback nothing reads what promotion or write_through would copy")
        if self.hot_ttl is not None and self.hot_ttl < MIN_TTL_S:
            raise _contradiction(f"hot_ttl is at least {MIN_TTL_S} seconds: Workers KV keeps no key for less")
        if self.hot_reads not in ("session", "checked"):
            raise _contradiction("hot_reads is 'session' or 'checked'")

    def resolved(self, tiers: Collection[Tier]) -> ResolvedRules:
        """Return the rules for a client with these tiers, each of them decided.

        Raises: Misconfigured (code `contradictory_rules`) when a rule needs a tier that is missing.
        """
        several, hot_and_warm = len(tiers) > 1, {"hot", "warm"} <= set(tiers)
        for name, wanted in (("read_fallback", self.read_fallback), ("promote_on_read", self.promote_on_read)):
            if wanted and not several:
                raise _contradiction(f"{name} needs more than one tier")
        if self.write_through and not hot_and_warm:
            raise _contradiction("write_through needs a hot and a warm tier")
        if self.hot_ttl is not None and "hot" not in tiers:
            raise _contradiction("hot_ttl needs a hot tier")
        fallback = several if self.read_fallback is None else self.read_fallback
        through = fallback and hot_and_warm if self.write_through is None else self.write_through
        if self.hot_reads == "checked" and not (hot_and_warm and fallback and through):
            raise _contradiction("checked reads compare hot with warm: they need both, read_fallback and write_through")
        return ResolvedRules(
            read_fallback=fallback,
            promote_on_read=fallback if self.promote_on_read is None else self.promote_on_read,
            write_through=through,
            hot_ttl=HOT_TTL_S if self.hot_ttl is None else self.hot_ttl,
            hot_reads=self.hot_reads,
        )


@dataclass(frozen=True, slots=True)
class ResolvedRules:
    """The rules of one client. Fields as in `MemoryRules`."""

    read_fallback: bool
    promote_on_read: bool
    write_through: bool
    hot_ttl: int
    hot_reads: HotReads


def _contradiction(message: str) -> Misconfigured:
    return Misconfigured(message, code="contradictory_rules")


@dataclass(frozen=True, slots=True)
class Seen:
    """The newest that a session knows of an item: its version, and whether it existed. until_ms: its expiry."""

    version: int = 0
    present: bool = False
    until_ms: int | None = None


class Session:
    """What one user of memory has seen: no read of the same session returns anything older.

    Grows by one small entry per item read or written. `known` can be passed to another client.
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
        """Note what was seen, unless something newer has been."""
        if seen.version >= self.of(key).version:
            self._known[key] = seen


_NOTHING = Seen()
