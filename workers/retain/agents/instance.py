"""One living agent: what an `AgentRuntime` Durable Object does, without the platform.

A run is recorded before it starts, logged step by step, and resumed by the alarm when a crash interrupted it. What is
to outlive the object goes to D1 through the outbox.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from retain.agents import journal as journal_module
from retain.agents.catalogue import Catalogue
from retain.agents.context import assemble, input_text
from retain.agents.definitions import AgentDefinition
from retain.agents.delegation import Delegate
from retain.agents.events import RunFailed
from retain.agents.journal import Journal, OpenRun
from retain.agents.loop import RunLoop, result_of
from retain.agents.tools import GetWorkingMemory, RecallMemory, SetWorkingMemory, StoreMemory, Tool
from retain.errors import Conflict, InvalidInput, Misconfigured, NotFound, RetainError, Unavailable
from retain.identifiers import check_agent_type, check_instance_id, namespace_key, new_id
from retain.log import bind
from retain.memory import outbox as outbox_module
from retain.memory import working as working_module
from retain.memory.episodes import last_episodes
from retain.memory.lifecycle.terms import Term
from retain.memory.outbox import Outbox
from retain.memory.recall.query import MAX_QUERY_BYTES
from retain.memory.scope import Scope
from retain.memory.semantic import Hit, RecallQuery, SemanticMemory
from retain.memory.working import WorkingMemory
from retain.models.chat import ChatModel
from retain.models.embedding import Embedder
from retain.models.reranking import Reranker
from retain.models.retry import Sleep
from retain.ports import AgentInstances, Alarm, Background, Clock, Kv, ObjectSql, Sql, VectorIndex

LEASE_MS = 30_000
"""After how long the alarm looks whether a run was interrupted."""
MAX_RESUMPTIONS = 5
"""How often a run is resumed before it is taken for what kills its object."""
WAIT_S = 0.25
WAIT_TURNS = 100
"""How long, and how often, a second call with the same idempotency key waits for the first one's end."""
IDLE_MS = 24 * 3600 * 1000
"""After how long without a run the object's working state is cleared."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class InstancePorts:
    """What an instance works with. local, alarm: its own. gateway_tools: the tenant's tools in the gateway, by name."""

    local: ObjectSql
    alarm: Alarm
    sql: Sql
    kv: Kv
    index: VectorIndex
    embedder: Callable[[], Embedder]
    chat: Callable[[AgentDefinition], ChatModel]
    catalogue: Catalogue
    instances: AgentInstances
    gateway_tools: Callable[[str, tuple[str, ...]], Awaitable[list[Tool]]]
    clock: Clock
    background: Background
    sleep: Sleep = asyncio.sleep
    reranker: Callable[[], Reranker | None] = lambda: None


@dataclass(frozen=True, slots=True)
class Identity:
    """Who an instance is. Raises InvalidInput through `Scope`."""

    scope: Scope
    instance_id: str

    @property
    def agent_type(self) -> str:
        """The instance's agent."""
        if self.scope.agent_type is None:
            raise InvalidInput("an instance belongs to an agent", code="invalid_request")
        return self.scope.agent_type

    @property
    def key(self) -> str:
        """The instance's namespace key."""
        return namespace_key(self.scope.agent_type or "", self.scope.tenant_id, self.instance_id)


class Instance:
    """One agent instance. Made anew whenever the object wakes up; its state is in the object's SQLite."""

    def __init__(self, identity: Identity, ports: InstancePorts) -> None:
        self._identity = identity
        self._ports = ports
        self._active = False
        for schema in (*journal_module.SCHEMA, outbox_module.SCHEMA, working_module.SCHEMA):
            ports.local.run(schema)
        scope = identity.scope
        self._outbox = Outbox(ports.local, ports.sql, journal_module.STATEMENTS, ports.clock, identity.key)
        self._journal = Journal(ports.local, self._outbox, ports.clock, scope, identity.instance_id)
        self._working = WorkingMemory(ports.local, ports.kv, ports.clock, scope.tenant_id, identity.instance_id)

    async def run(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Run the agent on an input and return the result.

        With an idempotency key that was used before, the first result is returned: at once, after waiting for it, or
        after finishing the interrupted run. A run that goes on for too long answers `running`.
        Raises: Conflict (code `instance_busy`) while another run is under way, (code `idempotency_key_reused`) when the
            key came with another request; QuotaExceeded; LimitExceeded; Unavailable; Misconfigured (code
            `wrong_instance`) for a request that is for another instance.
        """
        if identity_of(request) != self._identity:
            raise Misconfigured("the object belongs to another instance", code="wrong_instance")
        digest = hashlib.sha256(
            json.dumps([request["input"], request.get("metadata")], sort_keys=True).encode()
        ).hexdigest()
        key = request.get("idempotency_key")
        known = self._journal.find_by_key(key) if key else None
        if known is not None:
            if known["request_hash"] != digest:
                raise Conflict("the idempotency key was used for another request", code="idempotency_key_reused")
            if known["status"] != "running":
                return self._journal.result(known["run_id"])
            if self._active:
                return await self._awaited(known["run_id"])
        if self._active:
            raise Conflict("the instance is busy with another run; try again", code="instance_busy")
        self._active = True
        try:
            await self._resume_interrupted()
            if known is not None:
                return self._journal.result(known["run_id"])
            return await self._run_anew(request, digest)
        finally:
            self._active = False
            await self._schedule()
            self._ports.background(self._flush())

    async def describe(self, limit: int = 50) -> dict[str, Any]:
        """Return the turn state, the newest log entries and the working keys."""
        turns, log = self._journal.recent(limit)
        return {
            "instance_id": self._identity.instance_id,
            "turn_state": [
                {name: row[name] for name in ("run_id", "status", "turn", "created_at_ms", "updated_at_ms")}
                for row in turns
            ],
            "run_log": [
                {
                    **{name: row[name] for name in ("run_id", "seq", "turn", "kind", "at_ms")},
                    "data": json.loads(row["data"]),
                }
                for row in log
            ],
            "working": self._working.all(),
        }

    async def on_alarm(self) -> None:
        """Finish what a crash interrupted, write what is owed, clear what is idle, and set the next alarm."""
        if not self._active:
            self._active = True
            try:
                await self._resume_interrupted()
            except RetainError as error:
                # The run stays open and the alarm is set again: the platform gives up an alarm that fails six times.
                _log.warning("an interrupted run waits", extra={"code": error.code})
            finally:
                self._active = False
        if await self._outbox.flush() and self._idle():
            await self._working.clear()
            self._journal.forget()
        await self._schedule()

    async def erase(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Forget what the object itself holds: everything, or the runs and working keys that name a term.

        request: {"term"?: text}. What is owed to D1 is dropped with everything else; before a term is looked for, it is
        written, so that nothing that names it arrives there later. Idempotent. After everything was erased, the object
        does not know who it is until it is called again.
        Raises: Conflict (code `instance_busy`) while a run is under way or, for a term, interrupted; Unavailable when
            D1 or KV did not answer. Then the call is to be repeated.
        """
        text = request.get("term")
        if self._active or (text is not None and self._journal.running()):
            raise Conflict("the instance is busy with a run; try again", code="instance_busy")
        self._active = True
        try:
            if text is not None:
                names = Term.of(text).in_stored
                if not await self._outbox.flush():
                    raise Unavailable("the instance owes D1 what it did; try again", code="outbox_waits")
                await self._working.erase(names)
                self._journal.erase(names)
                return {"everything": False}
            await self._working.clear()
            await self._outbox.discard()
            self._journal.erase(None)
            self._ports.local.run("DELETE FROM identity")
            return {"everything": True}
        finally:
            self._active = False

    async def _awaited(self, run_id: str) -> dict[str, Any]:
        """Return the result of a run that another call is carrying out, or that it is still running after a while."""
        for _ in range(WAIT_TURNS):
            await self._ports.sleep(WAIT_S)
            if run_id not in self._journal.running():
                return self._journal.result(run_id)
        return {"run_id": run_id, "instance_id": self._identity.instance_id, "status": "running"}

    async def _run_anew(self, request: Mapping[str, Any], digest: str) -> dict[str, Any]:
        ports, scope = self._ports, self._identity.scope
        definition = ports.catalogue.agent(self._identity.agent_type)
        await self._outbox.flush()
        config = definition.memory_config
        episodes = await last_episodes(ports.sql, scope, config.episodes)
        records: list[Hit] = []
        query = _query(request["input"])
        if query and config.long_term_enabled and config.recall in ("context", "both"):
            records = await self._semantic().search(RecallQuery(query, config.top_k))
        context = assemble(
            definition, request["input"], episodes=episodes, records=records, working=self._working.all()
        )
        loop, model = await self._loop(definition, int(request.get("depth", 0)))
        run = self._journal.open(new_id(), request, context, model=model.name, request_hash=digest)
        await ports.alarm.set(ports.clock() + LEASE_MS)
        with bind(run_id=run.run_id):
            ports.background(self._flush())
            await loop.finish(run)
        return self._journal.result(run.run_id)

    async def _resume_interrupted(self) -> None:
        for run_id in self._journal.running():
            run = self._journal.load(run_id)
            _log.warning("resuming an interrupted run", extra={"run_id": run_id})
            if self._journal.count_resumption(run_id) > MAX_RESUMPTIONS:
                self._give_up(run, "resumed_too_often", f"the run was interrupted {MAX_RESUMPTIONS} times")
                continue
            try:
                definition = self._ports.catalogue.agent(self._identity.agent_type)
                loop, _ = await self._loop(definition, int(run.request.get("depth", 0)))
            except Unavailable:
                self._journal.forgive_resumption(run_id)
                raise
            except NotFound as error:
                # The agent or a tool of it was removed meanwhile: the run cannot go on, and must not block the next.
                self._give_up(run, error.code, error.message)
            else:
                await loop.finish(run)

    def _give_up(self, run: OpenRun, code: str, message: str) -> None:
        failed = RunFailed(len(run.state.turns), code, message)
        self._journal.close(run, failed, result_of(run, failed, self._identity.instance_id))

    async def _loop(self, definition: AgentDefinition, depth: int) -> tuple[RunLoop, ChatModel]:
        model = self._ports.chat(definition)
        tools = await self._tools(definition, depth)
        return RunLoop(definition, self._journal, model, tools, self._identity.instance_id), model

    async def _tools(self, definition: AgentDefinition, depth: int) -> dict[str, Tool]:
        ports, scope = self._ports, self._identity.scope
        tools: list[Tool] = []
        config = definition.memory_config
        if config.long_term_enabled and config.recall in ("tool", "both"):
            tools.append(RecallMemory(self._semantic()))
        if config.long_term_enabled and config.store:
            memory = self._semantic()
            tools.append(StoreMemory(memory, self._semantic(memory.scope.around("house")) if config.share else None))
        if definition.working_memory:
            tools += [GetWorkingMemory(self._working), SetWorkingMemory(self._working)]
        if definition.delegates:
            agents = {name: ports.catalogue.agent(name).description for name in definition.delegates}
            tools.append(Delegate(ports.instances, scope.tenant_id, agents, depth))
        if definition.tools:
            tools += await ports.gateway_tools(scope.tenant_id, definition.tools)
        return {tool.spec.name: tool for tool in tools}

    def _semantic(self, scope: Scope | None = None) -> SemanticMemory:
        """Return the agent's memory, or that of a scope around it."""
        ports = self._ports
        if scope is None:
            house = ports.catalogue.agent(self._identity.agent_type).house
            scope = replace(self._identity.scope, house=house)
        return SemanticMemory(scope, ports.sql, ports.index, ports.embedder(), ports.clock, reranker=ports.reranker())

    async def _flush(self) -> None:
        await self._outbox.flush()
        await self._schedule()

    def _idle(self) -> bool:
        turns, _ = self._journal.recent(1)
        return not self._active and bool(turns) and self._ports.clock() - turns[0]["updated_at_ms"] >= IDLE_MS

    async def _schedule(self) -> None:
        """Set the alarm for the next thing that is due: an interrupted run, an owed write, or idleness."""
        now = self._ports.clock()
        due: list[int] = []
        if self._active or self._journal.running():
            due.append(now + LEASE_MS)
        owed = self._outbox.next_due_ms()
        if owed is not None:
            due.append(max(owed, now + 1000))
        turns, _ = self._journal.recent(1)
        if turns and not due:
            due.append(turns[0]["updated_at_ms"] + IDLE_MS)
        if due:
            await self._ports.alarm.set(min(due))


def _query(run_input: str | Mapping[str, Any]) -> str:
    """Return what to recall for an input: its beginning, as long as a query may be; "" when there is nothing to ask."""
    encoded = input_text(run_input).strip().encode("utf-8", "replace")
    return encoded[:MAX_QUERY_BYTES].decode("utf-8", "ignore")


def identity_of(request: Mapping[str, Any]) -> Identity:
    """Return who a request is for. Raises: InvalidInput."""
    try:
        scope = Scope(request["tenant_id"], check_agent_type(request["agent_type"]))
        return Identity(scope, check_instance_id(request["instance_id"]))
    except KeyError as error:
        raise InvalidInput(f"the request names no {error.args[0]}", code="invalid_request") from error


def claim(local: ObjectSql, identity: Identity) -> None:
    """Write into the object who it is, once. Raises: Misconfigured when it is another instance."""
    local.run("CREATE TABLE IF NOT EXISTS identity (tenant_id TEXT, agent_type TEXT, instance_id TEXT)")
    known = claimed(local)
    if known is None:
        scope = identity.scope
        local.run("INSERT INTO identity VALUES (?, ?, ?)", scope.tenant_id, scope.agent_type, identity.instance_id)
    elif known != identity:
        raise Misconfigured("the object belongs to another instance", code="wrong_instance")


def require_claimed(local: ObjectSql) -> Identity:
    """Return who the object is, and write nothing. Raises: NotFound (code `no_such_instance`) when it was never called."""
    known = claimed(local)
    if known is None:
        raise NotFound("there is no such instance", code="no_such_instance")
    return known


def claimed(local: ObjectSql) -> Identity | None:
    """Return who the object is, or None when it was never called."""
    if not local.run("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'identity'").rows:
        return None
    rows = local.run("SELECT * FROM identity").rows
    return identity_of(rows[0]) if rows else None
