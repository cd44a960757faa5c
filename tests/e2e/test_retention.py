"""How long a turn's text stays, and what happens to turns of a tenant that has as many episodes as it may."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.e2e.calls import recorded_run, run, runs
from tests.e2e.conftest import Steered
from tests.e2e.puppet import Puppet, order
from tests.e2e.servers import one_database
from tests.e2e.waiting import eventually

pytestmark = pytest.mark.workerd

CANARY = "the parcel waits in locker 7391"
AGE_MS = 91 * 24 * 3600 * 1000
_AGED = (
    "UPDATE memory_episodes SET created_at_ms = created_at_ms - ?1 WHERE run_id = ?2",
    "UPDATE run_events SET at_ms = at_ms - ?1 WHERE run_id = ?2",
    "UPDATE conversation_messages SET at_ms = at_ms - ?1 WHERE run_id = ?2",
    "UPDATE agent_runs SET created_at_ms = created_at_ms - ?1, completed_at_ms = completed_at_ms - ?1 WHERE run_id = ?2",
)


def _tick(steered: Steered, schedule: str) -> None:
    fired = steered.api.get("/cdn-cgi/handler/scheduled", params={"cron": schedule})
    assert fired.text == "ok"


def test_the_text_of_a_turn_is_gone_from_every_store_after_90_days(steered: Steered) -> None:
    state, tenant_id = steered.state, steered.tenant()
    asked_first = run(steered.api, tenant_id, "order_triage", order(say=f"noted: {CANARY}"), instance_id="ann")
    recorded_run(steered.api, tenant_id, asked_first["run_id"])
    later = run(steered.api, tenant_id, "order_triage", order(say="hello"), instance_id="ann")
    shown = recorded_run(steered.api, tenant_id, later["run_id"])
    [read] = shown["input"]["episodes"]
    assert (read["run_id"], read["gone"], CANARY in read["content"]) == (asked_first["run_id"], False, True)
    # The run that read the turn has no copy of it in D1; the run that it belongs to has its input and output.
    holding = "SELECT run_id FROM agent_runs WHERE input || output LIKE ?"
    assert state.d1(holding, f"%{CANARY}%") == [{"run_id": asked_first["run_id"]}]

    with state.d1_transaction() as database:
        for statement in _AGED:
            database.execute(statement, (AGE_MS, asked_first["run_id"]))
        # What version 0.1.0 left: a young run with a copy of the old turn, and a write that D1 refused long ago.
        copied = json.dumps({"input": "hello", "episodes": [{key: read[key] for key in ("episode_id", "content")}]})
        update = "UPDATE agent_runs SET input = ?, texts = 'copied' WHERE run_id = ?"
        database.execute(update, (copied, later["run_id"]))
        failure = "INSERT INTO outbox_failures VALUES (?, 1, ?, 'append_episode', ?, 'constraint', 0)"
        database.execute(failure, (f"order_triage:{tenant_id}:ann", tenant_id, json.dumps([CANARY])))
    assert set(state.d1_tables(CANARY)) == {
        *("agent_runs", "conversation_messages", "memory_episodes", "outbox_failures", "run_events"),
    }
    assert set(state.instances(CANARY)) == {"run_log", "turn_state"}

    _tick(steered, "0 3 * * 0")
    assert state.d1_tables(CANARY) == []
    old, young = (recorded_run(steered.api, tenant_id, one["run_id"]) for one in (asked_first, later))
    assert (old["status"], old["texts"], old["output"], old["episodes"]) == ("completed", "removed", None, [])
    assert old["input"].keys() == {"messages", "episodes", "records", "cut"}
    assert (young["texts"], young["output"], len(young["episodes"])) == ("kept", "hello", 1)
    assert young["input"]["episodes"] == [{"episode_id": read["episode_id"], "gone": True}]

    # The instance forgets a run a day after it ended, and does not wait for the cron.
    key = f"order_triage:{tenant_id}:ann"
    steered.crash()
    state.age_runs(key, AGE_MS)
    state.make_alarm_due(key)
    steered.restart()
    eventually(lambda: state.instances(CANARY), lambda tables: tables == [])
    assert state.blobs(CANARY) == []


@one_database
def test_turns_that_do_not_fit_are_refused_at_the_insert_and_nothing_else_of_their_runs_is_lost(
    steered: Steered, puppet: Puppet
) -> None:
    state, tenant_id = steered.state, steered.tenant()
    desks = [f"desk-{number}" for number in range(6)]
    with state.d1_transaction() as database:
        database.execute("INSERT INTO episode_counts (tenant_id, episodes) VALUES (?, 99995)", (tenant_id,))
    text = order(("get_working_memory", {}), say="a full house")

    def asked() -> int:
        return len([request for request in puppet.requests if "a full house" in request.messages[-1].content])

    with ThreadPoolExecutor(len(desks)) as pool:
        with puppet.holding("a full house"):  # every run has begun before the first one ends
            pending = [pool.submit(run, steered.api, tenant_id, "sdr", text, instance_id=desk) for desk in desks]
            eventually(asked, lambda count: count == len(desks))
        results: list[dict[str, Any]] = [one.result() for one in pending]

    for result in results:
        assert result["output"] == "a full house"
        assert recorded_run(steered.api, tenant_id, result["run_id"])["status"] == "completed"
    owed = "SELECT * FROM outbox"
    eventually(lambda: [state.instance(tenant_id, "sdr", desk, owed) for desk in desks], lambda left: not any(left))
    assert len(runs(steered.api, tenant_id)) == len(desks)
    mine = f"WHERE tenant_id = '{tenant_id}'"
    kept = [row["episode_id"] for row in state.d1(f"SELECT episode_id FROM memory_episodes {mine}")]
    refused = [row["episode_id"] for row in state.d1(f"SELECT episode_id FROM refused_episodes {mine}")]
    assert (len(kept), len(refused)) == (5, 7)
    assert sorted([*kept, *refused]) == sorted(f"{one['run_id']}.{turn:03d}" for one in results for turn in (1, 2))
    assert state.d1(f"SELECT episodes FROM episode_counts {mine}") == [{"episodes": 100_000}]
    assert state.d1(f"SELECT 1 FROM outbox_failures {mine}") == []
    ended = f"SELECT COUNT(*) AS n FROM run_events {mine} AND kind = 'run_completed'"
    assert state.d1(ended) == [{"n": len(desks)}]
    response = steered.api.post(f"/v1/agents/{tenant_id}/sdr/run", json={"input": "hello"})
    assert (response.status_code, response.json()["code"]) == (507, "episode_limit")

    _tick(steered, "0 4 * * *")
    [report] = [json.loads(brief) for _, brief in sorted(state.r2("briefs/").items())][-1:]
    assert report["episodes_refused"][tenant_id] == 7
    assert report["pruned"]["complete"]
