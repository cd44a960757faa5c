"""Real workerd with a vector index that hangs: answers come within seconds, and what is owed is settled when it is back."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.e2e.local_state import LocalState, Rows
from tests.e2e.servers import client_of, staged
from tools.local_server import start, stop
from tools.paths import STAND_IN_CONFIG
from tools.stage import read_config

pytestmark = pytest.mark.workerd

GATED = Path(__file__).with_name("gated_index") / "worker.js"
WITHIN_S = 15
"""Far below what a hang takes, and far above the deadlines that one request may meet."""


class Gate(ThreadingHTTPServer):
    """Answers while it is open; lets everybody wait while it is not."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Visitor)
        self.open = threading.Event()
        self.open.set()

    @property
    def address(self) -> str:
        """Where it is."""
        return f"http://127.0.0.1:{self.server_port}/"


class _Visitor(BaseHTTPRequestHandler):
    server: Gate

    def do_GET(self) -> None:
        self.server.open.wait()
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def gate() -> Iterator[Gate]:
    """The gate before the index."""
    server = Gate()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.open.set()
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def state(migrated_state: Callable[[], Path]) -> LocalState:
    """What the server keeps."""
    return LocalState(migrated_state())


@pytest.fixture(scope="module")
def gated(gate: Gate, state: LocalState, tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """A server whose vector index is behind the gate."""
    config = read_config(STAND_IN_CONFIG)
    config.pop("$schema", None)
    config["main"] = str(GATED)
    config["vars"]["GATE"] = gate.address
    stand_in = tmp_path_factory.mktemp("gated") / "wrangler.json"
    stand_in.write_text(json.dumps(config))
    with staged("gated", shards=1) as staged_config, pytest.MonkeyPatch.context() as patch:
        patch.setattr("tools.local_server.STAND_IN_CONFIG", stand_in)
        server = start(state.root, config=staged_config)
        client = client_of(server)
        try:
            yield client
        finally:
            client.close()
            stop(server)


def test_a_recall_and_a_store_answer_while_the_index_hangs(gated: httpx.Client, gate: Gate, state: LocalState) -> None:
    assert gated.put("/admin/tenants/hung").status_code == 201
    path = "/admin/tenants/hung/memories"
    known = gated.post(path, json={"content": "Ann prefers e-mail."}).json()
    assert "degraded" not in known
    gate.open.clear()
    try:
        for _ in range(2):  # the second one finds nothing left over from the first
            recalled = _in_time(gated, f"{path}/recall", {"query": "Ann e-mail"})
            assert (recalled["memories"][0]["id"], recalled["degraded"]) == (known["id"], ["vectors"])
        stored = _in_time(gated, path, {"content": "Bob prefers a call."})
        assert (stored["created"], stored["degraded"]) == (True, ["vectors"])
        recalled = _in_time(gated, f"{path}/recall", {"query": "Bob call"})
        assert recalled["memories"][0]["id"] == stored["id"]
    finally:
        gate.open.set()
    assert gated.post(f"{path}/recall", json={"query": "Ann e-mail"}).json()["degraded"] == []
    assert [row["state"] for row in _debts(state, stored["id"])] == ["owed"]
    with state.d1_transaction() as database:  # as if a minute had passed
        database.execute("UPDATE memory_outbox SET at_ms = at_ms - 60000")
    assert gated.get("/cdn-cgi/handler/scheduled", params={"cron": "*/5 * * * *"}).status_code == 200
    assert [row["state"] for row in _debts(state, stored["id"])] == ["sent"]


def _debts(state: LocalState, record_id: str) -> Rows:
    return state.d1("SELECT * FROM memory_outbox WHERE record_id = ?", record_id)


def _in_time(client: httpx.Client, path: str, content: dict[str, object]) -> dict[str, Any]:
    began = time.monotonic()
    answer = client.post(path, json=content)
    assert answer.status_code in (200, 201), answer.text
    assert time.monotonic() - began < WITHIN_S
    answered: dict[str, Any] = answer.json()
    return answered
