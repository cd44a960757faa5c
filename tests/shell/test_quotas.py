"""Quotas through the whole Worker: one below, at and above each, the deployment's number and a tenant's own, and at once."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import pytest

from retain.retention import DAY_MS
from tests.shell.worker import Answer, Worker

MEMORIES = "/admin/tenants/acme/memories"
RUN = "/v1/agents/acme/sdr/run"


async def limit(
    worker: Worker, place: str = "/admin/tenants/acme/quotas", **numbers: int | None
) -> Mapping[str, object]:
    answer = await worker.request("PUT", place, numbers)
    assert answer.status == 200, answer.body
    content: Mapping[str, object] = answer.content
    return content


async def store(worker: Worker, number: int, tenant: str = "acme") -> Answer:
    return await worker.request("POST", f"/admin/tenants/{tenant}/memories", {"content": f"Fact number {number}."})


async def run(worker: Worker, instance: str) -> Answer:
    body = {"input": "Contact contact:7 responded positively.", "instance_id": instance}
    answer = await worker.request("POST", RUN, body)
    await worker.settled()
    return answer


def refusal(answer: Answer) -> tuple[int, str]:
    return answer.status, answer.content["code"]


async def test_a_tenant_holds_as_many_memories_as_its_quota_and_no_more(worker: Worker) -> None:
    await worker.tenant()
    await limit(worker, memories=3)
    assert [(await store(worker, number)).status for number in range(3)] == [201, 201, 201]
    refused = await store(worker, 3)
    assert refusal(refused) == (507, "memory_quota")
    assert (await store(worker, 2)).status == 200, "what is known already is not a new memory"
    shown = (await worker.request("GET", "/admin/tenants/acme/quotas")).content
    assert shown["memories"] == {"most": 3, "used": 3}
    [first] = (await worker.request("GET", f"{MEMORIES}?limit=1")).content["memories"]
    assert (await worker.request("DELETE", f"{MEMORIES}/{first['id']}")).status == 204
    assert (await store(worker, 3)).status == 201


async def test_a_refused_memory_is_not_embedded_and_leaves_nothing(worker: Worker) -> None:
    await worker.tenant()
    await limit(worker, memories=0)
    worker.vectors.calls.clear()
    assert refusal(await store(worker, 1)) == (507, "memory_quota")
    assert worker.vectors.calls == []
    assert await worker.rows("SELECT * FROM memory_outbox") == []


async def test_several_memories_at_once_fit_whole_or_not_at_all(worker: Worker) -> None:
    await worker.tenant()
    await limit(worker, memories=3)

    def seeds(*numbers: int) -> dict[str, object]:
        memories = [{"content": f"Fact number {number}."} for number in numbers]
        return {"tenant": "acme", "agent_type": "sdr", "memories": memories}

    assert refusal(await worker.request("POST", "/admin/seed-memory", seeds(0, 1, 2, 3))) == (507, "memory_quota")
    assert (await worker.request("POST", "/admin/seed-memory", seeds(0, 1, 2))).status == 201


async def test_concurrent_stores_do_not_pass_the_quota_together(worker: Worker) -> None:
    await worker.tenant()
    await limit(worker, memories=5)
    answers = await asyncio.gather(*(store(worker, number) for number in range(12)))
    assert sorted(answer.status for answer in answers) == [201] * 5 + [507] * 7
    [row] = await worker.rows("SELECT COUNT(*) AS n FROM memory_records")
    assert row["n"] == 5


async def test_the_deployments_number_holds_for_tenants_without_their_own(worker: Worker) -> None:
    for tenant in ("acme", "other"):
        await worker.tenant(tenant)
    assert await limit(worker, "/admin/quotas", memories=1) == {
        "memories": 1,
        "runs_a_day": None,
        "tokens_a_day": None,
    }
    await limit(worker, memories=2)
    assert [(await store(worker, number)).status for number in range(3)] == [201, 201, 507]
    assert [(await store(worker, number, "other")).status for number in range(2)] == [201, 507]
    await limit(worker, memories=None)
    assert refusal(await store(worker, 9)) == (507, "memory_quota"), "the deployment's number holds again"
    await limit(worker, "/admin/quotas", memories=None)
    assert (await store(worker, 9)).status == 201


async def test_a_lowered_quota_takes_nothing_away_and_memories_can_be_changed(worker: Worker) -> None:
    await worker.tenant()
    made = [(await store(worker, number)).content["id"] for number in range(3)]
    await limit(worker, memories=1)
    assert (await worker.request("GET", "/admin/tenants/acme/quotas")).content["memories"] == {"most": 1, "used": 3}
    edited = await worker.request("PATCH", f"{MEMORIES}/{made[0]}", {"content": "Another fact."})
    assert edited.status == 200
    for record_id in made[:2]:
        assert (await worker.request("DELETE", f"{MEMORIES}/{record_id}")).status == 204
    assert (await store(worker, 7)).status == 507
    assert (await worker.request("DELETE", f"{MEMORIES}/{made[2]}")).status == 204
    assert (await store(worker, 7)).status == 201


async def test_a_tenant_begins_as_many_runs_in_a_day_as_its_quota(worker: Worker) -> None:
    await worker.tenant()
    await limit(worker, runs_a_day=2)
    assert [(await run(worker, f"desk-{number}")).status for number in range(2)] == [200, 200]
    assert refusal(await run(worker, "desk-2")) == (507, "run_quota")
    shown = (await worker.request("GET", "/admin/tenants/acme/quotas")).content
    assert shown["runs_a_day"] == {"most": 2, "used": 2}
    worker.clock.advance(DAY_MS - worker.clock() % DAY_MS)
    assert (await run(worker, "desk-2")).status == 200


async def test_a_tenant_that_has_spent_its_tokens_begins_no_run_until_the_next_day(worker: Worker) -> None:
    await worker.tenant()
    assert (await run(worker, "desk-0")).status == 200
    [row] = await worker.rows("SELECT SUM(input_tokens + output_tokens) AS tokens FROM agent_runs")
    spent = int(row["tokens"])
    assert spent > 0
    assert (await worker.request("GET", "/admin/tenants/acme/quotas")).content["tokens_a_day"]["used"] == spent
    await limit(worker, tokens_a_day=spent)
    assert refusal(await run(worker, "desk-1")) == (507, "token_quota")
    await limit(worker, tokens_a_day=spent + 1)
    assert (await run(worker, "desk-1")).status == 200
    assert refusal(await run(worker, "desk-2")) == (507, "token_quota")
    worker.clock.advance(DAY_MS - worker.clock() % DAY_MS)
    assert (await run(worker, "desk-2")).status == 200


async def test_a_refused_run_has_asked_no_model_and_left_no_row(worker: Worker) -> None:
    await worker.tenant()
    await limit(worker, runs_a_day=0)
    assert refusal(await run(worker, "desk")) == (507, "run_quota")
    assert await worker.rows("SELECT * FROM agent_runs") == []


@pytest.mark.parametrize("numbers", [{"memories": -1}, {"memories": "many"}, {"disk": 1}, {"runs_a_day": 1.5}])
async def test_a_number_that_is_not_one_is_refused(worker: Worker, numbers: Mapping[str, object]) -> None:
    await worker.tenant()
    answer = await worker.request("PUT", "/admin/tenants/acme/quotas", numbers)
    assert refusal(answer) == (400, "invalid_body")


async def test_history_has_each_quota_and_an_erasure_removes_the_tenants(worker: Worker) -> None:
    await worker.tenant()
    await limit(worker, memories=3)
    await limit(worker, runs_a_day=4)
    rows = await worker.rows("SELECT detail FROM mutation_log WHERE kind = 'quota_set' ORDER BY number")
    assert rows[-1]["detail"] == "[3,4,null]"
    await store(worker, 1)
    for _ in range(5):
        erased = await worker.request("POST", "/admin/tenants/acme/erase", {"tenant": True, "confirm": "acme"})
        if erased.status == 200:
            break
    assert erased.status == 200
    assert await worker.rows("SELECT * FROM quotas WHERE tenant_id = 'acme'") == []
    assert await worker.rows("SELECT * FROM tenant_use WHERE tenant_id = 'acme'") == []
