"""The notes that the recall tests store."""

from __future__ import annotations

from typing import Any

from retain.memory.records.record import NewRecord
from retain.memory.scope import Scope
from tests.memory.semantic.substrate import AGENT, AGENT_SOURCE, Substrate

NOTES = (
    "Ann bought a red bicycle last summer.",
    "The cat of Ann sleeps on the sofa.",
    "Bob repairs engines of old ships.",
    "The meeting moved from Monday to Thursday.",
    "Invoices are paid within thirty days.",
    "Should we ask Ann about the bicycle?",
    "Ann rode to the sea in 2021, a long way over the hills.",
)
LONG = "Our delivery terms changed. " + " ".join(
    f"Section {number} explains how parcels of kind {number} are packed, weighed and sent." for number in range(12)
)


async def fill(substrate: Substrate, contents: tuple[str, ...] = NOTES, scope: Scope = AGENT, **fields: Any) -> None:
    """Store the contents in one call. fields: given to each record."""
    await substrate.memory(scope).store_all([NewRecord(content, **fields) for content in contents], AGENT_SOURCE)
