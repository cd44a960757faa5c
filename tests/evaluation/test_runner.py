"""Evaluations on the host: real agents, memory and erasure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from typing import Any

import pytest

from retain.admin.maintenance import evaluations
from retain.errors import Conflict, NotFound, RetainError, Unavailable, UpstreamFailed
from retain.evaluation.results import Result, summary
from retain.evaluation.runner import CASE_MS, CASES_PER_CALL, MAX_ATTEMPTS, RETRY_MS
from retain.evaluation.runs import EvalRun
from retain.evaluation.scoring.judge import ChatJudge, NoJudge, chosen_judge
from retain.evaluation.scratch import scratch_id
from retain.jobs import LEASE_MS
from retain.models.chat import ChatReply
from retain.ports import Sql, SqlResult, SqlValue, Statement
from retain.tenant_tables import TENANT_TABLES
from retain.tenants.quotas import quotas_of, set_numbers
from tests.agents import declared_functions
from tests.agents.shipping import SCRIPT, SHIPPING, shipping_agents
from tests.agents.stepped_chat import SteppedChat, calls, says
from tests.evaluation.world import SHIPPED, TENANT, EvaluationWorld, dataset, shipped
from tests.lifecycle.erasable import erased
from tests.support.faults import Crash, Fault
from tests.support.instances import Upstream, catalogue

ANN = "ann@shop.example"
ASKED = f"Customer {ANN} asks for a refund of order AB-1001."
APPROVED = {"id": "approved", "input": ASKED, "expected": {"matches": ["^APPROVE"]}}
CHARGED = {
    "id": "charged",
    "input": ASKED,
    "memories": [{"id": "c", "content": f"Chargeback opened by {ANN}."}],
    "expected": {"matches": ["^ESCALATE"]},
}
KEPT = [table.name for table in TENANT_TABLES if table.erased == "never"]
PLENTY = [{**APPROVED, "id": f"c{number}"} for number in range(CASES_PER_CALL + 1)]


@pytest.fixture
def world() -> Iterator[EvaluationWorld]:
    with closing(EvaluationWorld()) as made:
        yield made


def outcomes(run: EvalRun) -> dict[str, str | None]:
    return {result.case_id: result.outcome for result in run.results}


def traces_of_scratches(world: EvaluationWorld) -> dict[str, list[Any]]:
    """Return what any store holds of a scratch tenant, except proofs of its erasure."""
    return {
        table: found
        for table, rows in world.everything().items()
        if table.partition("/")[2] not in (*KEPT, "eval_results")
        and (found := [row for row in rows if any("eval-" in str(value) for value in row)])
    }


@pytest.mark.parametrize("name", SHIPPED)
async def test_every_shipped_agent_passes_its_dataset(world: EvaluationWorld, name: str) -> None:
    content = shipped(name)
    assert len(content.cases) >= 6
    assert set(outcomes(await world.evaluated(content)).values()) == {"passed"}


@pytest.mark.parametrize("name", SHIPPED)
async def test_a_dataset_notices_an_agent_that_says_nothing(world: EvaluationWorld, name: str) -> None:
    world._chat = lambda definition: SteppedChat()
    run = await world.evaluated(shipped(name))
    assert "passed" not in outcomes(run).values()
    assert summary(run.results, run.definition.thresholds).below


async def test_a_case_sees_its_fixtures_and_nothing_of_the_tenant_or_of_other_cases(world: EvaluationWorld) -> None:
    await world.seed("refund_decision", [f"Chargeback opened by {ANN}: the tenant's own."])
    run = await world.evaluated(
        dataset(APPROVED, CHARGED, {**APPROVED, "id": "again"}, {**APPROVED, "id": "twice"}, agent="refund_decision")
    )
    assert outcomes(run) == {"approved": "passed", "charged": "passed", "again": "passed", "twice": "passed"}


async def test_an_evaluation_leaves_only_its_results_and_what_they_cost(world: EvaluationWorld) -> None:
    await world.seed("refund_decision", ["A memory of the tenant's."])
    await world.rest()

    def kept() -> dict[str, list[Any]]:
        return {
            table: [row for row in rows if any(value == TENANT for value in row)]
            for table, rows in world.everything().items()
            if not table.startswith(("d1/eval_", "d1/mutation_")) and table not in ("d1/model_calls", "d1/tenant_use")
        }

    before = kept()
    run = await world.evaluated(shipped("order_triage"))
    await world.recover()
    await world.rest()
    assert run.state == "completed"
    assert {table: rows for table, rows in kept().items() if rows} == {t: r for t, r in before.items() if r}
    left = traces_of_scratches(world)
    assert {table for table in left if not table.endswith("/identity")} == set()
    assert world.sql_now("SELECT * FROM eval_scratches") == []
    assert all("eval-" not in str(vector["namespace"]) for vector in world.vectors().values())


async def test_cases_count_in_the_costs_and_quotas_of_whose_they_are(world: EvaluationWorld) -> None:
    world._chat = lambda definition: SteppedChat(says("APPROVE"))
    await world.evaluated(dataset(APPROVED, {**APPROVED, "id": "again"}, agent="refund_decision"))
    await world.rest()
    [spent] = world.sql_now("SELECT * FROM model_calls")
    assert (spent["tenant_id"], spent["agent_type"], spent["purpose"]) == (TENANT, "refund_decision", "evaluation")
    one = says("APPROVE").usage
    assert (spent["calls"], spent["input_tokens"], spent["output_tokens"]) == (
        2,
        2 * one.input_tokens,
        2 * one.output_tokens,
    )
    quotas = await quotas_of(world.sql, TENANT, world.clock())
    assert (quotas.runs_a_day.used, quotas.tokens_a_day.used) == (2, 2 * (one.input_tokens + one.output_tokens))


@pytest.mark.parametrize("quota", ["runs_a_day", "tokens_a_day"])
async def test_a_case_is_not_begun_when_the_tenant_may_begin_no_run(world: EvaluationWorld, quota: str) -> None:
    await set_numbers(world.sql, TENANT, {quota: 0})
    (result,) = (await world.evaluated(dataset(APPROVED, agent="refund_decision"))).results
    assert (result.outcome, result.error and result.error["code"]) == ("errored", quota.replace("s_a_day", "_quota"))
    assert world.sql_now("SELECT * FROM tenants WHERE tenant_id LIKE 'eval-%'") == []


async def test_counts_say_what_passed_what_failed_and_what_was_not_scored(world: EvaluationWorld) -> None:
    wants_judge = {**APPROVED, "id": "judged", "expected": {"contains": ["APPROVE"], "judge": {"criteria": "Polite."}}}
    wrong = {**APPROVED, "id": "wrong", "expected": {"exact": "no"}}
    content = dataset(
        APPROVED, wrong, wants_judge, agent="refund_decision", thresholds={"pass_rate": 0.3, "contains": 1}
    )
    run = await world.evaluated(content)
    assert outcomes(run) == {"approved": "passed", "wrong": "failed", "judged": "errored"}
    judged = run.results[2]
    assert judged.error is not None
    assert judged.error["code"] == "judge_off"
    assert judged.output is not None
    shown = summary(run.results, run.definition.thresholds)
    assert (shown.passed, shown.failed, shown.errored, shown.open) == (1, 1, 1, 0)
    assert shown.averages == {"pass_rate": pytest.approx(1 / 3), "matches": 1, "exact": 0, "contains": 0, "judge": 0}
    assert shown.below == ("contains",)


async def test_a_run_that_ends_without_an_answer_is_errored(world: EvaluationWorld) -> None:
    world._chat = lambda definition: SteppedChat(UpstreamFailed("no such model", code="model_refused"))
    (result,) = (await world.evaluated(dataset(APPROVED, agent="refund_decision"))).results
    assert result.outcome == "errored"
    assert result.error is not None
    assert result.error["code"] == "run_failed"
    assert "model_refused" in result.error["message"]


async def test_a_case_whose_fixture_names_an_unknown_agent_is_errored(world: EvaluationWorld) -> None:
    lost = {**CHARGED, "memories": [{"id": "c", "content": "x", "agent_type": "nobody"}]}
    (result,) = (await world.evaluated(dataset(lost, agent="refund_decision"))).results
    assert result.error is not None
    assert result.error["code"] == "unknown_agent"


STUBS = {
    "track_parcel": {
        "description": "Look.",
        "answers": [{"when": {"order": "AB-9"}, "error": "lost"}, {"answer": {"at": "Rome"}}],
    },
    "create_label": {"answers": [{"when": {"order": {"$matches": "^AB"}}, "answer": "label 7"}]},
}


def _parcel(order: str, tools: dict[str, Any], *failed: bool) -> dict[str, Any]:
    called = zip(("set_working_memory", "track_parcel", "create_label"), (False, *failed), strict=True)
    wanted = [{"tool": tool, "failed": fails} for tool, fails in called]
    expected = {"calls": {"order": "exact", "calls": wanted}}
    return {"id": f"c-{order}", "input": f"Ship {order}.", "tools": tools, "expected": expected}


async def test_gateway_tools_answer_what_the_case_says_and_reach_nothing() -> None:
    with closing(EvaluationWorld(shipping_agents())) as world:
        upstreams = [Upstream("track_parcel", idempotent=True), Upstream("create_label", idempotent=False)]
        world.upstreams = {upstream.name: upstream for upstream in upstreams}
        run = await world.evaluated(
            dataset(
                _parcel("AB-1", STUBS, False, False),
                _parcel("AB-9", STUBS, True, False),
                _parcel("CD-1", STUBS, False, True),
                _parcel("AB-2", {}, True, True),
                agent="shipping",
            )
        )
        assert set(outcomes(run).values()) == {"passed"}
        assert [upstream.asked for upstream in upstreams] == [[], []]
        assert [result.output for result in run.results] == [
            "The label was made.",
            "The label was made.",
            "The label was not made.",
            "The label was not made.",
        ]
        # A tenant that is not a scratch tenant keeps its tools, whatever its name.
        await world.run("shipping", "Ship AB-3.", tenant=scratch_id("01J0000000000000000000000Z", 0))
        assert len(upstreams[0].asked) == 1


async def test_the_model_reads_that_a_tool_has_no_stub_and_the_run_continues() -> None:
    with closing(EvaluationWorld(shipping_agents())) as world:
        model = SteppedChat(calls(("track_parcel", {"order": "AB-1"})), says("No idea."))
        world._chat = lambda definition: model
        case = {"id": "c", "input": "Where is AB-1?", "expected": {"exact": "No idea."}}
        assert outcomes(await world.evaluated(dataset(case, agent="shipping"))) == {"c": "passed"}
        assert json.loads(model.requests[1].messages[-1].content)["error"]["code"] == "no_stubbed_answer"
        assert {tool.name for tool in model.requests[0].tools} >= {"track_parcel", "create_label"}


async def test_function_tools_are_stubbed_too_and_keep_their_declaration() -> None:
    post = {
        "type": "post",
        "description": "Sends letters.",
        "instructions": "Send it.",
        "model": {"script": "sdr"},
        "functions": ["send_letter"],
    }
    agents = catalogue(post, functions={"send_letter": "tests.agents.declared_functions"})
    with closing(EvaluationWorld(agents)) as world:
        model = SteppedChat(*[calls(("send_letter", {"text": "Hi."})), says("ok")] * 2)
        world._chat = lambda definition: model
        sent = len(declared_functions.sent)
        case = {"id": "c", "input": "Write.", "expected": {"exact": "ok"}}
        stubbed = {**case, "id": "s", "tools": {"send_letter": {"answers": [{"answer": {"number": 7}}]}}}
        assert set(outcomes(await world.evaluated(dataset(case, stubbed, agent="post"))).values()) == {"passed"}
        assert len(declared_functions.sent) == sent
        answers = [json.loads(model.requests[number].messages[-1].content) for number in (1, 3)]
        assert (answers[0]["error"]["code"], answers[1]) == ("no_stubbed_answer", {"number": 7})
        assert "Send a letter." in model.requests[0].tools[0].description


async def test_a_run_that_waits_for_a_person_is_errored_and_leaves_nothing() -> None:
    ship = {**SHIPPING, "approval": ["create_label"]}
    with closing(EvaluationWorld(catalogue(ship, scripts=[SCRIPT]))) as world:
        run = await world.evaluated(dataset(_parcel("AB-1", STUBS, False, False), agent="shipping"))
        assert run.results[0].error is not None
        assert run.results[0].error["code"] == "run_waits"
        assert world.sql_now("SELECT * FROM eval_scratches") == []


async def test_recall_is_scored_by_which_fixtures_it_finds(world: EvaluationWorld) -> None:
    memories = [
        {"id": "tea", "content": "Ann drinks green tea in the morning.", "tenant_wide": True},
        {"id": "car", "content": "The car is parked behind the house."},
        {"id": "dog", "content": "Ann's dog is called Rex."},
    ]
    tea = {
        "id": "tea",
        "input": "What tea does Ann drink?",
        "memories": memories,
        "expected": {"memories": {"relevant": {"tea": 3}, "k": 2, "at_least": {"recall": 1, "mrr": 1, "ndcg": 1}}},
    }
    lost = {
        **tea,
        "id": "lost",
        "input": "zyxwv",
        "expected": {"memories": {"relevant": ["car"], "k": 1, "at_least": {"mrr": 1}}},
    }
    lost["memories"] = [{"id": "car", "content": "The car is parked.", "agent_type": "order_triage"}]
    run = await world.evaluated(
        dataset(tea, lost, target={"recall": {"agent_type": "sdr", "top_k": 3}}, thresholds={"mrr": 0.5})
    )
    assert outcomes(run) == {"tea": "passed", "lost": "failed"}
    assert run.results[0].observed is not None
    retrieved = run.results[0].observed["retrieved"]
    assert isinstance(retrieved, list)
    assert retrieved[0] == "tea"
    assert summary(run.results, run.definition.thresholds).below == ()


async def test_the_whole_tenant_is_recalled_without_a_scope(world: EvaluationWorld) -> None:
    case = {
        "id": "all",
        "input": "Where is the car?",
        "memories": [{"id": "car", "content": "The car is parked behind the house.", "agent_type": "sdr"}],
        "expected": {"contains": ["behind the house"], "memories": {"relevant": ["car"]}},
    }
    assert outcomes(await world.evaluated(dataset(case, target={"recall": {}}))) == {"all": "passed"}


async def test_a_call_does_a_bounded_amount_and_the_next_one_continues(world: EvaluationWorld) -> None:
    run_id = await world.started(dataset(*PLENTY, agent="refund_decision"))
    progress = await world.runner().advance(TENANT, run_id)
    assert (progress.run.state, progress.retry_after_ms) == ("running", 0)
    assert list(outcomes(progress.run).values()) == ["passed"] * CASES_PER_CALL + [None]
    assert summary(progress.run.results, {"pass_rate": 1.0}).averages is None
    assert (await world.finished(run_id)).state == "completed"


async def test_only_one_caller_at_a_time_works_on_a_run(world: EvaluationWorld) -> None:
    run_id = await world.started(dataset(APPROVED, agent="refund_decision"))
    assert await world.runs().lease(TENANT, run_id)
    progress = await world.runner().advance(TENANT, run_id)
    assert outcomes(progress.run) == {"approved": None}
    assert await world.runner().open(10) == []
    world.clock.advance(LEASE_MS)
    assert await world.runner().open(10) == [(TENANT, run_id)]
    assert outcomes(await world.finished(run_id)) == {"approved": "passed"}


async def test_a_cancelled_run_begins_no_further_case_and_leaves_only_its_results(world: EvaluationWorld) -> None:
    run_id = await world.started(dataset(*PLENTY, CHARGED, agent="refund_decision"))
    await world.runner().advance(TENANT, run_id)
    progress = await world.runner().cancel(TENANT, run_id)
    run = await world.finished(run_id)
    assert list(outcomes(run).values()) == ["passed"] * CASES_PER_CALL + ["errored"] * 2
    assert [result.error and result.error["code"] for result in run.results[CASES_PER_CALL:]] == ["cancelled"] * 2
    assert [score.value for result in run.results[CASES_PER_CALL:] for score in result.scores] == [0.0, 0.0]
    averages = summary(run.results, {}).averages or {}
    assert {**averages} == pytest.approx({"pass_rate": 4 / 6, "matches": 4 / 6})
    assert progress.run.results == run.results
    assert await world.runner().cancel(TENANT, run_id) == await world.runner().advance(TENANT, run_id)
    await world.recover()
    assert world.sql_now("SELECT * FROM eval_scratches") == []
    await world.runs().delete(TENANT, run_id)
    await world.datasets().delete(TENANT, "set")


async def test_a_run_that_hangs_is_cancelled_and_its_late_result_is_not_kept(world: EvaluationWorld) -> None:
    run_id = await world.started(dataset(APPROVED, agent="refund_decision"))
    assert await world.runs().lease(TENANT, run_id)
    picked = await world.runs().pick(run_id)
    assert picked is not None
    progress = await world.runner().cancel(TENANT, run_id)
    assert (progress.retry_after_ms, outcomes(progress.run)) == (RETRY_MS, {"approved": "errored"})
    await world.runs().score(run_id, picked.position, "passed", [])
    world.clock.advance(LEASE_MS)
    run = await world.finished(run_id)
    assert (run.state, outcomes(run)) == ("completed", {"approved": "errored"})


async def test_an_evaluation_of_another_tenant_is_not_cancelled(world: EvaluationWorld) -> None:
    run_id = await world.started(dataset(APPROVED, agent="refund_decision"))
    with pytest.raises(NotFound):
        await world.runner().cancel("globex", run_id)
    assert outcomes(await world.finished(run_id)) == {"approved": "passed"}


async def test_a_key_starts_one_run(world: EvaluationWorld) -> None:
    content = dataset(APPROVED, agent="refund_decision")
    first = await world.started(content, key="k")
    assert await world.started(content, key="k") == first
    assert await world.started(content) != first
    with pytest.raises(Conflict) as refused:
        await world.started(content, "other", key="k")
    assert refused.value.code == "idempotency_key_reused"


async def test_a_run_keeps_its_version_while_the_dataset_changes(world: EvaluationWorld) -> None:
    run_id = await world.started(dataset(APPROVED, agent="refund_decision"))
    await world.datasets().put(
        TENANT, "set", dataset({**APPROVED, "id": "new", "input": "Hi."}, agent="refund_decision")
    )
    assert outcomes(await world.finished(run_id)) == {"approved": "passed"}
    await world.datasets().put(TENANT, "set", dataset({**APPROVED, "id": "newer"}, agent="refund_decision"))
    assert world.sql_now("SELECT COUNT(*) AS n FROM eval_datasets") == [{"n": 1}]
    assert world.sql_now("SELECT COUNT(*) AS n FROM eval_cases") == [{"n": 1}]


async def test_a_dataset_or_a_run_under_way_is_not_deleted(world: EvaluationWorld) -> None:
    run_id = await world.started(dataset(APPROVED, agent="refund_decision"))
    for refused in (world.datasets().delete(TENANT, "set"), world.runs().delete(TENANT, run_id)):
        with pytest.raises(Conflict, match="under way"):
            await refused
    await world.finished(run_id)
    await world.datasets().delete(TENANT, "set")
    assert outcomes(await world.runs().get(TENANT, run_id)) == {"approved": "passed"}
    await world.runs().delete(TENANT, run_id)
    assert not [t for t, rows in world.everything().items() if t.startswith("d1/eval_") and rows]


async def test_another_tenant_finds_neither_datasets_nor_runs(world: EvaluationWorld) -> None:
    run_id = await world.started(dataset(APPROVED, agent="refund_decision"))
    for asked in (
        world.datasets().info("other", "set"),
        world.runs().get("other", run_id),
        world.runner().advance("other", run_id),
        world.runs().delete("other", run_id),
    ):
        with pytest.raises(NotFound):
            await asked
    assert await world.datasets().page("other", after="", limit=10) == []
    assert not await world.runs().lease("other", run_id)


@pytest.mark.parametrize("error", [Crash(), Unavailable("down")], ids=["dies", "fails"])
async def test_an_evaluation_that_stops_anywhere_is_finished_by_the_next_call(error: BaseException) -> None:
    content = dataset(CHARGED, agent="refund_decision")
    points = 1
    while True:
        with closing(EvaluationWorld()) as world:
            run_id = await world.started(content)
            world.faults.plan(Fault(error, nth=points, owner="lifecycle"))
            with suppress(Crash, RetainError):
                await world.finished(run_id)
            if world.faults.pending:
                break
            point = world.faults.trace[-1]
            await world.recover()
            world.clock.advance(LEASE_MS)
            run = await world.finished(run_id)
            await world.recover()
            assert outcomes(run) == {"charged": "passed"}, f"stopped at {point}, the {points}. point"
            assert {t for t in traces_of_scratches(world) if not t.endswith("/identity")} == set(), f"{point}, {points}"
            assert len(world.sql_now("SELECT DISTINCT last_run_id FROM erased_tenants WHERE closed")) == 1
        points += 9
    assert points > 90


async def test_a_case_that_never_gets_through_is_errored_and_its_scratch_erased(world: EvaluationWorld) -> None:
    run_id = await world.started(dataset(CHARGED, APPROVED, agent="refund_decision"))
    for _ in range(MAX_ATTEMPTS):
        world.faults.plan(Fault(Unavailable("down"), point="instances.call", owner="lifecycle"))
        await world.runner().advance(TENANT, run_id)
        world.clock.advance(LEASE_MS)
    run = await world.finished(run_id)
    assert outcomes(run) == {"charged": "errored", "approved": "passed"}
    assert run.results[0].error == {"code": "unavailable", "message": "down"}
    assert run.state == "completed"
    assert world.sql_now("SELECT * FROM eval_scratches") == []


async def test_a_tenant_that_has_a_scratch_s_name_is_left_alone(world: EvaluationWorld) -> None:
    run_id = await world.started(dataset(CHARGED, agent="refund_decision"))
    name = scratch_id(run_id, 0)
    await world.sql.run("INSERT INTO tenants (tenant_id, created_at_ms) VALUES (?, 0)", name)
    kept = await world.store("A memory of somebody's.", tenant=name)
    (result,) = (await world.finished(run_id)).results
    assert result.error is not None
    assert result.error["code"] == "scratch_taken"
    assert [row["id"] for row in world.sql_now("SELECT id FROM memory_records")] == [kept]


class _LateSql:
    """D1 as an instance reaches it. Its writes of runs do not arrive while `late` is set."""

    def __init__(self, sql: Sql) -> None:
        self._sql = sql
        self.late = True

    async def run(self, sql: str, *values: SqlValue) -> SqlResult:
        return await self._sql.run(sql, *values)

    async def batch(self, statements: Sequence[Statement]) -> list[SqlResult]:
        if self.late and any("INTO agent_runs" in text or "UPDATE agent_runs" in text for text, _ in statements):
            raise Unavailable("late")
        return await self._sql.batch(statements)


async def test_a_case_is_scored_only_when_its_delegates_runs_have_arrived(world: EvaluationWorld) -> None:
    late = _LateSql(world.sql)
    given = world.ports
    world.ports = lambda name: replace(given(name), sql=late) if "refund" in name else given(name)  # type: ignore[method-assign]
    content = shipped("order_triage")
    run_id = await world.started(content.model_copy(update={"cases": content.cases[:1]}))
    for _ in range(MAX_ATTEMPTS + 2):
        progress = await world.runner().advance(TENANT, run_id)
        await world.settled()
        assert (progress.run.results[0].outcome, progress.retry_after_ms) == (None, RETRY_MS)
    assert len(world.sql_now("SELECT * FROM tenants WHERE tenant_id LIKE 'eval-%'")) == 1
    late.late = False
    await world.recover()
    run = await world.finished(run_id)
    assert set(outcomes(run).values()) == {"passed"}
    assert not [table for table in traces_of_scratches(world) if not table.endswith("/identity")]


async def test_a_case_that_takes_too_long_is_errored(world: EvaluationWorld) -> None:
    late = _LateSql(world.sql)
    given = world.ports
    world.ports = lambda name: replace(given(name), sql=late)  # type: ignore[method-assign]
    run_id = await world.started(dataset(APPROVED, agent="refund_decision"))
    await world.runner().advance(TENANT, run_id)
    world.clock.advance(CASE_MS + 1)
    progress = await world.runner().advance(TENANT, run_id)
    assert progress.run.results[0].error is not None
    assert progress.run.results[0].error["code"] == "case_not_ended"


async def test_erasing_the_tenant_erases_its_scratches_first(world: EvaluationWorld) -> None:
    await world.seed("refund_decision", ["A memory of the tenant's."])
    run_id = await world.started(dataset(*PLENTY, agent="refund_decision"))
    world.faults.plan(Fault(Crash(), point="sql.batch", nth=30, owner="lifecycle"))
    with suppress(Crash):
        await world.runner().advance(TENANT, run_id)
    await world.recover()
    scratches = [row["scratch_id"] for row in world.sql_now("SELECT scratch_id FROM eval_scratches")]
    assert scratches
    await world.rest()
    outcome = await erased(world, TENANT)
    assert outcome.receipt.counts["scratch_tenants"] == len(scratches)
    await world.recover()
    assert {t for t in traces_of_scratches(world) if not t.endswith("/identity")} == set()
    assert not [t for t, rows in world.everything().items() if t.startswith("d1/eval_") and rows]
    with pytest.raises(NotFound):
        await world.runner().advance(TENANT, run_id)
    with pytest.raises(Conflict):
        await world.datasets().put(TENANT, "set", dataset(APPROVED, agent="refund_decision"))


async def test_erasing_a_person_empties_cases_and_results_that_name_them(world: EvaluationWorld) -> None:
    other = {
        **APPROVED,
        "id": "other",
        "input": "Refund order AB-1002 of bob@mail.example.",
        "expected": {"matches": ["."]},
    }
    content = dataset(CHARGED, other, agent="refund_decision")
    run_id = (await world.evaluated(content)).run_id
    await world.rest()
    await erased(world, subject=ANN)
    assert [table for table in world.mentions(ANN, tenant=TENANT) if "eval_" in table] == []
    assert world.mentions("bob@mail.example", tenant=TENANT) == ["d1/eval_cases", "d1/eval_results"]
    assert [result.output is None for result in (await world.runs().get(TENANT, run_id)).results] == [True, False]


async def test_a_run_whose_dataset_names_a_person_still_cleans_up_after_the_person_is_erased(
    world: EvaluationWorld,
) -> None:
    run_id = await world.started(dataset(*PLENTY, agent="refund_decision", description=f"About {ANN}."))
    await world.runner().advance(TENANT, run_id)
    await world.rest()
    await erased(world, subject=ANN)
    assert [table for table in world.mentions(ANN, tenant=TENANT) if "eval_" in table] == []
    run = await world.finished(run_id)
    assert (run.state, run.results[-1].outcome) == ("completed", "errored")
    assert world.sql_now("SELECT * FROM eval_scratches") == []


async def test_the_daily_cron_resumes_what_was_left(world: EvaluationWorld) -> None:
    run_id = await world.started(dataset(*PLENTY, agent="refund_decision"))
    for _ in range(10):
        done = await evaluations(world.stores(), world.runner())
        await world.settled()
        world.clock.advance(LEASE_MS)
        if done == {"completed": 1}:
            break
    assert (await world.runs().get(TENANT, run_id)).state == "completed"
    assert await evaluations(world.stores(), world.runner()) == {}


async def test_the_cron_names_an_evaluation_that_stopped(world: EvaluationWorld) -> None:
    await world.started(dataset(APPROVED, agent="refund_decision"))
    world.faults.plan(Fault(Unavailable("down"), point="sql.batch", owner="lifecycle"))
    assert await evaluations(world.stores(), world.runner()) == {"stopped": 1}


async def test_an_erased_case_is_errored(world: EvaluationWorld) -> None:
    info, _ = await world.datasets().put(TENANT, "set", dataset(CHARGED, agent="refund_decision"))
    await world.sql.run("UPDATE eval_cases SET content = NULL")
    run_id, _ = await world.runs().start(TENANT, info, None)
    (result,) = (await world.finished(run_id)).results
    assert (result.outcome, result.error and result.error["code"]) == ("errored", "case_erased")
    assert await world.datasets().cases(TENANT, "set", info.version) == [None]


async def test_a_judge_scores_by_the_criteria_and_its_bound_decides(world: EvaluationWorld) -> None:
    asked = {"judge": {"criteria": "It is polite.", "at_least": 0.7}}
    cases = [{**APPROVED, "id": name, "expected": asked} for name in ("polite", "rude", "broken")]
    verdicts: list[dict[str, Any]] = [
        {"score": 0.7, "reason": "Fine."},
        {"score": 0.6, "reason": "Curt."},
        {"score": 2},
    ]
    model = SteppedChat(*(_structured(verdict) for verdict in verdicts))
    world.judge = ChatJudge(model)
    run = await world.evaluated(dataset(*cases, agent="refund_decision"))
    assert outcomes(run) == {"polite": "passed", "rude": "failed", "broken": "errored"}
    assert run.results[1].scores[0].detail == "Curt."
    assert model.requests[0].schema is not None
    assert json.loads(model.requests[0].messages[-1].content)["criteria"] == "It is polite."


def _structured(verdict: dict[str, Any]) -> ChatReply:
    return replace(says(json.dumps(verdict)), structured=verdict)


def test_the_judge_is_chosen_by_configuration() -> None:
    assert isinstance(chosen_judge("off", SteppedChat), NoJudge)
    assert isinstance(chosen_judge("chat", SteppedChat), ChatJudge)
    with pytest.raises(RetainError) as refused:
        chosen_judge("oracle", SteppedChat)
    assert refused.value.code == "unknown_judge"


def test_open_cases_have_no_average() -> None:
    results = [Result(0, "a", "scored", "passed"), Result(1, "b", "running")]
    assert summary(results, {"pass_rate": 1.0}).to_json()["thresholds_met"] is None
