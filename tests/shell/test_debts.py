"""What is owed for a tenant, and the receipts of its erasures, through the whole Worker."""

from __future__ import annotations

from tests.shell.worker import Worker

TENANT = "/admin/tenants/acme"


async def test_debts_are_counted_for_their_tenant_alone(worker: Worker) -> None:
    for tenant in ("acme", "other"):
        await worker.tenant(tenant)
    empty = (await worker.request("GET", f"{TENANT}/debts")).content["debts"]
    assert {debt["kind"]: (debt["count"], debt["oldest_at_ms"]) for debt in empty} == dict.fromkeys(
        ("vectors", "deliveries", "ingests", "erasures", "reindexing", "backups", "restores", "evaluations"), (0, None)
    )
    for number, tenant in enumerate(("acme", "acme", "other")):
        await worker.rows(
            "INSERT INTO memory_outbox (record_id, tenant_id, scope_id, parts, state, at_ms, due_at_ms)"
            " VALUES (?, ?, 'tenant', 1, 'owed', ?, 0)",
            f"r{number}",
            tenant,
            1000 + number,
        )
    [vectors, *others] = (await worker.request("GET", f"{TENANT}/debts")).content["debts"]
    assert vectors == {"kind": "vectors", "count": 2, "oldest_at_ms": 1000}
    assert [debt["count"] for debt in others] == [0] * 7


async def test_open_jobs_of_others_are_not_counted_however_many_there_are(worker: Worker) -> None:
    await worker.rows(
        "WITH RECURSIVE n (number) AS (SELECT 3 UNION ALL SELECT number + 1 FROM n WHERE number < 10003)"
        " INSERT INTO ingest_jobs (job_id, tenant_id, scope_id, conversation, state, received, duplicate, rejections,"
        " created_at_ms, updated_at_ms) SELECT 'j' || number, 'other', 'tenant', 'chat', 'failed', 1, 0, '[]', 0, 0 FROM n"
    )
    for number, tenant in enumerate(("other", "acme", "other")):
        await worker.rows(
            "INSERT INTO ingest_jobs (job_id, tenant_id, scope_id, conversation, state, received, duplicate, rejections,"
            " created_at_ms, updated_at_ms) VALUES (?1, ?2, 'tenant', 'chat', 'running', 1, 0, '[]', ?3, ?3)",
            f"j{number}",
            tenant,
            1000 + number,
        )
        await worker.rows(
            "INSERT INTO eval_runs (run_id, tenant_id, dataset, version, definition, state, created_at_ms, updated_at_ms)"
            " VALUES (?1, ?2, 'first', '1', '{}', 'running', ?3, ?3)",
            f"e{number}",
            tenant,
            2000 + number,
        )
    await worker.tenant("acme")
    debts = {debt["kind"]: debt for debt in (await worker.request("GET", f"{TENANT}/debts")).content["debts"]}
    assert debts["ingests"] == {"kind": "ingests", "count": 1, "oldest_at_ms": 1001}
    assert debts["evaluations"] == {"kind": "evaluations", "count": 1, "oldest_at_ms": 2001}


async def test_receipts_are_listed_for_their_tenant_the_newest_first(worker: Worker) -> None:
    for tenant in ("acme", "other"):
        await worker.tenant(tenant)
    made = []
    for user in ("ann", "bob"):
        answer = await worker.request("DELETE", f"{TENANT}/users/{user}")
        made.append(answer.content["receipt"]["receipt_id"])
        worker.clock.advance(1000)
    page = (await worker.request("GET", f"{TENANT}/erase?limit=1")).content
    assert [one["receipt_id"] for one in page["receipts"]] == made[1:]
    page = (await worker.request("GET", f"{TENANT}/erase?cursor={page['cursor']}")).content
    assert ([one["receipt_id"] for one in page["receipts"]], page["cursor"]) == (made[:1], None)
    assert "ann" not in str(page)
    assert (await worker.request("GET", "/admin/tenants/other/erase")).content["receipts"] == []
    refused = await worker.request("GET", f"{TENANT}/erase?cursor=x")
    assert (refused.status, refused.content["code"]) == (400, "invalid_cursor")
