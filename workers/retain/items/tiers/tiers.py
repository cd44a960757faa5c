"""The tiers that a client works with."""

from __future__ import annotations

from dataclasses import dataclass

from retain.items.tiers.protocols import ColdMemory, HotMemory, ItemCatalogue


@dataclass(frozen=True, slots=True)
class Tiers:
    """Hot, warm and cold, as far as there are any. The warm one is the catalogue of all three."""

    hot: HotMemory | None
    warm: ItemCatalogue | None
    cold: ColdMemory | None
