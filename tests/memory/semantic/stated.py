"""The law of facts as a plain model: a list of what was stated, asked instant by instant.

At each instant at most one of the facts about the same thing is valid: the one that was stated to begin last, unless it
was said to have ended, has expired, or was taken back (docs/memory.md).
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field


@dataclass
class Statements:
    """What was stated of one thing. since: when, each with until when. order: equal beginnings go by it."""

    order: str
    about: Hashable
    since: dict[int, int | None]
    expires: int | None = None
    closed_by_person: bool = False

    def is_gone(self, now: int) -> bool:
        """Return whether it has expired."""
        return self.expires is not None and self.expires <= now


@dataclass
class Model:
    """All that was stated and not taken back, by name."""

    stated: dict[str, Statements] = field(default_factory=dict)

    def valid(self, about: Hashable, at: int) -> str | None:
        """Return the name of what is valid at an instant."""
        begun = [
            (begin, one.order, name, end)
            for name, one in self.stated.items()
            if one.about == about and not one.is_gone(at)
            for begin, end in one.since.items()
            if begin <= at and (end is None or begin < end)
        ]
        if not begun:
            return None
        _, _, name, end = max(begun)
        return name if end is None or at < end else None

    def tell(self, name: str, since: int, expires: int | None, now: int, *, timed: bool, person: bool) -> None:
        """Say again what was said before. timed: with the time from which it is valid."""
        one = self.stated[name]
        if not person and self.is_shut(name):
            return
        gone = one.is_gone(now)
        if gone:
            if expires is not None and expires <= now:
                return
            if one.expires is not None and since >= one.expires:
                self.end(one, one.expires)
            one.expires = expires
        elif one.expires is not None and expires is not None and expires > one.expires:
            one.expires = expires
        if gone or timed or self.valid(one.about, since) != name:
            self.begin(one, since)
            if not timed:
                self.come_first(name, since)

    def restore(self, name: str, now: int) -> None:
        """Take back that something ended; from now on it comes first."""
        one = self.stated[name]
        one.since = dict.fromkeys(one.since)
        if min(one.since) <= now and not one.is_gone(now):
            if self.valid(one.about, now) != name:
                self.begin(one, now)
            self.come_first(name, now)

    def is_shut(self, name: str) -> bool:
        """Return whether a person said that it ended."""
        one = self.stated[name]
        return one.closed_by_person and max(one.since.items())[1] is not None

    def come_first(self, name: str, at: int) -> None:
        """Take back what was said of others from that very instant."""
        for other in self.stated.values():
            if other is not self.stated[name] and other.about == self.stated[name].about and at in other.since:
                others = {begin: end for begin, end in other.since.items() if begin != at}
                other.since = others or {at: at}

    @staticmethod
    def begin(one: Statements, since: int) -> None:
        """Say that it is valid from then on."""
        begun = {begin: end for begin, end in one.since.items() if end is None or begin < end}
        if since not in begun:
            open_then = [end for begin, end in begun.items() if begin <= since and (end is None or since < end)]
            begun[since] = open_then[-1] if open_then else None
        one.since = dict(sorted(begun.items()))

    @staticmethod
    def end(one: Statements, at: int) -> None:
        """Say that it ended then."""
        kept = {begin: end for begin, end in one.since.items() if begin < at and (end is None or begin < end)}
        if not kept:
            one.since = {min(one.since): at}
            return
        last = max(kept)
        one.since = {
            begin: at if begin == last else end if end is None else min(end, at) for begin, end in kept.items()
        }
