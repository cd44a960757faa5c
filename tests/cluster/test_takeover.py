"""A node is killed while others write: what it owned is taken over, and nothing acknowledged is lost or there twice."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cluster.walk import Walk, create_tenants
from tools.cluster.local import local_cluster

pytestmark = [pytest.mark.workerd, pytest.mark.timeout(420)]
TENANTS = ("acme", "bolt")


def test_nothing_is_lost_or_doubled_when_the_node_dies_that_owns_the_database(tmp_path: Path) -> None:
    with local_cluster(tmp_path, 2) as nodes:
        create_tenants(nodes[0], TENANTS)
        walk = Walk(nodes, TENANTS, acknowledged=3)
        owner = next(node for node in nodes if node.has_opened("D1Database"))
        result = walk.round(owner, "killed")
    assert all(note.memories and note.runs for note in walk.notes)
    assert not result.wrong
