"""What operations read in D1: bounds on round trips and rows, which do not depend on the machine."""

from __future__ import annotations

import asyncio

import pytest

from benchmarks.costs.database import Cost
from benchmarks.costs.operations import operations

MEMORIES = 3000
BOUNDS = {
    "recall, one rare word": (2, 2000),
    "recall, common words": (2, 2000),
    "recall, one common word": (2, 1850),
    "recall, common words and a rare one": (2, 2050),
    "recall, all of the tenant": (3, 2150),
    "recall, as of a time": (5, 2800),
    "recall, filtered": (2, 430),
    "recall, filtered by one of two": (2, 630),
    "recall, filtered by a range": (2, 530),
    "recall, filtered by either": (2, 470),
    "recall, filtered without an index": (8, 1850),
    "recall, filtered by what many have": (2, 3050),
    "store": (2, 30),
    "store, known": (1, 14),
    "store a fact that replaces another": (3, 65),
    "get": (2, 20),
    "edit": (7, 110),
    "delete": (6, 95),
    "list": (1, 60),
    "list, filtered by subject": (1, 20),
    "list, filtered by metadata": (1, 30),
    "list, filtered by kind": (1, 30),
    "list, filtered by one of two": (1, 80),
    "list, filtered by either": (1, 50),
    "list, filtered without an index": (2, 3100),
    "list of the scope, filtered": (1, 30),
    "ingest the next message": (4, 121),
    "run with recall": (4, 2400),
    "run with recall and a store": (6, 2600),
    "list of a user": (1, 20),
    "list of a house, filtered": (1, 30),
    "list of an agent": (1, 220),
    "list runs": (1, 51),
    "list runs, of an instance": (1, 51),
    "list runs, of a user in a time": (1, 51),
    "list runs, failed": (1, 1010),
    "search runs": (1, 1005),
    "search runs, nothing is found": (1, 1000),
    "search runs, of a user": (1, 422),
    "list items": (1, 51),
    "list items, of a session": (1, 51),
    "list items, of a user": (1, 51),
    "list tenants": (1, 5),
    "preflight": (1, 101),
}
"""The most trips and rows read, by operation."""

pytestmark = pytest.mark.workerd


@pytest.fixture(scope="module")
def costs() -> dict[str, Cost]:
    """What each operation costs."""
    return asyncio.run(_costs())


async def _costs() -> dict[str, Cost]:
    async with operations(MEMORIES) as known:
        return {name: await known.cost(operation) for name, operation in known.all().items()}


@pytest.mark.parametrize("operation", BOUNDS)
def test_an_operation_reads_no_more_than_its_bound(costs: dict[str, Cost], operation: str) -> None:
    trips, rows = BOUNDS[operation]
    cost = costs[operation]
    assert cost.trips <= trips
    assert cost.read <= rows, sorted(cost.statements, reverse=True)[:3]
