"""A cluster that is measured is asked through each of its nodes in equal parts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pytest

from benchmarks.cluster import WholeCluster


@dataclass
class Asked:
    """A node that notes what it is asked."""

    name: str
    blocks: list[tuple[int, int]] = field(default_factory=list)
    processes: Mapping[str, Sequence[int]] = field(default_factory=dict)

    async def block(self, connections: int, calls: int) -> list[float]:
        """See the protocol."""
        self.blocks.append((connections, calls))
        return [1.0] * calls

    async def counters(self) -> Mapping[str, float]:
        """See the protocol."""
        return {}


async def test_each_node_gets_an_equal_part_of_the_connections_and_calls() -> None:
    nodes = [Asked(name) for name in ("one", "two", "three")]
    assert await WholeCluster("3 nodes", nodes, {}).block(6, 60) == [1.0] * 60
    assert [node.blocks for node in nodes] == [[(2, 20)]] * 3


@pytest.mark.parametrize(("connections", "calls"), [(4, 60), (6, 50)], ids=["connections", "calls"])
async def test_what_cannot_be_divided_is_refused(connections: int, calls: int) -> None:
    nodes = [Asked(name) for name in ("one", "two", "three")]
    with pytest.raises(AssertionError, match="each node has as many"):
        await WholeCluster("3 nodes", nodes, {}).block(connections, calls)
    assert [node.blocks for node in nodes] == [[], [], []]
