"""Who may ask: the token of a request, and the development mode that production never has."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retain.admin.access import DEVELOPER, AccessIdentity, AccessSettings, AccessVerifier, authorise, token_of
from retain.errors import Forbidden, Misconfigured, RetainError, Unauthenticated, Unavailable
from retain.host.clock import ManualClock
from retain.host.crypto import HostCrypto
from retain.http import Request
from retain.ports import MAX_RESPONSE_BYTES, HttpResponse, Until
from tests.admin.access_team import AUDIENCE, NOW_S, SETTINGS, Sign


@pytest.mark.parametrize(
    ("headers", "token"),
    [
        pytest.param({"cf-access-jwt-assertion": "a.b.c"}, "a.b.c", id="header"),
        pytest.param({"cookie": "CF_Authorization=a.b.c"}, "a.b.c", id="cookie"),
        pytest.param({"cookie": "x=1; CF_Authorization=a.b.c; y=2"}, "a.b.c", id="cookie_among_others"),
        pytest.param({"cookie": "x;CF_Authorization=a.b.c=="}, "a.b.c==", id="cookie_with_equals"),
        pytest.param({"cookie": "CF_Authorization=d.e.f", "cf-access-jwt-assertion": "a.b.c"}, "a.b.c", id="both"),
        pytest.param({"cookie": "CF_Authorization=d.e.f", "cf-access-jwt-assertion": " "}, "d.e.f", id="empty_header"),
    ],
)
def test_the_token_is_the_headers_or_else_the_cookies(headers: dict[str, str], token: str) -> None:
    assert token_of(headers) == token


@pytest.mark.parametrize(
    "headers",
    [
        pytest.param({}, id="nothing"),
        pytest.param({"authorization": "Bearer a.b.c"}, id="bearer"),
        pytest.param(
            {"cookie": "CF_AppSession=a.b.c; cf_authorization=a.b.c; XCF_Authorization=a"}, id="other_cookies"
        ),
        pytest.param({"cookie": "CF_Authorization="}, id="empty_cookie"),
        pytest.param({"cf-access-authenticated-user-email": "admin@example.com"}, id="only_a_name"),
    ],
)
def test_a_request_without_a_token_is_refused(headers: dict[str, str]) -> None:
    with pytest.raises(Unauthenticated) as raised:
        token_of(headers)
    assert raised.value.code == "missing_access_token"


def _request(host: str, **headers: str) -> Request:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Request("GET", "/admin/agents/acme/runs", {}, named, "", host, "req-1")


async def test_a_request_through_access_is_its_users(verifier: AccessVerifier, sign: Sign) -> None:
    request = _request("agents.example.com", cf_access_jwt_assertion=sign())
    assert (await authorise(request, SETTINGS, verifier)).name == "user@example.com"


class _NoFetch:
    async def __call__(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str],
        body: str | bytes | None,
        timeout_ms: int,
        limit_bytes: int = MAX_RESPONSE_BYTES,
        until: Until | None = None,
    ) -> HttpResponse:
        raise Unavailable("there is no network", code="upstream_unreachable")


async def _authorised(environment: str, host: str, team_domain: str, audience: str) -> AccessIdentity | None:
    settings = AccessSettings(team_domain, audience, environment)
    verifier = AccessVerifier(_NoFetch(), HostCrypto(), ManualClock(NOW_S * 1000), settings)
    try:
        return await authorise(_request(host), settings, verifier)
    except RetainError:
        return None


LOOPBACK = ["localhost", "127.0.0.1", "[::1]", "localhost:8787", "127.0.0.1:80", "[::1]:65535"]
ALMOST_LOOPBACK = [
    "",
    "localhost.example.com",
    "localhost.",
    "localhost:",
    "localhost:8787.example.com",
    "localhost:8787:1",
    "localhost\n",
    "user@localhost",
    "127.0.0.1.nip.io",
    "127.0.0.10",
    "::1",
    "[::1].example.com",
    "0.0.0.0",
    "notlocalhost",
    "agents.example.com",
]

_environments = st.sampled_from(["production", "staging", "", "Development", "development ", "dev"]) | st.text()
_hosts = st.sampled_from(LOOPBACK + ALMOST_LOOPBACK) | st.text()
_domains = st.sampled_from(["", "acme.cloudflareaccess.com"]) | st.text()
_audiences = st.sampled_from(["", AUDIENCE]) | st.text()


@given(_environments.filter(lambda name: name != "development"), _hosts, _domains, _audiences)
async def test_production_never_accepts_the_development_identity(
    environment: str, host: str, team_domain: str, audience: str
) -> None:
    assert await _authorised(environment, host, team_domain, audience) is None


@given(_hosts, _domains, _audiences)
async def test_the_development_identity_needs_a_loopback_host_and_no_access_settings(
    host: str, team_domain: str, audience: str
) -> None:
    expected = DEVELOPER if host in LOOPBACK and not team_domain and not audience else None
    assert await _authorised("development", host, team_domain, audience) == expected


@pytest.mark.parametrize("host", LOOPBACK)
async def test_development_needs_no_token_on_a_loopback_host(host: str) -> None:
    assert await _authorised("development", host, "", "") == DEVELOPER


@pytest.mark.parametrize("host", ALMOST_LOOPBACK, ids=repr)
async def test_a_host_that_only_looks_like_loopback_gets_no_development_identity(host: str) -> None:
    assert await _authorised("development", host, "", "") is None


@pytest.mark.parametrize(
    "settings",
    [AccessSettings(), AccessSettings("acme.cloudflareaccess.com", ""), AccessSettings("", AUDIENCE, "development")],
    ids=["nothing", "no_audience", "no_team"],
)
async def test_incomplete_settings_are_named_before_the_missing_token(settings: AccessSettings) -> None:
    verifier = AccessVerifier(_NoFetch(), HostCrypto(), ManualClock(), settings)
    with pytest.raises(Misconfigured) as raised:
        await authorise(_request("localhost"), settings, verifier)
    assert raised.value.code == "access_not_configured"


PAGES = [
    pytest.param({}, True, id="no browser"),
    pytest.param({"sec-fetch-site": "none"}, True, id="typed by the developer"),
    pytest.param({"sec-fetch-site": "same-origin", "origin": "http://localhost:8787"}, True, id="its own page"),
    pytest.param(
        {"sec-fetch-site": "same-site", "origin": "http://localhost:5173"}, False, id="a page of another port"
    ),
    pytest.param({"sec-fetch-site": "same-site"}, False, id="an image of another port"),
    pytest.param({"origin": "http://localhost:5173"}, False, id="an old browser on another port"),
    pytest.param({"origin": "http://127.0.0.1:8787"}, False, id="another name of this machine"),
    pytest.param({"origin": "https://localhost:8787"}, True, id="its own page through TLS"),
    pytest.param({"sec-fetch-site": "same-origin", "origin": "http://localhost"}, False, id="another port, unnamed"),
    pytest.param({"sec-fetch-site": ""}, False, id="a site that no browser names"),
    pytest.param({"sec-fetch-site": "cross-site"}, False, id="a link"),
    pytest.param({"origin": "https://evil.example"}, False, id="a foreign origin alone"),
    pytest.param({"sec-fetch-site": "none", "origin": "https://evil.example"}, False, id="both, one foreign"),
    pytest.param({"origin": "null"}, False, id="a sandboxed page"),
    pytest.param({"origin": ""}, False, id="an empty origin"),
    pytest.param({"origin": "http://localhost.evil.example"}, False, id="almost local"),
    pytest.param({"origin": "http://evil.example/://localhost"}, False, id="localhost in the path"),
]


@pytest.mark.parametrize(("headers", "allowed"), PAGES)
async def test_development_mode_refuses_pages_of_other_sites(headers: dict[str, str], allowed: bool) -> None:
    settings = AccessSettings(environment="development")
    verifier = AccessVerifier(_NoFetch(), HostCrypto(), ManualClock(NOW_S * 1000), settings)
    request = Request("POST", "/admin/seed-memory", {}, headers, "", "localhost:8787", "req-1")
    if allowed:
        assert await authorise(request, settings, verifier) == DEVELOPER
    else:
        with pytest.raises(Forbidden) as refused:
            await authorise(request, settings, verifier)
        assert refused.value.code == "cross_site_request"


@pytest.mark.parametrize(("headers", "allowed"), PAGES)
@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "PATCH", "DELETE"])
@pytest.mark.parametrize("content_type", ["text/plain", "application/json"])
async def test_a_page_of_another_site_changes_nothing_in_the_name_of_whom_access_knows(
    verifier: AccessVerifier, sign: Sign, method: str, headers: dict[str, str], content_type: str, allowed: bool
) -> None:
    sent = {"content-type": content_type, "cookie": f"CF_Authorization={sign()}", **headers}
    request = Request(method, "/admin/seed-memory", {}, sent, '{"input": "x"}', "localhost:8787", "req-1")
    if allowed or method == "GET":
        assert (await authorise(request, SETTINGS, verifier)).name == "user@example.com"
    else:
        with pytest.raises(Forbidden) as refused:
            await authorise(request, SETTINGS, verifier)
        assert refused.value.code == "cross_site_request"


PEERS = [
    pytest.param({}, True, id="nothing"),
    pytest.param({"cf-connecting-ip": "127.0.0.1"}, True, id="this machine"),
    pytest.param({"cf-connecting-ip": "127.8.9.10"}, True, id="this machine under another address"),
    pytest.param({"cf-connecting-ip": "::1"}, True, id="this machine over IPv6"),
    pytest.param({"cf-connecting-ip": "::ffff:127.0.0.1"}, True, id="this machine, mapped"),
    pytest.param({"cf-connecting-ip": "192.168.1.7"}, False, id="the network"),
    pytest.param({"cf-connecting-ip": "172.17.0.1"}, False, id="a container's host"),
    pytest.param({"cf-connecting-ip": "::ffff:8.8.8.8"}, False, id="elsewhere, mapped"),
    pytest.param({"cf-connecting-ip": "fe80::1%eth0"}, False, id="a link's address"),
    pytest.param({"cf-connecting-ip": ""}, False, id="an empty address"),
    pytest.param({"cf-connecting-ip": "127.0.0.1, 8.8.8.8"}, False, id="two addresses"),
    pytest.param({"cf-connecting-ip": "localhost"}, False, id="a name"),
    *(
        pytest.param({name: value}, False, id=name)
        for name, value in {
            "forwarded": "for=127.0.0.1",
            "via": "1.1 proxy",
            "x-forwarded-for": "127.0.0.1",
            "x-forwarded-host": "localhost",
            "x-forwarded-proto": "http",
            "x-forwarded-port": "8787",
            "x-real-ip": "127.0.0.1",
            "true-client-ip": "127.0.0.1",
            "x-original-url": "/",
            "x-original-host": "localhost",
            "x-rewrite-url": "/",
            "mf-original-url": "http://localhost:8787/admin/errors",
            "mf-route-override": "retain",
        }.items()
    ),
]


@pytest.mark.parametrize(("headers", "allowed"), PEERS)
async def test_development_mode_refuses_what_another_machine_or_a_proxy_sends(
    headers: dict[str, str], allowed: bool
) -> None:
    settings = AccessSettings(environment="development")
    verifier = AccessVerifier(_NoFetch(), HostCrypto(), ManualClock(NOW_S * 1000), settings)
    request = Request("GET", "/admin/errors", {}, headers, "", "localhost:8787", "req-1")
    if allowed:
        assert await authorise(request, settings, verifier) == DEVELOPER
    else:
        with pytest.raises(Forbidden) as refused:
            await authorise(request, settings, verifier)
        assert refused.value.code == "forwarded_request"
        assert refused.value.details["headers"] == list(headers)
