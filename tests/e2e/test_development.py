"""Development mode on the real local server: what only looks like the developer is refused."""

from __future__ import annotations

import socket
from urllib.parse import urlsplit

import httpx
import pytest

from tests.e2e.calls import seed
from tests.e2e.conftest import Steered

pytestmark = pytest.mark.workerd

SECRET = "The reserve key is under the third stone."


def _sent(api: httpx.Client, path: str, host: str, *headers: str) -> tuple[int, str]:
    """Send a request byte by byte, as no client library would; return status and body."""
    address = urlsplit(str(api.base_url))
    with socket.create_connection((address.hostname, address.port or 0), timeout=30) as connection:
        lines = [f"GET {path} HTTP/1.1", f"Host: {host}", *headers, "Connection: close", "", ""]
        connection.sendall("\r\n".join(lines).encode())
        answer = b"".join(iter(lambda: connection.recv(65536), b""))
    return int(answer.split(b" ", 2)[1]), answer.decode()


@pytest.fixture(scope="module")
def target(steered: Steered) -> str:
    """The path of an export that has the secret."""
    tenant_id = steered.tenant()
    seed(steered.api, tenant_id, "sdr", SECRET)
    return f"/admin/tenants/{tenant_id}/export?cursor=records.0"


def test_a_program_of_this_machine_is_the_developer(steered: Steered, target: str) -> None:
    status, answer = _sent(steered.api, target, steered.api.base_url.netloc.decode())
    assert status == 200
    assert SECRET in answer


@pytest.mark.parametrize("named", ["MF-Original-URL", "mf-original-url", "MF-ORIGINAL-URL"])
@pytest.mark.parametrize("site", [(), ("Sec-Fetch-Site: same-origin",)], ids=["no site", "its own site"])
def test_a_name_that_was_made_to_point_here_cannot_say_that_it_is_another(
    steered: Steered, target: str, named: str, site: tuple[str, ...]
) -> None:
    here = steered.api.base_url
    for host in (f"evil.example:{here.port}", here.netloc.decode()):
        status, answer = _sent(steered.api, "/x", host, f"{named}: {here}{target.removeprefix('/')}", *site)
        assert status == 400, answer
        assert SECRET not in answer


def test_a_name_that_was_made_to_point_here_is_refused(steered: Steered, target: str) -> None:
    status, answer = _sent(steered.api, target, f"evil.example:{steered.api.base_url.port}")
    assert (status, '"code": "access_not_configured"' in answer) == (500, True), answer


@pytest.mark.parametrize(
    "header",
    ["X-Forwarded-For: 127.0.0.1", "X-Forwarded-Proto: https", "Forwarded: for=127.0.0.1", "Via: 1.1 proxy"],
)
def test_what_came_through_a_proxy_is_refused(steered: Steered, target: str, header: str) -> None:
    status, answer = _sent(steered.api, target, steered.api.base_url.netloc.decode(), header)
    assert (status, '"code": "forwarded_request"' in answer) == (403, True), answer


def test_a_client_cannot_say_where_it_is(steered: Steered, target: str) -> None:
    """The address that counts is the peer's, which the local server writes over the client's."""
    here = steered.api.base_url.netloc.decode()
    assert _sent(steered.api, target, here, "CF-Connecting-IP: 192.0.2.1")[0] == 200


@pytest.mark.parametrize(
    "headers",
    [
        ("Origin: http://127.0.0.1:5173",),
        ("Origin: http://localhost:5173", "Sec-Fetch-Site: same-site"),
        ("Sec-Fetch-Site: same-site",),
    ],
    ids=["origin", "both", "site"],
)
def test_a_page_of_another_port_is_refused(steered: Steered, target: str, headers: tuple[str, ...]) -> None:
    status, answer = _sent(steered.api, target, steered.api.base_url.netloc.decode(), *headers)
    assert (status, '"code": "cross_site_request"' in answer) == (403, True), answer
