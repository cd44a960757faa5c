"""What an upstream's name resolves to, asked over HTTPS: a name that leads into a private network is refused.

Off unless the deployment names a resolver. The answer is that of the resolver: the platform resolves the name again when it
sends the request, and may get another.
Source: https://developers.cloudflare.com/1.1.1.1/encryption/dns-over-https/make-api-requests/dns-json/
"""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Address, IPv6Address, ip_address
from urllib.parse import quote

from retain.errors import Misconfigured, Unavailable, UpstreamFailed
from retain.json_text import read_json
from retain.ports import Clock, Fetch

TIMEOUT_MS = 2_000
LEAST_FRESH_MS = 30_000
MOST_FRESH_MS = 300_000
"""How long an answer is used: as long as it says, within these bounds."""
_MAX_ANSWER_BYTES = 65_536
_REMEMBERED = 1_000
_TYPES = {"A": 1, "AAAA": 28}
Address = IPv4Address | IPv6Address


class Resolver:
    """Asks one resolver, and keeps its answers for a while. One per isolate. url: of its JSON interface."""

    def __init__(self, url: str, fetch: Fetch, clock: Clock) -> None:
        self._url = url
        self._fetch = fetch
        self._clock = clock
        self._public_until_ms: dict[str, int] = {}

    async def check(self, authority: str, tool_name: str | None = None) -> None:
        """Refuse a host with any address that is not public. A name without addresses is left to the platform.

        Raises: Misconfigured (code `private_upstream`); Unavailable (code `resolver_unavailable`), so that nothing is sent
            to a name that could not be checked.
        """
        host = authority.partition(":")[0]
        now_ms = self._clock()
        if self._public_until_ms.get(host, 0) > now_ms:
            return
        fresh_ms = MOST_FRESH_MS
        for kind in _TYPES:
            for address, ttl_ms in await self._addresses(host, kind):
                if not _is_public(address):
                    named = {} if tool_name is None else {"tool": tool_name}
                    raise Misconfigured(
                        "the upstream's name resolves to an address of a private network",
                        code="private_upstream",
                        **named,
                    )
                fresh_ms = min(fresh_ms, ttl_ms)
        if len(self._public_until_ms) >= _REMEMBERED:
            self._public_until_ms.clear()
        self._public_until_ms[host] = now_ms + max(LEAST_FRESH_MS, fresh_ms)

    async def _addresses(self, host: str, kind: str) -> list[tuple[Address, int]]:
        """Return the host's addresses of a kind, each with the time for which it holds."""
        url = f"{self._url}?name={quote(host)}&type={kind}"
        headers = {"accept": "application/dns-json"}
        try:
            answer = await self._fetch(
                "GET", url, headers=headers, body=None, timeout_ms=TIMEOUT_MS, limit_bytes=_MAX_ANSWER_BYTES
            )
            if answer.status != 200:
                raise ValueError("the resolver did not answer")
            return list(_read(answer.body, _TYPES[kind]))
        except (Unavailable, UpstreamFailed, ValueError) as error:
            raise Unavailable("the resolver did not answer; try again", code="resolver_unavailable") from error


def _read(body: bytes, kind: int) -> Iterator[tuple[Address, int]]:
    """Yield the addresses of an answer. Raises: ValueError for one that is not an answer, or reports a failure."""
    answer = read_json(body.decode())
    # 0 is success, 3 a name that does not exist: both are answers. Source: https://www.rfc-editor.org/rfc/rfc1035
    if not isinstance(answer, dict) or answer.get("Status") not in (0, 3):
        raise ValueError("not an answer")
    entries = answer.get("Answer", [])
    if not isinstance(entries, list):
        raise ValueError("not a list of answers")
    for entry in entries:
        if not isinstance(entry, dict):
            raise ValueError("not an answer")
        if entry.get("type") == kind:
            ttl_s = entry.get("TTL")
            yield ip_address(str(entry.get("data"))), ttl_s * 1000 if isinstance(ttl_s, int) else 0


def _is_public(address: Address) -> bool:
    """Return whether an address is one of the public internet."""
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    return address.is_global and not address.is_multicast
