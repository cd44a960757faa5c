"""What the cron triggers do: the weekly pruning of episodes, and the daily brief."""

from __future__ import annotations

import json
import time
import tomllib
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from tests.e2e.calls import recorded_run, run
from tests.e2e.local_state import LocalState
from tests.e2e.servers import one_database
from tools.paths import PRODUCTION_CONFIG

pytestmark = pytest.mark.workerd

DAY_MS = 24 * 3600 * 1000
PRUNE = "0 3 * * 0"
BRIEF = "0 4 * * *"


def _schedules() -> list[str]:
    schedules: list[str] = tomllib.loads(PRODUCTION_CONFIG.read_text())["triggers"]["crons"]
    return schedules


def _tick(api: httpx.Client, schedule: str) -> str:
    """Let the platform fire the schedule; return the Worker's outcome: "ok" or "exception"."""
    return api.get("/cdn-cgi/handler/scheduled", params={"cron": schedule}).text


@pytest.mark.parametrize("schedule", [*_schedules(), PRUNE, BRIEF])
def test_every_schedule_has_work(api: httpx.Client, schedule: str) -> None:
    assert _tick(api, schedule) == "ok"


def test_a_schedule_without_work_is_an_error(api: httpx.Client) -> None:
    assert _tick(api, "9 9 * * *") == "exception"


def test_the_pruning_cron_removes_rows_older_than_90_days_per_tenant(
    api: httpx.Client, tenant: Callable[[], str], state: LocalState
) -> None:
    first, second, untouched = tenant(), tenant(), tenant()
    result = run(api, first, "order_triage", "hello")
    now_ms = recorded_run(api, first, result["run_id"])["created_at_ms"]
    ages_days: dict[str, list[float]] = {
        first: [91] * 5500 + [365, 90.01, 89.99, 89, 1],  # more than one slice of the deletion
        second: [91, 2],
        untouched: [89.99, 0],
    }
    rows = [
        (f"{tenant_id}.{number}", tenant_id, "order_triage", "old", f"run-of-{tenant_id}", number, "old", at_ms)
        for tenant_id, ages in ages_days.items()
        for number, at_ms in enumerate(int(now_ms - age * DAY_MS) for age in ages)
    ]
    with state.d1_transaction() as database:
        columns = "episode_id, tenant_id, agent_type, instance_id, run_id, turn, content, created_at_ms"
        database.executemany(f"INSERT INTO memory_episodes ({columns}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)", rows)
        database.executemany(
            "INSERT INTO run_events VALUES (?, ?, ?, 'model_asked', 1, '{}', ?)",
            [(run_id, number, tenant_id, at_ms) for _, tenant_id, _, _, run_id, number, _, at_ms in rows],
        )

    assert _tick(api, PRUNE) == "ok"

    left = [(f"{first}.{n}", first) for n in (5502, 5503, 5504)] + [(f"{second}.1", second)]
    left += [(f"{untouched}.{n}", untouched) for n in (0, 1)]
    mine = (first, second, untouched)
    synthetic = "tenant_id IN (?, ?, ?) AND run_id LIKE 'run-of-%'"
    found = state.d1(f"SELECT episode_id, tenant_id FROM memory_episodes WHERE {synthetic}", *mine)
    assert sorted((row["episode_id"], row["tenant_id"]) for row in found) == sorted(left)
    events = state.d1(f"SELECT tenant_id, seq FROM run_events WHERE {synthetic}", *mine)
    assert sorted(f"{row['tenant_id']}.{row['seq']}" for row in events) == sorted(episode for episode, _ in left)
    # The young run is whole, and the count that guards the limit follows.
    assert len(recorded_run(api, first, result["run_id"])["episodes"]) == 1
    counted = state.d1("SELECT tenant_id, episodes FROM episode_counts WHERE tenant_id IN (?, ?, ?)", *mine)
    assert {row["tenant_id"]: row["episodes"] for row in counted} == {first: 4, second: 1, untouched: 2}


@one_database
def test_the_daily_brief_writes_its_report(api: httpx.Client, tenant: Callable[[], str], state: LocalState) -> None:
    full, below = tenant(), tenant()
    with state.d1_transaction() as database:
        counts = [(full, 80_000), (below, 79_999)]
        database.executemany("INSERT INTO episode_counts (tenant_id, episodes) VALUES (?, ?)", counts)
        database.execute(
            "INSERT INTO outbox_failures VALUES (?, 1, ?, 'start_run', '[]', 'constraint: refused', ?)",
            (f"sdr:{full}:desk", full, int(time.time() * 1000)),
        )
    before = _counts(state)
    assert _tick(api, BRIEF) == "ok"
    after = _counts(state)

    key, content = max(state.r2("briefs/").items())
    report: dict[str, Any] = json.loads(content)
    assert key == f"briefs/{report['at_ms'] // DAY_MS}.json"
    assert report["tenants_near_episode_limit"][full] == 80_000
    assert below not in report["tenants_near_episode_limit"]
    # Runs of other tests may still be on their way into D1.
    assert all(before[table] <= report["rows"][table] <= after[table] for table in _GROWING), report
    assert report["vector_outbox"]["failed"] == 0
    assert report.keys() >= _DAILY_WORK
    assert [name for name in _DAILY_WORK if isinstance(report[name], dict) and "error" in report[name]] == []

    assert _tick(api, BRIEF) == "ok"
    [again] = [json.loads(content) for name, content in state.r2("briefs/").items() if name == key]
    assert again["at_ms"] >= report["at_ms"], "a second brief of a day replaces the first"


_DAILY_WORK = {
    "consolidation",
    "documents",
    "earlier_copies",
    "erasures",
    "evaluations",
    "histories_that_lost_their_head",
    "ingests",
    "items",
    "mutations",
    "overdue_deliveries",
    "overdue_runs",
    "overdue_schedules",
    "pruned",
    "reindexings",
}
_GROWING = ("tenants", "agent_runs", "run_events", "memory_episodes", "outbox_failures")


def _counts(state: LocalState) -> dict[str, int]:
    return {table: state.d1(f"SELECT COUNT(*) AS n FROM {table}")[0]["n"] for table in _GROWING}


def test_a_tenant_with_as_many_episodes_as_it_may_have_gets_no_run_before_some_are_pruned(
    api: httpx.Client, tenant: Callable[[], str], state: LocalState
) -> None:
    tenant_id = tenant()
    with state.d1_transaction() as database:
        database.execute("INSERT INTO episode_counts (tenant_id, episodes) VALUES (?, 100000)", (tenant_id,))
    response = api.post(f"/v1/agents/{tenant_id}/order_triage/run", json={"input": "hello"})
    assert (response.status_code, response.json()["code"]) == (507, "episode_limit")
    with state.d1_transaction() as database:
        database.execute("UPDATE episode_counts SET episodes = 99999 WHERE tenant_id = ?", (tenant_id,))
    run(api, tenant_id, "order_triage", "hello")
