"""What is interrupted: work that a client may repeat, and what must be found in the end, however often it was repeated."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tests.kills.place import Place, Things


def nothing(_: Place) -> None:
    """Prepare nothing."""


@dataclass(frozen=True)
class Scenario:
    """Work to interrupt.

    act: repeated after a kill. found: the same as without a kill. prepare: what is there before. shares: what it changes
    for all tenants, if anything, so that no other such work may be under way. work: whose points are its own, if they
    are not its tenant's.
    """

    act: Callable[[Place], None]
    found: Callable[[Place], Things]
    prepare: Callable[[Place], None] = nothing
    shares: str | None = None
    work: str | None = None
