"""Tier 2 of the three-tier memory model: episodic memory. The names are its acceptance criteria."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from tests.e2e.calls import recorded_run, run, runs
from tests.e2e.local_state import LocalState
from tests.e2e.waiting import eventually

pytestmark = pytest.mark.workerd

_COUNT = "SELECT COUNT(*) AS n, COUNT(DISTINCT run_id) AS runs FROM memory_episodes WHERE tenant_id = ?"


def test_agent_runs_row_is_created_verified_by_admin_query_after_the_first_run(
    api: httpx.Client, tenant: Callable[[], str]
) -> None:
    tenant_id = tenant()
    assert runs(api, tenant_id) == []
    result = run(api, tenant_id, "order_triage", "hello", instance_id="desk", metadata={"channel": "mail"})
    recorded = recorded_run(api, tenant_id, result["run_id"])
    [listed] = runs(api, tenant_id)
    expected = {
        "run_id": result["run_id"],
        "tenant_id": tenant_id,
        "agent_type": "order_triage",
        "instance_id": "desk",
        "parent_run_id": None,
        "status": "completed",
        "model": "scripted/order_triage",
        "steps": result["steps"],
        **{name: result["usage"][name] for name in ("input_tokens", "output_tokens")},
    }
    assert {name: listed[name] for name in expected} == expected
    assert {name: recorded[name] for name in expected} == expected
    assert (recorded["output"], recorded["error"]) == (result["output"], None)
    assert (recorded["input"]["input"], recorded["input"]["metadata"]) == ("hello", {"channel": "mail"})
    assert recorded["created_at_ms"] <= recorded["completed_at_ms"]


def test_memory_episodes_rows_are_written_for_each_turn_verified_by_count_query(
    api: httpx.Client, tenant: Callable[[], str], state: LocalState
) -> None:
    tenant_id = tenant()
    result = run(api, tenant_id, "sdr", "Draft an e-mail to contact:7", instance_id="desk")
    recorded = recorded_run(api, tenant_id, result["run_id"])
    assert [episode["turn"] for episode in recorded["episodes"]] == [1, 2, 3]
    first, _, last = [episode["content"] for episode in recorded["episodes"]]
    assert first.startswith("input: Draft an e-mail to contact:7\nset_working_memory(")
    assert last == "sdr: The draft for contact:7 is in working memory."
    [counted] = state.d1(_COUNT, tenant_id)
    assert counted == {"n": 3, "runs": 1}
    kept = state.d1("SELECT episodes FROM episode_counts WHERE tenant_id = ?", tenant_id)
    assert kept == [{"episodes": 3}]


def test_an_agent_receives_the_last_10_episodes_at_turn_start_logged_to_agent_runs_input(
    api: httpx.Client, tenant: Callable[[], str]
) -> None:
    tenant_id = tenant()
    earlier = [run(api, tenant_id, "order_triage", f"hello {number}", instance_id="desk") for number in range(12)]
    result = run(api, tenant_id, "order_triage", "hello again", instance_id="desk")
    assert [answer["memory"]["episodes_used"] for answer in earlier] == [*range(11), 10]
    assert result["memory"]["episodes_used"] == 10
    logged: list[dict[str, Any]] = recorded_run(api, tenant_id, result["run_id"])["input"]["episodes"]
    # Oldest first, each run of one turn.
    assert [(episode["run_id"], episode["turn"]) for episode in logged] == [
        (answer["run_id"], 1) for answer in earlier[-10:]
    ]
    assert [episode["content"].splitlines()[0] for episode in logged] == [f"input: hello {n}" for n in range(2, 12)]


def test_the_episodes_in_the_context_are_the_agent_s_own_in_its_tenant_whatever_the_instance(
    api: httpx.Client, tenant: Callable[[], str]
) -> None:
    mine, other = tenant(), tenant()
    first = run(api, mine, "order_triage", "hello", instance_id="desk-1")
    for tenant_id, agent_type in ((mine, "sdr"), (other, "order_triage")):
        recorded_run(api, tenant_id, run(api, tenant_id, agent_type, "hello", instance_id="desk-1")["run_id"])
    recorded_run(api, mine, first["run_id"])
    second = run(api, mine, "order_triage", "hello", instance_id="desk-2")
    logged = recorded_run(api, mine, second["run_id"])["input"]["episodes"]
    assert [episode["run_id"] for episode in logged] == [first["run_id"]]


def test_runs_are_answered_while_d1_takes_no_writes_and_are_written_before_the_instance_s_next_run(
    api: httpx.Client, tenant: Callable[[], str], state: LocalState
) -> None:
    tenant_id = tenant()
    assert runs(api, tenant_id) == []  # the isolate knows the tenant before D1 is blocked
    with state.d1_transaction():
        answers = [run(api, tenant_id, "order_triage", "hello", instance_id="desk") for _ in range(2)]
        assert runs(api, tenant_id) == []
    answers.append(run(api, tenant_id, "order_triage", "hello", instance_id="desk"))
    assert answers[-1]["memory"]["episodes_used"] == 2
    for answer in answers:
        recorded = recorded_run(api, tenant_id, answer["run_id"])
        assert (recorded["status"], len(recorded["episodes"])) == ("completed", 1)
    assert len(runs(api, tenant_id)) == 3


def test_200_runs_in_a_row_leave_exactly_200_agent_runs_rows_and_their_episodes_in_d1(
    api: httpx.Client, tenant: Callable[[], str], state: LocalState
) -> None:
    tenant_id = tenant()

    def in_a_row(desk: int) -> list[str]:
        answers = [run(api, tenant_id, "order_triage", "hello", instance_id=f"desk-{desk}") for _ in range(50)]
        return [answer["run_id"] for answer in answers]

    with ThreadPoolExecutor(4) as pool:
        run_ids = sorted(itertools.chain.from_iterable(pool.map(in_a_row, range(4))))
    eventually(
        lambda: state.d1(
            "SELECT COUNT(*) AS n FROM agent_runs WHERE (tenant_id, status) = (?, 'completed')", tenant_id
        ),
        lambda rows: rows[0]["n"] >= 200,
    )
    assert len(set(run_ids)) == 200
    recorded = state.d1("SELECT run_id, status FROM agent_runs WHERE tenant_id = ? ORDER BY run_id", tenant_id)
    assert [row["run_id"] for row in recorded] == run_ids
    assert Counter(row["status"] for row in recorded) == {"completed": 200}
    episodes = state.d1("SELECT run_id, turn FROM memory_episodes WHERE tenant_id = ? ORDER BY run_id", tenant_id)
    assert [(row["run_id"], row["turn"]) for row in episodes] == [(run_id, 1) for run_id in run_ids]
    events = state.d1("SELECT kind, COUNT(*) AS n FROM run_events WHERE tenant_id = ? GROUP BY kind", tenant_id)
    assert {row["kind"]: row["n"] for row in events} == dict.fromkeys(
        ("model_asked", "model_answered", "run_completed"), 200
    )
    for desk in range(4):
        assert state.instance(tenant_id, "order_triage", f"desk-{desk}", "SELECT * FROM outbox") == []
    assert sorted(listed["run_id"] for listed in runs(api, tenant_id)) == run_ids
