"""The attacker sees: each fault that is planted in the product is found, and by what is meant to find it."""

from __future__ import annotations

import asyncio

import pytest

from tests.attack.planted import PLANTS, Plant
from tests.attack.trial import ROUND, attack


@pytest.mark.parametrize("plant", PLANTS.values(), ids=list(PLANTS))
def test_a_planted_fault_is_found(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    summary = asyncio.run(attack(ROUND, 7, stop_at_first=True))
    assert summary.findings, f"{summary.attempts} attempts did not find it"
