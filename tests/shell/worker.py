"""The Worker on the host: production's entrypoint and Durable Objects in one isolate, with every binding.

    async with serving() as worker:
        answer = await worker.request("GET", "/healthz")

The isolate is warm from its first request on, as an isolate is; `restart` gives a cold one with the same stores.
"""

from __future__ import annotations

import base64
import json
import logging
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from retain.cli.keys import new_signing_key
from retain.host.clock import ManualClock
from retain.host.kv import SqliteKv
from retain.host.objects import SqliteObjects
from retain.host.shipped import embedding_table
from retain.host.vectors import SqliteVectorIndex
from tests.shell.platform import install, js, sdk
from tests.shell.platform.bindings import D1, R2, Ai, Kv, Vectorize
from tests.shell.platform.http import Request, Response, body_of, close_connections
from tests.shell.platform.objects import Namespace
from tests.shell.platform.streams import ReadableStream
from tests.support.databases import migrated_d1
from tests.support.instances import staged_agents
from tools.local_config import local_config
from tools.paths import PRODUCTION_CONFIG
from tools.stage import read_config

install()
entry: Any = import_module("entry")
request_bodies: Any = import_module("adapters.body")
bindings: Any = import_module("bindings")
root: Any = import_module("assembly.root")

KEY = base64.b64encode(bytes(range(32))).decode()
VARIABLES: Mapping[str, str] = {
    **local_config(read_config(PRODUCTION_CONFIG))["vars"],
    "ALLOW_MODEL_REQUESTS": "false",
    "CREDENTIALS_KEY": KEY,
    "MEMORY_KEY": KEY,
    "TOKEN_KEY": new_signing_key(),
}
"""What the local server sets, without any request to a model."""
HOST = "127.0.0.1:8787"


@dataclass(frozen=True)
class Answer:
    """What the Worker answered."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def content(self) -> Any:
        """The body, read as JSON."""
        return json.loads(self.body)


class Worker:
    """One deployment. variables: of `env`, besides the bindings. agents: what staging wrote."""

    def __init__(self, folder: Path, variables: Mapping[str, str], agents: str, shards: int = 1) -> None:
        self.clock: ManualClock = js.clock
        self.clock.set(1_700_000_000_000)
        (folder / "agents.json").write_text(agents)
        (folder / embedding_table().name).symlink_to(embedding_table())
        vars(bindings)["__file__"] = str(folder / "bindings.py")
        self.kv = Kv(SqliteKv.open(self.clock))
        self.db = D1(migrated_d1())
        self.cold = R2(SqliteObjects.open())
        self.vectors = Vectorize(SqliteVectorIndex.open(256))
        self.ai = Ai(_no_answer)
        self.agents = Namespace(lambda context: entry.AgentRuntime(context, self.env))
        self.writers = Namespace(lambda context: entry.TenantWriter(context, self.env))
        self.env = SimpleNamespace(
            KV=self.kv,
            DB=self.db,
            COLD=self.cold,
            VECTORIZE=self.vectors,
            AGENT_RUNTIME=self.agents,
            TENANT_WRITER=self.writers,
            AI=self.ai,
            **variables,
        )
        self.shards = {"DB": self.db}
        self.indexes = {"DB": self.vectors}
        for number in range(1, shards):
            self.shards[f"DB_{number}"] = D1(migrated_d1())
            self.indexes[f"DB_{number}"] = Vectorize(SqliteVectorIndex.open(256))
            setattr(self.env, f"DB_{number}", self.shards[f"DB_{number}"])
            setattr(self.env, f"VECTORIZE_{number}", self.indexes[f"DB_{number}"])
        self.restart()

    def restart(self) -> None:
        """Let the isolate end: the next request starts a cold one, and every object is asleep."""
        root._isolate.clear()
        self.agents.sleep()
        self.writers.sleep()

    @property
    def entrypoint(self) -> Any:
        """Production's entrypoint."""
        return entry.Default(SimpleNamespace(), self.env)

    async def request(
        self,
        method: str,
        path: str,
        content: object = None,
        *,
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
        pieces: list[bytes] | None = None,
        host: str = HOST,
    ) -> Answer:
        """Send a request and return the answer. content: sent as JSON; body: as it is; pieces: as it arrives."""
        if content is not None:
            body = json.dumps(content).encode()
        given = pieces if pieces is not None else None if body is None else [body]
        return await self.send(Request(method, f"http://{host}{path}", headers or {}, given))

    async def send(self, request: Request) -> Answer:
        """Send a request of the platform."""
        response = await self.entrypoint.fetch(SimpleNamespace(url=request.url, js_object=request))
        assert isinstance(response, Response)
        headers = {name: str(response.headers.get(name)) for name in response.headers.keys()}  # noqa: SIM118
        if isinstance(response.body, ReadableStream):
            return Answer(response.status, headers, (await response.arrayBuffer()).to_bytes())
        return Answer(response.status, headers, body_of(response) or b"")

    async def cron(self, expression: str) -> None:
        """Let a schedule fire."""
        await self.entrypoint.scheduled(SimpleNamespace(cron=expression))

    async def settled(self) -> None:
        """Return when no work of waitUntil is left."""
        await sdk.settled()

    async def ring(self) -> int:
        """Fire the alarms that are due."""
        return await self.agents.ring(self.clock())

    async def run(self, tenant: str, agent: str, text: str, **more: object) -> Any:
        """Run an agent; return the result, once it is written."""
        answer = await self.request("POST", f"/v1/agents/{tenant}/{agent}/run", {"input": text, **more})
        assert answer.status == 200, answer.body
        await self.settled()
        return answer.content

    async def rows(self, sql: str, *values: str | int) -> list[Mapping[str, Any]]:
        """Return the rows of a query to D1: those of each database, where there are several."""
        return [row for db in self.shards.values() for row in (await db.store.run(sql, *values)).rows]

    async def tenant(self, tenant_id: str = "acme") -> str:
        """Register a tenant."""
        assert (await self.request("PUT", f"/admin/tenants/{tenant_id}")).status == 201
        return tenant_id

    def close(self) -> None:
        """Close the stores."""
        for store in (self.kv.store, self.cold.store):
            store.close()
        for shard, database in self.shards.items():
            database.store.close()
            self.indexes[shard].store.close()
        for storage in self.agents.storages.values():
            storage.connection.close()


@asynccontextmanager
async def serving(*, agents: str | None = None, shards: str = "1", **variables: str) -> AsyncIterator[Worker]:
    """Serve. shards: how many databases there are. variables: those that differ from the local ones."""
    with tempfile.TemporaryDirectory() as folder:
        worker = Worker(Path(folder), {**VARIABLES, **variables}, agents or staged_agents(), int(shards))
        try:
            yield worker
            await worker.settled()
        finally:
            await close_connections()
            root._isolate.clear()
            worker.close()
            _forget_logging()


def _forget_logging() -> None:
    """Undo what an isolate does to the process's logging, which other tests read."""
    logger = logging.getLogger("retain")
    logger.handlers.clear()
    logger.propagate = True
    logger.setLevel(logging.NOTSET)


def _no_answer(model: str, inputs: Mapping[str, object]) -> object:
    raise AssertionError(f"nobody asks {model}")
