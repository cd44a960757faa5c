"""The tools of one instance: what its agent's definition gives it, bound to its scope."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from retain.agents.calls.client import InstanceClient
from retain.agents.calls.run_request import RunRequest
from retain.agents.definitions import AgentDefinition, served_name
from retain.agents.identity import InstanceIdentity
from retain.agents.instance_ports import InstancePorts
from retain.agents.occasion import occasion_of
from retain.agents.tools.built_in import (
    CallContext,
    GetWorkingMemory,
    RecallMemory,
    SetWorkingMemory,
    StoreMemory,
    Tool,
)
from retain.agents.tools.delegate import Delegate, reads_files
from retain.agents.tools.delegation import Delegation
from retain.agents.tools.kept_lists import KeptLists
from retain.agents.tools.known import ForgetMemory, LearnFact
from retain.agents.tools.schedule_wakeup import ScheduleWakeup
from retain.agents.tools.served import names_of
from retain.agents.tools.stubbed import stubbed_tools
from retain.memory.scope import Scope, View
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

    async def tools(self, definition: AgentDefinition, request: RunRequest) -> dict[str, Tool]:
        """Return the tools of a run, by name.

        Raises: NotFound for a delegate, a function or a gateway tool that does not exist; Unavailable.
        """
        ports = self._ports
        tools: list[Tool] = []
        config = definition.memory_config
        if config.long_term_enabled and config.recall in ("tool", "both"):
            tools.append(RecallMemory(self.semantic(definition, request.user_id), config))
        if config.long_term_enabled and config.store:
            house = self._semantic(View(self._scope(definition).around("house"))) if config.share else None
            own = self.semantic(definition, request.user_id)
            tools.append(StoreMemory(own, house, in_house=definition.house is not None))
        if config.facts:
            tools.append(LearnFact(self.semantic(definition, request.user_id), has_user=request.user is not None))
        if config.forget:
            tools.append(ForgetMemory(self.semantic(definition, request.user_id)))
        if definition.working_memory:
            tools += [GetWorkingMemory(self._working), SetWorkingMemory(self._working)]
        if definition.wakeups:
            instance = InstanceClient(ports.instances, self._identity)
            tools.append(ScheduleWakeup(instance, request, ports.clock, ports.time_zones))
        if definition.delegates:
            agents = await ports.agents.descriptions(self._identity.scope.tenant_id, definition.delegates)
            files = ports.attachments is not None and reads_files(definition, request)
            tools.append(Delegate(self._delegation, agents, request, files=files))
        if definition.functions or definition.tools or definition.mcp_servers:
            tools += await self._outward(definition, request)
        return {tool.spec.name: tool for tool in tools}

    def approvals(self, definition: AgentDefinition) -> frozenset[str]:
        """Return the names of the tools whose calls need a person's approval, by the definition or by their declaration.

        Raises: as `tools`.
        """
        declared = {name for name in definition.functions if self._ports.catalogue.function(name).requires_approval}
        served = {
            served_name(server, tool) for server, config in definition.mcp_servers.items() for tool in config.approval
        }
        return frozenset(definition.approval) | declared | served

    async def _outward(self, definition: AgentDefinition, request: RunRequest) -> list[Tool]:
        """Return the tools that may reach anything outside (functions, the gateway's, MCP servers'), or stubs instead."""
        ports, tenant_id = self._ports, self._identity.scope.tenant_id
        stubs = await ports.stubs(tenant_id)
        if stubs is not None:
            declared = {name: ports.catalogue.function(name).spec for name in definition.functions}
            return stubbed_tools(stubs, (*definition.tools, *names_of(definition.mcp_servers)), declared)
        tools = self._functions(definition, request) if definition.functions else []
        if definition.tools:
            tools += await ports.gateway_tools(tenant_id, definition.tools)
        for server, config in definition.mcp_servers.items():
            tools += await ports.served_tools(tenant_id, server, config, KeptLists(ports.local))
        return tools

    def _functions(self, definition: AgentDefinition, request: RunRequest) -> list[Tool]:
        from retain.agents.tools.functions import BoundFunction, ToolContext

        identity, ports = self._identity, self._ports
        memory = (
            partial(self.semantic, definition, request.user_id) if definition.memory_config.long_term_enabled else None
        )

        def context(call: CallContext) -> ToolContext:
            return ToolContext(
                tenant_id=identity.scope.tenant_id,
                agent_type=identity.agent_type,
                instance_id=identity.instance_id,
                run_id=call.run_id,
                turn=call.turn,
                idempotency_key=call.key,
                user=call.user,
                metadata=request.metadata,
                date=occasion_of(call.user, ports.clock(), ports.time_zones).date,
                working=self._working,
                fetch=ports.fetch,
                _memory=memory,
            )

        ports.prepare_libraries()
        return [BoundFunction(ports.catalogue.function(name), context, ports.fetch) for name in definition.functions]

    def semantic(self, definition: AgentDefinition, user_id: str | None) -> SemanticMemory:
        """Return the semantic memory of a run: its user's, or its agent's when it has none.

        It sees its instance, its user, its agent, the agent's house and the tenant; with a definition that shares its
        users, also what is known of the user to every agent that does.
        """
        scope = self._scope(definition)
        seen = replace(scope, instance_id=self._identity.instance_id, user_id=user_id)
        if user_id is None:
            return self._semantic(View(seen), scope)
        if definition.memory_config.user == "agent":
            return self._semantic(View(seen), replace(scope, user_id=user_id))
        everywhere = Scope(scope.tenant_id, user_id=user_id)
        return self._semantic(View(seen, (everywhere,)), everywhere)

    def _scope(self, definition: AgentDefinition) -> Scope:
        """Return the agent's scope."""
        return replace(self._identity.scope, house=definition.house)

    def _semantic(self, view: View, scope: Scope | None = None) -> SemanticMemory:
        """Return a semantic memory with this view that stores into `scope`, by default the view's own."""
        ports = self._ports
        return SemanticMemory(
            scope or view.scope,
            ports.sql,
            ports.index,
            ports.embedder(),
            ports.clock,
            view=view,
            reranker=ports.reranker(),
            writer=ports.writer,
            room=ports.recalling,
            kept=ports.signatures(),
        )
