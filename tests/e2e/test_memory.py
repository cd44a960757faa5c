"""A hundred large requests at once do not take the isolate over its memory, whatever their kind."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx
import pytest

from retain.cli.project import Project
from retain.cli.wrangler_kv import wrangler_of
from retain.gateway.provisioning import new_api_key, tool_entry
from tests.e2e.isolate_memory import MeasuredServer, measured_server
from tools.paths import PRODUCTION_CONFIG, ROOT

pytestmark = pytest.mark.workerd

MIB = 1_048_576
ISOLATE_BYTES = 128 * 1_000_000
"""What an isolate may take. Source: https://developers.cloudflare.com/workers/platform/limits/#memory"""
AT_ONCE = 100
_MEMORIES = "/admin/tenants/memory/memories"
_JSON = {"content-type": "application/json", "accept": "application/json, text/event-stream"}


class _Large(BaseHTTPRequestHandler):
    """Answers a mebibyte, or ten, without saying so before."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("content-length") or 0))
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        piece = b"10000\r\n" + b"1" * 65_536 + b"\r\n"
        self.wfile.write(piece * (int(self.path[1:]) * 16) + b"0\r\n\r\n")

    def log_message(self, *args: object) -> None:
        """Write nothing."""


class _Upstream(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 2 * AT_ONCE


@dataclass(frozen=True)
class Loaded:
    """The server, and a key of its gateway."""

    measured: MeasuredServer
    api_key: str

    def at_once(self, send: Callable[[httpx.Client, int], httpx.Response]) -> Counter[tuple[int, str]]:
        """Send a hundred requests at once; return how often each status and code was answered."""

        def one(number: int) -> tuple[int, str]:
            answer = send(self.measured.api, number)
            return answer.status_code, answer.json()["code"] if answer.status_code >= 400 else ""

        with ThreadPoolExecutor(AT_ONCE) as pool:
            return Counter(pool.map(one, range(AT_ONCE)))


def _tool(origin: str, mebibytes: int) -> dict[str, object]:
    return {
        "version": 1,
        "description": "Answers much.",
        "url": f"{origin}/{mebibytes}",
        "method": "POST",
        "host": origin.removeprefix("http://"),
        "auth": {"kind": "none"},
        "parameters": {"type": "object"},
        "idempotent": False,
        "timeout_ms": 60_000,
        "max_response_bytes": 10 * MIB,
    }


@pytest.fixture(scope="module")
def loaded(migrated_state: Callable[[], Path]) -> Iterator[Loaded]:
    """A server with large memories and tools that answer much."""
    state = migrated_state()
    upstream = _Upstream(("127.0.0.1", 0), _Large)
    threading.Thread(target=upstream.serve_forever, daemon=True).start()
    origin = f"http://127.0.0.1:{upstream.server_port}"
    key = new_api_key("memory", ["*"], now_ms=time.time_ns() // 1_000_000)
    tools = [tool_entry("memory", f"answers_{size}", _tool(origin, size), allow_loopback=True) for size in (1, 10)]
    entries = state / "entries.json"
    entries.write_text(json.dumps([{"key": entry.key, "value": entry.value} for entry in (key.entry, *tools)]))
    where = ["--binding", "KV", "--config", str(PRODUCTION_CONFIG), "--local", "--persist-to", str(state)]
    wrangler_of(Project(ROOT))(["kv", "bulk", "put", str(entries), *where])
    try:
        with measured_server(state) as measured:
            api = measured.api
            api.timeout = httpx.Timeout(120)
            assert api.put("/admin/tenants/memory").status_code == 201
            contents = [f"Note {number} about the sky. {'word ' * 12_900}" for number in range(12)]
            memories = [{"content": content} for content in contents]
            body = {"tenant": "memory", "agent_type": "sdr", "memories": memories}
            assert api.post("/admin/seed-memory", json=body).status_code == 201
            yield Loaded(measured, key.api_key)
    finally:
        upstream.shutdown()
        upstream.server_close()


def _pieces(body: bytes) -> Iterator[bytes]:
    for start in range(0, len(body), 65_536):
        yield body[start : start + 65_536]


_UNKNOWN = json.dumps({"content": "a", "unknown": "x" * (MIB - 40)}).encode()
_USER = {"id": "u", "name": "n", "locale": None, "timezone": None, "created_at_ms": 1, "last_run_at_ms": 1}
_LINE = json.dumps({"kind": "user", "version": 1, "tenant": "memory", "user": _USER}).encode()
_CALL = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}


def _mcp(tool: str, size: int) -> bytes:
    return json.dumps({**_CALL, "params": {"name": tool, "arguments": {"a": "x" * size}}}).encode()


_INGESTED = [{"speaker": "Ann", "content": f"Note {number} of many. {'word ' * 250}"} for number in range(40)]


KINDS: dict[str, Callable[[httpx.Client, int], httpx.Response]] = {
    "bodies with a length": lambda api, _: api.post(_MEMORIES, content=_UNKNOWN),
    "bodies without a length": lambda api, _: api.post(_MEMORIES, content=_pieces(_UNKNOWN)),
    "imports": lambda api, _: api.post("/admin/tenants/memory/import", content=_LINE + b" " * (MIB - len(_LINE))),
    "pages of large memories": lambda api, _: api.get(f"{_MEMORIES}?limit=200"),
    "recalls of large memories": lambda api, _: api.post(f"{_MEMORIES}/recall", json={"query": "sky", "top_k": 50}),
    "exports": lambda api, _: api.get("/admin/tenants/memory/export?cursor=records.0"),
    "ingests": lambda api, number: api.post(
        f"{_MEMORIES}/ingest", json={"conversation": f"c{number}", "messages": _INGESTED, "agent_type": "sdr"}
    ),
    "runs": lambda api, number: api.post(
        "/v1/agents/memory/sdr/run", json={"input": "word " * 8_000, "instance_id": f"i{number}"}
    ),
}
OF_TOOLS: dict[str, tuple[str, bytes]] = {
    "large arguments over MCP": ("/mcp", _mcp("answers_1", 1_000_000)),
    "the largest answers of a tool": ("/api/v1/tools/answers_10", b"{}"),
    "the same over MCP": ("/mcp", _mcp("answers_10", 0)),
}


_REFUSALS = {(503, "no_memory_left"), (503, "upstream_timeout"), (503, "body_interrupted")}
"""What may be refused on a slow machine. A tool's answer waits for room within the tool's own time; a body that has come is
not read while the isolate computes, and that counts as time in which it did not come."""


def _check(loaded: Loaded, answers: Counter[tuple[int, str]]) -> None:
    python = loaded.measured.python_bytes()
    assert python < ISOLATE_BYTES, f"{python:,} bytes; {answers}"
    assert {answer for answer in answers if answer[0] >= 500} <= _REFUSALS, answers
    assert any(status < 500 for status, _ in answers), answers


@pytest.mark.parametrize("kind", KINDS)
def test_a_hundred_requests_at_once_stay_within_the_isolate_s_memory(loaded: Loaded, kind: str) -> None:
    _check(loaded, loaded.at_once(KINDS[kind]))


@pytest.mark.parametrize("kind", OF_TOOLS)
def test_a_hundred_calls_of_tools_stay_within_the_isolate_s_memory(loaded: Loaded, kind: str) -> None:
    path, body = OF_TOOLS[kind]
    headers = {**_JSON, "x-api-key": loaded.api_key}
    _check(loaded, loaded.at_once(lambda api, _: api.post(path, content=body, headers=headers)))
