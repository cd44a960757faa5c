"""The lists of a tenant with many runs and items, and the origins that preflights are answered from."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from retain.admin.run_list import WantedRuns, run_rows
from retain.application_keys.origins import CallingPage
from retain.application_keys.preflights import Preflights
from retain.items.tiers.item_list import WantedItems, list_items
from retain.ports import Sql
from retain.tenants.register import Tenants

TENANT = "lists"
RUNS = 2_000
"""Of ten users in twenty instances of two agents, one a second; each hundredth is about a refund."""
_NUMBERS = "(WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < ?) SELECT i FROM n)"
_RUNS = f"""
INSERT INTO agent_runs (run_id, tenant_id, agent_type, instance_id, user_id, started_by, status, input, output, model,
  created_at_ms)
SELECT printf('01ARZ3NDEKTSV4RRFFQ6%06d', i), '{TENANT}', CASE i % 2 WHEN 0 THEN 'clerk' ELSE 'sdr' END,
  'instance-' || (i % 20), 'user-' || (i % 10), 'key:' || (i % 3), CASE i % 50 WHEN 0 THEN 'failed' ELSE 'completed' END,
  json_object('input', CASE i % 100 WHEN 7 THEN 'I want a refund' ELSE 'hello' END), 'bye', 'scripted', i * 1000
FROM {_NUMBERS}
"""  # noqa: S608
_ITEMS = f"""
INSERT INTO memory_items (tenant_id, key, namespace_key, kind, user_id, version)
SELECT '{TENANT}', printf('crm:{TENANT}:s%d:cart:%05d', i % 10, i), printf('crm:{TENANT}:s%d', i % 10), 'cart',
  'user-' || (i % 10), 1 FROM {_NUMBERS}
"""  # noqa: S608
_KEYS = f"""
INSERT INTO application_keys (key_id, tenant_id, name, scopes, hash, created_by, created_at_ms, revoked_at_ms, origins)
SELECT 'key-' || i, '{TENANT}', 'n', '[]', 'hash-' || i, 'ada', 1, CASE i % 2 WHEN 0 THEN 1 END,
  CASE i % 4 WHEN 3 THEN '[]' ELSE json_array('https://shop-' || i || '.example') END FROM {_NUMBERS}
"""  # noqa: S608
KEYS = 400
"""Half of them are revoked, and half of the others have an origin."""


async def fill_lists(sql: Sql) -> None:
    """Write the rows of runs, items and keys."""
    await sql.run(_RUNS, RUNS)
    await sql.run(_ITEMS, RUNS)
    await sql.run(_KEYS, KEYS)


def list_operations(sql: Sql) -> Mapping[str, Callable[[], Awaitable[object]]]:
    """Return the lists by their names: a page of fifty each."""

    def runs(wanted: WantedRuns) -> Callable[[], Awaitable[object]]:
        return lambda: run_rows(sql, TENANT, wanted, limit=50, cursor=None)

    def items(**wanted: str) -> Callable[[], Awaitable[object]]:
        return lambda: list_items(sql, TENANT, WantedItems(**wanted), now_ms=0, limit=50, cursor=None)

    async def preflight() -> None:
        page = CallingPage()
        page.arrive("https://shop-1.example")
        await Preflights(sql, lambda: 1).answer(page, "https://shop-1.example")

    return {
        "list runs": runs(WantedRuns()),
        "list runs, of an instance": runs(WantedRuns(agent_type="sdr", instance_id="instance-7")),
        "list runs, of a user in a time": runs(WantedRuns(user_id="user-7", since_ms=500_000, until_ms=1_500_000)),
        "list runs, failed": runs(WantedRuns(status="failed")),
        "search runs": runs(WantedRuns(text="refund")),
        "search runs, nothing is found": runs(WantedRuns(text="no run has this")),
        "search runs, of a user": runs(WantedRuns(user_id="user-7", text="refund")),
        "list items": items(),
        "list items, of a session": items(service="crm", session="s7"),
        "list items, of a user": items(user_id="user-7"),
        "list tenants": lambda: Tenants(sql, lambda: 1).page(limit=50, cursor=None),
        "preflight": preflight,
    }
