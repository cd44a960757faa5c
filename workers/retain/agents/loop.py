"""The run loop: carry out what `next_step` decides, and log each side effect before and after it."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from typing import Any

from retain.agents.context import estimate_tokens
from retain.agents.definitions import AgentDefinition
from retain.agents.events import (
    ModelAnswered,
    ModelAsked,
    RunCompleted,
    RunFailed,
    ToolAnswered,
    ToolCalled,
)
from retain.agents.journal import Journal, OpenRun
from retain.agents.run_state import (
    AskModel,
    CallTool,
    Closed,
    Complete,
    Fail,
    GiveUpTool,
    RunState,
    next_step,
)
from retain.agents.tools import CallContext, Tool, run_tool
from retain.errors import RetainError
from retain.models.chat import ChatModel, ChatRequest, Message

_log = logging.getLogger(__name__)


class RunLoop:
    """Brings runs of one instance to their end."""

    def __init__(
        self,
        definition: AgentDefinition,
        journal: Journal,
        model: ChatModel,
        tools: Mapping[str, Tool],
        instance_id: str,
    ) -> None:
        self._definition = definition
        self._journal = journal
        self._model = model
        self._tools = tools
        self._instance_id = instance_id
        self._idempotent = frozenset(name for name, tool in tools.items() if tool.idempotent)

    async def finish(self, run: OpenRun) -> OpenRun:
        """Take the run from where it stands to its end. An error of the model ends it as failed.

        Anything else that is raised leaves the run open, to be resumed from its last step.
        """
        while True:
            step = next_step(run.state, max_turns=self._definition.limits.max_turns, idempotent=self._idempotent)
            match step:
                case Closed():
                    return run
                case AskModel(turn):
                    run = await self._ask(run, turn)
                case CallTool(turn, index, call, repeated):
                    if not repeated:
                        run = self._journal.append(run, ToolCalled(turn, index, call.name, call.arguments))
                    context = CallContext(run.run_id, turn, index)
                    run = self._journal.append(run, await run_tool(self._tools, call.name, call.arguments, context))
                case GiveUpTool(turn, index, call):
                    content = json.dumps(
                        {
                            "error": {
                                "code": "outcome_unknown",
                                "message": "the call was interrupted; it may or may not have taken effect",
                            }
                        }
                    )
                    run = self._journal.append(run, ToolAnswered(turn, index, call.name, content, failed=True))
                case Complete(turn, output):
                    run = self._close(run, RunCompleted(turn, output))
                case Fail(turn, code, message):
                    run = self._close(run, RunFailed(turn, code, message))

    async def _ask(self, run: OpenRun, turn: int) -> OpenRun:
        messages = conversation(run)
        limit = self._definition.limits.context_tokens
        if sum(estimate_tokens(message.content) for message in messages) > limit:
            return self._close(run, RunFailed(turn, "context_full", f"the run outgrew its context of {limit} tokens"))
        run = self._journal.append(run, ModelAsked(turn))
        settings = self._definition.model
        request = ChatRequest(
            messages,
            [tool.spec for tool in self._tools.values()],
            settings.max_output_tokens,
            settings.temperature,
        )
        try:
            reply = await self._model.complete(request)
        except RetainError as error:
            _log.warning("the model failed", extra={"run_id": run.run_id, "code": error.code})
            return self._close(run, RunFailed(turn, error.code, error.message))
        usage = reply.usage
        return self._journal.append(
            run, ModelAnswered(turn, reply.content, reply.tool_calls, usage.input_tokens, usage.output_tokens)
        )

    def _close(self, run: OpenRun, event: RunCompleted | RunFailed) -> OpenRun:
        return self._journal.close(run, event, result_of(run, event, self._instance_id))


def conversation(run: OpenRun) -> list[Message]:
    """Return what the model reads now: the run's context, then each turn's answer and the tools' results."""
    messages = list(run.messages)
    for turn in run.state.turns:
        messages.append(Message("assistant", turn.answer.content, turn.answer.calls))
        for call, result in zip(turn.answer.calls, turn.results, strict=False):
            messages.append(Message("tool", result.content, tool_call_id=call.id))
    return messages


def result_of(run: OpenRun, event: RunCompleted | RunFailed, instance_id: str) -> dict[str, Any]:
    """Return the run's result as the interface shows it. steps: model calls and tool calls made."""
    state: RunState = run.state
    recalled = {record_id for turn in state.turns for result in turn.results for record_id, _ in result.recalled}
    result: dict[str, Any] = {
        "run_id": run.run_id,
        "instance_id": instance_id,
        "status": "completed" if isinstance(event, RunCompleted) else "failed",
        "output": event.output if isinstance(event, RunCompleted) else None,
        "steps": sum(1 + len(turn.results) for turn in state.turns),
        "usage": {
            "input_tokens": sum(turn.answer.input_tokens for turn in state.turns),
            "output_tokens": sum(turn.answer.output_tokens for turn in state.turns),
        },
        "memory": {"episodes_used": run.episodes_used, "records_used": run.records_used + len(recalled)},
    }
    if isinstance(event, RunFailed):
        result["error"] = {"code": event.code, "message": event.message}
    return result
