"""Ingest conversations into one scope: receive, store, extract facts, learn them; each step durable before the next.

A request is durable when its messages have positions in the inbox. The rest can be repeated from any point: a message's
position fixes the hash of its record. Facts that an extractor only computes are stored in one transaction with their
messages and with the job's progress. Those of a model are kept in the inbox before they become records.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from retain.errors import Conflict, ConstraintViolated, Contended, Misconfigured, RetainError, TenantMoving
from retain.errors.codes import Code, ForeignCode
from retain.ingest.extraction import ExtractedFact, Extractor, SourceMessage
from retain.ingest.inbox import Inbox, Received, Unlearned, Waiting, known_in, waiting_in
from retain.ingest.intake import Intake
from retain.ingest.jobs import (
    IngestJob,
    Jobs,
    Taken,
    all_waited,
    check_job_id,
    finding,
    job_id_of,
    job_in,
    no_such_job,
)
from retain.ingest.learning import SourcedFact, learned
from retain.ingest.messages import Rejection, check_conversation
from retain.ingest.placement import MessagePlacement, place
from retain.ingest.progress import SLICE, IngestProgress
from retain.jobs import Continued, continue_open
from retain.ledgers.errors import Trouble, park, settle
from retain.memory.records.record import NewRecord, RecordSource, Utterance, content_hash
from retain.memory.scope import Scope, registration
from retain.memory.semantic import SemanticMemory
from retain.ports import Clock, Sql

SLICE_BYTES = 128 * 1024
EXTRACT_BYTES = 48 * 1024
"""Text of the messages from which facts are extracted together."""
SMALL_MESSAGES = 50
SMALL_BYTES = 64 * 1024
"""A request up to these sizes is processed before it is answered."""
MAX_TRIES = 20
PAUSE_S = 0.02
"""Pause between slices in the background, in seconds: an isolate serves other requests only while this work waits."""
WAITS_S = (0.2, 0.5, 1.0, 2.0, 4.0)
"""Longest pauses before a slice is tried again that others' changes of the tenant's memory overtook, or its move."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class IngestReceipt:
    """The job of a request. created: False when it repeats an earlier one. small: it can be processed before answering.

    claimed: the messages of a job of which the request has the lease, None if it has not. held: whether they are all there.
    """

    job: IngestJob
    created: bool
    small: bool
    claimed: Sequence[Received] | None = None
    held: bool = False


class Ingestion:
    """The ingest of one scope. extractor: returns the extractor; called when facts are to be extracted."""

    def __init__(self, memory: SemanticMemory, sql: Sql, extractor: Callable[[], Extractor], clock: Clock) -> None:
        self._memory = memory
        self._sql = sql
        self._extractor = extractor
        self._clock = clock
        self._jobs = Jobs(sql, clock)
        self._inbox = Inbox(sql, memory.scope)

    async def receive(self, conversation: str, raw: Sequence[object], *, leased: bool = False) -> IngestReceipt:
        """Receive messages as one request; see `accept`. Raises: as `Intake` and `accept`."""
        intake = Intake(self._sql, self._memory.scope.tenant_id, self._clock)
        for message in raw:
            await intake.add(message)
        await intake.finish()
        return await self.accept(conversation, intake, leased=leased)

    async def accept(self, conversation: str, intake: Intake, *, leased: bool = False) -> IngestReceipt:
        """Open the request's job; when this returns, its messages are durable and have positions. Idempotent.

        intake: finished. Its upload is deleted, unless this raises. leased: whether a new job is given to `process` next:
        then nobody else works on it.
        Raises: InvalidInput for the request as a whole; Unavailable, after which it may be repeated.
        """
        scope, outlines = self._memory.scope, intake.outlines
        check_conversation(conversation)
        job_id = job_id_of(scope, conversation, intake.digest)
        small = len(outlines) <= SMALL_MESSAGES and sum(one.length for one in outlines) <= SMALL_BYTES
        for _ in range(MAX_TRIES):
            knowing = self._inbox.knowing(conversation, outlines)
            found, *read = await self._sql.batch([finding(scope.tenant_id, job_id), *knowing])
            job = job_in(found)
            if job is not None:
                await intake.discard()
                return IngestReceipt(job, created=False, small=small)
            known, span, gaps, adoptable = known_in(read)
            if adoptable:
                await self._inbox.adopt(conversation)
                continue
            try:
                job, new = await self._open(conversation, job_id, intake, place(outlines, known, span, gaps), leased)
            except Conflict:
                continue  # somebody took a position, or sent the same request: try again
            held = intake.upload_id is None
            return IngestReceipt(job, True, small, new if leased else None, held)
        raise Contended("too many changes to the conversation at once; try again")

    async def process(self, receipt: IngestReceipt, *, pause_s: float = 0.0) -> IngestJob:
        """Process the job of a receipt, as `work`; without taking the lease if the receipt still has it."""
        if receipt.claimed is None or receipt.job.lease_until_ms <= self._clock():
            return await self.work(receipt.job.job_id, pause_s=pause_s)
        waiting = Waiting(receipt.claimed) if receipt.held else None
        return await self._worked(
            IngestProgress(receipt.job, waiting, whole=receipt.held and bool(receipt.claimed)), pause_s
        )

    async def work(self, job_id: str, *, pause_s: float = 0.0) -> IngestJob:
        """Process a job and return its state after that.

        It is `failed` when it stopped at an error, and `running` when somebody else processes it, or when so many others
        change the tenant's memory that it waits: then the next call continues it. pause_s: pause between slices, in seconds.
        Raises: NotFound; Unavailable when not even the failure could be recorded.
        """
        scope = self._memory.scope
        leasing = self._jobs.leasing(scope, check_job_id(job_id))
        leased, found, *read = await self._sql.batch(
            [leasing, finding(scope.tenant_id, job_id), *self._inbox.waiting(job_id, self._limits())]
        )
        job = job_in(found)
        if job is None:
            raise no_such_job()
        if job.scope.scope_id != scope.scope_id:
            raise Misconfigured("the job belongs to another scope", code="wrong_scope")
        if not leased.rows:
            return job
        return await self._worked(IngestProgress(job, waiting_in(job.conversation, read), whole=False), pause_s)

    async def _worked(self, progress: IngestProgress, pause_s: float) -> IngestJob:
        """Process a job of which this has the lease; return its state after that."""
        job = progress.job
        try:
            while not await _patiently(self._step, progress):
                await asyncio.sleep(pause_s)
        except (Contended, TenantMoving):
            _log.info("ingest waits for other changes or a move", extra={"job_id": job.job_id, "stage": progress.stage})
            await self._jobs.queue(job)
        except RetainError as error:
            extra = {"job_id": job.job_id, "stage": progress.stage, "code": error.code}
            _log.warning("ingest failed", extra=extra)
            if await self._jobs.fail(job, progress.stage, error):
                await park(self._sql, _trouble(job, error.code, self._clock()))
        return progress.ended or await self._jobs.get(job.scope.tenant_id, job.job_id)

    async def _open(
        self, conversation: str, job_id: str, intake: Intake, placement: MessagePlacement, leased: bool
    ) -> tuple[IngestJob, list[Received]]:
        """Give the messages positions and open the job, in one transaction; return it, and the messages if they are held.

        The scope is registered with them: an erasure of its user finds them by it. Raises: Conflict.
        """
        messages, scope = intake.outlines, self._memory.scope
        changed = [
            Rejection(messages[order].index, "message_changed", "a message with this id and other content is stored")
            for order in placement.changed
        ]
        rejections = sorted([*intake.rejected, *changed], key=lambda rejection: rejection.index)
        taken = Taken(intake.received, len(placement.known), tuple(rejections))
        places = {position: messages[order].index for order, position in sorted(placement.new.items())}
        opened = self._jobs.opened(job_id, scope, conversation, taken, leased=leased)
        new: list[Received] = []
        if intake.upload_id is not None:
            received = self._inbox.moved(conversation, job_id, intake.upload_id, places)
        else:
            held = intake.held
            placed = {position: held[index] for position, index in sorted(places.items())}
            received = self._inbox.inserted(conversation, job_id, placed)
            new = [
                Received(one.content, one.id, Utterance(conversation, position, one.speaker, one.at_ms), one.role)
                for position, one in placed.items()
            ]
        *_, found = await self._sql.batch([opened, *registration(scope), *received, finding(scope.tenant_id, job_id)])
        job = job_in(found)
        assert job is not None
        return job, new

    async def _step(self, progress: IngestProgress) -> bool:
        """Do the next step of a job; return whether all is done.

        If somebody else has stored some of what was known to wait, or it was erased, what waits is read again.
        """
        known = progress.waiting
        if known is None:
            read = await self._sql.batch(self._inbox.waiting(progress.job.job_id, self._limits()))
            progress.waiting = waiting_in(progress.job.conversation, read)
        try:
            return await self._next(progress, progress.waiting or Waiting(()))
        except ConstraintViolated:
            if known is None:
                raise
            progress.look_again()
            return False

    async def _next(self, progress: IngestProgress, waiting: Waiting) -> bool:
        """Do what comes next of what waits; return whether all is done. Raises: NotFound if the job was erased."""
        job = progress.job
        if waiting.received:
            progress.stage = "storing"
            await self._store(progress, waiting.received)
        elif waiting.unread:
            progress.stage = "extraction"
            await self._extract(job, waiting.unread)
            progress.waiting = None
        elif waiting.unlearned:
            progress.stage = "learning"
            await self._learn(job, waiting.unlearned)
            progress.waiting = None
        else:
            found = finding(job.scope.tenant_id, job.job_id)
            _, read_job = await self._sql.batch([self._jobs.completed(job.job_id), found])
            progress.ended = job_in(read_job)
            if progress.ended is None:
                raise no_such_job()
            await settle(self._sql, self._clock(), (job.scope.tenant_id, "ingest", job.job_id))
        return progress.ended is not None

    def _limits(self) -> tuple[int, int, int]:
        return SLICE, SLICE, SLICE

    async def _store(self, progress: IngestProgress, received: Sequence[Received]) -> None:
        """Store the first of the messages that wait, with their facts if the extractor only computes."""
        job = progress.job
        slice_ = received[: _fitting([one.content for one in received[:SLICE]], SLICE_BYTES)]
        news = [NewRecord(one.content, kind="event", utterance=one.place) for one in slice_]
        sources = [RecordSource("ingest", message=one.message) for one in slice_]
        hashes = [content_hash(one.content, one.place) for one in slice_]
        places = [one.place.position for one in slice_]
        extractor = self._extractor()
        if not extractor.local:
            noted = self._inbox.stored(job.job_id, job.conversation, dict(zip(places, hashes, strict=True)))
            stored = self._jobs.also_stored(job.job_id, len(slice_), 0)
            await self._memory.store_stated(news, sources, (), [noted, all_waited(len(slice_)), stored])
            progress.stored(slice_, None)
            return
        facts = await self._facts(extractor, slice_)
        counts = [sum(fact.is_stored for fact in found) for found in facts]
        noted = self._inbox.taken(
            job.job_id, job.conversation, dict(zip(places, zip(hashes, counts, strict=True), strict=True))
        )
        also = [noted, all_waited(len(slice_)), self._jobs.also_stored(job.job_id, len(slice_), sum(counts))]
        ends = progress.ends_with(slice_)
        now = self._clock()
        stated = [
            SourcedFact(
                fact, RecordSource("extraction", message=one.message), min(_since(one.place.at_ms, job), now), n
            )
            for n, (one, found) in enumerate(zip(slice_, facts, strict=True))
            for fact in found
        ]
        completed = [self._jobs.completed(job.job_id)] if ends else []
        await self._memory.store_stated(news, sources, learned(stated), [*also, *completed])
        progress.stored(slice_, sum(counts))
        if ends:
            progress.complete(now)

    async def _facts(self, extractor: Extractor, received: Sequence[Received]) -> list[list[ExtractedFact]]:
        """Return the facts of each message, by an extractor that only computes."""
        found: list[list[ExtractedFact]] = [[] for _ in received]
        messages = [
            SourceMessage(str(n), one.place.speaker, one.content, one.place.at_ms, one.role)
            for n, one in enumerate(received)
        ]
        for start in range(0, len(messages), extractor.batch):
            for fact in await extractor.extract(messages[start : start + extractor.batch]):
                found[int(fact.message)].append(fact)
        return found

    async def _extract(self, job: IngestJob, unread: Sequence[tuple[int, SourceMessage | None]]) -> None:
        """Extract facts from the first of the stored messages and keep them."""
        extractor = self._extractor()
        read = unread[: extractor.batch]
        waiting = read[: _fitting(["" if one is None else one.content for _, one in read], EXTRACT_BYTES)]
        messages = [one for _, one in waiting if one is not None]
        facts: dict[str, list[ExtractedFact]] = {one.id: [] for one in messages}
        for fact in await extractor.extract(messages) if messages else []:
            facts[fact.message].append(fact)
        found = {position: [] if one is None else facts[one.id] for position, one in waiting}
        kept = self._inbox.read(job.job_id, job.conversation, found)
        await self._sql.batch([kept, self._jobs.advanced(job.job_id)])

    async def _learn(self, job: IngestJob, waiting: Sequence[Unlearned]) -> None:
        """Store the facts of the messages that wait."""
        now = self._clock()
        facts = [
            SourcedFact(fact, _source(one), min(_since(one.at_ms, job), now)) for one in waiting for fact in one.facts
        ]
        counts = {one.position: sum(fact.is_stored for fact in one.facts) for one in waiting}
        noted = self._inbox.learned(job.job_id, job.conversation, counts)
        await self._memory.learn(learned(facts), [noted, all_waited(len(waiting)), self._jobs.advanced(job.job_id)])


async def continue_interrupted(
    sql: Sql, clock: Clock, ingestion: Callable[[Scope], Ingestion], *, limit: int = 10
) -> tuple[dict[str, int], bool]:
    """Continue up to `limit` interrupted or failed jobs, for the cron.

    Returns how many are in each state now, and whether another call would continue more: not if all failed, because a job is
    tried a few times alone, and what made them fail may last.
    """

    async def call(job: IngestJob) -> Continued:
        return Continued((await ingestion(job.scope).work(job.job_id)).state, more=False)

    jobs = Jobs(sql, clock)
    given_up = await jobs.give_up()
    if given_up:
        await park(sql, *(_trouble(job, "interrupted", clock()) for job in given_up))
    found = await jobs.interrupted(limit + 1)
    done = await continue_open(found[:limit], call)
    states: dict[str, int] = {"completed": 0, "running": 0, "failed": 0, **done}
    if any(states.values()):
        _log.info("interrupted ingests continued", extra=states)
    return states, len(found) > limit and done.get("failed", 0) + done.get("stopped", 0) < limit


async def _patiently(step: Callable[[IngestProgress], Awaitable[bool]], progress: IngestProgress) -> bool:
    """Return what the step returns, tried again after random pauses while others change the tenant's memory, or it moves.

    Raises: Contended or TenantMoving after the last try; as the step.
    """
    for pause_s in WAITS_S:
        try:
            return await step(progress)
        except (Contended, TenantMoving):
            await asyncio.sleep(random.uniform(0.5, 1) * pause_s)  # noqa: S311 -- spreads writers, hides nothing
    return await step(progress)


def _trouble(job: IngestJob, code: Code | ForeignCode, now_ms: int) -> Trouble:
    scope = job.scope
    return Trouble("ingest", job.job_id, code, now_ms, scope.tenant_id, scope.agent_type, user_id=scope.user_id)


def _source(one: Unlearned) -> RecordSource:
    return RecordSource("extraction", message=one.message, record_id=one.record_id)


def _since(at_ms: int | None, job: IngestJob) -> int:
    return job.created_at_ms if at_ms is None else at_ms


def _fitting(contents: Sequence[str], limit_bytes: int) -> int:
    """Return how many of the contents, from the first, fit into the limit; at least one, if there are any."""
    size = 0
    for count, content in enumerate(contents):
        size += len(content.encode())
        if count and size > limit_bytes:
            return count
    return len(contents)
