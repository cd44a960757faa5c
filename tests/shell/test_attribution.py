"""History says who made each change: the person whom Access names, or nobody for what Retain does itself."""

from __future__ import annotations

import ast
import re
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.admin.access_team import Team
from tests.shell.access import guarded_worker, token
from tests.shell.worker import Worker
from tools.paths import ROOT

ADA, BOB = "ada@example.com", "bob@example.com"


@pytest.fixture
async def guarded(team: Team, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Worker]:
    async with guarded_worker(team, monkeypatch, OWNERS="domain:example.com") as worker:
        await asked(worker, team, ADA, "PUT", "/admin/tenants/acme", {})
        yield worker


async def asked(worker: Worker, team: Team, by: str, method: str, path: str, content: object = None) -> Any:
    """Return the content of the answer to what somebody asks."""
    answer = await worker.request(method, path, content, headers=token(team, email=by))
    assert answer.status < 300, answer.body
    await worker.settled()
    return answer.content if answer.body else None


async def test_each_event_of_a_memory_names_the_person(guarded: Worker, team: Team) -> None:
    memories = "/admin/tenants/acme/memories"
    made = await asked(guarded, team, ADA, "POST", memories, {"content": "Ada drinks tea."})
    path = f"{memories}/{made['id']}"
    await asked(guarded, team, BOB, "PATCH", path, {"content": "Ada drinks coffee."})
    shown = await asked(guarded, team, ADA, "GET", path)
    assert [event["source"] for event in shown["events"]] == [
        {"origin": "person", "by": ADA},
        {"origin": "person", "by": BOB},
    ]
    await asked(guarded, team, BOB, "DELETE", path)
    [last] = await guarded.rows("SELECT source FROM memory_events ORDER BY event_id DESC LIMIT 1")
    assert BOB in last["source"]
    assert (await asked(guarded, team, ADA, "GET", "/admin/tenants/acme/history/verify"))["problem"] is None


async def test_memories_over_mcp_and_seeded_ones_name_the_person(guarded: Worker, team: Team) -> None:
    call = {"name": "remember", "arguments": {"content": "Ada drinks tea."}}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
    await asked(guarded, team, ADA, "POST", "/admin/tenants/acme/mcp", message)
    seeds = {"tenant": "acme", "agent_type": "sdr", "memories": [{"content": "Bob drinks beer."}]}
    await asked(guarded, team, BOB, "POST", "/admin/seed-memory", seeds)
    rows = await guarded.rows("SELECT json_extract(source, '$.by') AS by FROM memory_events ORDER BY event_id")
    assert [row["by"] for row in rows] == [ADA, BOB]


async def test_every_other_mutation_names_the_person_and_the_seals_cover_the_name(guarded: Worker, team: Team) -> None:
    await asked(guarded, team, BOB, "PUT", "/admin/tenants/acme/users/ann", {"name": "Ann"})
    await asked(guarded, team, ADA, "PUT", "/admin/tenants/acme/roles/group:ops", {"role": "viewer"})
    item = "/admin/tenants/acme/items/crm/s1/preferences/p1"
    await asked(guarded, team, BOB, "PUT", item, {"value": "tea"})
    await asked(guarded, team, ADA, "POST", "/admin/tenants/acme/reindex", {})
    page = await asked(guarded, team, ADA, "GET", "/admin/tenants/acme/history/mutations")
    named = {entry["kind"]: entry["changed_by"] for entry in page["entries"]}
    assert (
        named.items()
        >= {
            "tenant_registered": f"person:{ADA}",
            "user_met": f"person:{BOB}",
            "role_granted": f"person:{ADA}",
            "item_written": f"person:{BOB}",
            "reindex_started": f"person:{ADA}",
        }.items()
    )
    await guarded.cron("0 4 * * *")
    verify = "/admin/tenants/acme/history/verify"
    assert (await asked(guarded, team, ADA, "GET", verify))["problem"] is None
    await guarded.rows("UPDATE mutation_log SET changed_by = ? WHERE kind = 'item_written'", f"person:{ADA}")
    assert (await asked(guarded, team, ADA, "GET", verify))["problem"] == "mutations_changed"


async def test_changes_of_the_whole_deployment_are_listed_and_verified(guarded: Worker, team: Team) -> None:
    await asked(guarded, team, ADA, "PUT", "/admin/roles/group:ops", {"role": "viewer"})
    await asked(guarded, team, BOB, "PUT", "/admin/quotas", {"runs_a_day": 7})
    await asked(guarded, team, ADA, "DELETE", "/admin/roles/group:ops")
    mutations, found, cursor = "/admin/history/mutations", [], "0"
    while cursor is not None:
        page = await asked(guarded, team, ADA, "GET", f"{mutations}?limit=1&after={cursor}")
        found += page["entries"]
        cursor = page["cursor"]
    assert [(entry["kind"], entry["changed_by"]) for entry in found] == [
        ("role_granted", f"person:{ADA}"),
        *[("quota_set", f"person:{BOB}")] * 2,  # that there is a row, and its number
        ("role_revoked", f"person:{ADA}"),
    ]
    [*_, quota] = (await asked(guarded, team, ADA, "GET", f"{mutations}?kind=quota_set"))["entries"]
    assert (quota["number"], quota["detail"]) == (3, "[null,7,null]")
    of_tenant = await asked(guarded, team, ADA, "GET", "/admin/tenants/acme/history/mutations")
    assert {entry["kind"] for entry in of_tenant["entries"]} == {"tenant_registered"}
    await guarded.cron("0 4 * * *")
    [sealed] = (await asked(guarded, team, ADA, "GET", "/admin/history"))["entries"]
    assert (sealed["kind"], sealed["subject_id"]) == ("mutations_sealed", "1-4")
    assert (await asked(guarded, team, ADA, "GET", "/admin/history/verify"))["problem"] is None
    await guarded.rows("UPDATE mutation_log SET changed_by = ? WHERE kind = 'quota_set'", f"person:{ADA}")
    assert (await asked(guarded, team, ADA, "GET", "/admin/history/verify"))["problem"] == "mutations_changed"


async def test_a_run_names_who_started_it_what_the_agent_does_nobody_and_no_name_is_left_over(
    guarded: Worker, team: Team
) -> None:
    body = {"input": "Contact contact:7 responded positively.", "instance_id": "desk"}
    result = await asked(guarded, team, ADA, "POST", "/v1/agents/acme/sdr/run", body)
    assert result["by"] == f"person:{ADA}"
    for by, found in ((ADA, [result["run_id"]]), (BOB, [])):
        page = await asked(guarded, team, BOB, "GET", f"/admin/agents/acme/runs?by=person:{by}")
        assert [run["run_id"] for run in page["runs"]] == found
    shown = await asked(guarded, team, BOB, "GET", f"/admin/agents/acme/runs/{result['run_id']}")
    assert shown["by"] == f"person:{ADA}"
    rows = await guarded.rows("SELECT changed_by FROM mutation_log WHERE kind = 'conversation_opened'")
    assert [row["changed_by"] for row in rows] == [None]
    assert await guarded.rows("SELECT * FROM acting") == []


async def test_a_refused_change_leaves_no_name(guarded: Worker, team: Team) -> None:
    await guarded.rows("CREATE TRIGGER t BEFORE INSERT ON users BEGIN SELECT RAISE(ABORT, 'no'); END")
    answer = await guarded.request("PUT", "/admin/tenants/acme/users/ann", {}, headers=token(team))
    assert answer.status >= 400
    assert await guarded.rows("SELECT * FROM acting") == []


def test_no_write_begins_as_a_read_does() -> None:
    """A write after WITH would not be attributed."""
    for path in (ROOT / "workers").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if (
                isinstance(node, ast.Constant)
                and isinstance(node.value, str)
                and node.value.lstrip().startswith("WITH ")
            ):
                assert not re.search(r"\b(INSERT INTO|UPDATE|DELETE FROM)\b", node.value), path
