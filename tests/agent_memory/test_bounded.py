"""What a list and a deletion read does not grow with what else the profile has."""

from __future__ import annotations

import pytest

from retain.agent_memory.profile import _IDS, _LIST
from tests.agent_memory.account import Account


@pytest.mark.parametrize(("statement", "values"), [(_LIST, 7), (_IDS, 3)], ids=["list", "deletion"])
async def test_a_page_is_read_in_the_order_of_its_index(account: Account, statement: str, values: int) -> None:
    connection = account.worker.db.store._connection
    plan = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {statement}", (None,) * values)]
    assert any("memory_search_by_number (tenant_id=? AND scope_id=?" in step for step in plan)
    assert not [step for step in plan if "TEMP B-TREE" in step or step.startswith("SCAN memory")]
