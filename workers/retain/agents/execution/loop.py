"""The run loop: execute what `next_step` decides, and log each side effect before and after it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Coroutine, Mapping
from typing import Any

from retain.agents.calls.report import ServerReport
from retain.agents.calls.run_request import Budget
from retain.agents.definitions import AgentDefinition
from retain.agents.execution.asking import Asking
from retain.agents.execution.deadline import DEADLINE, Deadlines, RunDeadline, is_overdue
from retain.agents.execution.live_text import LiveText, begun
from retain.agents.files.sent_files import SentFiles
from retain.agents.learning.own_words import method_for
from retain.agents.recollection import conversation_of
from retain.agents.runs.events import (
    ApprovalRequested,
    CallRetried,
    RunCancelled,
    RunCompleted,
    RunFailed,
    RunSuspended,
    ToolAnswered,
    ToolCalled,
)
from retain.agents.runs.journal import Journal
from retain.agents.runs.open_run import OpenRun
from retain.agents.runs.run_state import (
    AskApproval,
    AskModel,
    CallTool,
    Cancel,
    Closed,
    Complete,
    Fail,
    GiveUpTool,
    Policy,
    RefuseTool,
    RejectCall,
    Wait,
    next_step,
)
from retain.agents.tools.built_in import CallContext, CallSuspended, Tool, answered, run_tool
from retain.agents.tools.delegate import answer_of
from retain.agents.tools.delegation import CALLER, Delegation
from retain.errors import LimitExceeded, Unavailable
from retain.errors.reported_codes import ReportedCode
from retain.models.chat import ChatModel, ToolCall
from retain.models.retry import OnRetry, retries_observed
from retain.ports import Clock

ABANDONED_S = 1.0
"""How long a call that is abandoned may take to end its work. One that takes longer is left alone."""


class RunLoop:
    """Executes runs of one instance until they end or wait."""

    def __init__(
        self,
        definition: AgentDefinition,
        policy: Policy,
        journal: Journal,
        deadlines: Deadlines,
        model: ChatModel,
        tools: Mapping[str, Tool],
        delegation: Delegation,
        live: LiveText,
        clock: Clock,
        files: SentFiles,
    ) -> None:
        self._definition = definition
        self._policy = policy
        self._journal = journal
        self._deadlines = deadlines
        self._tools = tools
        self._delegation = delegation
        self._live = live
        self._clock = clock
        self._asking = Asking(definition, journal, model, tools, live, clock, files)

    async def finish(self, run: OpenRun) -> OpenRun:
        """Execute the run from its last step until it ends or waits.

        What is too large to be logged ends it as failed: it would be so again at each resumption. Anything else that is
        raised leaves the run open, to be resumed from its last step.
        """
        try:
            with self._deadlines.executing(run.run_id, self._definition) as deadline:
                return await self._finish(run, deadline)
        except LimitExceeded as error:
            run = self._journal.caught_up(run)
            return self._journal.close(run, RunFailed(run.state.turn, error.code, error.message))

    async def _finish(self, run: OpenRun, deadline: RunDeadline) -> OpenRun:
        while True:
            run = self._journal.caught_up(run)
            step = next_step(run.state, self._policy)
            match step:
                case Closed() | Wait():
                    return run
                case AskModel() | CallTool() if self._clock() >= deadline.at_ms:
                    run = self._journal.append(run, deadline.overdue(run))
                case AskModel(turn):
                    run = await self._asking.ask(run, turn)
                case CallTool(turn, index, call, repeated):
                    if not repeated:
                        run = self._journal.append(run, ToolCalled(turn, index, call.name, call.arguments))
                    run = await self._call(run, turn, index, call, repeated=repeated)
                case RejectCall(turn, index, call):
                    run = self._refuse(run, turn, index, call, _error("malformed_tool_call", call.problem or ""))
                case AskApproval(turn, index, call):
                    expires_at_ms = self._clock() + int(self._definition.limits.approval_hours * 3_600_000)
                    asked = ApprovalRequested(turn, index, call.name, call.arguments, expires_at_ms)
                    run = self._journal.append(run, asked)
                case RefuseTool(turn, index, call, decision):
                    why = f"{decision.by} rejected the call" + (f": {decision.reason}" if decision.reason else "")
                    run = self._refuse(run, turn, index, call, _error("rejected", why))
                case GiveUpTool(turn, index, call):
                    await self._leave_delegate(run)
                    why = "the call was interrupted; it may or may not have taken effect"
                    run = self._refuse(run, turn, index, call, _error("outcome_unknown", why))
                case Cancel(turn, by, reason, interrupted):
                    stopped = None if interrupted is None else await self._delegation.cancel(run)
                    if interrupted is not None and stopped is not None:  # what it has spent counts
                        context = CallContext.of(run.run_id, interrupted)
                        run = self._journal.append(run, answered(interrupted.name, answer_of(stopped), context))
                    ended = RunFailed(turn, "run_deadline", reason or "") if by == DEADLINE else None
                    run = self._journal.close(run, ended or RunCancelled(turn, by, reason))
                case Complete(turn, output):
                    method = method_for(self._definition.memory_config.learn, run.request)
                    run = self._journal.close(run, RunCompleted(turn, output), method)
                case Fail(turn, code, message):
                    run = self._journal.close(run, RunFailed(turn, code, message))

    async def _call(self, run: OpenRun, turn: int, index: int, call: ToolCall, *, repeated: bool) -> OpenRun:
        state, policy = run.state, self._policy
        budget = Budget(
            None if policy.max_tokens is None else max(0, policy.max_tokens - state.tokens),
            max(0, policy.max_delegations - state.delegations),
        )
        conversation, first_key = conversation_of(run.messages), state.call_key(turn, index)
        files = [file for message in run.messages for file in message.attachments]
        context = CallContext(
            run.run_id, turn, index, budget, conversation, first_key, files, state.waited_for, run.user
        )
        try:
            with retries_observed(self._on_retry(run, turn, index)):
                answer = await self._in_time(run, run_tool(self._tools, call.name, call.arguments, context))
        except CallSuspended as suspended:
            times = run.state.suspensions
            return self._journal.append(run, RunSuspended(turn, index, suspended.waiting_for, times))
        if answer is not None and answer.failed and repeated:
            await self._leave_delegate(run)
        return run if answer is None else self._journal.append(run, answer)

    async def _in_time(self, run: OpenRun, called: Coroutine[Any, Any, ToolAnswered]) -> ToolAnswered | None:
        """Return the tool's answer, or None as soon as the run's deadline has passed: then it is not waited for."""
        call = begun(called)
        try:
            ended = await self._live.ended(call, lambda: is_overdue(self._journal.caught_up(run)))
            return call.result() if ended else None
        finally:
            if not call.done():
                call.cancel()
                await asyncio.wait((call,), timeout=ABANDONED_S)

    async def _leave_delegate(self, run: OpenRun) -> None:
        """Cancel the delegate that the pending call began: the agent may not call it by now. Raises: Unavailable."""
        if run.state.waited_for is not None or self._delegation.is_refused(run):
            await self._delegation.abandon(run, CALLER)

    def _on_retry(self, run: OpenRun, turn: int, index: int) -> OnRetry:
        def on_retry(error: Unavailable, delay_ms: int) -> None:
            self._journal.append(run, CallRetried(turn, index, error.code, delay_ms, ServerReport.of(error)))

        return on_retry

    def _refuse(self, run: OpenRun, turn: int, index: int, call: ToolCall, content: str) -> OpenRun:
        return self._journal.append(run, ToolAnswered(turn, index, call.name, content, failed=True))


def _error(code: ReportedCode, message: str) -> str:
    return json.dumps({"error": {"code": code, "message": message}})
