"""HostFetch: the contract against a local server, and requests that cannot be sent."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from retain.errors import InvalidInput
from retain.host.fetch import HostFetch
from tests.host.echo_server import echo_server
from tests.ports import Case, cases
from tests.ports import fetch as suite
from tests.ports import fetch_stream as stream_suite


@pytest.fixture(scope="module")
def origin() -> Iterator[str]:
    with echo_server() as server:
        yield server.origin


@pytest.fixture
async def fetch() -> AsyncIterator[HostFetch]:
    client = HostFetch()
    yield client
    await client.close()


@pytest.mark.parametrize("case", cases(suite).values(), ids=cases(suite).keys())
async def test_contract(case: Case, fetch: HostFetch, origin: str) -> None:
    await case(fetch, origin)


@pytest.mark.parametrize("case", cases(stream_suite).values(), ids=cases(stream_suite).keys())
async def test_contract_of_streams(case: Case, fetch: HostFetch, origin: str) -> None:
    await case(fetch.stream, origin)


@pytest.mark.parametrize("url", ["", "no-scheme", "ftp://example.com/", "http://", "http://[::1", "http://a:b/"])
async def test_an_address_that_is_not_http_is_invalid_input(fetch: HostFetch, url: str) -> None:
    with pytest.raises(InvalidInput) as raised:
        await fetch("GET", url, headers={}, body=None, timeout_ms=1000)
    assert raised.value.code == "invalid_url"


@pytest.mark.parametrize(
    ("header", "body"),
    [pytest.param("ключ", None, id="header"), pytest.param("plain", "\ud800", id="body")],
)
async def test_text_that_http_cannot_carry_is_invalid_input(
    fetch: HostFetch, origin: str, header: str, body: str | bytes | None
) -> None:
    with pytest.raises(InvalidInput) as raised:
        await fetch("POST", f"{origin}/echo", headers={"x-contract": header}, body=body, timeout_ms=1000)
    assert raised.value.code == "unsupported_value"


async def test_a_closed_client_opens_again(fetch: HostFetch, origin: str) -> None:
    for _ in range(2):
        assert (await fetch("GET", f"{origin}/bytes", headers={}, body=None, timeout_ms=5000)).status == 200
        await fetch.close()


async def test_proxies_and_credentials_of_the_environment_are_ignored(
    fetch: HostFetch, origin: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("NO_PROXY", "")
    assert (await fetch("GET", f"{origin}/bytes", headers={}, body=None, timeout_ms=5000)).status == 200
