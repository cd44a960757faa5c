"""Ingest conversations into one scope: receive, store, extract facts, learn them; each step durable before the next.

A request is durable when its messages have positions in the inbox. The rest can be repeated from any point: a message's
position fixes the hash of its record, and extracted facts are kept in the inbox before they become records.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from retain.errors import Conflict, Contended, Misconfigured, RetainError
from retain.errors.codes import Code, ForeignCode
from retain.ingest.extraction import ExtractedFact, Extractor
from retain.ingest.inbox import Inbox, Unlearned
from retain.ingest.intake import Intake
from retain.ingest.jobs import IngestJob, Jobs, Stage, Taken, job_id_of
from retain.ingest.learning import Learner, SourcedFact
from retain.ingest.messages import Rejection, check_conversation
from retain.ingest.placement import place
from retain.jobs import Continued, continue_open
from retain.ledgers.errors import Trouble, park, settle
from retain.memory.records.record import NewRecord, RecordSource
from retain.memory.scope import Scope
from retain.memory.semantic import SemanticMemory
from retain.ports import Clock, Sql

SLICE = 25
"""Messages that are stored together, in one call of the embedder and one transaction."""
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
"""Longest pauses before a slice is tried again that others' changes of the tenant's memory overtook."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class IngestReceipt:
    """The job of a request. created: False when it repeats an earlier one. small: it can be processed before answering."""

    job: IngestJob
    created: bool
    small: bool


class Ingestion:
    """The ingest of one scope. extractor: returns the extractor; called when facts are to be extracted."""

    def __init__(self, memory: SemanticMemory, sql: Sql, extractor: Callable[[], Extractor], clock: Clock) -> None:
        self._memory = memory
        self._sql = sql
        self._extractor = extractor
        self._clock = clock
        self._jobs = Jobs(sql, clock)
        self._inbox = Inbox(sql, memory.scope)
        self._learner = Learner(memory, sql)

    async def receive(self, conversation: str, raw: Sequence[object]) -> IngestReceipt:
        """Receive messages as one request; see `accept`. Raises: as `Intake` and `accept`."""
        intake = Intake(self._sql, self._memory.scope.tenant_id, self._clock)
        for message in raw:
            await intake.add(message)
        await intake.finish()
        return await self.accept(conversation, intake)

    async def accept(self, conversation: str, intake: Intake) -> IngestReceipt:
        """Open the request's job; when this returns, its messages are durable and have positions. Idempotent.

        intake: finished. Its upload is deleted, unless this raises.
        Raises: InvalidInput for the request as a whole; Unavailable, after which it may be repeated.
        """
        scope, outlines = self._memory.scope, intake.outlines
        check_conversation(conversation)
        job_id = job_id_of(scope, conversation, intake.digest)
        small = len(outlines) <= SMALL_MESSAGES and sum(one.length for one in outlines) <= SMALL_BYTES
        created = False
        for _ in range(MAX_TRIES):
            job = await self._jobs.find(scope.tenant_id, job_id)
            if job is not None:
                await intake.discard()
                return IngestReceipt(job, created, small)
            try:
                await self._open(conversation, job_id, intake)
                created = True
            except Conflict:
                continue  # somebody took a position, or sent the same request: try again
        raise Contended("too many changes to the conversation at once; try again")

    async def work(self, job_id: str, *, pause_s: float = 0.0) -> IngestJob:
        """Process a job and return its state after that.

        It is `failed` when it stopped at an error, and `running` when somebody else processes it, or when so many others
        change the tenant's memory that it waits: then the next call continues it. pause_s: pause between slices, in seconds.
        Raises: NotFound; Unavailable when not even the failure could be recorded.
        """
        job = await self._jobs.get(self._memory.scope.tenant_id, job_id)
        if job.scope.scope_id != self._memory.scope.scope_id:
            raise Misconfigured("the job belongs to another scope", code="wrong_scope")
        if not await self._jobs.lease(job):
            return job
        stage: Stage = "storing"
        try:
            while await _patiently(self._store, job):
                await asyncio.sleep(pause_s)
            stage = "extraction"
            while await _patiently(self._extract, job):
                await asyncio.sleep(pause_s)
            stage = "learning"
            while await _patiently(self._learn, job):
                await asyncio.sleep(pause_s)
            if await self._jobs.complete(job):
                await settle(self._sql, self._clock(), (job.scope.tenant_id, "ingest", job_id))
        except Contended:
            _log.info("ingest waits for other changes", extra={"job_id": job_id, "stage": stage})
            await self._jobs.queue(job)
        except RetainError as error:
            _log.warning("ingest failed", extra={"job_id": job_id, "stage": stage, "code": error.code})
            await self._jobs.fail(job, stage, error)
            await park(self._sql, _trouble(job, error.code, self._clock()))
        return await self._jobs.get(job.scope.tenant_id, job_id)

    async def _open(self, conversation: str, job_id: str, intake: Intake) -> None:
        """Give the messages positions and open the job, in one transaction. Raises: Conflict."""
        messages = intake.outlines
        known, span, gaps = await self._inbox.known(conversation, messages)
        if span is None and await self._inbox.adopt(conversation):
            known, span, gaps = await self._inbox.known(conversation, messages)
        placement = place(messages, known, span, gaps)
        changed = [
            Rejection(messages[order].index, "message_changed", "a message with this id and other content is stored")
            for order in placement.changed
        ]
        rejections = sorted([*intake.rejected, *changed], key=lambda rejection: rejection.index)
        taken = Taken(intake.received, len(placement.known), tuple(rejections))
        places = {position: messages[order].index for order, position in placement.new.items()}
        opened = self._jobs.opened(job_id, self._memory.scope, conversation, taken)
        if intake.upload_id is not None:
            received = self._inbox.moved(conversation, job_id, intake.upload_id, places)
        else:
            held = intake.held
            new = {position: held[index] for position, index in places.items()}
            received = self._inbox.inserted(conversation, job_id, new)
        await self._sql.batch([opened, *received])

    async def _store(self, job: IngestJob) -> bool:
        """Store the next messages; return whether there may be more: a job gets none after it was opened."""
        read = await self._inbox.received(job.job_id, job.conversation, SLICE)
        waiting = read[: _fitting([one.content for one in read], SLICE_BYTES)]
        if not waiting:
            return False
        stored = await self._memory.store_all(
            [NewRecord(one.content, kind="event", utterance=one.place) for one in waiting],
            [RecordSource("ingest", message=one.message) for one in waiting],
        )
        records = {one.place.position: result.id for one, result in zip(waiting, stored, strict=True)}
        await self._sql.batch([self._inbox.stored(job.job_id, records), self._jobs.advanced(job.job_id)])
        return len(read) == SLICE or len(waiting) < len(read)

    async def _extract(self, job: IngestJob) -> bool:
        """Extract facts from the next stored messages and keep them; return whether there may be more messages."""
        extractor = self._extractor()
        read = await self._inbox.unread(job.job_id, extractor.batch)
        waiting = read[: _fitting(["" if one is None else one.content for _, one in read], EXTRACT_BYTES)]
        if not waiting:
            return False
        messages = [one for _, one in waiting if one is not None]
        facts: dict[str, list[ExtractedFact]] = {one.id: [] for one in messages}
        for fact in await extractor.extract(messages) if messages else []:
            facts[fact.message].append(fact)
        found = {position: [] if one is None else facts[one.id] for position, one in waiting}
        await self._sql.batch([self._inbox.read(job.job_id, found), self._jobs.advanced(job.job_id)])
        return len(read) == extractor.batch or len(waiting) < len(read)

    async def _learn(self, job: IngestJob) -> bool:
        """Store the facts of the next messages; return whether there may be more messages."""
        waiting = await self._inbox.unlearned(job.job_id, SLICE)
        if not waiting:
            return False
        now = self._clock()
        await self._learner.learn(
            [SourcedFact(fact, _source(one), min(_since(one, job), now)) for one in waiting for fact in one.facts]
        )
        counts = {one.position: sum(fact.is_stored for fact in one.facts) for one in waiting}
        await self._sql.batch([self._inbox.learned(job.job_id, counts), self._jobs.advanced(job.job_id)])
        return len(waiting) == SLICE


async def continue_interrupted(
    sql: Sql, clock: Clock, ingestion: Callable[[Scope], Ingestion], *, limit: int = 10
) -> dict[str, int]:
    """Continue up to `limit` interrupted or failed jobs; return how many are in each state now. For the cron."""

    async def call(job: IngestJob) -> Continued:
        return Continued((await ingestion(job.scope).work(job.job_id)).state, more=False)

    jobs = Jobs(sql, clock)
    given_up = await jobs.give_up()
    if given_up:
        await park(sql, *(_trouble(job, "interrupted", clock()) for job in given_up))
    done = await continue_open(await jobs.interrupted(limit), call)
    states: dict[str, int] = {"completed": 0, "running": 0, "failed": 0, **done}
    if any(states.values()):
        _log.info("interrupted ingests continued", extra=states)
    return states


async def _patiently(step: Callable[[IngestJob], Awaitable[bool]], job: IngestJob) -> bool:
    """Return what the step returns, tried again after random pauses while others change the tenant's memory.

    Raises: Contended after the last try; as the step.
    """
    for pause_s in WAITS_S:
        try:
            return await step(job)
        except Contended:
            await asyncio.sleep(random.uniform(0.5, 1) * pause_s)  # noqa: S311 -- spreads writers, hides nothing
    return await step(job)


def _trouble(job: IngestJob, code: Code | ForeignCode, now_ms: int) -> Trouble:
    scope = job.scope
    return Trouble("ingest", job.job_id, code, now_ms, scope.tenant_id, scope.agent_type, user_id=scope.user_id)


def _source(one: Unlearned) -> RecordSource:
    return RecordSource("extraction", message=one.message, record_id=one.record_id)


def _since(one: Unlearned, job: IngestJob) -> int:
    return job.created_at_ms if one.at_ms is None else one.at_ms


def _fitting(contents: Sequence[str], limit_bytes: int) -> int:
    """Return how many of the contents, from the first, fit into the limit; at least one, if there are any."""
    size = 0
    for count, content in enumerate(contents):
        size += len(content.encode())
        if count and size > limit_bytes:
            return count
    return len(contents)
