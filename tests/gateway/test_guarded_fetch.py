"""The HTTP client of function tools: a model may have chosen the address."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from retain.errors import InvalidInput, LimitExceeded, Misconfigured
from retain.gateway.guarded_fetch import MAX_TIMEOUT_MS, GuardedFetch
from retain.gateway.resolver import Resolver
from retain.gateway.target import MAX_URL_BYTES
from retain.host.clock import ManualClock
from retain.ports import MAX_RESPONSE_BYTES, HttpResponse, Until
from tests.ports import raises


class Sent:
    """A client that notes what it would send."""

    def __init__(self, body: bytes = b"") -> None:
        self.requests: list[tuple[str, int, int]] = []
        self._body = body
        self.until: Until | None = None

    async def __call__(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str],
        body: str | bytes | None,
        timeout_ms: int,
        limit_bytes: int = 1,
        until: Until | None = None,
    ) -> HttpResponse:
        self.requests.append((url, timeout_ms, limit_bytes))
        self.until = until
        return HttpResponse(200, {}, self._body)


async def _get(fetch: GuardedFetch, url: str, timeout_ms: int = 5_000, limit_bytes: int = 100) -> None:
    await fetch("GET", url, headers={}, body=None, timeout_ms=timeout_ms, limit_bytes=limit_bytes)


@pytest.mark.parametrize(
    "url",
    [
        "https://shop.example.com",
        "HTTPS://Shop.Example.COM:8443/a b/ü?q=[1]&{x}#part",
        "https://shop.example.com?next=http://10.0.0.1/",
    ],
)
async def test_a_public_address_is_asked_as_it_is_written(url: str) -> None:
    sent = Sent()
    await _get(GuardedFetch(sent, None, allow_loopback=False), url)
    assert sent.requests == [(url, 5_000, 100)]


@pytest.mark.parametrize(
    "url",
    [
        "http://shop.example.com/",
        "https://10.0.0.1/",
        "https://169.254.169.254/latest/meta-data",
        "https://2130706433/",
        "https://0x7f.1/",
        "https://[::1]/",
        "https://[fd00::1]/",
        "http://127.0.0.1:8080/",
        "https://localhost/",
        "https://shop.internal/",
        "https://shop.example.com./",
        "https://user:word@shop.example.com/",
        "https://shop.example.com\\@10.0.0.1/",
        "https://shop.example.com:22/",
        "https://shop.example.com:6379/",
        "https://\u212ahop.example.com/",
        "https://shop\u3002example.com/",
        "https://exa\tmple.com/",
        "https:///shop.example.com/",
        " https://shop.example.com/",
        "ftp://shop.example.com/",
        "file:///etc/passwd",
        "data:text/plain,x",
        "//shop.example.com/",
        "",
    ],
)
async def test_any_other_address_is_refused_before_anything_is_sent(url: str) -> None:
    sent = Sent()
    with pytest.raises(InvalidInput) as refused:
        await _get(GuardedFetch(sent, None, allow_loopback=False), url)
    assert refused.value.code in ("forbidden_upstream", "invalid_url")
    assert "word" not in refused.value.message
    assert sent.requests == []


async def test_what_completes_an_answer_is_passed_on() -> None:
    sent = Sent()
    fetch = GuardedFetch(sent, None, allow_loopback=False)
    for until in (None, lambda _: True):
        await fetch("GET", "https://shop.example.com/", headers={}, body=None, timeout_ms=1, until=until)
        assert sent.until is until


async def test_loopback_is_asked_where_development_allows_it() -> None:
    sent = Sent()
    await _get(GuardedFetch(sent, None, allow_loopback=True), "http://127.0.0.1:8080/")
    assert len(sent.requests) == 1


async def test_the_longest_address_time_and_answer_are_bounded() -> None:
    sent = Sent()
    fetch = GuardedFetch(sent, None, allow_loopback=False)
    longest = "https://shop.example.com/".ljust(MAX_URL_BYTES, "x")
    await _get(fetch, longest, 10**9, 10**9)
    assert sent.requests == [(longest, MAX_TIMEOUT_MS, MAX_RESPONSE_BYTES)]
    with raises(LimitExceeded, code="url_too_long"):
        await _get(fetch, longest + "x")


async def test_a_name_that_resolves_into_a_private_network_is_refused() -> None:
    resolver = Sent(b'{"Status": 0, "Answer": [{"type": 1, "TTL": 60, "data": "10.0.0.1"}]}')
    sent = Sent()
    asked = Resolver("https://resolver.example/dns-query", resolver, ManualClock())
    with raises(Misconfigured, code="private_upstream"):
        await _get(GuardedFetch(sent, asked, allow_loopback=False), "https://shop.example.com/")
    assert sent.requests == []
    assert resolver.requests
