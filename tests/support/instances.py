"""Agents on the host: real instances on real SQLite, one process that can die and restart.

    with closing(Deployment()) as deployment:
        deployment.faults.plan(Fault(Crash(), nth=7))
        with pytest.raises(Crash):
            await deployment.run("order_triage", MAIL)
        await deployment.recover()

What outlives a crash: the objects' storage, D1, KV, the vector index, and the upstreams' memory of what they were asked.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from retain.agents.catalogue import AgentCatalogue
from retain.agents.definitions import AgentDefinition
from retain.agents.execution.parked import require_known
from retain.agents.identity import InstanceIdentity, claim, claimed, identity_of
from retain.agents.instance import Instance
from retain.agents.instance_ports import InstancePorts
from retain.agents.methods import METHODS, forgot_itself
from retain.agents.tools.built_in import Tool
from retain.agents.tools.proxied import ProxiedTool
from retain.agents.versions.tenant_agents import TenantAgents
from retain.attachments.attachment import MAX_SENT_BYTES
from retain.attachments.store import Attachments
from retain.errors import NoSuchTool, RetainError, Unavailable
from retain.host.background import TaskBackground
from retain.host.clock import ManualClock, system_time_zones
from retain.host.fetch import HostFetch
from retain.host.kv import SqliteKv
from retain.host.objects import SqliteObjects
from retain.host.vectors import SqliteVectorIndex
from retain.json_text import JsonObject
from retain.limits.room import RECALLING_BYTES, Room
from retain.memory.records.record import NewRecord, RecordSource
from retain.memory.scope import Scope
from retain.memory.semantic import SemanticMemory
from retain.models.chat import ChatModel, ToolSpec
from retain.models.embedders.static import StaticEmbedder
from retain.models.scripted.chat import ScriptedChat
from retain.models.scripted.schema import check_script
from retain.ports import Row, Sql, VectorIndex
from retain.rpc import answer, opened, refusal
from retain.telemetry.exporter import SpanExporter
from retain.webhooks.sender import Sender
from tests.support.databases import migrated_d1
from tests.support.faults import Crash, Faults
from tests.support.object_storage import ObjectStorage
from tests.support.receiver import Receiver, allow, keyring
from tools.agent_definitions import compile_agents

ROOT = Path(__file__).parents[2]
ULID = re.compile(r"[0-7][0-9A-HJKMNP-TV-Z]{25}")
HOUR_MS = 3_600_000


@cache
def shipped_embedder() -> StaticEmbedder:
    """Return the local embedding model; its table is read once for all tests."""
    return StaticEmbedder(ROOT / "models" / "static-minilm-256-i8.bin")


@cache
def _shipped() -> str:
    return json.dumps(compile_agents(ROOT / "agents"))


def catalogue(
    *more: Mapping[str, Any], scripts: Sequence[Mapping[str, Any]] = (), functions: Mapping[str, str] | None = None
) -> AgentCatalogue:
    """Return the agents in `agents/`, and more, as `staged_agents` does."""
    return AgentCatalogue.from_json(staged_agents(*more, scripts=scripts, functions=functions))


def staged_agents(
    *more: Mapping[str, Any], scripts: Sequence[Mapping[str, Any]] = (), functions: Mapping[str, str] | None = None
) -> str:
    """Return what staging writes of the agents in `agents/`, and of more.

    scripts: by their names, checked as staging checks them. functions: module of each further function tool.
    """
    staged = json.loads(_shipped())
    for definition in more:
        valid = AgentDefinition.model_validate(dict(definition))
        staged["agents"][valid.type] = valid.model_dump(mode="json")
    for script in scripts:
        staged["scripts"][script["name"]] = check_script(dict(script))
    staged["functions"] |= functions or {}
    return json.dumps(staged)


@dataclass
class Upstream:
    """A gateway tool's upstream, and what it was asked: arguments with the idempotency key."""

    name: str
    idempotent: bool
    status: int = 200
    body: str = '{"done": true}'
    asked: list[tuple[dict[str, Any], str]] = field(default_factory=list)

    async def call(self, arguments: Mapping[str, Any], idempotency_key: str) -> tuple[int, bytes]:
        """Answer, and record the question."""
        self.asked.append((dict(arguments), idempotency_key))
        return self.status, self.body.encode()


class Deployment:
    """One D1, KV and index, and any number of agent instances, in a process that can die.

    chat: makes an agent's model, the script that its definition names by default. upstreams: of the gateway's tools.
    naps: how long instances meant to sleep, in seconds. They do not: they only let everything else run.
    """

    def __init__(
        self,
        agents: AgentCatalogue | None = None,
        *,
        upstreams: Sequence[Upstream] = (),
        chat: Callable[[AgentDefinition], ChatModel] | None = None,
        turns: bool = True,
    ) -> None:
        self.catalogue = agents or catalogue()
        self.upstreams = {upstream.name: upstream for upstream in upstreams}
        self.clock = ManualClock()
        self.faults = Faults(self._died)
        self.background = TaskBackground()
        self.sql = migrated_d1()
        self.kv = SqliteKv.open(self.clock)
        self.objects_store = SqliteObjects.open()
        self.attachments = Attachments(self.sql, self.objects_store, self.clock)
        self.index = SqliteVectorIndex.open(shipped_embedder().dimensions)
        self.storages: dict[str, ObjectStorage] = {}
        self.alarm_failures: list[RetainError] = []
        self.exporter: SpanExporter | None = None
        self.naps: list[float] = []
        self.receiver = Receiver()
        self.recalling = Room(RECALLING_BYTES, self.clock)
        self.sending = Room(MAX_SENT_BYTES, self.clock)
        self._turns = turns
        self._living: dict[str, Instance] = {}
        self._calls: set[asyncio.Task[str]] = set()
        self._unheard: set[str] = set()
        self._chat = chat or (lambda definition: ScriptedChat(self.catalogue.script(definition.model.script)))

    @property
    def agents(self) -> TenantAgents:
        """Every tenant's agents, as an isolate knows them that remembers none."""
        return TenantAgents(self.catalogue, self.shared()[0], self.clock)

    def shared(self) -> tuple[Sql, VectorIndex]:
        """Return the D1 and the index that instances work with: its own, unless a subclass has others."""
        return self.sql, self.index

    def close(self) -> None:
        """Close every database."""
        self.sql.close()
        self.kv.close()
        self.objects_store.close()
        self.index.close()
        for storage in self.storages.values():
            storage.close()

    async def run(
        self,
        agent_type: str,
        run_input: str | Mapping[str, Any],
        *,
        tenant: str = "acme",
        instance: str = "main",
        key: str | None = None,
        **more: Any,
    ) -> dict[str, Any]:
        """Run an agent as its route does. more: further fields of the request.

        Raises: what the instance raised; Crash when the process died meanwhile.
        """
        request = {
            "tenant_id": tenant,
            "agent_type": agent_type,
            "instance_id": instance,
            "input": run_input,
            "metadata": {},
            "idempotency_key": key,
            **more,
        }
        return dict(opened(await self.receive(f"{agent_type}:{tenant}:{instance}", "run", json.dumps(request))))

    async def describe(self, agent_type: str, *, tenant: str = "acme", instance: str = "main") -> dict[str, Any]:
        """Describe an instance as its route does."""
        identity = {"tenant_id": tenant, "agent_type": agent_type, "instance_id": instance}
        return dict(opened(await self.receive(f"{agent_type}:{tenant}:{instance}", "describe", json.dumps(identity))))

    async def ask(
        self, agent_type: str, method: str, *, tenant: str = "acme", instance: str = "main", **fields: Any
    ) -> dict[str, Any]:
        """Call any method of an instance as its routes do. Raises: as `run`."""
        request = {"tenant_id": tenant, "agent_type": agent_type, "instance_id": instance, **fields}
        return dict(opened(await self.receive(f"{agent_type}:{tenant}:{instance}", method, json.dumps(request))))

    async def receive(self, name: str, method: str, request: str) -> str:
        """Call a method of the object of this name, as the Durable Object's shell does: JSON in, envelope out."""
        storage, life = self.storages.setdefault(name, ObjectStorage(turns=self._turns)), self.faults.life(name)
        try:
            content = json.loads(request)
            if METHODS[method].known_only:
                await require_known(self.ports(name), identity_of(content), content.get("run_id"))
            result = await METHODS[method].call(self.living(name, identity_of(content)), content)
            if method == "erase" and forgot_itself(result):
                self._living.pop(name, None)
            self.faults.reach(life, "answer")
            storage.commit()
            return answer(result)
        except RetainError as error:
            return refusal(error)

    def living(self, name: str, identity: InstanceIdentity) -> Instance:
        """Return the object's instance, a new one when it is asleep or died."""
        if name not in self._living:
            claim(self.storages[name], identity)
            self._living[name] = Instance(identity, self.ports(name))
        return self._living[name]

    def ports(self, name: str) -> InstancePorts:
        """Return what the instance of this name works with, every port with its points of failure."""
        storage, life, wrap = self.storages[name], self.faults.life(name), self.faults.wrap

        def outside(port: str, adapter: Any) -> Any:
            return wrap(port, adapter, life, before=storage.commit)

        async def gateway_tools(tenant_id: str, names: tuple[str, ...]) -> list[Tool]:
            self.faults.reach(life, "tool.describe")
            unknown = sorted(set(names) - self.upstreams.keys())
            if unknown:
                raise NoSuchTool("the tenant has no such tool", tool=unknown[0])
            return [self._proxied(self.upstreams[tool], outside("tool", self.upstreams[tool])) for tool in names]

        return InstancePorts(
            local=wrap("local", storage, life),
            alarm=wrap("alarm", storage.alarm, life),
            sql=outside("sql", self.shared()[0]),
            kv=outside("kv", self.kv),
            index=outside("index", self.shared()[1]),
            embedder=lambda: outside("embedder", shipped_embedder()),
            chat=lambda definition: outside("chat", self._chat(definition)),
            catalogue=self.catalogue,
            agents=TenantAgents(self.catalogue, outside("sql", self.shared()[0]), self.clock),
            instances=outside("instances", LocalInstances(self)),
            gateway_tools=gateway_tools,
            fetch=HostFetch(),
            clock=self.clock,
            time_zones=system_time_zones,
            background=self.background,
            recalling=self.recalling,
            sleep=self._nap,
            exporter=self.exporter,
            sender=self._sender(outside("sql", self.shared()[0]), outside("hook", self.receiver)),
            attachments=Attachments(
                outside("sql", self.shared()[0]), outside("objects", self.objects_store), self.clock
            ),
            sending=self.sending,
        )

    def _sender(self, sql: Sql, receiver: Receiver) -> Sender:
        return Sender(sql, receiver.fetch, self.clock, keyring, allow)

    async def _nap(self, seconds: float) -> None:
        self.naps.append(seconds)
        await asyncio.sleep(0)

    def _proxied(self, upstream: Upstream, reached: Upstream) -> Tool:
        schema = {"type": "object", "properties": {"order": {"type": "string"}}, "required": ["order"]}
        return ProxiedTool(ToolSpec(upstream.name, f"Do {upstream.name}.", schema), upstream.idempotent, reached.call)

    async def call(self, name: str, method: str, request: str) -> str:
        """Call an object from another one: it continues when its caller dies, and its caller learns when it dies."""
        task = asyncio.create_task(self.receive(name, method, request))
        self._calls.add(task)
        task.add_done_callback(self._calls.discard)
        try:
            return await asyncio.shield(task)
        except Crash:
            if not self.faults.alone:
                raise
            raise Unavailable("the agent instance failed; try again", code="agent_instance_unavailable") from None

    async def settled(self) -> None:
        """Return when no background work and no call between objects is left."""
        while self._calls:
            await asyncio.wait(self._calls)
        await self.background.settled()

    async def restart(self, *, planned: bool = False) -> None:
        """Wait until the dead have noticed. Every object that died starts again when it is next called.

        planned: faults that were planned and did not happen yet stay planned.
        """
        await self.settled()
        if not planned:
            self.faults.cancel()
        for name in self._unheard:
            await self._ring_again(name)
        self._unheard.clear()

    def _died(self, owner: str | None) -> None:
        for name, storage in self.storages.items():
            if owner in (None, name):
                storage.lose_turn()
                self._living.pop(name, None)

    async def evict(self) -> None:
        """Put every object to sleep, so that it starts again when it is next called."""
        await self.settled()
        self._living.clear()

    async def lose(self, name: str) -> None:
        """Delete an object's storage, with its alarm, as if it had never been called."""
        await self.evict()
        self.storages.pop(name).close()

    async def fire_alarms(self) -> int:
        """Fire every alarm that is due, again after a failure as the platform does; return how many were due."""
        fired = 0
        for name, storage in list(self.storages.items()):
            if not storage.timer.take_due(self.clock()):
                continue
            fired += 1
            identity = claimed(storage)
            try:
                if identity is not None:
                    await self.living(name, identity).on_alarm()
                storage.commit()
            except RetainError as error:
                self.alarm_failures.append(error)
                await self._ring_again(name)
            except Crash:
                self._unheard.add(name)
                raise
        await self.settled()
        return fired

    async def _ring_again(self, name: str) -> None:
        """Fire the alarm two seconds later, unless the object set it again.

        Source: https://developers.cloudflare.com/durable-objects/api/alarms/
        """
        alarm = self.storages[name].alarm
        if await alarm.get() is None:
            await alarm.set(self.clock() + 2_000)

    async def next_alarm_ms(self) -> int | None:
        """Return when the next alarm of any object is due."""
        times = [await storage.alarm.get() for storage in self.storages.values()]
        return min((at_ms for at_ms in times if at_ms is not None), default=None)

    async def recover(self, *, planned: bool = False) -> None:
        """Restart, and fire alarms until what is left is due in an hour or later, which is only idleness."""
        await self.restart(planned=planned)
        for _ in range(100):
            at_ms = await self.next_alarm_ms()
            if at_ms is None or at_ms > self.clock() + HOUR_MS:
                return
            self.clock.set(max(at_ms, self.clock()))
            await self.fire_alarms()
        raise AssertionError("the alarms never come to rest")

    async def seed(self, agent_type: str, contents: Sequence[str], *, tenant: str = "acme") -> None:
        """Store memories in an agent's scope."""
        memory = SemanticMemory(Scope(tenant, agent_type), self.sql, self.index, shipped_embedder(), self.clock)
        await memory.store_all([NewRecord(content) for content in contents], RecordSource("person"))

    async def rows(self, sql: str, *values: str | int) -> list[Row]:
        """Return the rows of a query to D1."""
        return (await self.sql.run(sql, *values)).rows

    def objects(self) -> list[str]:
        """Return the names of the objects that were called and lived long enough to make their tables."""
        made = "SELECT 1 FROM sqlite_master WHERE name = 'working_memory'"
        return [name for name, storage in self.storages.items() if storage.run(made).rows]

    def local(self, name: str, sql: str) -> list[Row]:
        """Return the rows of a query to an object's own database."""
        return self.storages[name].run(sql).rows


class LocalInstances:
    """Implements `AgentInstances` inside the deployment's process."""

    def __init__(self, deployment: Deployment) -> None:
        self._deployment = deployment

    async def call(self, name: str, method: str, request: JsonObject) -> JsonObject:
        """Call a method of the instance with this namespace key."""
        return opened(await self._deployment.call(name, method, json.dumps(request)))
