"""The proxy's settings: the few of the deployment's that it may see."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class GatewaySettings:
    """What the proxy is configured with.

    credentials_key: base64 of the 32 bytes that seal upstream credentials; "" when the deployment has none, so that
        only tools without credentials work. previous_credentials_key: the one before it, kept until everything is
        sealed with the new one. Both are secrets, never shown.
    allow_loopback: allow tools on this machine, over plain http. For development only.
    resolver_url: of the resolver that is asked for the addresses of upstreams; "" for none.
    kept_ms: for how long an isolate uses what KV answered without asking again; 0 for not at all.
    """

    credentials_key: str = field(default="", repr=False)
    previous_credentials_key: str = field(default="", repr=False)
    allow_loopback: bool = False
    resolver_url: str = ""
    kept_ms: int = 0
