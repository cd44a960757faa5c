"""The HTTP client of function tools: it sends to public addresses alone, as the gateway does."""

from __future__ import annotations

from collections.abc import Mapping

from retain.gateway.resolver import Resolver
from retain.gateway.target import check_url, is_loopback
from retain.ports import MAX_RESPONSE_BYTES, Fetch, HttpResponse, Until

MAX_TIMEOUT_MS = 300_000
"""Longest time that one request may take."""


class GuardedFetch:
    """`Fetch` with a guard. A model may have chosen the address: a private one is refused before anything is sent.

    resolver: asked what a name resolves to, None for a deployment that names none. allow_loopback: for development.
    """

    def __init__(self, fetch: Fetch, resolver: Resolver | None, *, allow_loopback: bool) -> None:
        self._fetch = fetch
        self._resolver = resolver
        self._allow_loopback = allow_loopback

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
        """Send one request and read the whole answer: the port `Fetch`.

        Raises: as the port, and InvalidInput (code `invalid_url`, `forbidden_upstream`); LimitExceeded (code
            `url_too_long`); Misconfigured (code `private_upstream`); Unavailable (code `resolver_unavailable`).
        """
        authority = check_url(url, allow_loopback=self._allow_loopback)
        if self._resolver is not None and not is_loopback(authority):
            await self._resolver.check(authority)
        timeout_ms, limit_bytes = min(timeout_ms, MAX_TIMEOUT_MS), min(limit_bytes, MAX_RESPONSE_BYTES)
        return await self._fetch(
            method, url, headers=headers, body=body, timeout_ms=timeout_ms, limit_bytes=limit_bytes, until=until
        )
