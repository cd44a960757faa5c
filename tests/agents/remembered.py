"""What a deployment remembers, with its random ids and its times taken out, so that two of them can be compared."""

from __future__ import annotations

import json
from typing import Any

from retain.ports import Row
from tests.support.instances import ULID, Deployment


def comparable(text: str) -> str:
    """Return the text with every ULID replaced by the same word.

    Storing again what was stored before a crash answers "created": false; the memory is the same.
    """
    return ULID.sub("ID", text).replace('"created": false', '"created": true')


def storable(text: str) -> str:
    """Return the text as a database accepts it, without lone surrogates."""
    return text.encode("utf-8", "replace").decode()


async def remembered(deployment: Deployment) -> dict[str, Any]:
    """Return the runs, episodes, records and vectors; they are equal for two histories with the same outcome."""
    runs = await deployment.rows("SELECT * FROM agent_runs")
    episodes = await deployment.rows("SELECT * FROM memory_episodes")
    records = await deployment.rows("SELECT id, content FROM memory_records")
    entries = await deployment.index.get_by_ids([f"{record['id']}#0" for record in records])
    return {
        "runs": sorted(
            (
                row["agent_type"],
                row["status"],
                comparable(row["output"] or ""),
                row["error"],
                row["steps"],
                row["parent_run_id"] is not None,
            )
            for row in runs
        ),
        "episodes": sorted((row["agent_type"], row["turn"], comparable(row["content"])) for row in episodes),
        "records": sorted(row["content"] for row in records),
        "vectors": len(entries),
    }


def began(run: Row) -> bool:
    """Return whether the run of a row in `turn_state` began, and did not end in the queue."""
    return bool(json.loads(run["context"])["messages"])


async def check_d1_agrees(deployment: Deployment) -> None:
    """Check that nothing is owed to D1, and that D1 holds what the objects logged: runs, timeline, episodes."""
    for name in deployment.objects():
        assert deployment.local(name, "SELECT * FROM outbox") == []
        runs = {row["run_id"]: row for row in deployment.local(name, "SELECT * FROM turn_state")}
        for run_id, run in runs.items():
            log = deployment.local(name, f"SELECT * FROM run_log WHERE run_id = '{run_id}' ORDER BY seq")
            await _check_run(deployment, run, log)
        begun = [run for run in runs.values() if began(run)]
        if begun:
            await _check_conversation(deployment, name, begun)
    assert await deployment.rows("SELECT * FROM outbox_failures") == []


async def _check_run(deployment: Deployment, run: Row, log: list[Row]) -> None:
    run_id = run["run_id"]
    closing = [row for row in log if row["kind"] in ("run_completed", "run_failed", "run_cancelled")]
    assert [row["seq"] for row in closing] == [len(log)], "a run closes once, and nothing comes after"
    [kept] = await deployment.rows("SELECT * FROM agent_runs WHERE run_id = ?", run_id)
    result = json.loads(run["result"])
    assert run["status"] == kept["status"] == result["status"]
    assert kept["output"] == (None if result["output"] is None else storable(result["output"]))
    assert kept["error"] == (json.dumps(result["error"]) if "error" in result else None)
    assert kept["steps"] == result["steps"]
    assert kept["completed_at_ms"] == closing[0]["at_ms"]
    timeline = await deployment.rows(
        "SELECT run_id, seq, turn, kind, data, at_ms FROM run_events WHERE run_id = ? ORDER BY seq", run_id
    )
    assert [dict(row) for row in timeline] == [dict(row) for row in log]
    carried = sum(json.loads(row["data"])["turns"] for row in log if row["kind"] == "run_forked")
    answered = [json.loads(row["data"])["turn"] for row in log if row["kind"] == "model_answered"]
    turns = [turn for turn in answered if turn > carried]
    episodes = await deployment.rows("SELECT turn FROM memory_episodes WHERE run_id = ? ORDER BY turn", run_id)
    assert [row["turn"] for row in episodes] == turns
    messages = await deployment.rows("SELECT * FROM conversation_messages WHERE run_id = ? ORDER BY message_id", run_id)
    if not began(run):
        assert messages == []
        return
    fork = json.loads(run["request"]).get("fork")
    asked = [] if fork is not None and fork["turns"] is None else [messages.pop(0)["role"]]
    assert asked in ([], ["user"]), "a retry answers what the run before it was asked"
    assert [(row["role"], row["content"]) for row in messages] == (
        [] if kept["output"] is None else [("assistant", kept["output"])]
    )


async def _check_conversation(deployment: Deployment, name: str, runs: list[Row]) -> None:
    """Check the row of an instance that has forgotten none of its runs."""
    names = name.split(":")
    [kept] = await deployment.rows(
        "SELECT * FROM conversations WHERE agent_type = ? AND tenant_id = ? AND instance_id = ?", *names
    )
    newest = max(runs, key=lambda run: str(run["run_id"]))
    assert (kept["runs"], kept["last_run_id"], kept["status"]) == (len(runs), newest["run_id"], newest["status"])
