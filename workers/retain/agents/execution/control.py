"""Answers from outside to the runs of one instance: approve, reject, cancel, wake up, expire.

Each is written into the run's log before it has an effect, so that a crash behind it changes nothing. To give the same
answer again is harmless.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from typing import Any

from retain.agents.execution.executor import Execution
from retain.agents.runs.events import ApprovalAnswered, CancelRequested, RunResumed
from retain.agents.runs.journal import Journal, OpenRun
from retain.errors import Conflict, RetainError
from retain.ports import Clock

EXPIRY = "expiry"
"""Who rejected a call that nobody answered in time."""

_log = logging.getLogger(__name__)


class Control:
    """Writes answers into the logs of one instance's runs. Whoever calls it lets the runs go on."""

    def __init__(self, journal: Journal, execution: Execution, clock: Clock) -> None:
        self._journal = journal
        self._execution = execution
        self._clock = clock

    def answer(self, run_id: str, call: str, *, approved: bool, by: str, reason: str | None) -> None:
        """Write a person's answer about a call. The same answer again changes nothing.

        call: `turn.index` of the call, as the question named it.
        Raises: NotFound (code `no_such_run`); Conflict (code `not_waiting`) when the run does not ask about this call,
            (code `already_answered`) when it was answered otherwise, by expiry as well, (code `run_cancelled`).
        """
        run = self._journal.load(run_id)
        for row in self._journal.events(run_id):
            data = json.loads(row["data"])
            if row["kind"] == "approval_answered" and f"{data['turn']}.{data['index']}" == call:
                if data["approved"] is approved and data["by"] != EXPIRY:
                    return
                raise Conflict("the call was answered otherwise", code="already_answered", by=str(data["by"]))
        if run.state.cancel is not None:
            raise Conflict("the run is cancelled", code="run_cancelled")
        asked = run.state.asked
        if asked is None or f"{asked.turn}.{asked.index}" != call or run.state.closed is not None:
            raise Conflict("the run does not ask about this call", code="not_waiting")
        if self._clock() >= asked.expires_at_ms:
            self._expire(run)
            raise Conflict("the question has expired", code="already_answered", by=EXPIRY)
        self._journal.append(run, ApprovalAnswered(asked.turn, asked.index, approved, by, reason))

    async def cancel(self, request: Mapping[str, Any]) -> str | None:
        """Write the wish to stop a run, and hand it down to the delegate that is at work for it; return the run's id.

        request: {"run_id"} or {"idempotency_key"}, {"by", "reason"}. With the key of a run that is not here yet the wish
        is kept for it, and None is returned. A run that has ended stays as it is.
        Raises: NotFound (code `no_such_run`).
        """
        by, reason, key = request["by"], request.get("reason"), request.get("idempotency_key")
        if key is not None:
            known = self._journal.find_by_key(key)
            if known is None:
                self._journal.cancel_unknown(key, by, reason)
                return None
            run_id = str(known["run_id"])
        else:
            run_id = str(request["run_id"])
        run = self._journal.load(run_id)
        if run.state.closed is None:
            if run.state.cancel is None:
                run = self._journal.append(run, CancelRequested(max(len(run.state.turns), 1), by, reason))
            await self._hand_down(run)
        return run_id

    def wake(self, run_id: str) -> None:
        """Let a run that waits for a delegate look after it. Without effect on any other."""
        run = self._journal.load(run_id)
        if run.state.waiting and run.state.suspended is not None:
            self._journal.append(run, RunResumed(run.state.suspended.turn, run.state.suspended.index))

    def let_due_go_on(self) -> None:
        """Reject what was asked for too long, and let suspended runs look after their delegates."""
        for run_id in self._journal.waiting(due_by_ms=self._clock()):
            run = self._journal.load(run_id)
            if run.state.asked is not None:
                self._expire(run)
            else:
                self.wake(run_id)

    def _expire(self, run: OpenRun) -> None:
        asked = run.state.asked
        if asked is not None:
            why = "nobody answered in time"
            self._journal.append(run, ApprovalAnswered(asked.turn, asked.index, False, EXPIRY, why))

    async def _hand_down(self, run: OpenRun) -> None:
        """Tell the delegate at once. When that fails, the run does it again before it ends."""
        try:
            loop = await self._execution.loop_of(run)
            await loop.cancel_delegate(run)
        except RetainError as error:
            _log.warning("a delegate was not told to stop yet", extra={"run_id": run.run_id, "code": error.code})
