"""Runs of one instance from their beginning to their end: context, loop, resumption."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from retain.agents.definitions import AgentDefinition
from retain.agents.execution.live_text import LiveText
from retain.agents.execution.loop import RunLoop
from retain.agents.identity import InstanceIdentity
from retain.agents.instance_ports import InstancePorts
from retain.agents.runs.context import AssembledContext, assemble, input_text
from retain.agents.runs.events import RunFailed
from retain.agents.runs.journal import Journal, OpenRun
from retain.agents.runs.run_state import Policy
from retain.agents.runs.tokens import Estimate
from retain.agents.toolbox import Toolbox
from retain.codes import Code, ForeignCode
from retain.errors import InvalidInput, NotFound, Unavailable
from retain.identifiers import namespace_key, new_id
from retain.log import bind
from retain.memory.episodes import last_episodes
from retain.memory.procedures.procedural import Choice, ProceduralMemory
from retain.memory.recall.query import MAX_QUERY_BYTES
from retain.memory.semantic import Hit, RecallQuery
from retain.memory.working import WorkingMemory
from retain.models.chat import ChatModel, ToolSpec

LEASE_MS = 30_000
"""After how long the alarm looks whether a run was interrupted."""
MAX_RESUMPTIONS = 5
"""How often a run is resumed before it is taken for what kills its object."""

_log = logging.getLogger(__name__)


class Execution:
    """Opens and finishes the runs of one instance. Whoever calls it sees to it that one run is under way at a time."""

    def __init__(
        self,
        identity: InstanceIdentity,
        ports: InstancePorts,
        journal: Journal,
        working: WorkingMemory,
        procedures: ProceduralMemory,
        live: LiveText,
    ) -> None:
        self._identity = identity
        self._ports = ports
        self._journal = journal
        self._working = working
        self._procedures = procedures
        self._live = live
        self._toolbox = Toolbox(identity, ports, working)

    async def open(self, request: Mapping[str, Any], digest: str) -> tuple[RunLoop, OpenRun]:
        """Record a new run with its context, and set the alarm that would find it interrupted.

        digest: of the request, to know it again. Raises: as `Instance.run`; then nothing of the run is recorded.
        """
        ports = self._ports
        definition = ports.catalogue.agent(self._identity.agent_type)
        loop, model, specs = await self._loop(definition, request)
        run_id = new_id()
        procedure = await self._procedure(definition, request, run_id)
        context = await self._context(definition, request, procedure, Estimate.of(model.name), specs)
        run = self._journal.open(run_id, request, context, model=model.name, request_hash=digest)
        await ports.alarm.set(ports.clock() + LEASE_MS)
        return loop, run

    async def resume_interrupted(self) -> None:
        """Finish the runs that a crash interrupted or that somebody answered.

        Raises: Unavailable, then a run waits to be resumed again.
        """
        for run_id in self._journal.running():
            run = self._journal.load(run_id)
            resumed = self._journal.count_resumption(run_id)
            _log.warning("resuming a run", extra={"run_id": run_id, "resumed": resumed})
            if resumed > MAX_RESUMPTIONS:
                self._give_up(run, "resumed_too_often", f"the run was interrupted {MAX_RESUMPTIONS} times")
                continue
            try:
                loop = await self.loop_of(run)
            except NotFound as error:
                # The agent or a tool of it was removed meanwhile: the run cannot go on, and must not block the next.
                self._give_up(run, error.code, error.message)
                continue
            except Unavailable:
                self._journal.forgive_resumption(run_id)
                raise
            try:
                await self.finish(loop, run)
            except Unavailable:  # a delegate cannot be told to stop
                self._journal.forgive_resumption(run_id)
                raise

    async def finish(self, loop: RunLoop, run: OpenRun) -> None:
        """Take a run to its end, or to where it waits; tell the run that waits for it, if there is one."""
        with bind(run_id=run.run_id):
            run = await loop.finish(run)
        parent = run.request.get("parent")
        if run.state.closed is not None and parent is not None and self._journal.waited(run.run_id):
            self._ports.background(self._wake(run.request["parent_run_id"], parent))

    async def loop_of(self, run: OpenRun) -> RunLoop:
        """Return what carries the run out. Raises: NotFound; Unavailable."""
        definition = self._ports.catalogue.agent(self._identity.agent_type)
        loop, _, _ = await self._loop(definition, run.request)
        return loop

    async def _wake(self, run_id: str, parent: Mapping[str, Any]) -> None:
        """Tell a suspended run that its delegate has ended. When that fails, it looks by itself after a while."""
        tenant_id = self._identity.scope.tenant_id
        name = namespace_key(parent["agent_type"], tenant_id, parent["instance_id"])
        await self._ports.instances.call(name, "wake", {"tenant_id": tenant_id, **parent, "run_id": run_id})

    async def _procedure(self, definition: AgentDefinition, request: Mapping[str, Any], run_id: str) -> Choice | None:
        """Return the workflow that the run follows, None for an agent without any."""
        if not definition.procedures:
            return None
        task_type = (request.get("metadata") or {}).get("task_type", next(iter(definition.procedures)))
        workflows = definition.procedures.get(task_type) if isinstance(task_type, str) else None
        if workflows is None:
            raise InvalidInput("the agent has no procedures for this task type", code="unknown_task_type")
        return await self._procedures.select_workflow(task_type, workflows, run_id)

    async def _context(
        self,
        definition: AgentDefinition,
        request: Mapping[str, Any],
        procedure: Choice | None,
        estimate: Estimate,
        specs: Sequence[ToolSpec],
    ) -> AssembledContext:
        config = definition.memory_config
        episodes = await last_episodes(self._ports.sql, self._identity.scope, config.episodes)
        records: list[Hit] = []
        query = _query(request["input"])
        if query and config.long_term_enabled and config.recall in ("context", "both"):
            records = await self._toolbox.semantic().search(RecallQuery(query, config.top_k))
        return assemble(
            definition,
            request["input"],
            episodes=episodes,
            records=records,
            working=self._working.all(),
            procedure=procedure,
            estimate=estimate,
            tools_tokens=estimate.specs(specs),
        )

    async def _loop(
        self, definition: AgentDefinition, request: Mapping[str, Any]
    ) -> tuple[RunLoop, ChatModel, list[ToolSpec]]:
        model = self._ports.chat(definition)
        tools = await self._toolbox.tools(definition, int(request.get("depth", 0)))
        limits, budget = definition.limits, request.get("budget") or {}
        policy = Policy(
            max_turns=limits.max_turns,
            idempotent=frozenset(name for name, tool in tools.items() if tool.idempotent),
            approvals=self._toolbox.approvals(definition),
            max_tokens=_least(limits.run_tokens, budget.get("tokens")),
            max_delegations=_least(limits.max_delegations, budget.get("delegations")) or 0,
        )
        loop = RunLoop(definition, policy, self._journal, model, tools, self._live, self._ports.clock)
        return loop, model, [tool.spec for tool in tools.values()]

    def _give_up(self, run: OpenRun, code: Code | ForeignCode, message: str) -> None:
        failed = RunFailed(len(run.state.turns), code, message)
        self._journal.close(run, failed)


def _least(*bounds: int | None) -> int | None:
    """Return the lowest of the bounds that there are."""
    return min((bound for bound in bounds if bound is not None), default=None)


def _query(run_input: str | Mapping[str, Any]) -> str:
    """Return what to recall for an input: its beginning, as long as a query may be; "" when there is nothing to ask."""
    encoded = input_text(run_input).strip().encode("utf-8", "replace")
    return encoded[:MAX_QUERY_BYTES].decode("utf-8", "ignore")
