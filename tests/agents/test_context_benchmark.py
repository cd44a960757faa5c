"""The benchmark of the context still builds whole contexts. Nothing here judges its times."""

from __future__ import annotations

from benchmarks.context import measure


async def test_every_part_of_every_context_is_measured() -> None:
    taken = await measure(records=20, episodes=20, runs=3)
    assert {part: len(times) for part, times in taken.items()} == dict.fromkeys(
        ("episodes", "recall", "assembly", "all"), 3
    )
