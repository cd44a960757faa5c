"""The run loop: execute what `next_step` decides, and log each side effect before and after it."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping

from retain.agents.calls.run_request import Budget
from retain.agents.definitions import AgentDefinition
from retain.agents.execution.live_text import LiveText
from retain.agents.runs.compaction import NoRoom, compacted, history
from retain.agents.runs.events import (
    ApprovalRequested,
    ModelAnswered,
    ModelAsked,
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
    Wait,
    next_step,
)
from retain.agents.runs.tokens import Estimate
from retain.agents.tools.built_in import CallContext, CallSuspended, Tool, run_tool
from retain.agents.tools.delegation import Delegation
from retain.errors import RetainError
from retain.errors.codes import ReportedCode
from retain.models.chat import ChatModel, ChatReply, ChatRequest, OnText, ToolCall
from retain.ports import Clock

_log = logging.getLogger(__name__)


class _Stopped(Exception):
    """The run was cancelled while the model was writing."""


class RunLoop:
    """Executes runs of one instance until they end or wait."""

    def __init__(
        self,
        definition: AgentDefinition,
        policy: Policy,
        journal: Journal,
        model: ChatModel,
        tools: Mapping[str, Tool],
        delegation: Delegation,
        live: LiveText,
        clock: Clock,
    ) -> None:
        self._definition = definition
        self._policy = policy
        self._journal = journal
        self._model = model
        self._tools = tools
        self._delegation = delegation
        self._live = live
        self._clock = clock
        self._estimate = Estimate.of(model.name)

    async def finish(self, run: OpenRun) -> OpenRun:
        """Execute the run from its last step until it ends or waits. An error of the model ends it as failed.

        Anything else that is raised leaves the run open, to be resumed from its last step.
        """
        while True:
            run = self._journal.caught_up(run)
            step = next_step(run.state, self._policy)
            match step:
                case Closed() | Wait():
                    return run
                case AskModel(turn):
                    run = await self._ask(run, turn)
                case CallTool(turn, index, call, repeated):
                    if not repeated:
                        run = self._journal.append(run, ToolCalled(turn, index, call.name, call.arguments))
                    run = await self._call(run, turn, index, call)
                case AskApproval(turn, index, call):
                    expires_at_ms = self._clock() + int(self._definition.limits.approval_hours * 3_600_000)
                    asked = ApprovalRequested(turn, index, call.name, call.arguments, expires_at_ms)
                    run = self._journal.append(run, asked)
                case RefuseTool(turn, index, call, decision):
                    why = f"{decision.by} rejected the call" + (f": {decision.reason}" if decision.reason else "")
                    run = self._refuse(run, turn, index, call, _error("rejected", why))
                case GiveUpTool(turn, index, call):
                    why = "the call was interrupted; it may or may not have taken effect"
                    run = self._refuse(run, turn, index, call, _error("outcome_unknown", why))
                case Cancel(turn, by, reason, interrupted):
                    if interrupted is not None:
                        await self._delegation.cancel(run)
                    run = self._journal.close(run, RunCancelled(turn, by, reason))
                case Complete(turn, output):
                    run = self._journal.close(run, RunCompleted(turn, output))
                case Fail(turn, code, message):
                    run = self._journal.close(run, RunFailed(turn, code, message))

    async def _call(self, run: OpenRun, turn: int, index: int, call: ToolCall) -> OpenRun:
        state, policy = run.state, self._policy
        budget = Budget(
            None if policy.max_tokens is None else max(0, policy.max_tokens - state.tokens),
            max(0, policy.max_delegations - state.delegations),
        )
        context = CallContext(run.run_id, turn, index, budget)
        try:
            answered = await run_tool(self._tools, call.name, call.arguments, context)
        except CallSuspended as suspended:
            times = run.state.suspensions
            return self._journal.append(run, RunSuspended(turn, index, suspended.waiting_for, times))
        return self._journal.append(run, answered)

    def _refuse(self, run: OpenRun, turn: int, index: int, call: ToolCall, content: str) -> OpenRun:
        return self._journal.append(run, ToolAnswered(turn, index, call.name, content, failed=True))

    async def _ask(self, run: OpenRun, turn: int) -> OpenRun:
        limits, settings = self._definition.limits, self._definition.model
        specs = [tool.spec for tool in self._tools.values()]
        room = limits.context_tokens - self._estimate.specs(specs)
        try:
            context = compacted(run.messages, history(run.state), room, self._estimate)
        except NoRoom:
            message = f"the run outgrew its context of {limits.context_tokens} tokens"
            return self._journal.close(run, RunFailed(turn, "context_full", message))
        run = self._journal.append(run, ModelAsked(turn, context.cut))
        request = ChatRequest(context.messages, specs, settings.max_output_tokens, settings.temperature)
        try:
            reply = await self._complete(run, turn, request)
        except _Stopped:
            return run
        except RetainError as error:
            _log.warning("the model failed", extra={"run_id": run.run_id, "code": error.code})
            return self._journal.close(run, RunFailed(turn, error.code, error.message))
        usage = reply.usage
        answered = ModelAnswered(turn, reply.content, reply.tool_calls, usage.input_tokens, usage.output_tokens)
        run = self._journal.append(run, answered)
        self._live.logged(run.run_id, turn, run.seq)
        return run

    async def _complete(self, run: OpenRun, turn: int, request: ChatRequest) -> ChatReply:
        if not run.request.stream:
            return await self._model.complete(request)
        self._live.begin(run.run_id, turn)
        return await self._model.complete(request, self._on_text(run))

    def _on_text(self, run: OpenRun) -> OnText:
        async def on_text(piece: str) -> None:
            if self._journal.caught_up(run).state.cancel is not None:
                raise _Stopped
            self._live.add(piece)

        return on_text


def _error(code: ReportedCode, message: str) -> str:
    return json.dumps({"error": {"code": code, "message": message}})
