"""The tools of one instance: what its agent's definition gives it, bound to its scope."""

from __future__ import annotations

from dataclasses import replace

from retain.agents.definitions import AgentDefinition
from retain.agents.identity import InstanceIdentity
from retain.agents.instance_ports import InstancePorts
from retain.agents.tools.built_in import (
    CallContext,
    GetWorkingMemory,
    RecallMemory,
    SetWorkingMemory,
    StoreMemory,
    Tool,
)
from retain.agents.tools.delegate import Delegate
from retain.agents.tools.delegation import Delegation
from retain.agents.tools.stubbed import stubbed_tools
from retain.memory.scope import Scope
from retain.memory.semantic import SemanticMemory
from retain.memory.working import WorkingMemory


class Toolbox:
    """Makes the tools of an instance's runs."""

    def __init__(
        self, identity: InstanceIdentity, ports: InstancePorts, working: WorkingMemory, delegation: Delegation
    ) -> None:
        self._identity = identity
        self._ports = ports
        self._working = working
        self._delegation = delegation

    async def tools(self, definition: AgentDefinition, depth: int) -> dict[str, Tool]:
        """Return the tools by name. depth: how many runs are above the run.

        Raises: NotFound for a delegate, a function or a gateway tool that does not exist; Unavailable.
        """
        ports = self._ports
        tools: list[Tool] = []
        config = definition.memory_config
        if config.long_term_enabled and config.recall in ("tool", "both"):
            tools.append(RecallMemory(self.semantic()))
        if config.long_term_enabled and config.store:
            memory = self.semantic()
            tools.append(StoreMemory(memory, self.semantic(memory.scope.around("house")) if config.share else None))
        if definition.working_memory:
            tools += [GetWorkingMemory(self._working), SetWorkingMemory(self._working)]
        if definition.delegates:
            agents = {name: ports.catalogue.agent(name).description for name in definition.delegates}
            tools.append(Delegate(self._delegation, agents, depth))
        if definition.functions or definition.tools:
            tools += await self._outward(definition)
        return {tool.spec.name: tool for tool in tools}

    def approvals(self, definition: AgentDefinition) -> frozenset[str]:
        """Return the names of the tools whose calls need a person's approval, by the definition or by their declaration.

        Raises: as `tools`.
        """
        declared = {name for name in definition.functions if self._ports.catalogue.function(name).requires_approval}
        return frozenset(definition.approval) | declared

    async def _outward(self, definition: AgentDefinition) -> list[Tool]:
        """Return the tools that may reach anything outside: function tools and the gateway's, or stubs instead."""
        ports, tenant_id = self._ports, self._identity.scope.tenant_id
        stubs = await ports.stubs(tenant_id)
        if stubs is not None:
            declared = {name: ports.catalogue.function(name).spec for name in definition.functions}
            return stubbed_tools(stubs, definition.tools, declared)
        tools = self._functions(definition) if definition.functions else []
        if definition.tools:
            tools += await ports.gateway_tools(tenant_id, definition.tools)
        return tools

    def _functions(self, definition: AgentDefinition) -> list[Tool]:
        from retain.agents.tools.functions import BoundFunction, ToolContext

        identity, ports = self._identity, self._ports
        memory = self.semantic if definition.memory_config.long_term_enabled else None

        def context(call: CallContext) -> ToolContext:
            return ToolContext(
                tenant_id=identity.scope.tenant_id,
                agent_type=identity.agent_type,
                instance_id=identity.instance_id,
                run_id=call.run_id,
                turn=call.turn,
                idempotency_key=call.key,
                working=self._working,
                fetch=ports.fetch,
                _memory=memory,
            )

        return [BoundFunction(ports.catalogue.function(name), context) for name in definition.functions]

    def semantic(self, scope: Scope | None = None) -> SemanticMemory:
        """Return the agent's semantic memory, or that of an enclosing scope."""
        ports = self._ports
        if scope is None:
            house = ports.catalogue.agent(self._identity.agent_type).house
            scope = replace(self._identity.scope, house=house)
        return SemanticMemory(scope, ports.sql, ports.index, ports.embedder(), ports.clock, reranker=ports.reranker())
