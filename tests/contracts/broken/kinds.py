"""How a broken backend is written down: what it does, what of a sound backend it replaces, and which tests catch it."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from retain.testing import ChatMemorySuite, EmbedderSuite, VectorMemorySuite
from tests.contracts.broken.sound import SoundChat, SoundEmbedder, SoundVectors

Sound = type[SoundChat] | type[SoundVectors] | type[SoundEmbedder]


SUITES: dict[type, type[ChatMemorySuite | VectorMemorySuite | EmbedderSuite]] = {
    SoundChat: ChatMemorySuite,
    SoundVectors: VectorMemorySuite,
    SoundEmbedder: EmbedderSuite,
}


@dataclass(frozen=True)
class Broken:
    """One broken backend. caught_by: the test that is made for it."""

    what: str
    caught_by: str
    kind: Sound

    @property
    def suite(self) -> type[ChatMemorySuite | VectorMemorySuite | EmbedderSuite]:
        """The suite of its contract."""
        return next(suite for sound, suite in SUITES.items() if issubclass(self.kind, sound))

    @property
    def name(self) -> str:
        """A short name for the report of a test run."""
        return re.sub(r"\W+", "-", self.what.lower()).strip("-")[:60]


def replacing(what: str, caught_by: str, base: Sound, **parts: Callable[..., Any]) -> Broken:
    """Return the broken backend that has these parts in the place of the base's."""
    return Broken(what, caught_by, type(base.__name__, (base,), dict(parts)))


class Table(list[Broken]):
    """The broken backends of a module, in the order in which they are written."""

    def holds(self, what: str, caught_by: str) -> Callable[[Any], Any]:
        """Add the decorated class."""

        def add(kind: Any) -> Any:
            self.append(Broken(what, caught_by, kind))
            return kind

        return add
