"""Answers from outside to the runs of one instance: approve, reject, cancel, wake up, expire.

Each is written into the run's log before it has an effect, so that a later crash changes nothing. The same answer again is
harmless.
"""

from __future__ import annotations

import logging

from retain.agents.calls.requests import AnswerRequest, CancelCallRequest, CancelRequest
from retain.agents.execution.deadline import Deadlines
from retain.agents.runs.events import ApprovalAnswered, CancelRequested, RunResumed
from retain.agents.runs.journal import Journal
from retain.agents.runs.open_run import OpenRun
from retain.agents.tools.delegation import Delegation
from retain.errors import Conflict, RetainError
from retain.ports import Clock

EXPIRY = "expiry"
"""Who rejected a call that nobody answered in time."""

_log = logging.getLogger(__name__)


class Control:
    """Writes answers into the logs of one instance's runs. The caller resumes the runs."""

    def __init__(self, journal: Journal, delegation: Delegation, clock: Clock, deadlines: Deadlines) -> None:
        """deadlines: of the run that the instance executes."""
        self._deadlines = deadlines
        self._journal = journal
        self._delegation = delegation
        self._clock = clock

    def answer(self, answer: AnswerRequest) -> None:
        """Write a person's answer about a call. The same answer again changes nothing.

        Raises: NotFound (code `no_such_run`); Conflict (code `not_waiting`) when the run does not ask about this call,
            (code `already_answered`) when the call was answered differently or has expired, (code `run_cancelled`).
        """
        run = self._journal.load(answer.run_id)
        given = self._given(answer)
        if given is not None:
            if given.approved is answer.approved and given.by != EXPIRY:
                return
            raise Conflict("the call was answered differently", code="already_answered", by=given.by)
        if run.state.cancel is not None:
            raise Conflict("the run is cancelled", code="run_cancelled")
        asked = run.state.asked
        if asked is None or f"{asked.turn}.{asked.index}" != answer.call or run.state.closed is not None:
            raise Conflict("the run does not ask about this call", code="not_waiting")
        if self._clock() >= asked.expires_at_ms:
            self._expire(run)
            raise Conflict("the question has expired", code="already_answered", by=EXPIRY)
        event = ApprovalAnswered(asked.turn, asked.index, answer.approved, answer.by, answer.reason)
        self._journal.append(run, event)

    def _given(self, answer: AnswerRequest) -> ApprovalAnswered | None:
        """Return the answer about this call that the log already has, or None."""
        for logged in self._journal.events(answer.run_id):
            event = logged.event
            if isinstance(event, ApprovalAnswered) and f"{event.turn}.{event.index}" == answer.call:
                return event
        return None

    async def cancel(self, request: CancelRequest) -> None:
        """Write the cancellation of a run, and cancel the delegate that works for it.

        A run that has ended stays unchanged. Raises: NotFound (code `no_such_run`).
        """
        run = self._journal.load(request.run_id)
        if run.state.closed is not None:
            return
        if run.state.cancel is None:
            event = CancelRequested(max(len(run.state.turns), 1), request.by, request.reason)
            run = self._journal.append(run, event)
        await self._hand_down(run)

    async def cancel_running(self, by: str) -> None:
        """Cancel each run that is under way or was interrupted."""
        for run_id in self._journal.runs.running():
            await self.cancel(CancelRequest(run_id, by))

    async def cancel_call(self, request: CancelCallRequest) -> str | None:
        """Stop the run with this key and return its id; keep the request and return None if no such run has arrived yet."""
        known = self._journal.runs.asked_with(request.idempotency_key)
        if known is None:
            self._journal.cancel_unknown(request.idempotency_key, request.by, request.reason)
            return None
        await self.cancel(CancelRequest(known.run_id, request.by, request.reason))
        return known.run_id

    def wake(self, run_id: str) -> None:
        """Let a run that waits for a delegate check on it; do nothing for any other run. Raises: NotFound."""
        run = self._journal.load(run_id)
        if run.state.waiting and run.state.suspended is not None:
            self._journal.append(run, RunResumed(run.state.suspended.turn, run.state.suspended.index))

    async def stop_overdue(self) -> None:
        """Stop the run that is executed if its deadline has passed, and the delegate that works for it."""
        deadline = self._deadlines.current
        if deadline is None or self._clock() < deadline.at_ms:
            return
        self._deadlines.current = None
        run = self._journal.load(deadline.run_id)
        if run.state.cancel is None:
            await self._hand_down(self._journal.append(run, deadline.overdue(run)))

    def deadline_ms(self) -> int | None:
        """Return when the run that is executed has to be stopped, in epoch milliseconds; None when none has to be."""
        return None if self._deadlines.current is None else self._deadlines.current.at_ms

    def resume_due(self) -> None:
        """Reject calls whose approval has expired; let suspended runs check on their delegates, and ask the model again."""
        for run_id in self._journal.runs.due(self._clock()):
            run = self._journal.load(run_id)
            if run.state.asked is not None:
                self._expire(run)
            elif run.state.awaiting_model:
                self._journal.append(run, RunResumed(run.state.turn, None))
            else:
                self.wake(run_id)

    def _expire(self, run: OpenRun) -> None:
        asked = run.state.asked
        if asked is not None:
            why = "nobody answered in time"
            self._journal.append(run, ApprovalAnswered(asked.turn, asked.index, False, EXPIRY, why))

    async def _hand_down(self, run: OpenRun) -> None:
        """Cancel the delegate at once. If that fails, the run repeats it before it ends."""
        try:
            await self._delegation.cancel(run)
        except RetainError as error:
            _log.warning("a delegate was not cancelled yet", extra={"run_id": run.run_id, "code": error.code})
