"""Rounds of a node that is killed, or leaves, while others write; after each, every node is asked for everything."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from tests.cluster.reading import Comparison, asked, compared
from tests.cluster.writers import Acknowledged, Writers
from tools.cluster.nodes import Node

Way = Literal["killed", "stopped"]
_PATIENCE_S = 180


@dataclass(frozen=True)
class Round:
    """What was seen of one node that ended. longest_s: the longest time until a request was taken, over all writers."""

    node: str
    way: Way
    acknowledged: int
    longest_s: float
    refused: Counter[str]
    wrong: dict[tuple[str, str], Comparison]

    def __str__(self) -> str:
        refused = ", ".join(f"{name} {count}" for name, count in sorted(self.refused.items())) or "nothing"
        return (
            f"{self.node} {self.way}: {self.acknowledged} acknowledged so far, the slowest in {self.longest_s:.1f} s;"
            f" refused and sent again: {refused}; wrong: {self.wrong or 'nothing'}"
        )


class Walk:
    """Writers before, during and after the end of a node. acknowledged: by each writer, in each of the phases."""

    def __init__(self, nodes: Sequence[Node], tenants: Sequence[str], *, acknowledged: int) -> None:
        self.notes = [Acknowledged(tenant) for tenant in tenants]
        self._nodes = nodes
        self._acknowledged = acknowledged
        self._rounds = 0

    def round(self, node: Node, way: Way) -> Round:
        """End the node while the writers write, start it again, and compare what every node has with their notes.

        Raises: TimeoutError when a writer gets no further for three minutes.
        """
        self._rounds += 1
        for note in self.notes:
            note.longest_s = 0.0
            note.refused.clear()
        with Writers(self._nodes, self.notes, name=f"round {self._rounds}") as writers:
            writers.until(self._acknowledged, _PATIENCE_S)
            node.kill() if way == "killed" else node.stop()
            writers.until(self._acknowledged, _PATIENCE_S)
            node.start()
            node.wait_until_ready()
        pairs = [(each, note) for each in self._nodes for note in self.notes]
        compared_pairs = {(each.name, note.tenant): compared(each, note) for each, note in pairs}
        return Round(
            node.name,
            way,
            sum(note.count for note in self.notes),
            max(note.longest_s for note in self.notes),
            sum((note.refused for note in self.notes), Counter()),
            {pair: result for pair, result in compared_pairs.items() if result},
        )


def create_tenants(node: Node, tenants: Sequence[str]) -> None:
    """Register the tenants."""
    for tenant in tenants:
        asked(node, "PUT", f"/admin/tenants/{tenant}", json={})
