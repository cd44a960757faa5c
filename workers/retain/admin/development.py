"""Development mode: which requests are the developer's, on a machine where nothing of Cloudflare Access is configured."""

from __future__ import annotations

import re
from collections.abc import Mapping
from ipaddress import ip_address

from retain.errors import Forbidden
from retain.http import Request

_LOOPBACK = re.compile(r"(localhost|127\.0\.0\.1|\[::1\])(:[0-9]{1,5})?")
_PROXIES = frozenset(
    ("forwarded", "via", "true-client-ip", "x-original-host", "x-original-url", "x-real-ip", "x-rewrite-url")
)
_PROXIES_PREFIXES = ("x-forwarded-", "mf-")
_OWN_SITES = (None, "none", "same-origin")


def is_local(host: str) -> bool:
    """Return whether a request's host is a name of the loopback interface. Any client may claim one."""
    return _LOOPBACK.fullmatch(host) is not None


def check_developer(request: Request) -> None:
    """Refuse a request that did not come straight from a program of this machine, or was sent by a page.

    The host is a name that a client claims, so it is not enough. A proxy may have put the loopback name there: it also
    adds headers that name the client. The local server puts the peer's address into `cf-connecting-ip`, unless the
    client has set that header, so this holds against a network and not against a forger. A page of another site or
    port names itself in `origin` or `sec-fetch-site`.

    Raises: Forbidden (code `forwarded_request` or `cross_site_request`).
    Source: https://www.w3.org/TR/fetch-metadata/#sec-fetch-site-header
    """
    headers = request.headers
    added = sorted(name for name in headers if name in _PROXIES or name.startswith(_PROXIES_PREFIXES))
    peer = headers.get("cf-connecting-ip")
    if added or (peer is not None and not _is_loopback(peer)):
        raise Forbidden(
            "development mode answers only what a program of this machine sends itself",
            code="forwarded_request",
            headers=added or ["cf-connecting-ip"],
        )
    check_page(request)


def check_page(request: Request) -> None:
    """Refuse a request that a page of another site or port sent. A program names no page, and is not refused.

    Raises: Forbidden (code `cross_site_request`).
    """
    if not _is_own_page(request.headers, request.host):
        raise Forbidden("a page of another site or port may not send this", code="cross_site_request")


def _is_own_page(headers: Mapping[str, str], host: str) -> bool:
    """Return whether no page sent the request, or one of this very host and port."""
    origin = headers.get("origin")
    return headers.get("sec-fetch-site") in _OWN_SITES and (
        origin is None or origin in (f"http://{host}", f"https://{host}")
    )


def _is_loopback(address: str) -> bool:
    try:
        found = ip_address(address.strip())
    except ValueError:
        return False
    mapped = getattr(found, "ipv4_mapped", None)
    return (mapped or found).is_loopback
