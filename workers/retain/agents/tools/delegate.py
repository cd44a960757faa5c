"""The tool `delegate`: one agent runs another, in the other's own instance and scope."""

from __future__ import annotations

import json
from collections.abc import Mapping

from retain.agents.calls.report import RunResult
from retain.agents.calls.run_request import Budget, RunReference, RunRequest
from retain.agents.tools.built_in import CallContext, CallSuspended, ToolResult, refuse_unknown, text_argument
from retain.agents.tools.delegation import DELEGATE, Delegation
from retain.errors import Forbidden, LimitExceeded
from retain.json_text import JsonObject
from retain.models.chat import ToolSpec
from retain.roles.principals import agent_of_type

MAX_DEPTH = 3
"""How many runs may be above a run."""


class Delegate:
    """`delegate`: hand work to another agent and read its answer.

    A second call with the same key returns the first answer. What the other run and its delegates spend counts against
    the budget of the calling run.
    """

    idempotent = True

    def __init__(self, delegation: Delegation, agents: Mapping[str, str], caller: RunRequest) -> None:
        """agents: those that may be called, with their descriptions. caller: the request of the run that calls."""
        self._delegation = delegation
        self._agents = agents
        self._caller = caller
        listed = "; ".join(f"{name}: {description}" for name, description in agents.items())
        self.spec = ToolSpec(
            DELEGATE,
            f"Hand work to another agent and read its answer. Agents: {listed}",
            {
                "type": "object",
                "properties": {
                    "agent": {"type": "string", "enum": list(agents)},
                    "input": {"type": "string", "description": "Everything the other agent needs to know."},
                },
                "required": ["agent", "input"],
                "additionalProperties": False,
            },
        )

    async def call(self, arguments: JsonObject, context: CallContext) -> ToolResult:
        """Run the other agent and return its status, output and run id as JSON.

        Raises: CallSuspended while the other run waits for a person; InvalidInput; Forbidden; LimitExceeded; Unavailable.
        """
        agent = self._allowed(arguments, context.budget)
        request = self._request(text_argument(arguments, "input"), context)
        ended = await self._delegation.run(agent, request, context.run_id)
        if isinstance(ended, RunReference):
            raise CallSuspended(ended)
        return _answered(ended)

    def _allowed(self, arguments: JsonObject, budget: Budget) -> str:
        """Return the agent to call. Raises: as `call`, when the run may not call it."""
        refuse_unknown(arguments, {"agent", "input"})
        agent = text_argument(arguments, "agent")
        if agent not in self._agents:
            raise Forbidden(f"this agent may not delegate to {agent}", code="delegate_not_allowed")
        if self._caller.depth >= MAX_DEPTH:
            raise LimitExceeded("runs are nested too deeply", code="delegation_depth", limit=MAX_DEPTH)
        if budget.delegations is not None and budget.delegations < 1:
            raise LimitExceeded("the run has started as many runs as it may", code="delegation_limit")
        return agent

    def _request(self, text: str, context: CallContext) -> RunRequest:
        delegations, parent = context.budget.delegations, self._delegation.reference(context.run_id)
        return RunRequest(
            input=text,
            idempotency_key=context.key,
            parent=parent,
            depth=self._caller.depth + 1,
            budget=Budget(context.budget.tokens, None if delegations is None else delegations - 1),
            user=self._caller.user,
            by=agent_of_type(parent.agent_type),
        )


def _answered(result: RunResult) -> ToolResult:
    answer = {
        "status": result.status,
        "output": result.output,
        "run_id": result.run_id,
        "error": None if result.error is None else result.error.to_json(),
    }
    return ToolResult(json.dumps(answer), tokens=result.usage.tokens, delegations=1 + result.usage.delegations)
