"""Fault points on the real workerd: killed between a side effect and its log entry, nothing is lost and nothing doubled."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.kills.named import NOT_WALKED, POINTS
from tests.kills.scenarios import SCENARIOS
from tests.kills.served import CARELESS, Killed, killable
from tests.kills.test_points import outbox_points, written_tables
from tests.kills.walk import Walk

pytestmark = pytest.mark.workerd

FAULTS = [
    ("run", "call.model:after", 2),
    ("stream", "d1.memory_events:after", 1),
    ("delegate", "instance.run:after", 2),
    ("fork", "instance.fork:after", 1),
    ("attachment", "r2.put_stream:after", 1),
    ("approval", "kv.put:before", 1),
    ("gateway", "call.tool:after", 1),
    ("ingest", "d1.ingest_jobs:before", 1),
    ("erasure", "vectors.delete_by_ids:after", 1),
    ("keys", "d1.namespace_backfill:before", 1),
]
"""A few of the faults, which one kill ends. `python -m tests.kills` walks through all."""
TENANTS = 60


@pytest.fixture(scope="module")
def served(migrated_state: Callable[[], Path]) -> Iterator[Killed]:
    with killable(migrated_state(), works=TENANTS) as running:
        yield running


@pytest.fixture(scope="module")
def walk(served: Killed) -> Walk:
    return Walk(served, seed=1)


@pytest.mark.timeout(300)  # it walks through every scenario
def test_every_named_fault_point_is_reached_by_a_scenario_and_every_one_that_is_reached_is_named(walk: Walk) -> None:
    faults = walk.faults(list(SCENARIOS))
    assert walk.points | outbox_points() == POINTS | outbox_points()
    assert written_tables() - walk.tables == NOT_WALKED.keys()
    assert {point for _, point, _ in faults} == {
        f"{point}:{side}" for point in walk.points for side in ("before", "after")
    }
    assert set(FAULTS) <= set(faults)


def test_a_kill_at_fault_points_loses_and_doubles_nothing(walk: Walk) -> None:
    if not walk.table.faults:
        walk.faults([scenario for scenario, _, _ in FAULTS])
    walk.kill_at(FAULTS)
    assert walk.table.wrong == [], str(walk.table)
    assert (walk.table.kills, walk.table.not_met) == (len(FAULTS), [])


def test_the_walk_sees_a_call_that_was_made_twice(served: Killed) -> None:
    walk = Walk(served, seed=1, numbers=[TENANTS - 1, CARELESS], settled_s=10)
    walk.faults(["gateway"])
    walk.kill_at([("gateway", "call.tool:after", 1)])
    assert walk.table.row(("gateway", "call.tool:after", 1)).doubled == 1
    [wrong] = walk.table.wrong
    assert "shipments: lost {}, doubled {'order': 1}" in wrong
