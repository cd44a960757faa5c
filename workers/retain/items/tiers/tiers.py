"""The tiers of a memory that has a warm one."""

from __future__ import annotations

from dataclasses import dataclass

from retain.items.tiers.protocols import ColdMemory, HotMemory, ItemCatalogue


@dataclass(frozen=True, slots=True)
class Tiers:
    """A warm tier, which is the catalogue of all, and a hot and a cold one if there are any."""

    hot: HotMemory | None
    warm: ItemCatalogue
    cold: ColdMemory | None
