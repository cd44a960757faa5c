"""Queueing: the runs that wait until their instance is free, from their request to their beginning or to an end without it.

A queued run is in the object's SQLite and, through the outbox, in D1: its row, and the copy that rebuilds it in an object
that has lost its storage. Its context is assembled when it begins.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial

from retain.agents.calls.answers import News, QueuedSummary, RunStreamEvent
from retain.agents.calls.requests import BEGINNING, FollowRequest, ReadPosition
from retain.agents.calls.run_request import RunRequest
from retain.agents.execution.executor import Execution
from retain.agents.execution.live_text import LiveText
from retain.agents.execution.loop import RunLoop
from retain.agents.files.owed import uses_of
from retain.agents.identity import InstanceIdentity
from retain.agents.instance_ports import InstancePorts
from retain.agents.queueing.run_queue import QueuedRun, RunQueue
from retain.agents.runs.erased_run import CloseErasedRun
from retain.agents.runs.events import CancelRequested, Closing, RunCancelled, RunFailed
from retain.agents.runs.journal import Journal
from retain.agents.runs.open_run import OpenRun
from retain.agents.runs.owed import ParkRun, QueueRun, UnparkRun
from retain.agents.versions.own_agent import OwnAgent
from retain.errors import Conflict, NotFound, RateLimited, RetainError, Unavailable
from retain.json_text import JsonObject
from retain.outbox import Outbox, OwedStatement

WAIT_S = 0.25
"""How often it is looked whether a run that is beginning has begun."""
SOONEST_MS, LATEST_MS = 1_000, 60_000
"""Between which the time is that a full queue asks callers to wait: as long as the instance's last run took."""

_log = logging.getLogger(__name__)


class Queueing:
    """The queue of one instance. agent: its agent."""

    def __init__(
        self,
        identity: InstanceIdentity,
        ports: InstancePorts,
        journal: Journal,
        outbox: Outbox,
        execution: Execution,
        live: LiveText,
        agent: OwnAgent,
        erasing: Callable[[], bool],
    ) -> None:
        """erasing: returns whether everything that the instance has is being removed."""
        self._identity = identity
        self._ports = ports
        self._journal = journal
        self._outbox = outbox
        self._execution = execution
        self._live = live
        self._agent = agent
        self._erasing = erasing
        self.queue = RunQueue(ports.local)
        self.beginning: str | None = None
        """The key of the run that is beginning without having been queued: the journal does not know it yet."""

    def must_wait(self, *, active: bool) -> bool:
        """Return whether a new run has to wait. active: whether another one is under way.

        Raises: Conflict (code `instance_busy`) where the definition refuses instead; NotFound (code `unknown_agent`).
        """
        if not active and not self.queue:
            return False
        if self._agent.now().limits.busy == "queue":
            return True
        raise Conflict("the instance is busy with another run; try again", code="instance_busy")

    async def take(self, request: RunRequest, note: Callable[[str], None] = lambda _: None) -> str:
        """Queue a run and return its id; the id of the run that has the request's key if one came meanwhile.

        What can be checked before the run begins is checked now. note: writes about the run with this id what is to be
        written in the same transaction, or raises to leave the run out. Raises: as `check`; as `known`; RateLimited (code
        `queue_full`); QuotaExceeded (code `run_quota`, `token_quota`); Unavailable.
        """
        await self._agent.ready()
        self._check(request)
        await self._execution.admit()
        known = await self.asked(request)
        if known is not None:
            self._ports.local.atomically(partial(note, known))
            return known
        self._check(request)
        queued = QueuedRun(self.queue.next_id(), request, self._ports.clock())
        self._ports.local.atomically(partial(self._write, queued, note))
        return queued.run_id

    def check(self, request: RunRequest) -> None:
        """Check what can be known of a run before it begins.

        Raises: as `Execution.check`; Conflict (code `instance_busy`) during an erasure.
        """
        if self._erasing():
            raise Conflict("the instance is being erased; try again", code="instance_busy")
        self._execution.check(request, [place.user_id for place in self.queue.places()])

    def _check(self, request: RunRequest) -> None:
        self.check(request)
        most = self._agent.now().limits.max_queued_runs
        if len(self.queue) >= most:
            took_ms = self._journal.runs.last_took_ms() or 0
            raise RateLimited(
                f"{most} runs wait for the instance already: try again later, or use another instance",
                code="queue_full",
                limit=most,
                retry_after_ms=min(max(took_ms, SOONEST_MS), LATEST_MS),
            )

    def _write(self, queued: QueuedRun, note: Callable[[str], None]) -> None:
        note(queued.run_id)
        self.queue.add(queued)
        identity, request = self._identity, queued.request
        for owed in (
            QueueRun.of(identity, queued.run_id, request, queued.at_ms),
            *uses_of(identity, queued.run_id, request, queued.at_ms),
        ):
            self._owe(owed)
        due_ms = self._latest_ms(queued.at_ms)
        never = OpenRun(queued.run_id, request, (), 0, 0)
        copy = ParkRun.of(identity, never, seq=0, due_at_ms=due_ms, now_ms=queued.at_ms)
        if copy is not None:
            self._owe(copy)

    def restore(self, run_id: str, request: RunRequest, at_ms: int, cancelled: CancelRequested | None) -> bool:
        """Queue a run again that the object has lost, and end it if it is cancelled; return False if it knows the run."""
        if run_id in self.queue:
            return False
        self.queue.add(QueuedRun(run_id, request, at_ms))
        if cancelled is not None:
            self.cancel(run_id, cancelled.by, cancelled.reason)
        return True

    def key_taken(self, key: str | None, run_id: str) -> bool:
        """Return whether another run than this one, queued, beginning or begun, has this key."""
        if key is None:
            return False
        known = self._journal.runs.asked_with(key) or self.queue.asked_with(key)
        return key == self.beginning if known is None else known.run_id != run_id

    async def asked(self, request: RunRequest) -> str | None:
        """Return the id of the run that was requested with the request's key, once it has begun, or None.

        Raises: as `known`.
        """
        key = request.idempotency_key
        while (known := self.known(request)) is None and key is not None and key == self.beginning:
            await self._ports.sleep(WAIT_S)
        return known

    def known(self, request: RunRequest) -> str | None:
        """Return the id of the run, queued or not, that was requested with the request's key, or None.

        Raises: Conflict (code `idempotency_key_reused`) when the key was used for another request.
        """
        key = request.idempotency_key
        if not key:
            return None
        known = self._journal.runs.asked_with(key) or self.queue.asked_with(key)
        if known is None:
            return None
        if known.digest != request.digest:
            raise Conflict("the idempotency key was used for another request", code="idempotency_key_reused")
        return known.run_id

    def summaries(self) -> tuple[QueuedSummary, ...]:
        """Return the queue for the description of the instance."""
        numbered = enumerate(self.queue.places(), start=1)
        return tuple(QueuedSummary(place.run_id, position, place.at_ms, place.by) for position, place in numbered)

    async def start_next(self) -> bool:
        """Begin the first run of the queue and execute it until it ends or waits; return False for an empty queue.

        A run that cannot begin ends as failed. Raises: Unavailable; then it is still the first.
        """
        self.expire()
        place = next(iter(self.queue.places()), None)
        queued = None if place is None else self.queue.read(place.run_id)
        if queued is None:
            return False
        left = False
        try:
            await self._prepare_instance()
            prepared = await self._execution.prepare(queued.request, queued.run_id, counted=True)
            left = self._leave(queued.run_id)
            if not left:
                return True  # it was cancelled or erased meanwhile
            loop, run = await self._execution.begin(prepared)
        except Unavailable:
            raise
        except RetainError as error:
            if left or queued.run_id in self.queue:  # otherwise it was cancelled or erased meanwhile
                self._end(queued, RunFailed(0, error.code, error.message))
            return True
        await self._outbox.flush()  # a run that has begun is not rebuilt
        await self._execution.finish(loop, run)
        return True

    async def begin(self, request: RunRequest, run_id: str) -> tuple[RunLoop, OpenRun]:
        """Record a run that need not wait, and return it. Raises: as `Instance.run`."""
        await self._prepare_instance()
        begun = await self._execution.begin(await self._execution.prepare(request, run_id))
        self.beginning = None
        return begun

    async def _prepare_instance(self) -> None:
        """Let a new run know what the instance's last run taught, and D1 what it is owed."""
        await self._execution.learning.work()
        await self._outbox.flush()

    async def follow(self, request: FollowRequest) -> News | None:
        """Return the run's position, once it is another than the follower knows; None for a run that is not in the queue.

        The offset of the reader's position is the run's position in the queue that it knows.
        """
        run_id, known = request.run_id, request.position.offset
        if self.queue.position(run_id) == known:
            await self._live.news(lambda: self.queue.position(run_id) != known, request.wait_s)
        place = self.queue.position(run_id)
        if place is None:
            return None
        shown: JsonObject = {"run_id": run_id, "instance_id": self._identity.instance_id, "queue_position": place}
        by = self.queue.started_by(run_id)
        shown = shown if by is None else {**shown, "by": by}
        events = () if place == known else (RunStreamEvent("run.queued", shown),)
        return News(events, ReadPosition(BEGINNING, 0, place), "queued")

    def cancel(self, run_id: str, by: str, reason: str | None) -> bool:
        """End a run of the queue as cancelled; return False for any other run."""
        queued = self.queue.read(run_id)
        if queued is None:
            return False
        self._end(queued, RunCancelled(1, by, reason), CancelRequested(1, by, reason))
        return True

    def expire(self) -> None:
        """End the runs that have been in the queue for as long as they may."""
        for place in self.queue.places():
            over = self._ports.clock() >= self._latest_ms(place.at_ms)
            queued = self.queue.read(place.run_id) if over else None
            if queued is not None:
                waited = f"{(self._ports.clock() - place.at_ms) / 60_000:.0f} minutes"
                self._end(queued, RunFailed(0, "queue_deadline", f"the run did not begin within {waited}"))

    def erase(self, names: Callable[[str], bool] | None = None, *, user_id: str | None = None) -> None:
        """Remove every run, or those with a text for which `names` returns True, or those of a user.

        user_id: of a user whom the instance does not serve. Their runs that ended without beginning are removed as well. D1
        is owed that the others ended as cancelled. Idempotent.
        """
        for run_id in () if user_id is None else self._journal.runs.of_user(user_id):
            self._ports.local.atomically(partial(self._forget_ended, run_id))
        for place in self.queue.places():
            if user_id is not None and place.user_id != user_id:
                continue
            texts = (self.queue.text(place.run_id), place.idempotency_key or "")
            if names is None or any(names(text) for text in texts):
                self._ports.local.atomically(partial(self._forget, place.run_id))

    def _forget(self, run_id: str) -> None:
        self._leave(run_id)
        self._owe(CloseErasedRun.of(run_id, self._ports.clock()))

    def _forget_ended(self, run_id: str) -> None:
        self._journal.log.remove(run_id)
        self._journal.runs.remove(run_id)

    def _leave(self, run_id: str) -> bool:
        """Take a run out of the queue; return whether it was there. Its copy in D1 is removed."""
        there = self.queue.remove(run_id)
        if there:
            self._owe(UnparkRun(run_id))
            self._live.ring()
        return there

    def _end(self, queued: QueuedRun, closing: Closing, *before: CancelRequested) -> None:
        """End a run that has not begun. It has a result and a timeline, and is not part of the conversation."""
        self._leave(queued.run_id)
        run = OpenRun(queued.run_id, queued.request, (), 0, 0)
        self._journal.runs.insert(run, self._ports.clock())
        for event in before:
            run = self._journal.append(run, event)
        self._journal.close(run, closing)
        _log.info("a queued run ended before it began", extra={"run_id": queued.run_id})

    def _latest_ms(self, at_ms: int) -> int:
        """Return until when a run that was queued at a time may begin; a removed agent's run may at once."""
        try:
            return at_ms + int(self._agent.now().limits.queue_minutes * 60_000)
        except NotFound:
            return at_ms + LATEST_MS

    def _owe(self, owed: OwedStatement) -> None:
        self._outbox.add(self._identity.scope.tenant_id, owed)
