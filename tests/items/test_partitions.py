"""D1 has no partitions: what would be a partition key elsewhere is a key or an index, and reads use it."""

from __future__ import annotations

import pytest

from tests.items.world import NAMESPACE, Tiered

_NEXT = f"{NAMESPACE};"
"""The first key after those of the namespace: `;` follows `:`."""


@pytest.mark.parametrize(
    ("condition", "values", "index"),
    [
        pytest.param("tenant_id = ?", ("acme",), "autoindex", id="tenant"),
        pytest.param(
            "tenant_id = ? AND key >= ? AND key < ?", ("acme", f"{NAMESPACE}:", _NEXT), "autoindex", id="session"
        ),
        pytest.param("namespace_key = ?", (str(NAMESPACE),), "memory_items_by_namespace", id="namespace"),
        pytest.param("tenant_id = ? AND user_id = ?", ("acme", "ann"), "memory_items_by_user", id="user"),
        pytest.param("tenant_id = ? AND key = ?", ("acme", f"{NAMESPACE}:order_history:o-1"), "autoindex", id="order"),
    ],
)
async def test_a_read_of_a_partition_uses_its_index(
    world: Tiered, condition: str, values: tuple[str, ...], index: str
) -> None:
    for user_id in ("ann", "bob"):
        await world.memory().put("preferences", user_id, "x", user_id=user_id)
    plan = await world.sql.run(f"EXPLAIN QUERY PLAN SELECT key FROM memory_items WHERE {condition}", *values)
    [step] = [row["detail"] for row in plan.rows]
    assert step.startswith("SEARCH memory_items USING"), step
    assert index in step, step
