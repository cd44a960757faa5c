"""Delegation: one agent runs another as a tool, in the other's own instance and scope."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from typing import Any

from retain.agents.tools import CallContext, ToolResult, refuse_unknown, text_argument
from retain.errors import Forbidden, LimitExceeded, Unavailable
from retain.identifiers import namespace_key
from retain.models.chat import ToolSpec
from retain.ports import AgentInstances

MAX_DEPTH = 3
"""How many runs may stand above a run."""
ATTEMPTS = 3
"""How often an instance is called that cannot be reached: an object that died is alive again at the next call."""

_log = logging.getLogger(__name__)


MAX_WAITS = 40
"""How often an unfinished delegate is asked again. Each call waits for its end up to 25 seconds by itself."""


class Delegate:
    """`delegate`: hand work to another agent and read its answer.

    The other agent works in an instance of its own, named after the run that called it, so that a second call in the
    same run meets the same instance. Calling again with the same key returns the first answer.
    """

    idempotent = True

    def __init__(self, instances: AgentInstances, tenant_id: str, agents: Mapping[str, str], depth: int) -> None:
        self._instances = instances
        self._tenant_id = tenant_id
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
        """Run the other agent and return its status, output and run id as JSON."""
        refuse_unknown(arguments, {"agent", "input"})
        agent = text_argument(arguments, "agent")
        if agent not in self._agents:
            raise Forbidden(f"this agent may not delegate to {agent}", code="delegate_not_allowed")
        if self._depth >= MAX_DEPTH:
            raise LimitExceeded("runs are nested too deeply", code="delegation_depth", limit=MAX_DEPTH)
        instance_id = f"{context.run_id}.{agent}"
        result = await self._run(
            namespace_key(agent, self._tenant_id, instance_id),
            {
                "tenant_id": self._tenant_id,
                "agent_type": agent,
                "instance_id": instance_id,
                "input": text_argument(arguments, "input"),
                "metadata": {},
                "idempotency_key": context.key,
                "parent_run_id": context.run_id,
                "depth": self._depth + 1,
            },
        )
        return ToolResult(json.dumps({name: result.get(name) for name in ("status", "output", "run_id", "error")}))

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
