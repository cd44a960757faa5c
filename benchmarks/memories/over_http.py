"""Retain over HTTP: the whole Worker on bare workerd, whose memories are filled and searched as clients do."""

from __future__ import annotations

import asyncio
import base64
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from benchmarks.harness.client import Client
from benchmarks.harness.contestant import Call, HttpContestant
from benchmarks.harness.retain_worker import Stores, whole
from benchmarks.harness.workerd import Workerd
from benchmarks.harness.workerd import running as running_workerd
from retain.cli.keys import new_signing_key

HTTP = "Retain, over HTTP"
TENANT, AGENT = "default", "sdr"
FILLED = 100
"""Texts in one request, as many as a request may have."""
_TOP_K = 10


@dataclass(frozen=True)
class OverHttp:
    """A running Worker. service: its name. agent: whose memories are filled and searched."""

    workerd: Workerd
    service: str = "retain"
    agent: str = AGENT

    def fill(self, texts: Sequence[str]) -> None:
        """Store texts. Raises: AssertionError when they are refused."""
        asyncio.run(self._fill(texts))

    async def _fill(self, texts: Sequence[str]) -> None:
        client = await Client.connect(self.workerd.ports[self.service])
        try:
            for first in range(0, len(texts), FILLED):
                some = [{"content": text} for text in texts[first : first + FILLED]]
                body = {"tenant": TENANT, "agent_type": self.agent, "memories": some}
                status, answer = await client.ask(Call("POST", "/admin/seed-memory", body).bytes_for("127.0.0.1"))
                assert status == 201, answer[:500]
        finally:
            client.close()

    def contestant(self, name: str, what: str, texts: Iterator[str]) -> HttpContestant:
        """Return what searches, or adds, over HTTP."""
        base = f"/admin/tenants/{TENANT}/memories"

        def search() -> Call:
            return Call("POST", f"{base}/recall", {"query": next(texts), "agent_type": self.agent, "top_k": _TOP_K})

        def add() -> Call:
            return Call("POST", base, {"content": next(texts), "agent_type": self.agent}, expected=201)

        made = {"search": search, "add": add}[what]
        return HttpContestant(name, self.workerd.ports[self.service], made, {"workerd": [self.workerd.pid]})


@contextmanager
def over_http() -> Iterator[OverHttp]:
    """Run the Worker, without memories, until the block ends."""
    secrets = {name: base64.b64encode(os.urandom(32)).decode() for name in ("CREDENTIALS_KEY", "MEMORY_KEY")}
    secrets["TOKEN_KEY"] = new_signing_key()
    with running_workerd("memories", whole(secrets=secrets)) as workerd:
        Stores(workerd).migrate()
        yield OverHttp(workerd)
