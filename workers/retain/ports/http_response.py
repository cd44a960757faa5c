"""What a server answered, and a body that the platform holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol


class HeldBody(Protocol):
    """A body that the platform holds, complete. It is passed on without being read here."""

    def __len__(self) -> int:
        """Return how many bytes it has."""
        ...

    def read(self) -> bytes:
        """Return the bytes."""
        ...


@dataclass(frozen=True, slots=True)
class HttpResponse:
    """What a server answered. Header names are lower case. content: the body, or what holds it."""

    status: int
    headers: Mapping[str, str]
    content: bytes | HeldBody

    @property
    def body(self) -> bytes:
        """The bytes of the body."""
        return self.content if isinstance(self.content, bytes) else self.content.read()
