"""One living agent: what an `AgentRuntime` Durable Object does, without the platform.

A run is recorded before it starts, logged step by step, and resumed by the alarm if a crash interrupted it. One run is
under way at a time, and others are refused or queued; while one waits for an answer, others may run, and it continues when
the instance is free. What must outlive the object goes to D1 through the outbox.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial

from retain.agents.calls.answers import Erased, InstanceDescription, Learned, News
from retain.agents.calls.report import RunReport
from retain.agents.calls.requests import (
    AnswerRequest,
    CancelCallRequest,
    CancelRequest,
    DescribeRequest,
    EraseRequest,
    FollowRequest,
    NamedRun,
    OutcomeRequest,
)
from retain.agents.calls.run_request import RunRequest
from retain.agents.duties.deferral import Deferral
from retain.agents.duties.forgetting import Forgetting
from retain.agents.duties.instance_alarm import InstanceAlarm
from retain.agents.duties.kv_notes import KvNotes
from retain.agents.duties.owed_deliveries import OwedDeliveries
from retain.agents.duties.own_sql import OwnSql
from retain.agents.execution.control import Control
from retain.agents.execution.executor import Execution
from retain.agents.execution.following import Following
from retain.agents.execution.ledger_notes import LedgerNotes
from retain.agents.execution.live_text import LiveText
from retain.agents.execution.parked import ParkedRuns
from retain.agents.execution.run_traces import RunTraces
from retain.agents.forks.forks import Forks
from retain.agents.identity import InstanceIdentity
from retain.agents.instance_ports import InstancePorts
from retain.agents.queueing.queueing import Queueing
from retain.agents.queueing.reports import CANCEL_WAIT_TURNS, Reports
from retain.agents.queueing.schedules import Schedules
from retain.agents.queueing.wakeups import IDLE_MS, Wakeups
from retain.agents.runs import tables
from retain.agents.runs.journal import Journal
from retain.agents.runs.run_log import RunLog
from retain.agents.tools.delegation import ERASURE, Delegation
from retain.agents.versions.own_agent import OwnAgent
from retain.errors import Conflict, NotFound, RetainError
from retain.ledgers.kv_audit import AuditedKv
from retain.lifecycle.terms import Term
from retain.memory.procedures.procedural import ProceduralMemory
from retain.memory.working import WorkingMemory
from retain.outbox import Outbox
from retain.schema.object import migrate
from retain.sealing.pii import declared_in

FIRST_FLUSH_S = 0.25
"""How long a run whose caller waits for the result is owed to D1 at first: one that ends sooner is written in one batch."""

_log = logging.getLogger(__name__)


class Instance:
    """One agent instance. Created each time the object wakes up; its state is in the object's SQLite.

    deliveries: what webhooks are owed. forks: what a run may begin with. schedules: runs that begin without being asked for.
    """

    def __init__(self, identity: InstanceIdentity, ports: InstancePorts) -> None:
        self.identity = identity
        self._local = OwnSql(ports.local)
        self._ports = ports = replace(ports, local=self._local)
        self._active = self._erasing = False
        self._first_flush = Deferral(FIRST_FLUSH_S)
        migrate(ports.local, tables.STEPS)
        scope = identity.scope
        self.deliveries = OwedDeliveries(ports, scope.tenant_id, self._schedule)
        self._outbox = Outbox(
            ports.local, ports.sql, tables.STATEMENTS, ports.clock, identity.key, self.deliveries.heard, tables.GROUPED
        )
        live = LiveText()
        notes = RunTraces(identity, LedgerNotes(identity), RunLog(ports.local), ports.exporter)
        self._journal = Journal(ports.local, self._outbox, ports.clock, identity, live.ring, notes.of)
        self.forks = Forks(self._journal)
        changes = KvNotes(identity, self._journal, self._outbox, lambda: self._erasing)
        self._working = WorkingMemory(
            ports.local,
            AuditedKv(ports.kv, changes.owner, ports.clock, changes.note),
            ports.clock,
            scope.tenant_id,
            identity.agent_type,
            identity.instance_id,
            partial(declared_in, fields=ports.pii_fields),
        )
        self._agent = agent = OwnAgent(identity, ports.local, ports.sql, ports.agents)
        place = (scope, lambda: agent.now().house, identity.instance_id)
        self._procedures = ProceduralMemory(*place, ports.local, ports.sql, self._outbox, ports.clock)
        alarm = InstanceAlarm(ports.alarm, ports.clock)
        delegation = Delegation(ports.instances, identity, lambda run: agent.of_run(run).delegates)
        self._execution = Execution(
            identity, ports, alarm, self._journal, self._working, self._procedures, delegation, live, agent
        )
        self._control = Control(self._journal, delegation, ports.clock, self._execution.deadlines)
        self._queueing = Queueing(
            identity, ports, self._journal, self._outbox, self._execution, live, agent, lambda: self._erasing
        )
        self.schedules = Schedules(identity, ports, self._outbox, self._queueing, agent, self._schedule)
        restoring = (self._journal, agent, self._queueing.restore, self._queueing.key_taken, self._schedule)
        self._parked = ParkedRuns(identity, ports, self._outbox, *restoring)
        self._following = Following(identity, self._journal, live)
        self._reports = Reports(identity, self._journal, self._queueing.queue, live, ports.sleep)
        kept = (self._outbox, self._working, self.deliveries, self.schedules)
        self._wakeups = Wakeups(ports, alarm, self._journal, self._control, self._queueing, *kept)
        owned = (self._outbox, self._working, self._journal, self.deliveries, agent, delegation)
        self._forgetting = Forgetting(self._local, *owned)

    async def run(self, request: RunRequest) -> RunReport:
        """Run the agent on an input and return the result, or what the run waits for.

        With an idempotency key that was used before, the first run's result is returned: at once, after waiting for it, or
        after finishing the interrupted run. A run that takes too long is reported as `running`, one that waits for a
        person as `waiting`; in the latter case the instance is free for other runs. While another run is under way, the
        run is reported as `queued`, if its definition says so.
        Raises: Conflict (code `instance_busy`) while another run is under way, (code `idempotency_key_reused`) when the
            key was used for another request; RateLimited (code `queue_full`); QuotaExceeded; LimitExceeded; Unavailable.
        """
        known = await self._arrived(request)
        if known is not None:
            report = self._reports.of(known)
            if report.status not in ("queued", "running"):
                return report
            if report.status == "queued":
                self._ports.background(self._continue())
            if self._active or report.status == "queued":
                return await self._reports.awaited(known)
        elif self._queueing.must_wait(active=self._active):
            return await self._queued(request)
        async with self._busy(request) as run_id:
            await self._resume_interrupted()
            if known is not None:
                return self._journal.report(known)
            loop, run = await self._queueing.begin(request, run_id)
            self._ports.background(self._first_flush.before(self._flush))
            await self._execution.finish(loop, run)
            return self._journal.report(run.run_id)

    async def start(self, request: RunRequest) -> RunReport:
        """Start a run in the background, whether or not anyone follows it, and return its report.

        Idempotent by its key. Raises: as `run`.
        """
        known = await self._arrived(request)
        if known is not None:
            return self._reports.of(known)
        opened: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._ports.background(self._begun(request, opened))
        return self._reports.of(await opened)

    async def repeated(self, request: RunRequest) -> RunReport:
        """Return the report of the run that an earlier request with the same key began; begin none.

        Raises: NotFound (code `no_such_run`); Conflict (code `idempotency_key_reused`).
        """
        await self._parked.restore_by_key(request.idempotency_key)
        if (known := await self._queueing.asked(request)) is None:
            raise NotFound("no run began with this key", code="no_such_run")
        return self._reports.of(known)

    async def show(self, run: NamedRun) -> RunReport:
        """Return a run's result, or its state so far. Raises: NotFound (code `no_such_run`)."""
        await self._restored(run.run_id)
        return self._reports.of(run.run_id)

    async def follow(self, request: FollowRequest) -> News:
        """Return what happened in a run after a position. See `Following.follow` and `Queueing.follow`."""
        await self._restored(request.run_id)
        return await self._queueing.follow(request) or await self._following.follow(request)

    async def answer(self, answer: AnswerRequest) -> RunReport:
        """Answer what a run asks, and return its report; it continues when the instance is free.

        The answer is durable when this returns. Raises: as `Control.answer`.
        """
        await self._restored(answer.run_id)
        if answer.run_id in self._queueing.queue:
            raise Conflict("the run is queued and asks nothing yet", code="not_waiting")
        try:
            self._control.answer(answer)
        finally:  # a question that turns out to have expired resumes the run as well
            await self._schedule()
            self._ports.background(self._continue())
        return self._reports.of(answer.run_id)

    async def cancel(self, request: CancelRequest) -> RunReport:
        """Stop a run before its next side effect.

        The request is durable when this returns. Returns the result if the run stops within five seconds or had ended,
        otherwise its state so far. Idempotent. Raises: NotFound (code `no_such_run`).
        """
        await self._restored(request.run_id)
        if not self._queueing.cancel(request.run_id, request.by, request.reason):
            await self._control.cancel(request)
        return await self._cancelled(request.run_id)

    async def cancel_call(self, request: CancelCallRequest) -> RunReport | None:
        """Stop the run with an idempotency key, or keep it from starting.

        As `cancel`; None for a run that has not arrived yet.
        """
        await self._parked.restore_by_key(request.idempotency_key)
        queued = self._queueing.queue.asked_with(request.idempotency_key)
        if queued is not None:
            return await self.cancel(CancelRequest(queued.run_id, request.by, request.reason))
        run_id = await self._control.cancel_call(request)
        return None if run_id is None else await self._cancelled(run_id)

    async def _cancelled(self, run_id: str) -> RunReport:
        await self._schedule()
        if not self._active:
            self._ports.background(self._continue())
            await self._reports.stopped(run_id)
        return await self._reports.awaited(run_id, CANCEL_WAIT_TURNS)

    async def wake(self, run: NamedRun) -> None:
        """Resume a run that waits for a delegate. Idempotent. Raises: NotFound (code `no_such_run`)."""
        await self._restored(run.run_id)
        self._control.wake(run.run_id)
        await self._schedule()
        self._ports.background(self._continue())

    async def record_outcome(self, outcome: OutcomeRequest) -> Learned:
        """Learn a run's outcome; return what is now believed of its workflow.

        Idempotent; another score replaces the first. Raises: as `ProceduralMemory.record_outcome`.
        """
        scored = (outcome.task_type, outcome.workflow_id, outcome.score)
        learned = await self._procedures.record_outcome(outcome.run_id, *scored)
        await self._schedule()
        self._ports.background(self._flush())
        return Learned(learned)

    async def describe(self, request: DescribeRequest) -> InstanceDescription:
        """Return the newest runs and log entries, the working keys, the beliefs about workflows, and what D1 is owed."""
        runs = (*self._journal.newest(request.limit), self._queueing.summaries())
        kept = (self._working.all(), self._procedures.posteriors(), self._outbox.owed())
        return InstanceDescription(self.identity.instance_id, *runs, *kept)

    async def on_alarm(self) -> None:
        """Resume what a crash interrupted, write what is owed to KV and D1, forget what is old, and set the next alarm.

        Runs are resumed in the background.
        """
        self._wakeups.fired()
        self._control.resume_due()
        await self._control.stop_overdue()
        self._queueing.expire()
        await self.schedules.begin_due()
        interrupted = bool(self._journal.runs.running())
        if interrupted or self._queueing.queue:  # the next alarm fires only when this one's handler has returned
            self._ports.background(self._continue())
        await self._execution.learning.work()
        await self._working.settle()
        if await self._outbox.flush():
            if not (self._active or interrupted) and self._wakeups.idle():
                await self._working.clear()
                await self._outbox.flush()
            self._journal.forget(self._ports.clock() - IDLE_MS)
        self.deliveries.start()
        await self._schedule()

    async def erase(self, request: EraseRequest) -> Erased:
        """Forget what the object itself holds: everything, for a user if it serves them, or what names a term.

        With everything, what is owed to D1 is dropped too; before a search for a term it is written, so that no more comes.
        Even if the instance is busy, what is queued is removed, and runs are cancelled if asked. Idempotent.
        After everything was erased, the object does not know who it is until it is called again.
        Raises: Conflict (`instance_busy`) during a run, or one that for a term was interrupted or answered; Unavailable.
        """
        text = request.term
        if request.user_id is not None and self._journal.served_user() != request.user_id:
            self.schedules.erase_to_come(user_id=request.user_id)
            self._ports.background(self._flush())
            return Erased(everything=False)
        self.schedules.erase_to_come(None if text is None else Term.of(text).in_stored)
        if self._active or (text is not None and self._journal.runs.running()):
            if request.cancel:
                await self._control.cancel_running(ERASURE)
            raise Conflict("the instance is busy with a run; try again", code="instance_busy")
        self._active = self._erasing = True
        try:
            async with self._execution.learning.paused():
                return await self._forgetting.of(text)
        finally:
            self._active = self._erasing = False
            self._ports.background(self._continue())  # what was answered meanwhile

    async def _arrived(self, request: RunRequest) -> str | None:
        """Return the id of the run that the request's key started or queued, or None. Raises: Conflict."""
        await self._parked.restore_by_key(request.idempotency_key)
        if not self._agent.in_repository and self._queueing.known(request) is None:
            await self._agent.ready()
        return await self._queueing.asked(request)

    async def _queued(self, request: RunRequest) -> RunReport:
        """Queue a run and return its report. It begins in the background if the instance is free by now."""
        run_id = await self._queueing.take(request)
        await self._schedule()
        self._ports.background(self._continue())
        return self._reports.of(run_id)

    async def _begun(self, request: RunRequest, opened: asyncio.Future[str]) -> None:
        """Execute a run in the background; set `opened` to its id, or to the error that kept it from being opened."""
        try:
            known = await self._queueing.asked(request)  # an equal request may have come first meanwhile
            if known is None and self._queueing.must_wait(active=self._active):
                known = (await self._queued(request)).run_id
            if known is not None:
                opened.set_result(known)
                return
            async with self._busy(request) as run_id:
                await self._resume_interrupted()
                loop, run = await self._queueing.begin(request, run_id)
                self._ports.background(self._flush())  # at once: the caller knows the run, and may ask D1 for it
                opened.set_result(run.run_id)
                await self._execution.finish(loop, run)
        except Exception as error:
            if opened.done():
                raise
            opened.set_exception(error)

    @asynccontextmanager
    async def _busy(self, request: RunRequest) -> AsyncIterator[str]:
        """Hold the instance for a request's run, whose id is returned; then resume those that were answered meanwhile.

        The id is taken at once: runs that are queued before this one begins are after it.
        Raises: Conflict (code `instance_busy`).
        """
        if self._active:
            raise Conflict("the instance is busy with another run; try again", code="instance_busy")
        self._active, self._queueing.beginning = True, request.idempotency_key
        try:
            yield self._queueing.queue.next_id()
        finally:
            self._active, self._queueing.beginning = False, None
            if not self._first_flush.end():
                self._ports.background(self._flush())  # ends with the alarm; until then that of the run's lease is set
        if self._journal.runs.running() or self._queueing.queue:
            self._ports.background(self._continue())

    async def _continue(self) -> None:
        """Resume the answered runs and begin the queued ones, unless a run is under way, which does so when it ends."""
        await self._resume()
        await self._flush()

    async def _resume(self) -> None:
        if self._active or self._local.closed:
            return
        self._active = True
        resumed: set[str] = set()
        try:
            while more := set(self._journal.runs.running()) - resumed:  # some were answered meanwhile
                resumed |= more
                await self._resume_interrupted()
            while await self._queueing.start_next():
                await self._resume_interrupted()
        except RetainError as error:
            # The run stays open and the alarm is set again: the platform gives up an alarm that fails six times.
            _log.warning("an interrupted run waits", extra={"code": error.code})
        finally:
            self._active = False

    async def _resume_interrupted(self) -> None:
        """Resume every run that neither waits nor has ended, after D1 knows: a run that continues is not rebuilt."""
        if self._journal.runs.running():
            await self._outbox.flush()
        await self._execution.resume_interrupted()

    async def _restored(self, run_id: str) -> None:
        """Rebuild a waiting or queued run that the object has lost."""
        if run_id not in self._queueing.queue:
            await self._parked.restore(run_id)

    async def _flush(self) -> None:
        if self._local.closed:
            return
        await self._outbox.flush()
        if await self._execution.learning.work():
            await self._outbox.flush()
        await self._schedule()
        self.deliveries.start()

    async def _schedule(self) -> None:
        await self._wakeups.schedule(active=self._active)
