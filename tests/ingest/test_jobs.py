"""Jobs: resumed wherever they were interrupted, and never shown as completed when something failed."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from retain.errors import Contended, InvalidInput, NotFound, RetainError, TenantMoving, Unavailable, UpstreamFailed
from retain.ingest import ingestion
from retain.ingest.extraction import ExtractedFact, SourceMessage
from retain.ingest.extractors.rule_extractor import RuleExtractor
from retain.ingest.ingestion import continue_interrupted
from retain.ingest.jobs import JOB_RULES, MAX_ATTEMPTS, IngestJob, Jobs
from retain.jobs import LEASE_MS
from retain.retention import TEXT_KEPT_MS, prune
from tests.ingest.substrate import FixedExtractor, IngestSubstrate, turns
from tests.memory.semantic.substrate import AGENT, PERSON, TENANT
from tests.ports import raises
from tests.support.faults import Crash, Fault, Faults

LINES = [f"Bea: I own the boat of number {number}." for number in range(30)] + ["Bea: I live in Paris."]
FACTS = {"I live in Paris.": [("lives_in", "Paris")]}


class Breaking:
    """An extractor that fails while its error is set."""

    batch = 100
    local = False

    def __init__(self, error: RetainError) -> None:
        self.error: RetainError | None = error
        self.calls = 0

    async def extract(self, messages: Sequence[SourceMessage]) -> list[ExtractedFact]:
        """Raise the error, or return one fact per message."""
        self.calls += 1
        if self.error is not None:
            raise self.error
        return [
            ExtractedFact("entity:x", f"p:{message.content}", "o", f"x {message.content}", "fact", 0.5, message.id)
            for message in messages
        ]


async def job_of(substrate: IngestSubstrate, job: IngestJob) -> IngestJob:
    return await Jobs(substrate.d1, substrate.clock).get(job.scope.tenant_id, job.job_id)


async def test_a_failed_job_is_never_shown_as_completed(substrate: IngestSubstrate) -> None:
    broken = Breaking(UpstreamFailed("the model talks nonsense", code="malformed_extraction"))
    substrate.extractor = lambda: broken
    request = turns("Bea: One.", "Bea: Two.")
    job = await substrate.ingest("chat", request)
    assert job.state == "failed"
    assert job.error == {"stage": "extraction", "code": "malformed_extraction", "message": "the model talks nonsense"}
    assert (job.stored, job.extracted, job.completed_at_ms) == (2, 0, None)
    assert await job_of(substrate, job) == job
    # The stored messages are there, and the same request resumes where it stopped.
    assert await substrate.found("One") != []
    broken.error = None
    done = await substrate.ingest("chat", request)
    assert (done.job_id, done.state, done.error, done.stored, done.extracted) == (job.job_id, "completed", None, 2, 2)
    assert done.completed_at_ms == substrate.clock()


async def test_a_job_with_work_left_cannot_be_completed(substrate: IngestSubstrate) -> None:
    receipt = await substrate.ingestion().receive("chat", turns("Bea: One."))
    jobs = Jobs(substrate.d1, substrate.clock)
    assert await jobs.lease(receipt.job)
    await jobs.complete(receipt.job)
    assert (await job_of(substrate, receipt.job)).state == "running"


@pytest.mark.parametrize("port", ["sql", "embedder"])
async def test_a_failing_store_fails_the_job_until_it_is_repeated(substrate: IngestSubstrate, port: str) -> None:
    request = turns(*LINES)
    receipt = await substrate.ingestion().receive("chat", request)
    faults = Faults(lambda _: None)
    healthy = substrate.sql, substrate.embedder
    life = faults.life("worker")
    substrate.sql = faults.wrap("sql", substrate.sql, life)
    substrate.embedder = faults.wrap("embedder", substrate.embedder, life)
    point = {"sql": "sql.batch", "embedder": "embedder.embed"}[port]
    faults.plan(Fault(Unavailable("down"), nth={"sql": 2, "embedder": 1}[port], point=point))
    job = await substrate.ingestion().work(receipt.job.job_id)
    assert not faults.pending
    assert (job.state, job.error is None) == ("failed", False)
    substrate.sql, substrate.embedder = healthy
    done = await substrate.ingest("chat", request)
    assert (done.state, done.stored, done.duplicate) == ("completed", 31, 0)
    assert await substrate.texts("chat") == LINES


class _Asking(RuleExtractor):
    """Extracts as the rules do, and is treated as a model: in steps."""

    local = False


@pytest.mark.parametrize(("extractor", "calls"), [(RuleExtractor, 10), (_Asking, 25)], ids=["at once", "in steps"])
async def test_a_request_resumes_wherever_it_was_interrupted(extractor: type[RuleExtractor], calls: int) -> None:
    """Crash before and after every port call, send the request again, and compare with an undisturbed one."""
    nth, request = 0, turns(*LINES[-3:], "Bea: I love jazz.", first_id=1)
    undisturbed = await _interrupted_at(None, request, extractor)
    assert undisturbed is not None
    while (disturbed := await _interrupted_at(nth := nth + 1, request, extractor)) is not None:
        assert disturbed == undisturbed, f"died at point {nth}"
    assert nth > calls


async def _interrupted_at(nth: int | None, request: list[dict[str, object]], extractor: type[RuleExtractor]) -> object:
    """Return the final state, None when the request completed before the fault."""
    substrate = IngestSubstrate()
    substrate.extractor = extractor
    try:
        faults = Faults(lambda _: None)
        life = faults.life("worker")
        stores = substrate.sql, substrate.index
        substrate.sql, substrate.index = faults.wrap("sql", stores[0], life), faults.wrap("index", stores[1], life)
        died = False
        if nth is not None:
            faults.plan(Fault(Crash(), nth=nth))
        try:
            await substrate.ingest("chat", request)
        except Crash:
            died = True
        if nth is not None and not died:
            return None
        substrate.sql, substrate.index = stores
        if died:
            early = await substrate.d1.run("SELECT state, stored FROM ingest_jobs")
            assert [row["state"] for row in early.rows if row["state"] == "completed" and row["stored"] < 4] == []
            substrate.clock.advance(LEASE_MS + 1)
        job = await substrate.ingest("chat", request)
        assert (job.state, job.stored, job.duplicate, job.extracted) == ("completed", 4, 0, 2), (nth, job)
        await substrate.reconcile()
        records = [
            (record.content, record.kind, record.subject, record.predicate) for record in await substrate.listed()
        ]
        return sorted(map(str, records)), await substrate.texts("chat")
    finally:
        substrate.close()


async def test_the_same_request_is_the_same_job_and_is_done_once(substrate: IngestSubstrate) -> None:
    extractor = FixedExtractor(FACTS)
    substrate.extractor = lambda: extractor
    first, second = await asyncio.gather(*[substrate.ingest("chat", turns(*LINES)) for _ in range(2)])
    assert first.job_id == second.job_id
    done = await job_of(substrate, first)
    assert (done.state, done.stored, done.duplicate, done.extracted) == ("completed", 31, 0, 1)
    assert len(extractor.seen) == 31
    assert await substrate.texts("chat") == LINES


@pytest.mark.parametrize("count", [2, 8, 32])
async def test_conversations_of_one_tenant_that_arrive_at_once_are_all_ingested(
    substrate: IngestSubstrate, count: int
) -> None:
    async def one(number: int) -> IngestJob:
        lines = [f"P{number}: Line {line}: I own the boat of number {line}." for line in range(20)]
        return await substrate.ingest(f"chat-{number}", turns(*lines))

    jobs = await asyncio.gather(*map(one, range(count)))
    assert [(job.state, job.stored, job.error) for job in jobs] == [("completed", 20, None)] * count


@pytest.mark.parametrize("error", [Contended("too many changes at once"), TenantMoving("the tenant moves")])
async def test_a_job_that_others_keep_overtaking_or_whose_tenant_moves_waits_instead_of_failing(
    substrate: IngestSubstrate, monkeypatch: pytest.MonkeyPatch, error: RetainError
) -> None:
    monkeypatch.setattr(ingestion, "WAITS_S", (0.0, 0.0))
    overtaken = Breaking(error)
    substrate.extractor = lambda: overtaken
    request = turns("Bea: One.")
    waiting = await substrate.ingest("chat", request)
    assert (waiting.state, waiting.stored, waiting.error, waiting.lease_until_ms) == ("running", 1, None, 0)
    assert overtaken.calls == 3
    for _ in range(MAX_ATTEMPTS + 1):  # to wait is not to fail: the cron does not give it up
        await continue_interrupted(substrate.sql, substrate.clock, substrate.ingestion)
    assert (await job_of(substrate, waiting)).state == "running"
    overtaken.error = None
    assert (await substrate.ingest("chat", request)).state == "completed"


async def test_concurrent_windows_get_different_positions(substrate: IngestSubstrate) -> None:
    jobs = await asyncio.gather(
        *[substrate.ingest("chat", turns(*LINES[start : start + 10], first_id=start)) for start in (0, 5, 10, 20)]
    )
    assert {job.state for job in jobs} == {"completed"}
    assert sum(job.stored for job in jobs) == 30
    assert sorted(await substrate.texts("chat")) == sorted(LINES[:30])


async def test_the_cron_resumes_an_interrupted_job_when_its_lease_has_expired(substrate: IngestSubstrate) -> None:
    receipt = await substrate.ingestion().receive("chat", turns(*LINES))
    assert await Jobs(substrate.d1, substrate.clock).lease(receipt.job)
    nothing = {"completed": 0, "running": 0, "failed": 0}
    assert await continue_interrupted(substrate.sql, substrate.clock, substrate.ingestion) == (nothing, False)
    substrate.clock.advance(LEASE_MS)
    done = await continue_interrupted(substrate.sql, substrate.clock, substrate.ingestion)
    assert done == ({"completed": 1, "running": 0, "failed": 0}, False)
    assert (await job_of(substrate, receipt.job)).stored == 31
    assert await continue_interrupted(substrate.sql, substrate.clock, substrate.ingestion) == (nothing, False)


@pytest.mark.parametrize("away", [False, True])
async def test_the_cron_says_that_jobs_are_left_unless_all_that_it_took_failed(
    substrate: IngestSubstrate, away: bool
) -> None:
    for chat in ("first", "second", "third"):
        await substrate.ingestion().receive(chat, turns("Bea: One."))
    if away:
        broken = Breaking(Unavailable("the model is away", code="model_unavailable"))
        substrate.extractor = lambda: broken
    passes = [
        await continue_interrupted(substrate.sql, substrate.clock, substrate.ingestion, limit=2)
        for _ in range(1 if away else 2)
    ]
    assert [more for _, more in passes] == ([False] if away else [True, False])
    assert passes[0][0] == {"completed": 0 if away else 2, "running": 0, "failed": 2 if away else 0}


async def test_the_cron_resumes_an_interrupted_job_although_others_fail(substrate: IngestSubstrate) -> None:
    broken = Breaking(Unavailable("the model is away", code="model_unavailable"))
    works, substrate.extractor = substrate.extractor, lambda: broken
    for chat in ("first", "second"):
        await substrate.ingest(chat, turns("Bea: One."))
    substrate.clock.advance(1)
    receipt = await substrate.ingestion().receive("third", turns("Bea: One."))
    await substrate.sql.run("UPDATE ingest_jobs SET lease_until_ms = 1 WHERE job_id = ?", receipt.job.job_id)
    for _ in range(2):
        substrate.clock.advance(LEASE_MS)
        await continue_interrupted(substrate.sql, substrate.clock, substrate.ingestion, limit=2)
        substrate.extractor = works
    assert (await job_of(substrate, receipt.job)).state == "completed"


async def test_the_cron_gives_up_a_hopeless_job_and_reports_it(substrate: IngestSubstrate) -> None:
    broken = Breaking(Unavailable("the model is away", code="model_unavailable"))
    substrate.extractor = lambda: broken
    job = await substrate.ingest("chat", turns("Bea: One."))
    for _ in range(MAX_ATTEMPTS + 2):
        await continue_interrupted(substrate.sql, substrate.clock, substrate.ingestion)
    job = await job_of(substrate, job)
    assert (job.state, job.stored) == ("failed", 1)
    assert broken.calls == MAX_ATTEMPTS + 1
    # It is still there when the request is sent again.
    broken.error = None
    assert (await substrate.ingest("chat", turns("Bea: One."))).state == "completed"


async def test_a_job_that_always_crashes_is_finally_shown_as_failed(substrate: IngestSubstrate) -> None:
    receipt = await substrate.ingestion().receive("chat", turns("Bea: One."))
    jobs = Jobs(substrate.d1, substrate.clock)
    for _ in range(MAX_ATTEMPTS):
        assert await jobs.lease(receipt.job)
        substrate.clock.advance(LEASE_MS)
    await continue_interrupted(substrate.sql, substrate.clock, substrate.ingestion)
    job = await job_of(substrate, receipt.job)
    assert job.error is not None
    assert (job.state, job.error["code"]) == ("failed", "interrupted")


async def test_a_message_that_is_deleted_before_extraction_yields_no_facts(substrate: IngestSubstrate) -> None:
    broken = Breaking(Unavailable("the model is away", code="model_unavailable"))
    substrate.extractor = lambda: broken
    request = turns("Bea: One.", "Bea: Two.")
    await substrate.ingest("chat", request)
    one = next(record for record in await substrate.listed() if record.content == "One.")
    await substrate.memory().delete(one.id, PERSON)
    broken.error = None
    job = await substrate.ingest("chat", request)
    assert (job.state, job.extracted) == ("completed", 1)
    assert await substrate.true_facts() == ["x Two."]


async def test_a_job_is_visible_only_to_its_tenant(substrate: IngestSubstrate) -> None:
    job = await substrate.ingest("chat", turns("Bea: One."))
    jobs = Jobs(substrate.d1, substrate.clock)
    assert (await jobs.get("acme", job.job_id)).scope == AGENT
    with raises(NotFound, code="no_such_job"):
        await jobs.get("globex", job.job_id)
    with raises(NotFound, code="no_such_job"):
        await jobs.get("acme", "0" * 32)
    with raises(InvalidInput, code="invalid_job_id"):
        await jobs.get("acme", "' OR 1=1 --")
    with raises(RetainError, code="wrong_scope"):
        await substrate.ingestion(TENANT).work(job.job_id)


async def test_completed_jobs_are_deleted_after_90_days_and_their_messages_stay_known(
    substrate: IngestSubstrate,
) -> None:
    broken = Breaking(Unavailable("the model is away", code="model_unavailable"))
    rule = JOB_RULES[0]
    for number in range(rule.rows + 2):
        await substrate.ingest(f"chat-{number}", turns("Bea: One."))
    substrate.extractor = lambda: broken
    failed = await substrate.ingest("failed", turns("Bea: Two."))
    for after_ms, lost in ((TEXT_KEPT_MS, 0), (1, rule.rows + 2), (0, 0)):
        substrate.clock.advance(after_ms)
        pruned = await prune(substrate.sql, substrate.clock(), [rule])
        assert sum(pruned.by_rule["ingest_jobs"].values()) == lost
    assert [row["job_id"] for row in await substrate.rows("SELECT job_id FROM ingest_jobs")] == [failed.job_id]
    orphans = "SELECT 1 FROM ingest_messages WHERE job_id NOT IN (SELECT job_id FROM ingest_jobs)"
    assert await substrate.rows(orphans) == []
    substrate.extractor = RuleExtractor
    again = await substrate.ingest("chat-0", turns("Bea: One.", "Bea: Three."))
    assert (again.state, again.stored, again.duplicate) == ("completed", 1, 1)
    same = await substrate.ingest("chat-1", turns("Bea: One."))
    assert (same.state, same.stored, same.duplicate) == ("completed", 0, 1)


async def test_the_text_of_a_failed_job_is_removed_90_days_after_the_last_attempt(substrate: IngestSubstrate) -> None:
    broken = Breaking(UpstreamFailed("the model talks nonsense", code="malformed_extraction"))
    substrate.extractor = lambda: broken
    extracting = turns("Bea: I live in Paris.")
    assert (await substrate.ingest("extracting", extracting)).state == "failed"
    storing = turns("Bea: The word is quokka.")
    receipt = await substrate.ingestion().receive("storing", storing)  # its Worker died at once
    facts = "UPDATE ingest_messages SET facts = '[]', role = 'user' WHERE conversation = 'extracting'"
    await substrate.d1.run(facts)  # as a model found them, before they were stored
    substrate.clock.advance(TEXT_KEPT_MS)
    await prune(substrate.sql, substrate.clock(), JOB_RULES)
    assert len(await substrate.rows("SELECT 1 FROM ingest_jobs")) == 2
    substrate.clock.advance(1)
    pruned = await prune(substrate.sql, substrate.clock(), JOB_RULES)
    assert sum(pruned.by_rule["waiting_ingests"].values()) == 2
    assert await substrate.rows("SELECT 1 FROM ingest_jobs") == []
    [left] = await substrate.rows("SELECT * FROM ingest_messages")
    assert (left["conversation"], left["state"]) == ("extracting", "learned")
    assert (left["content"], left["facts"], left["role"]) == (None, None, None)
    # What was stored is known, and what was not is stored by the same request.
    substrate.extractor = RuleExtractor
    again = await substrate.ingest("extracting", extracting)
    assert (again.state, again.stored, again.duplicate) == ("completed", 0, 1)
    resumed = await substrate.ingest("storing", storing)
    assert (resumed.job_id, resumed.state, resumed.stored) == (receipt.job.job_id, "completed", 1)
