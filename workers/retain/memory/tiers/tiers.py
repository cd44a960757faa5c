"""The tiers that a client works with."""

from __future__ import annotations

from dataclasses import dataclass

from retain.memory.tiers.protocols import Catalogue, ColdMemory, HotMemory


@dataclass(frozen=True, slots=True)
class Tiers:
    """Hot, warm and cold, as far as there are any. The warm one is the catalogue of all three."""

    hot: HotMemory | None
    warm: Catalogue | None
    cold: ColdMemory | None
