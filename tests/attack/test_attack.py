"""20,000 attempts to cross from one tenant to another, over the whole Worker, and none that does."""

from __future__ import annotations

import asyncio
from collections import Counter
from random import Random
from urllib.parse import quote

import pytest

from retain.application_keys.tokens import BoundUser
from tests.attack.attempts import ROUTES, Attacker
from tests.attack.evidence import Evidence
from tests.attack.host import target
from tests.attack.known import ULID, Known
from tests.attack.tenants import ATTACKER, VICTIM
from tests.attack.trial import ROUND, attack

ROUNDS = 8
"""Rounds in the suite: `make attack` runs others, with seeds of its own."""

INSIDE = 1_500
"""Attempts of a user."""


@pytest.mark.parametrize("seed", range(ROUNDS))
def test_invariant_3_no_attempt_reads_or_changes_anything_of_another_tenant(seed: int) -> None:
    summary = asyncio.run(attack(ROUND, seed))
    assert summary.findings == [], str(summary)
    assert summary.attempts == ROUND
    assert summary.valid >= 0.5 * summary.attempts, "attempts that are refused at validation prove little"
    assert summary.rows > 1000


def test_every_route_of_the_tables_is_attacked_also_in_the_name_of_the_victim() -> None:
    attacker = Attacker(Random(1), Known(Random(1)), Known(Random(1)), api_key="key", token={})
    attempts = [attacker.attempt() for _ in range(20_000)]
    every = {f"{route.method} {route.path}" for route in ROUTES}
    assert {attempt.route for attempt in attempts} == every
    of_a_tenant = {route for route in every if "{tenant}" in route}
    assert {attempt.route for attempt in attempts if f"/{VICTIM}/" in attempt.path + "/"} >= of_a_tenant


async def test_the_victim_has_a_canary_in_every_store_and_the_attacker_knows_none() -> None:
    async with target(Random(3)) as attacked:
        evidence = await attacked.prepare()
        having = {
            table.partition("/")[0].partition(":")[0] + "/" + table.rpartition("/")[2]
            for table, rows in evidence.rows.items()
            if any(attacked.canary in repr(row) for row in rows)
        }
        assert {"d1/memory_records", "d1/run_events", "d1/eval_results", "d1/users", "d1/memory_items"} <= having
        assert {"d1/conversation_messages", "kv/kv", "r2/objects", "vectors/vectors", "do/run_log"} <= having
        assert {"d1/agent_versions", "do/agent_versions"} <= having
        for known in (attacked.mine, attacked.theirs):
            assert attacked.canary not in repr(known)
        assert attacked.theirs.hidden
        assert not evidence.changes(attacked.rows()), "what the attacker has of its own changes nothing"


RUNNING = ("create_run", "run_ag_ui", "send_agents_message", "create_chat_completion")
"""The routes that run an agent."""


async def test_a_user_of_the_victim_reaches_nothing_of_its_other_users_without_running_an_agent() -> None:
    """What a run shows of the tenant's own memories is for the definitions of its agents to say."""
    among = [route for route in ROUTES if route.guard == "Access" and route.name not in RUNNING]
    statuses: Counter[int] = Counter()
    async with target(Random(6)) as attacked:
        evidence = await attacked.prepare()
        rng = Random(6)
        token, keys = attacked.inside, attacked.keys[VICTIM]
        inside = Attacker(rng, attacked.theirs, attacked.theirs, api_key=keys, token=token, applications=[token])
        for _ in range(INSIDE):
            attempt = inside.attempt(among)
            path = attempt.path.replace(f"/{ATTACKER}/", f"/{VICTIM}/")
            answer = await attacked.worker.request(attempt.method, path, headers=attempt.headers, body=attempt.body)
            await attacked.worker.settled()
            statuses[answer.status] += 1
            shown = answer.body.decode("utf-8", "replace") + str(answer.headers)
            assert attacked.canary not in shown.lower(), f"{attempt}: {shown[:300]}"
            assert not attacked.theirs.hidden & set(ULID.findall(shown)), f"{attempt}: {shown[:300]}"
            assert answer.status < 500, f"{attempt}: {shown[:300]}"
        own = BoundUser("nobody").instance("")
        rows = attacked.rows()
        asked = Counter(row for row in rows["objects/names"] if f":{VICTIM}:{own}" in str(row[0]))
        assert asked, "whoever asks for an instance of their own asks an object, which has nothing"
        assert evidence.changes({**rows, "objects/names": rows["objects/names"] - asked}) == []
    assert {200, 403, 404} <= statuses.keys()


async def test_evidence_shows_a_row_that_is_gone_changed_or_new() -> None:
    async with target(Random(4)) as attacked:
        evidence: Evidence = await attacked.prepare()
        database = attacked.worker.db.store._connection
        database.execute("UPDATE users SET name = 'x' WHERE tenant_id = ? AND user_id = 'ann'", [VICTIM])
        changed = [change for change in evidence.changes(attacked.rows()) if change.startswith("d1/users")]
        assert [change.split(" (")[0] for change in changed] == [
            "d1/users lacks",
            "d1/users has a new row of the victim:",
        ]
        [row] = database.execute("SELECT * FROM users WHERE tenant_id = ? LIMIT 1", [ATTACKER]).fetchall()
        place = row.index(ATTACKER)
        moved = (*row[:place], VICTIM, *row[place + 1 :])
        database.execute("DELETE FROM users WHERE tenant_id = ?", [VICTIM])
        database.execute(f"INSERT INTO users VALUES ({', '.join('?' * len(moved))})", moved)
        changed = [change for change in evidence.changes(attacked.rows()) if change.startswith("d1/users")]
        assert len([change for change in changed if "lacks" in change]) == 2
        assert any("new row of the victim" in change for change in changed)
        await attacked.worker.kv.store.put(f"agent_working:{VICTIM}:x:sdr.note", "1")
        assert any("kv/kv has a new row" in change for change in evidence.changes(attacked.rows()))
        attacked.worker.agents.object(f"sdr:{VICTIM}:new")
        assert any("objects/names has a new row" in change for change in evidence.changes(attacked.rows()))


async def test_a_user_of_the_attacker_with_the_victim_s_name_in_it_is_no_row_of_the_victim() -> None:
    async with target(Random(5)) as attacked:
        evidence: Evidence = await attacked.prepare()
        user = f"{ATTACKER}|{VICTIM}"
        path = f"/admin/tenants/{ATTACKER}/users/{quote(user, safe='')}"
        assert (await attacked.request("PUT", path, {"name": "Own"})).status in (200, 201)
        memory = {"content": "Of their own.", "user_id": user, "agent_type": "sdr"}
        assert (await attacked.request("POST", f"/admin/tenants/{ATTACKER}/memories", memory)).status == 201
        asked = {"input": "hello", "user": {"id": user}}
        assert (await attacked.request("POST", f"/v1/agents/{ATTACKER}/sdr/run", asked)).status == 200
        await attacked.worker.settled()
        assert evidence.changes(attacked.rows()) == []
