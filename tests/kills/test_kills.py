"""Fault points on the real workerd: killed between a side effect and its log entry, nothing is lost and nothing doubled."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.kills.walk import Killed, Walk, killable

pytestmark = pytest.mark.workerd

FAULTS = [
    ("run", "call.model:after", 2),
    ("run", "d1.memory_events:after", 1),
    ("erasure", "vectors.delete_by_ids:after", 1),
]
"""A few of the faults. `python -m tests.kills` walks through all."""


@pytest.fixture(scope="module")
def served(migrated_state: Callable[[], Path]) -> Iterator[Killed]:
    with killable(migrated_state()) as running:
        yield running


def test_a_kill_at_a_fault_point_loses_and_doubles_nothing(served: Killed) -> None:
    walk = Walk(served, seed=1)
    known = walk.faults(sorted({scenario for scenario, _, _ in FAULTS}))
    for fault in FAULTS:
        assert fault in known
        walk.kill_at(fault)
    assert walk.table.wrong == [], str(walk.table)
    assert (walk.table.kills, walk.table.not_met) == (len(FAULTS), [])
