"""The journal of one instance: its runs and their events in the object's SQLite, and what it writes of them to D1.

Each method writes the local rows and the outbox entries together, with no `await` between them, so both are written or
neither. Other calls of the instance also write into a run's log: a person's answer, a cancellation. The journal knows the
number of each open run's last event, so the holder of a run learns without a query whether it missed one.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from retain.agents.calls.answers import LogEntry, RunSummary
from retain.agents.calls.report import FollowedWorkflow, RunReport
from retain.agents.calls.run_request import RunRequest, input_text
from retain.agents.calls.user import User
from retain.agents.files.owed import brought_by, uses_of
from retain.agents.identity import InstanceIdentity
from retain.agents.ledgers.statements import parked
from retain.agents.pending_learnings import NoteLearning, PendingLearnings
from retain.agents.runs.context import AssembledContext
from retain.agents.runs.episode_text import episode_text, valid_unicode
from retain.agents.runs.erased_run import CloseErasedRun
from retain.agents.runs.events import (
    CancelRequested,
    Closing,
    ModelUnavailable,
    RunCompleted,
    RunEvent,
    RunForked,
    kind_of,
    made_progress,
    to_json,
)
from retain.agents.runs.open_run import Basis, OpenRun, VersionReference
from retain.agents.runs.owed import (
    CarryEvents,
    CloseRun,
    ContinueRun,
    CountRun,
    ParkRun,
    StartFork,
    StartRun,
    UnparkRun,
    WaitRun,
)
from retain.agents.runs.result import awaited, due_of, result_of, standing_of, steps_of
from retain.agents.runs.run_log import Logged, RunLog
from retain.agents.runs.run_table import RunTable
from retain.agents.users.owed import met
from retain.json_text import Json
from retain.memory.conversations.statements import (
    AppendMessage,
    MarkConversation,
    MessageRole,
    OpenConversation,
    SummariseConversation,
    message_id,
)
from retain.memory.conversations.thread import ThreadSummary
from retain.memory.episodes import AppendEpisode, episode_id
from retain.memory.procedures.procedural import Choice
from retain.outbox import Outbox, OwedStatement
from retain.ports import Clock, ObjectSql


class Journal:
    """Runs and events of one instance. runs, log, pending: their tables in the object's SQLite."""

    def __init__(
        self,
        local: ObjectSql,
        outbox: Outbox,
        clock: Clock,
        identity: InstanceIdentity,
        written: Callable[[], None] = lambda: None,
        noted: Callable[[OpenRun, RunEvent, int], Iterable[OwedStatement]] = lambda *_: (),
    ) -> None:
        """written: called after each written event. noted: returns what the ledgers are owed for an event at a time."""
        self.runs = RunTable(local)
        self.log = RunLog(local)
        self.pending = PendingLearnings(local)
        self._local = local
        self._outbox = outbox
        self._clock = clock
        self._identity = identity
        self._written = written
        self._ledgers = noted
        self._heads: dict[str, int] = {}
        self._owed: list[OwedStatement] = []
        self._served: tuple[str | None] | None = None

    def open(
        self,
        run_id: str,
        request: RunRequest,
        context: AssembledContext,
        *,
        basis: Basis,
        summary: ThreadSummary | None = None,
        agent: VersionReference | None = None,
        known: User | None = None,
    ) -> OpenRun:
        """Record a new run with its context. summary: of the conversation, if it has changed. agent, known: as in `OpenRun`.

        Raises: LimitExceeded; then nothing is recorded.
        """
        used = (len(context.episodes), len(context.records), _followed(context.procedure), len(context.recent))
        run = OpenRun(run_id, request, context.messages, *used, context.remembered, basis, agent, known)
        cancelled = self.runs.early_cancellation(request.idempotency_key)
        self._atomically(partial(self._write_open, run, context, basis.model, summary, cancelled))
        return self._noted(run if cancelled is None else run.after(cancelled))

    def fork(self, run: OpenRun, carried: Sequence[Logged], forked: RunForked) -> OpenRun:
        """Record a new run that begins with these events of the run that it is forked from. Raises: as `open`."""
        cancelled = self.runs.early_cancellation(run.request.idempotency_key)
        self._atomically(partial(self._write_fork, run, carried, forked, cancelled))
        return self._read_on(run)

    def _write_open(
        self,
        run: OpenRun,
        context: AssembledContext,
        model: str,
        summary: ThreadSummary | None,
        cancelled: CancelRequested | None,
    ) -> None:
        now, request = self._clock(), run.request
        start = StartRun.of(self._identity, run, context.logged(request, run.procedure), model, now)
        self._write_begun(run, start, now)
        if summary is not None:
            self._owe(SummariseConversation(summary.to_text(), summary.through, summary.since_ms, *self._names))
        self._owe_message(run, "user", input_text(request.input), now)
        self._write_cancelled(run, cancelled)

    def _write_fork(
        self, run: OpenRun, carried: Sequence[Logged], forked: RunForked, cancelled: CancelRequested | None
    ) -> None:
        """Write a fork. A retry answers the message that the run before it left unanswered, and adds none."""
        now, request, source = self._clock(), run.request, forked.run_id
        logged = {**request.logged(), "fork": to_json(forked)}
        assert run.basis is not None
        start = StartFork.of(self._identity, run, logged, run.basis.model, now)
        self._write_begun(run, replace(start, forked_from=source), now)
        numbers = [one.seq for one in carried]
        self.log.carry(run.run_id, source, numbers, now)
        self._owe(CarryEvents(run.run_id, self._identity.scope.tenant_id, source, json.dumps(numbers), now))
        if request.fork is not None and request.fork.turns is not None:
            self._owe_message(run, "user", input_text(request.input), now)
        for one in carried:
            run = run.after(one.event)
        after = run.after(forked)
        self._write_event(run, after, forked, self._ledgers(run, forked, now))
        self._write_cancelled(after, cancelled)

    def _write_begun(self, run: OpenRun, start: StartRun, now: int) -> None:
        request = run.request
        self.runs.insert(run, now)
        self._owe(
            OpenConversation(*self._names, request.user_id, int(request.parent is not None), run.run_id, now, now)
        )
        self._owe(start, *uses_of(self._identity, run.run_id, request, now))
        if request.user is not None:
            self.serve(request.user.id)
            self._owe(met(request, request.user, self._identity.scope.tenant_id, run.run_id, now))

    def _write_cancelled(self, run: OpenRun, cancelled: CancelRequested | None) -> None:
        if cancelled is not None:
            self.runs.use_cancellation(run.request.idempotency_key)
            self._write_event(run, run.after(cancelled), cancelled, self._ledgers(run, cancelled, self._clock()))

    def serve(self, user_id: str) -> None:
        """Let the instance serve this user, unless it serves one already."""
        self._local.run("INSERT OR IGNORE INTO served_user VALUES (1, ?)", user_id)
        self._served = None

    def served_user(self) -> str | None:
        """Return the id of the user whom the instance serves, None before the first run that names one."""
        if self._served is None:
            rows = self._local.run("SELECT user_id FROM served_user").rows
            self._served = (rows[0]["user_id"] if rows else None,)
        return self._served[0]

    def load(self, run_id: str) -> OpenRun:
        """Return a run with the fold of its events. Raises: NotFound (code `no_such_run`)."""
        return self._read_on(self.runs.first(run_id))

    def caught_up(self, run: OpenRun) -> OpenRun:
        """Return the run with the events that others wrote into its log; without a query when they wrote none."""
        if run.state.closed is not None or self._heads.get(run.run_id) == run.seq:
            return run
        return self._read_on(run)

    def _read_on(self, run: OpenRun) -> OpenRun:
        for logged in self.log.events(run.run_id, after=run.seq):
            run = run.after(logged.event)
        return self._noted(run)

    def _noted(self, run: OpenRun) -> OpenRun:
        """Remember the number of the run's last event until the run is closed, and return the run."""
        if run.state.closed is None:
            self._heads[run.run_id] = run.seq
        else:
            self._heads.pop(run.run_id, None)
        return run

    def last_seq(self, run_id: str) -> int:
        """Return the number of the run's last event, or 0; without a query if the run is open."""
        known = self._heads.get(run_id)
        return self.log.last_seq(run_id) if known is None else known

    def events(self, run_id: str, *, after: int = 0) -> list[Logged]:
        """Return the run's events after the number `after`, in order."""
        return self.log.events(run_id, after=after)

    def newest(self, limit: int) -> tuple[tuple[RunSummary, ...], tuple[LogEntry, ...]]:
        """Return the newest runs and log entries, newest first."""
        return self.runs.newest(limit), self.log.newest(limit)

    def append(self, run: OpenRun, event: RunEvent) -> OpenRun:
        """Append an event to the run's log and to the timeline; return the run after it."""
        run = self.caught_up(run)
        now = self._clock()
        after, owed = run.after(event), list(self._ledgers(run, event, now))
        if owed or run.state.waiting or after.state.waiting:
            self._atomically(partial(self._write_event, run, after, event, owed))
        else:  # one statement, which is atomic
            self._happened(run, event, now)
        self._noted(after)
        self._written()
        return after

    def _happened(self, run: OpenRun, event: RunEvent, now: int) -> None:
        """Write an event to the run's log and row, and owe it to D1."""
        kind, data, tenant_id = kind_of(event), json.dumps(to_json(event)), self._identity.scope.tenant_id
        progress = made_progress(event)
        self.log.append(run.run_id, run.seq + 1, event.turn, kind, data, now, progress=progress, tenant_id=tenant_id)
        self._outbox.added_elsewhere()

    def _write_event(self, run: OpenRun, after: OpenRun, event: RunEvent, owed: Iterable[OwedStatement]) -> None:
        """Write an event, and what follows from it. after: the run after it. owed: to the ledgers."""
        now, run_id = self._clock(), run.run_id
        self._add_owed()  # D1 gets what came before the event before it
        self._happened(run, event, now)
        self._owed += owed
        state = after.state
        waits_for = awaited(state)
        if waits_for is not None:
            due_ms = due_of(event, now)
            self.runs.wait(run_id, due_ms)
            self._park(run, event, after.seq, due_ms, now)
            self._owe(WaitRun(waiting_for=json.dumps(waits_for.to_json()), run_id=run_id))
            self._owe(MarkConversation("waiting", *self._names, run_id))
            counts = (state.input_tokens, state.cached_input_tokens, state.output_tokens)
            self._owe(CountRun(steps_of(state), *counts, run_id))
        elif run.state.waiting:
            self.runs.resume(run_id)
            self._owe(UnparkRun(run_id))
            self._owe(ContinueRun(run_id=run_id))
            self._owe(MarkConversation("running", *self._names, run_id))

    def _park(self, run: OpenRun, event: RunEvent, seq: int, due_ms: int, now_ms: int) -> None:
        """Owe D1 what rebuilds a run that waits for somebody: its wait outlasts what an instance may be trusted to keep."""
        if isinstance(event, ModelUnavailable):
            return
        parked = ParkRun.of(self._identity, run, seq=seq, due_at_ms=due_ms, now_ms=now_ms)
        if parked is not None:
            self._owe(parked)

    def close(self, run: OpenRun, event: Closing, learning: str | None = None) -> OpenRun:
        """Append the closing event, the run's result, and one episode for each turn.

        learning: the method by which is to be learned from the run, None for not at all.
        """
        run = self.caught_up(run)
        after = run.after(event)
        self._atomically(partial(self._write_close, run, after, event, learning))
        self._noted(after)
        self._written()
        return after

    def learned(self, run_id: str, report: Mapping[str, Json]) -> None:
        """Record the outcome of learning from a run."""
        self._atomically(partial(self._write_learned, run_id, report))

    def _write_learned(self, run_id: str, report: Mapping[str, Json]) -> None:
        self.pending.remove(run_id)
        self._owe(NoteLearning(json.dumps(report), run_id))
        failure = report.get("error")
        if isinstance(failure, dict):
            self._owe(parked(self._identity, "learning", run_id, str(failure["code"]), self._clock(), run_id=run_id))

    def _write_close(self, run: OpenRun, after: OpenRun, event: Closing, learning: str | None) -> None:
        now, identity = self._clock(), self._identity
        self._write_event(run, after, event, self._ledgers(run, event, now))
        if learning is not None:
            self.pending.add(run.run_id, learning, now)
            self._owe(NoteLearning(json.dumps({"status": "pending", "method": learning}), run.run_id))
        result = result_of(run, self._identity.instance_id, event)
        self.runs.end(result, now)
        for number in range(run.state.carried_turns + 1, len(run.state.turns) + 1):
            self._owe(
                AppendEpisode(
                    episode_id=episode_id(run.run_id, number),
                    tenant_id=identity.scope.tenant_id,
                    agent_type=identity.agent_type,
                    instance_id=identity.instance_id,
                    run_id=run.run_id,
                    turn=number,
                    content=episode_text(run, number, identity.agent_type),
                    created_at_ms=now,
                    user_id=run.request.user_id,
                )
            )
        self._owe(CloseRun.of(result, valid_unicode(event.output) if isinstance(event, RunCompleted) else None, now))
        self._owe(MarkConversation(result.status, *self._names, run.run_id))
        if isinstance(event, RunCompleted):
            self._owe_message(run, "assistant", event.output, now)

    def report(self, run_id: str) -> RunReport:
        """Return the run's result, or its state so far. Raises: NotFound (code `no_such_run`)."""
        result = self.runs.result(run_id)
        if result is not None:
            return result
        return standing_of(self.load(run_id), self._identity.instance_id)

    def cancel_unknown(self, idempotency_key: str, asked_by: str, reason: str | None) -> None:
        """Remember the cancellation of a run that has not arrived yet: it stops as soon as it is opened."""
        self.runs.cancel_early(idempotency_key, asked_by, reason, self._clock())

    def forget(self, before_ms: int) -> None:
        """Remove what had ended by a time. D1 has what must be kept of it."""
        self.log.forget_ended(before_ms)
        self.runs.forget_ended(before_ms)

    def erase(self, names: Callable[[str], bool] | None) -> None:
        """Remove everything, or the runs with a text for which `names` returns True. No run may be under way.

        A waiting run, or one that would be resumed, is removed as well, and is recorded in D1 as cancelled.
        """
        if names is None:
            self.log.clear()
            self.runs.clear()
            self.pending.clear()
            for table in ("procedural_workflows", "served_user"):
                self._local.run(f"DELETE FROM {table}")  # noqa: S608
            self._served = None
            self._heads.clear()
            return
        for run in self.runs.naming(names, self.log.texts):
            self._atomically(partial(self._erase_run, run.run_id, is_open=run.status in ("running", "waiting")))
            self._heads.pop(run.run_id, None)

    def _erase_run(self, run_id: str, *, is_open: bool) -> None:
        if is_open:
            self._owe(CloseErasedRun.of(run_id, self._clock()))
            self._owe(MarkConversation("cancelled", *self._names, run_id))
            self._owe(UnparkRun(run_id))
        self.log.remove(run_id)
        self.runs.remove(run_id)
        self.pending.remove(run_id)

    @property
    def _names(self) -> tuple[str, str, str]:
        """What names the conversation in D1."""
        return self._identity.scope.tenant_id, self._identity.agent_type, self._identity.instance_id

    def _owe_message(self, run: OpenRun, role: MessageRole, content: str, now: int) -> None:
        message = message_id(run.run_id, role)
        owner, recalled = run.request.user_id, int(role == "assistant" and run.recalled)
        self._owe(AppendMessage(message, *self._names, run.run_id, role, valid_unicode(content), now, owner, recalled))
        self._owe(*(brought_by(message, run.request) if role == "user" else ()))

    def _owe(self, *owed: OwedStatement) -> None:
        self._owed += owed

    def _atomically(self, write: Callable[[], None]) -> None:
        """Write all or nothing, and with it the entries that are owed for it."""
        self._local.atomically(partial(self._write, write))

    def _write(self, write: Callable[[], None]) -> None:
        self._owed = []
        write()
        self._add_owed()

    def _add_owed(self) -> None:
        """Add what is owed so far to the outbox."""
        if self._owed:
            self._outbox.add(self._identity.scope.tenant_id, *self._owed)
            self._owed = []


def _followed(chosen: Choice | None) -> FollowedWorkflow | None:
    return None if chosen is None else FollowedWorkflow(chosen.task_type, chosen.workflow_id)
