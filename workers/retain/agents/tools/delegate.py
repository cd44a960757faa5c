"""Delegation: one agent runs another as a tool, in the other's own instance and scope."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from typing import Any

from retain.agents.identity import InstanceIdentity
from retain.agents.tools.built_in import CallContext, CallSuspended, ToolResult, refuse_unknown, text_argument
from retain.errors import Forbidden, LimitExceeded, Unavailable
from retain.identifiers import namespace_key
from retain.models.chat import ToolSpec
from retain.ports import AgentInstances

MAX_DEPTH = 3
"""How many runs may stand above a run."""
ATTEMPTS = 3
"""How often an instance is called that cannot be reached: an object that died is alive again at the next call."""

MAX_WAITS = 40
"""How often an unfinished delegate is asked again. Each call waits for its end up to 25 seconds by itself."""

_log = logging.getLogger(__name__)


class Delegate:
    """`delegate`: hand work to another agent and read its answer.

    The other agent works in an instance of its own, named after the run that called it, so that a second call in the
    same run meets the same instance. Calling again with the same key returns the first answer. What the other run and
    its own delegates spend counts against the budget of the run that called.
    """

    idempotent = True

    def __init__(
        self, instances: AgentInstances, caller: InstanceIdentity, agents: Mapping[str, str], depth: int
    ) -> None:
        """Take the instance that calls, and the agents it may call with their descriptions."""
        self._instances = instances
        self._caller = caller
        self._agents = agents
        self._depth = depth
        listed = "; ".join(f"{name}: {description}" for name, description in agents.items())
        self.spec = ToolSpec(
            "delegate",
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

    async def call(self, arguments: Mapping[str, Any], context: CallContext) -> ToolResult:
        """Run the other agent and return its status, output and run id as JSON.

        Raises: CallSuspended while the other run waits for a person.
        """
        refuse_unknown(arguments, {"agent", "input"})
        agent = text_argument(arguments, "agent")
        if agent not in self._agents:
            raise Forbidden(f"this agent may not delegate to {agent}", code="delegate_not_allowed")
        if self._depth >= MAX_DEPTH:
            raise LimitExceeded("runs are nested too deeply", code="delegation_depth", limit=MAX_DEPTH)
        budget = context.budget
        if budget.delegations is not None and budget.delegations < 1:
            raise LimitExceeded("the run has started as many runs as it may", code="delegation_limit")
        instance_id, tenant_id = _instance_of(context.run_id, agent), self._caller.scope.tenant_id
        result = await self._run(
            namespace_key(agent, tenant_id, instance_id),
            {
                "tenant_id": tenant_id,
                "agent_type": agent,
                "instance_id": instance_id,
                "input": text_argument(arguments, "input"),
                "metadata": {},
                "idempotency_key": context.key,
                "parent_run_id": context.run_id,
                "parent": {"agent_type": self._caller.agent_type, "instance_id": self._caller.instance_id},
                "depth": self._depth + 1,
                "budget": {
                    "tokens": budget.tokens,
                    "delegations": None if budget.delegations is None else budget.delegations - 1,
                },
            },
        )
        if result["status"] == "waiting":
            where = {"run_id": result["run_id"], "agent_type": agent, "instance_id": instance_id}
            raise CallSuspended(where)
        usage = result["usage"]
        return ToolResult(
            json.dumps({name: result.get(name) for name in ("status", "output", "run_id", "error")}),
            tokens=usage["input_tokens"] + usage["output_tokens"] + usage["delegated_tokens"],
            delegations=1 + usage["delegations"],
        )

    async def cancel(
        self, run_id: str, call: str, arguments: Mapping[str, Any], asked_by: str, reason: str | None
    ) -> None:
        """Let the run stop that a call of `run_id` began, or may yet begin. Idempotent. Raises: Unavailable.

        call: the idempotency key of the call.
        """
        agent = arguments.get("agent")
        if not isinstance(agent, str) or agent not in self._agents:
            return  # the call was refused
        instance_id, tenant_id = _instance_of(run_id, agent), self._caller.scope.tenant_id
        request = {
            "tenant_id": tenant_id,
            "agent_type": agent,
            "instance_id": instance_id,
            "idempotency_key": call,
            "by": asked_by,
            "reason": reason,
        }
        await self._instances.call(namespace_key(agent, tenant_id, instance_id), "cancel_call", request)

    async def _run(self, name: str, request: Mapping[str, Any]) -> dict[str, Any]:
        """Run the other agent. The key makes every attempt the same run, which goes on where it stood."""
        failures = 0
        for _ in range(MAX_WAITS):
            try:
                result = await self._instances.call(name, "run", request)
            except Unavailable as error:
                failures += 1
                if failures == ATTEMPTS:
                    raise
                _log.warning("delegation is tried again", extra={"instance": name, "code": error.code})
                continue
            if result.get("status") != "running":  # an earlier attempt of this call may still be at it
                return result
        raise Unavailable("the other agent did not end in time", code="delegate_running")


def _instance_of(run_id: str, agent: str) -> str:
    """Return the instance in which an agent works for a run."""
    return f"{run_id}.{agent}"
