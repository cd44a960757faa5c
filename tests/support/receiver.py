"""An application that receives what webhooks are sent, as a fake HTTP client: it answers as a test lets it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from retain.errors import Unavailable
from retain.host.crypto import HostCrypto
from retain.http import response_too_large
from retain.ports import HttpResponse, Until
from retain.sealing.keyring import Keyring

URL = "https://shop.example/hooks"


def keyring() -> Keyring:
    """Return what seals the secrets of webhooks in tests."""
    return Keyring(HostCrypto(), "current", "", lambda _: bytes(32))


async def allow(url: str) -> None:
    """Allow every address."""


@dataclass
class Received:
    """One message."""

    headers: Mapping[str, str]
    body: str

    @property
    def id(self) -> str:
        """What names the message."""
        return self.headers["webhook-id"]

    @property
    def content(self) -> Any:
        """The body, read as JSON."""
        return json.loads(self.body)


@dataclass
class Receiver:
    """Receives messages. status: of its answers, None for no answer at all. answer: their body."""

    status: int | None = 204
    answer: bytes = b""
    received: list[Received] = field(default_factory=list)

    async def fetch(
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
        """Receive a message, and answer. See `Fetch`."""
        assert (method, url, timeout_ms > 0, limit_bytes > 0) == ("POST", URL, True, True)
        assert not isinstance(body, bytes)
        self.received.append(Received(dict(headers), body or ""))
        if self.status is None:
            raise Unavailable("nobody answered", code="upstream_timeout")
        if len(self.answer) > limit_bytes:
            raise response_too_large(limit_bytes, upstream_status=self.status)
        return HttpResponse(self.status, {}, self.answer)
