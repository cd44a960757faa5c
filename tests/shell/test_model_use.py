"""What a tenant spent: counted once for each run that ends, listed within a bound, priced, pruned and erased."""

from __future__ import annotations

import json
from collections import Counter
from contextlib import closing
from datetime import date

import pytest

from retain.agents.runs.owed import CloseRun
from retain.identifiers import new_id
from retain.retention import DAY_MS, prune
from retain.tenants.model_use import WantedUse, model_use, use_rules
from tests.shell.worker import Worker, serving
from tests.support.databases import migrated_d1
from tests.support.planned import Planned

COSTS = "/admin/tenants/acme/costs"
TODAY = 20_000
"""A day since the epoch: 2024-10-04."""
PRICES = json.dumps({"currency": "EUR", "models": {"small": {"input": 2, "output": 10}}})
_BEGUN = """
INSERT INTO agent_runs (run_id, tenant_id, agent_type, instance_id, parent_run_id, status, input, model, steps, input_tokens,
  output_tokens, created_at_ms) VALUES (?, ?, ?, 'main', ?, 'running', '{}', ?, 1, 0, 0, ?)
"""


async def begin(
    worker: Worker, run_id: str, *, agent: str = "sdr", model: str = "small", tenant: str = "acme", parent: str = ""
) -> None:
    await worker.rows(_BEGUN, run_id, tenant, agent, parent, model, TODAY * DAY_MS)


async def end(worker: Worker, run_id: str, read: int, written: int, *, day: int = TODAY, cached: int = 0) -> None:
    await worker.rows(CloseRun.SQL, "completed", "done", "null", 1, read, cached, written, day * DAY_MS + 5, run_id)


async def learn(worker: Worker, run_id: str, read: int, written: int) -> None:
    usage = {"input_tokens": read, "output_tokens": written}
    report = json.dumps({"status": "learned", "usage": usage})
    await worker.rows("UPDATE agent_runs SET learning = ? WHERE run_id = ?", report, run_id)


async def costs(worker: Worker, query: str = "") -> list[dict[str, object]]:
    answer = await worker.request("GET", f"{COSTS}?{query}")
    assert answer.status == 200, answer.body
    listed: list[dict[str, object]] = answer.content["costs"]
    return listed


async def test_what_runs_spent_is_listed_by_day_agent_and_model_with_its_cost() -> None:
    async with serving(MODEL_PRICES=PRICES) as worker:
        await worker.tenant()
        for number, (agent, model) in enumerate(
            (("sdr", "small"), ("sdr", "small"), ("sdr", "large"), ("clerk", "small"))
        ):
            await begin(worker, f"run-{number}", agent=agent, model=model)
            await end(worker, f"run-{number}", 1000, 100)
        await learn(worker, "run-0", 500, 50)
        first, *rest = await costs(worker)
        assert first == {
            "day": "2024-10-04",
            "agent_type": "sdr",
            "purpose": "run",
            "model": "small",
            "runs": 2,
            "calls": None,
            "input_tokens": 2000,
            "cached_input_tokens": 0,
            "output_tokens": 200,
            "learning_input_tokens": 500,
            "learning_cached_input_tokens": 0,
            "learning_output_tokens": 50,
            "cost": {"value": 0.0075, "currency": "EUR"},
        }
        assert [(one["agent_type"], one["model"], one["cost"]) for one in rest] == [
            ("sdr", "large", None),
            ("clerk", "small", {"value": 0.003, "currency": "EUR"}),
        ]
        shown = (await worker.request("GET", "/admin/agents/acme/runs?agent_type=clerk")).content["runs"][0]
        assert shown["cost"] == {"value": 0.003, "currency": "EUR"}


async def test_a_run_counts_once_when_it_ends_however_often_it_is_reported(worker: Worker) -> None:
    await worker.tenant()
    await begin(worker, "run-1")
    await worker.rows("UPDATE agent_runs SET input_tokens = 7 WHERE run_id = 'run-1'")
    assert await costs(worker) == [], "an open run may still spend more"
    for _ in range(2):
        await end(worker, "run-1", 30, 3)
        await learn(worker, "run-1", 5, 1)
    [one] = await costs(worker)
    assert (one["runs"], one["input_tokens"], one["output_tokens"]) == (1, 30, 3)
    assert (one["learning_input_tokens"], one["learning_output_tokens"]) == (5, 1)


async def test_what_is_learned_before_the_end_arrives_counts_with_it(worker: Worker) -> None:
    await worker.tenant()
    await begin(worker, "run-1")
    await learn(worker, "run-1", 5, 1)
    await end(worker, "run-1", 30, 3)
    [one] = await costs(worker)
    assert (one["input_tokens"], one["learning_input_tokens"], one["learning_output_tokens"]) == (30, 5, 1)


async def test_a_run_whose_texts_were_erased_has_spent_what_it_had(worker: Worker) -> None:
    await worker.tenant()
    await begin(worker, "run-1")
    await worker.rows("UPDATE agent_runs SET input_tokens = 70, output_tokens = 7 WHERE run_id = 'run-1'")
    await end(worker, "run-1", 0, 0)
    [one] = await costs(worker)
    assert (one["input_tokens"], one["output_tokens"]) == (70, 7)


async def test_a_run_that_is_deleted_while_it_is_open_has_spent_what_it_had(worker: Worker) -> None:
    await worker.tenant()
    for run_id in ("waits", "ended", "queued"):
        await begin(worker, run_id)
    await worker.rows(
        "UPDATE agent_runs SET input_tokens = 70, cached_input_tokens = 20, output_tokens = 7 WHERE run_id = 'waits'"
    )
    await end(worker, "ended", 30, 3)
    await worker.rows("DELETE FROM agent_runs")
    counted = await worker.rows("SELECT SUM(runs) AS runs, SUM(input_tokens) AS read, SUM(output_tokens) AS written"
                                ", SUM(cached_input_tokens) AS cached FROM model_use")  # fmt: skip
    assert counted == [{"runs": 2, "read": 100, "written": 10, "cached": 20}]
    [today] = await worker.rows("SELECT CAST(julianday('now') - 2440587.5 AS INTEGER) AS day")
    days = await worker.rows("SELECT day, runs FROM model_use ORDER BY day")
    assert days == [{"day": TODAY, "runs": 1}, {"day": today["day"], "runs": 1}], "the deletion ends the run"


@pytest.mark.parametrize(
    "mark",
    [
        "INSERT INTO erased_tenants VALUES ('acme', 'Z', 1)",
        "INSERT INTO tenant_places (tenant_id, state) VALUES ('acme', 'removing')",
        "INSERT INTO tenant_places (tenant_id, state) VALUES ('acme', 'arriving')",
    ],
    ids=["erased", "removing", "arriving"],
)
async def test_an_open_run_that_goes_with_its_tenant_is_not_counted(mark: str) -> None:
    with closing(migrated_d1()) as sql:
        await sql.run(_BEGUN, "waits", "acme", "sdr", None, "small", TODAY * DAY_MS)
        await sql.run("UPDATE agent_runs SET input_tokens = 70")
        await sql.run(mark)
        await sql.run("DELETE FROM agent_runs")
        assert (await sql.run("SELECT * FROM model_use")).rows == []


async def test_a_run_that_is_imported_counts_on_the_day_on_which_it_ended(worker: Worker) -> None:
    await worker.tenant()
    for _ in range(2):
        await worker.rows(
            "INSERT INTO agent_runs (run_id, tenant_id, agent_type, instance_id, status, input, model, steps, input_tokens,"
            " output_tokens, created_at_ms, completed_at_ms, learning)"
            " VALUES ('old', 'acme', 'sdr', 'main', 'completed', '{}', 'small', 1, 30, 3, ?, ?, ?) ON CONFLICT DO NOTHING",
            (TODAY - 8) * DAY_MS,
            (TODAY - 7) * DAY_MS,
            json.dumps({"usage": {"input_tokens": 5, "output_tokens": 1}}),
        )
    [one] = await costs(worker)
    assert (one["day"], one["runs"], one["input_tokens"], one["output_tokens"]) == ("2024-09-27", 1, 30, 3)
    assert (one["learning_input_tokens"], one["learning_output_tokens"]) == (5, 1)


async def test_days_are_those_of_real_runs_and_tokens_those_of_their_rows(worker: Worker) -> None:
    await worker.tenant()
    await worker.run("acme", "sdr", "Contact contact:7 responded positively.")
    await worker.settled()
    rows = await worker.rows(
        "SELECT agent_type, SUM(input_tokens) AS read, COUNT(*) AS runs FROM agent_runs GROUP BY 1"
    )
    counted: Counter[str] = Counter()
    for one in await costs(worker):
        counted[f"{one['agent_type']}"] += int(str(one["input_tokens"]))
    assert counted == {row["agent_type"]: row["read"] for row in rows}
    assert sum(counted.values()) > 0


async def test_pages_together_are_everything_the_last_day_first(worker: Worker) -> None:
    await worker.tenant()
    agents, days = ("clerk", "sdr"), range(TODAY - 3, TODAY + 1)
    models = ("a/small", "large")
    purposes = ("answer", "ingest", "judge")
    for day in days:
        for agent in agents:
            for model in models:
                await begin(worker, f"{day}-{agent}-{model}", agent=agent, model=model)
                await end(worker, f"{day}-{agent}-{model}", 1, 1, day=day)
                for purpose in purposes:
                    columns = "tenant_id, day, agent_type, purpose, model"
                    calls = f"INSERT INTO model_calls ({columns}) VALUES ('acme', ?, ?, ?, ?)"
                    await worker.rows(calls, day, agent, purpose, model)
    for agent in ("", "agent_type=sdr&"):
        whole = await costs(worker, f"{agent}limit=200")
        found, cursor = [], ""
        while True:
            answer = (await worker.request("GET", f"{COSTS}?{agent}limit=3{cursor}")).content
            found += answer["costs"]
            if answer["cursor"] is None:
                break
            cursor = f"&cursor={answer['cursor']}"
        assert found == whole
        assert len(whole) == len(days) * len(models) * (1 + len(purposes)) * (len(agents) if not agent else 1)
        places = [tuple(str(one[name]) for name in ("day", "agent_type", "purpose", "model")) for one in whole]
        assert places == sorted(places, reverse=True)
    some = await costs(worker, "since=2024-10-02&until=2024-10-04")
    assert {one["day"] for one in some} == {"2024-10-02", "2024-10-03"}


@pytest.mark.parametrize(
    "query",
    [
        "since=yesterday",
        "since=2024-13-01",
        "since=20241004",
        "since=2024-W40-5",
        "until=1969-12-31",
        "since=2024-10-04&until=2024-10-04",
    ],
)
async def test_a_day_that_is_not_one_is_refused(worker: Worker, query: str) -> None:
    await worker.tenant()
    answer = await worker.request("GET", f"{COSTS}?{query}")
    assert (answer.status, answer.content["code"]) == (400, "invalid_query")


@pytest.mark.parametrize(
    "cursor",
    ["x", "1", "1/sdr", "1/sdr/run", "1/sdr/run/", "1/sdr/other/small", "-1/sdr/run/small", "1234567/sdr/run/small"],
)
async def test_a_cursor_that_is_not_one_is_refused(worker: Worker, cursor: str) -> None:
    await worker.tenant()
    answer = await worker.request("GET", f"{COSTS}?cursor={cursor}")
    assert (answer.status, answer.content["code"]) == (400, "invalid_cursor")


async def test_a_tenant_sees_its_own_costs_and_an_erasure_removes_them_for_good(worker: Worker) -> None:
    for tenant in ("acme", "other"):
        await worker.tenant(tenant)
        for number in range(2):
            await begin(worker, f"{tenant}-{number}", tenant=tenant)
        await end(worker, f"{tenant}-0", 10, 1)
    assert [one["runs"] for one in await costs(worker)] == [1]
    await worker.rows("INSERT INTO erased_tenants VALUES ('acme', 'acme-0', 1)")
    await end(worker, "acme-1", 10, 1)
    assert [one["runs"] for one in await costs(worker)] == [1], "what ends during the erasure is not counted again"
    await worker.rows("DELETE FROM erased_tenants")
    while (answer := await worker.request("DELETE", "/admin/tenants/acme?confirm=acme")).status == 202:
        pass
    assert answer.status == 200, answer.body
    assert {row["tenant_id"] for row in await worker.rows("SELECT tenant_id FROM model_use")} == {"other"}


async def test_counts_are_kept_as_long_as_the_rows_of_runs() -> None:
    with closing(migrated_d1()) as sql:
        await sql.batch(
            [
                ("INSERT INTO model_use (tenant_id, day, agent_type, model) VALUES ('acme', ?, 'sdr', 'small')", (day,))
                for day in (TODAY - 401, TODAY - 400)
            ]
        )
        await sql.run(
            "INSERT INTO model_calls (tenant_id, day, agent_type, purpose, model) VALUES ('acme', ?, '', 'ingest', 'small')",
            TODAY - 401,
        )
        pruned = await prune(sql, TODAY * DAY_MS + 7, use_rules(400 * DAY_MS))
        assert pruned.by_rule == {"model_use": {"acme": 1}, "model_calls": {"acme": 1}}
        assert [row["day"] for row in (await sql.run("SELECT day FROM model_use")).rows] == [TODAY - 400]


@pytest.mark.parametrize("agent", [None, "sdr"])
async def test_a_list_reads_its_own_rows_in_order(agent: str | None) -> None:
    with closing(migrated_d1()) as sql:
        planned, wanted = Planned(sql), WantedUse(agent, since=date(2024, 1, 1))
        await model_use(planned, "acme", wanted, limit=10, cursor="20000/sdr/judge/small")
    of_runs, of_calls = planned.steps  # nothing is sorted
    assert of_runs.startswith("SEARCH model_use USING")
    assert of_calls.startswith("SEARCH model_calls USING")


async def test_cached_input_and_what_is_learned_count_with_a_price_of_their_own_and_in_the_quota() -> None:
    prices = {"currency": "EUR", "models": {"small": {"input": 2, "cached_input": 1, "output": 10}}}
    async with serving(MODEL_PRICES=json.dumps(prices)) as worker:
        await worker.tenant()
        await begin(worker, "run-1")
        await end(worker, "run-1", 1000, 100, cached=600)
        usage = {"input_tokens": 500, "cached_input_tokens": 200, "output_tokens": 50}
        for _ in range(2):
            report = json.dumps({"status": "learned", "usage": usage})
            await worker.rows("UPDATE agent_runs SET learning = ? WHERE run_id = 'run-1'", report)
        [one] = await costs(worker)
        assert (one["cached_input_tokens"], one["learning_cached_input_tokens"]) == (600, 200)
        assert one["cost"] == {"value": 0.0037, "currency": "EUR"}
        shown = (await worker.request("GET", "/admin/agents/acme/runs")).content["runs"][0]
        assert (shown["cached_input_tokens"], shown["cost"]["value"]) == (600, 0.0024)
        [used] = await worker.rows("SELECT tokens FROM tenant_use WHERE tenant_id = 'acme'")
        assert used["tokens"] == 1650


async def test_each_answer_of_a_run_s_model_has_its_cost() -> None:
    async with serving(MODEL_PRICES=PRICES) as worker:
        await worker.tenant()
        run_id = new_id()
        await begin(worker, run_id)
        answered = {"turn": 1, "content": "yes", "calls": [], "input_tokens": 1000, "output_tokens": 100}
        for seq, (kind, data) in enumerate((("model_asked", {"turn": 1}), ("model_answered", answered)), start=1):
            columns = "run_id, seq, tenant_id, kind, turn, data, at_ms"
            sql = f"INSERT INTO run_events ({columns}) VALUES (?, ?, 'acme', ?, 1, ?, 0)"
            await worker.rows(sql, run_id, seq, kind, json.dumps(data))
        asked, paid = (await worker.request("GET", f"/admin/agents/acme/runs/{run_id}/events")).content["events"]
        assert "cost" not in asked
        assert paid["cost"] == {"value": 0.003, "currency": "EUR"}


async def test_what_an_earlier_worker_left_of_an_erased_tenant_goes_once_it_is_registered_and_erased_again(
    worker: Worker,
) -> None:
    async def erased() -> str:
        for _ in range(9):
            answer = await worker.request("POST", "/admin/tenants/acme/erase", {"tenant": True, "confirm": "acme"})
            worker.clock.advance(60_000)
            if answer.status == 200:
                return str(answer.content["receipt"]["receipt_id"])
        raise AssertionError(answer.body)

    await worker.tenant()
    first = await erased()
    await worker.rows(
        "INSERT INTO model_use (tenant_id, day, agent_type, model, runs) VALUES ('acme', 1, 'sdr', 'm', 1)"
    )
    left = "SELECT COUNT(*) AS n FROM model_use"
    assert (await erased(), await worker.rows(left)) == (first, [{"n": 1}]), "docs/runbook.md says so"
    await worker.tenant()
    assert await erased() != first
    assert await worker.rows(left) == [{"n": 0}]
