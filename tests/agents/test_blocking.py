"""Requests of synchronous libraries: who may send them, what of them is sent, and how `http.client` reads the answer."""

from __future__ import annotations

import asyncio
import http.client
import json
import xmlrpc.client
from collections.abc import Mapping

import pytest

from retain.agents.tools.blocking import DEFAULT_TIMEOUT_MS, blocking_request, blocking_requests
from retain.agents.tools.wire import Wire
from retain.errors import Misconfigured
from retain.ports import HttpResponse, Until
from tests.ports import raises


class Client:
    """A client that waits until it is released."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, str, dict[str, str], str | bytes | None, int]] = []
        self.released = asyncio.Event()
        self.given_up = False

    async def __call__(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str],
        body: str | bytes | None,
        timeout_ms: int,
        limit_bytes: int = 0,
        until: Until | None = None,
    ) -> HttpResponse:
        self.seen.append((method, url, dict(headers), body, timeout_ms))
        try:
            await self.released.wait()
        except asyncio.CancelledError:
            self.given_up = True
            raise
        return HttpResponse(200, {}, b"done")


async def test_a_request_outside_a_call_of_a_function_tool_is_refused() -> None:
    with raises(Misconfigured, code="blocking_request"):
        _ = blocking_request("GET", "https://shop.example.com/", {}, None, None)


async def test_a_request_is_sent_by_the_call_s_own_client_without_the_headers_of_a_connection() -> None:
    client = Client()
    client.released.set()
    headers = {"Host": "elsewhere.example", "Content-Length": "9", "Accept-Encoding": "zstd", "X-Mine": "kept"}
    with blocking_requests(client):
        first = await blocking_request("post", "https://shop.example.com/", headers, b"x", 1_500)
        await blocking_request("GET", "https://shop.example.com/", {}, None, 0)
    assert first.body == b"done"
    assert client.seen == [
        ("POST", "https://shop.example.com/", {"x-mine": "kept"}, b"x", 1_500),
        ("GET", "https://shop.example.com/", {}, None, DEFAULT_TIMEOUT_MS),
    ]


async def test_a_request_of_a_call_that_was_given_up_is_abandoned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("retain.agents.tools.blocking.WATCH_S", 0.01)
    client = Client()
    waiting: list[asyncio.Task[HttpResponse]] = []

    async def call() -> None:
        with blocking_requests(client):
            waiting.append(asyncio.ensure_future(blocking_request("GET", "https://a.example/", {}, None, None)))
        await asyncio.sleep(60)

    task = asyncio.ensure_future(call())
    while not client.seen:
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting[0]
    await asyncio.sleep(0)
    assert client.given_up
    await asyncio.gather(task, return_exceptions=True)


def _connection(
    answer: HttpResponse, kind: type[http.client.HTTPConnection] = http.client.HTTPConnection
) -> tuple[http.client.HTTPConnection, list[tuple[str, str, dict[str, str], bytes | None]]]:
    """Return a connection on a wire, and what it sends."""
    sent: list[tuple[str, str, dict[str, str], bytes | None]] = []

    def send(method: str, url: str, headers: Mapping[str, str], body: bytes | None) -> HttpResponse:
        sent.append((method, url, dict(headers), body))
        return answer

    connection = kind("shop.example.com")
    connection.sock = Wire("https://shop.example.com", send)
    return connection, sent


def test_http_client_sends_and_reads_through_a_wire() -> None:
    every_byte = bytes(range(256))
    connection, sent = _connection(HttpResponse(201, {"x-kind": "café"}, every_byte))
    connection.request("PUT", "/orders?a=1", every_byte, {"X-Mine": "yes"})
    answer = connection.getresponse()
    assert (answer.status, answer.reason, answer.getheader("x-kind")) == (201, "Created", "café")
    assert answer.read() == every_byte
    [(method, url, headers, body)] = sent
    assert (method, url, body) == ("PUT", "https://shop.example.com/orders?a=1", every_byte)
    assert headers["x-mine"] == "yes"


def test_a_body_in_chunks_is_sent_whole() -> None:
    connection, sent = _connection(HttpResponse(200, {}, b""))
    connection.request("POST", "/", iter([b"one ", b"", b"two"]), encode_chunked=True)
    assert connection.getresponse().read() == b""
    assert sent[0][3] == b"one two"


@pytest.mark.parametrize(
    ("method", "status", "body"), [("HEAD", 200, b""), ("GET", 204, b""), ("GET", 304, b""), ("GET", 599, b"odd")]
)
def test_answers_without_a_body_or_a_known_status_are_read(method: str, status: int, body: bytes) -> None:
    connection, _ = _connection(HttpResponse(status, {}, body))
    connection.request(method, "/")
    answer = connection.getresponse()
    assert (answer.status, answer.read()) == (status, body)


def test_a_library_on_http_client_works_through_a_wire() -> None:
    text = xmlrpc.client.dumps((json.dumps({"total": 3}),), methodresponse=True)
    connection, sent = _connection(HttpResponse(200, {"content-type": "text/xml"}, text.encode()))

    class Transport(xmlrpc.client.Transport):
        def make_connection(self, host: object) -> http.client.HTTPConnection:
            return connection

    proxy = xmlrpc.client.ServerProxy("http://shop.example.com/rpc", transport=Transport())
    assert json.loads(str(proxy.total("AB-1"))) == {"total": 3}
    assert b"AB-1" in (sent[0][3] or b"")
