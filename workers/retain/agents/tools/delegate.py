"""The tool `delegate`: one agent runs another, in the other's own instance and scope."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from retain.agents.calls.report import RunResult
from retain.agents.calls.run_request import Budget, RunReference, RunRequest
from retain.agents.definitions import AgentDefinition
from retain.agents.tools.built_in import (
    MAX_RESULT_BYTES,
    CallContext,
    CallSuspended,
    ToolResult,
    refuse_unknown,
    shortened,
    text_argument,
)
from retain.agents.tools.delegation import DELEGATE, Delegation
from retain.errors import Forbidden, InvalidInput, LimitExceeded
from retain.json_text import Json, JsonObject
from retain.models.attached import Attached
from retain.models.chat import ToolSpec
from retain.roles.principals import agent_of_type

MAX_DEPTH = 3
"""How many runs may be above a run."""
_FILES = {
    "type": "array",
    "items": {"type": "string"},
    "description": "Names of files that the user sent and that the other agent is to read; none unless named.",
}


class Delegate:
    """`delegate`: hand work to another agent and read its answer.

    A second call with the same key returns the first answer. What the other run and its delegates spend counts against
    the budget of the calling run. The other run may read files that the calling one reads, where the call names them.
    """

    idempotent = True

    def __init__(
        self, delegation: Delegation, agents: Mapping[str, str], caller: RunRequest, *, files: bool = False
    ) -> None:
        """agents: those that may be called, with their descriptions. caller: the request of the run that calls.

        files: whether a call may name files.
        """
        self._delegation = delegation
        self._agents = agents
        self._caller = caller
        self._fields = {"agent", "input", *(["files"] if files else [])}
        listed = "; ".join(f"{name}: {description}" for name, description in agents.items())
        self.spec = ToolSpec(
            DELEGATE,
            f"Hand work to another agent and read its answer. Agents: {listed}",
            {
                "type": "object",
                "properties": {
                    "agent": {"type": "string", "enum": list(agents)},
                    "input": {"type": "string", "description": "Everything the other agent needs to know."},
                    **({"files": _FILES} if files else {}),
                },
                "required": ["agent", "input"],
                "additionalProperties": False,
            },
        )

    async def call(self, arguments: JsonObject, context: CallContext) -> ToolResult:
        """Run the other agent and return its status, output and run id as JSON.

        Raises: CallSuspended while the other run waits for a person; InvalidInput; Forbidden; LimitExceeded; NotFound (code
            `no_such_run`) when the run that the call waited for was removed; Unavailable.
        """
        agent = self._allowed(arguments, context.budget)
        files = _named(arguments.get("files"), context.files)
        request = self._request(text_argument(arguments, "input"), files, context)
        ended = await self._delegation.run(agent, request, context.run_id, context.waited_for)
        if isinstance(ended, RunReference):
            raise CallSuspended(ended)
        return answer_of(ended)

    def _allowed(self, arguments: JsonObject, budget: Budget) -> str:
        """Return the agent to call. Raises: as `call`, when the run may not call it."""
        refuse_unknown(arguments, self._fields)
        agent = text_argument(arguments, "agent")
        if agent not in self._agents:
            raise Forbidden(f"this agent may not delegate to {agent}", code="delegate_not_allowed")
        if self._caller.depth >= MAX_DEPTH:
            raise LimitExceeded("runs are nested too deeply", code="delegation_depth", limit=MAX_DEPTH)
        if budget.delegations is not None and budget.delegations < 1:
            raise LimitExceeded("the run has started as many runs as it may", code="delegation_limit")
        return agent

    def _request(self, text: str, files: tuple[Attached, ...], context: CallContext) -> RunRequest:
        delegations, parent = context.budget.delegations, self._delegation.reference(context.run_id)
        return RunRequest(
            input=text,
            idempotency_key=context.key,
            parent=parent,
            depth=self._caller.depth + 1,
            budget=Budget(context.budget.tokens, None if delegations is None else delegations - 1),
            user=context.user,
            by=agent_of_type(parent.agent_type),
            attachments=files,
        )


def reads_files(definition: AgentDefinition, request: RunRequest) -> bool:
    """Return whether a run may have files to pass on: it brings some, or its agent was made to read images or PDFs."""
    return bool(request.file_ids) or any(kind != "text" for kind in definition.model.accepts)


def _named(names: Json, files: Sequence[Attached]) -> tuple[Attached, ...]:
    """Return the files with these names. Raises: InvalidInput (code `invalid_arguments`) for a name that none has."""
    if names is None:
        return ()
    known = {file.name for file in files}
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names) or not known.issuperset(names):
        listed = ", ".join(sorted(known)) or "none"
        raise InvalidInput(f"files must be a list of names; there are: {listed}", code="invalid_arguments")
    return tuple({file.id: file for file in files if file.name in names}.values())


def answer_of(result: RunResult) -> ToolResult:
    """Return what a call of `delegate` answers when the other run has ended."""
    answer = {
        "status": result.status,
        "output": result.output,
        "run_id": result.run_id,
        "error": None if result.error is None else result.error.to_json(),
    }
    text = json.dumps(answer)
    if result.output is not None and len(text) > MAX_RESULT_BYTES:
        text = json.dumps({**answer, "output": shortened(result.output, len(text) - MAX_RESULT_BYTES)})
    return ToolResult(text, tokens=result.usage.tokens, delegations=1 + result.usage.delegations)
