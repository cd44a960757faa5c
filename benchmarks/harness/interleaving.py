"""Call contestants in turn, so that whatever else the machine does affects all of them."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from benchmarks.harness.contestant import Contestant
from benchmarks.harness.figures import Block, Series
from benchmarks.harness.processes import Usage, usage_of


@dataclass(frozen=True, slots=True)
class Plan:
    """How much is measured: so many rounds with a block of each contestant, after uncounted first operations of each."""

    rounds: int
    calls: int
    warm_up: int

    def __post_init__(self) -> None:
        assert self.rounds > 0, "a plan has a round at least"
        assert self.calls > 0, "a block has an operation at least"


async def measure(contestants: Sequence[Contestant], connections: int, plan: Plan) -> dict[str, Series]:
    """Return the series of each contestant by name. Each round begins with another contestant.

    Raises: what a contestant raises; there are no figures then.
    """
    for contestant in contestants:
        if plan.warm_up:
            await contestant.block(connections, plan.warm_up)
    blocks: dict[str, list[Block]] = {contestant.name: [] for contestant in contestants}
    assert len(blocks) == len(contestants), "each contestant has a name of its own"
    for number in range(plan.rounds):
        first = number % len(contestants)
        for contestant in [*contestants[first:], *contestants[:first]]:
            blocks[contestant.name].append(await one_block(contestant, connections, plan.calls))
    return {name: Series(name, connections, done) for name, done in blocks.items()}


async def one_block(contestant: Contestant, connections: int, calls: int) -> Block:
    """Return what one block of operations takes."""
    counted = await contestant.counters()
    before = _usage(contestant)
    started_ns = time.perf_counter_ns()
    times_ms = await contestant.block(connections, calls)
    wall_ms = (time.perf_counter_ns() - started_ns) / 1e6
    used = {role: usage.since(before.get(role, Usage())) for role, usage in _usage(contestant).items()}
    now = await contestant.counters()
    return Block(
        times_ms,
        wall_ms,
        {role: usage.cpu_ms for role, usage in used.items()},
        {role: usage.resident_bytes for role, usage in used.items()},
        {role: usage.written_bytes for role, usage in used.items()},
        {name: value - counted.get(name, 0) for name, value in now.items()},
    )


def _usage(contestant: Contestant) -> Mapping[str, Usage]:
    return {role: usage_of(pids) for role, pids in contestant.processes.items()}
