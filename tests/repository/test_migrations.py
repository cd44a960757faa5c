"""The migrations of D1: wrangler applies them in the order of their names."""

from __future__ import annotations

from tools.paths import ROOT


def test_migrations_are_numbered_without_gaps_and_each_number_once() -> None:
    numbers = [file.name.partition("_")[0] for file in sorted((ROOT / "migrations").glob("*.sql"))]
    assert numbers == [f"{number:04}" for number in range(1, len(numbers) + 1)]
