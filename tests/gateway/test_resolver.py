"""The resolver: names that lead into a private network are refused before anything is sent to them."""

from __future__ import annotations

import json
import threading
from collections.abc import AsyncIterator, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import pytest

from retain.errors import Misconfigured, RetainError, Unavailable
from retain.gateway.provisioning import tool_entry
from retain.gateway.proxy import ToolProxy
from retain.gateway.resolver import LEAST_FRESH_MS, MOST_FRESH_MS, Resolver
from retain.gateway.settings import GatewaySettings
from retain.host.clock import ManualClock
from retain.host.crypto import HostCrypto
from retain.host.fetch import HostFetch
from retain.host.kv import SqliteKv
from retain.ports import MAX_RESPONSE_BYTES, HttpResponse, Until
from tests.gateway.setting import config
from tests.ports import raises

HOST = "api.example.com"
PUBLIC4, PUBLIC6 = "93.184.216.34", "2606:2800:220:1::1"
_NUMBERS = {"A": 1, "AAAA": 28}


class LocalResolver:
    """A resolver with a JSON interface on this machine. body: what it answers instead, with a status."""

    def __init__(self) -> None:
        self.names: dict[str, list[str]] = {}
        self.ttl_s = 60
        self.instead: tuple[int, bytes] | None = None
        self.asked: list[str] = []
        resolver = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                status, body = resolver.instead or (200, resolver.answer(self.path))
                self.send_response(status)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *args: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02})
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_port}/dns-query"

    def answer(self, path: str) -> bytes:
        asked = parse_qs(urlsplit(path).query)
        [name], [kind] = asked["name"], asked["type"]
        self.asked.append(f"{name} {kind}")
        held = [text for text in self.names.get(name, []) if (":" in text) is (kind == "AAAA")]
        entries: list[dict[str, object]] = [{"name": name, "type": 5, "TTL": 1, "data": "alias.example."}]
        entries += [{"name": name, "type": _NUMBERS[kind], "TTL": self.ttl_s, "data": text} for text in held]
        return json.dumps({"Status": 0 if name in self.names else 3, "Answer": entries}).encode()

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@pytest.fixture
def dns() -> Iterator[LocalResolver]:
    served = LocalResolver()
    yield served
    served.close()


@pytest.fixture
async def fetch() -> AsyncIterator[HostFetch]:
    client = HostFetch()
    yield client
    await client.close()


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def resolver(dns: LocalResolver, fetch: HostFetch, clock: ManualClock) -> Resolver:
    return Resolver(dns.url, fetch, clock)


PRIVATE = {
    "loopback": "127.0.0.1",
    "ten": "10.1.2.3",
    "home": "192.168.1.1",
    "link-local, with metadata of clouds": "169.254.169.254",
    "shared by carriers": "100.64.0.1",
    "unspecified": "0.0.0.0",
    "multicast": "224.0.0.1",
    "ipv6 loopback": "::1",
    "ipv6 local": "fd00::1",
    "ipv6 link-local": "fe80::1",
    "ipv4 in ipv6": "::ffff:10.0.0.1",
}


@pytest.mark.parametrize("address", PRIVATE.values(), ids=PRIVATE.keys())
async def test_a_name_with_one_private_address_is_refused(dns: LocalResolver, resolver: Resolver, address: str) -> None:
    dns.names[HOST] = [PUBLIC4, PUBLIC6, address]
    with raises(Misconfigured, code="private_upstream"):
        await resolver.check(f"{HOST}:8443", "tool")


async def test_a_public_name_is_asked_about_once_for_as_long_as_the_answer_says(
    dns: LocalResolver, resolver: Resolver, clock: ManualClock
) -> None:
    dns.names[HOST] = [PUBLIC4, PUBLIC6]
    for _ in range(3):
        await resolver.check(HOST, "tool")
    assert dns.asked == [f"{HOST} A", f"{HOST} AAAA"]
    clock.advance(59_999)
    await resolver.check(HOST, "tool")
    assert len(dns.asked) == 2
    clock.advance(1)
    dns.names[HOST] = ["10.0.0.1"]
    with raises(Misconfigured, code="private_upstream"):
        await resolver.check(HOST, "tool")


@pytest.mark.parametrize(("ttl_s", "fresh_ms"), [(0, LEAST_FRESH_MS), (86_400, MOST_FRESH_MS)])
async def test_an_answer_is_used_within_bounds(
    dns: LocalResolver, resolver: Resolver, clock: ManualClock, ttl_s: int, fresh_ms: int
) -> None:
    dns.names[HOST], dns.ttl_s = [PUBLIC4], ttl_s
    await resolver.check(HOST, "tool")
    clock.advance(fresh_ms - 1)
    await resolver.check(HOST, "tool")
    assert len(dns.asked) == 2
    clock.advance(1)
    await resolver.check(HOST, "tool")
    assert len(dns.asked) == 4


async def test_a_name_that_does_not_exist_is_left_to_the_platform(resolver: Resolver) -> None:
    await resolver.check("nowhere.example.com", "tool")


BROKEN = {
    "a failure": (500, b"{}"),
    "no json": (200, b"<html>"),
    "not an object": (200, b"[]"),
    "a failure of the server": (200, b'{"Status": 2}'),
    "answers that are not a list": (200, b'{"Status": 0, "Answer": {}}'),
    "an answer that is not one": (200, b'{"Status": 0, "Answer": [1]}'),
    "too much": (200, b" " * 100_000),
}


@pytest.mark.parametrize("instead", BROKEN.values(), ids=BROKEN.keys())
async def test_nothing_is_sent_to_a_name_that_cannot_be_checked(
    dns: LocalResolver, resolver: Resolver, instead: tuple[int, bytes]
) -> None:
    dns.instead = instead
    with raises(Unavailable, code="resolver_unavailable"):
        await resolver.check(HOST, "tool")


async def test_an_address_that_is_not_one_is_refused(dns: LocalResolver, resolver: Resolver) -> None:
    dns.names[HOST] = ["not an address"]
    with pytest.raises(RetainError):
        await resolver.check(HOST, "tool")


@pytest.mark.parametrize("address", [PUBLIC4, "10.0.0.1"])
async def test_the_proxy_asks_before_it_sends(
    dns: LocalResolver, fetch: HostFetch, clock: ManualClock, address: str
) -> None:
    dns.names[HOST] = [address]
    sent: list[str] = []

    async def watched(
        method: str,
        url: str,
        *,
        headers: Mapping[str, str],
        body: str | bytes | None,
        timeout_ms: int,
        limit_bytes: int = MAX_RESPONSE_BYTES,
        until: Until | None = None,
    ) -> HttpResponse:
        if url.startswith(dns.url):
            return await fetch(method, url, headers=headers, body=body, timeout_ms=timeout_ms, limit_bytes=limit_bytes)
        sent.append(url)
        return HttpResponse(200, {}, b"{}")

    kv = SqliteKv.open(clock)
    await tool_entry("shop", "quote", config(f"https://{HOST}/quotes", auth={"kind": "none"})).write(kv)
    proxy = ToolProxy(kv, watched, HostCrypto(), clock, GatewaySettings(resolver_url=dns.url))
    if address == PUBLIC4:
        assert (await proxy.call("shop", "quote", {"order_id": "A-1", "quantity": 1})).status == 200
        assert len(sent) == 1
    else:
        with raises(Misconfigured, code="private_upstream"):
            await proxy.call("shop", "quote", {"order_id": "A-1", "quantity": 1})
        assert sent == []
    kv.close()
