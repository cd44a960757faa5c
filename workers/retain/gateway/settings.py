"""The proxy's own settings: the few of the deployment's that it may know."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class GatewaySettings:
    """What the proxy is configured with.

    credentials_key: base64 of the 32 bytes that seal upstream credentials; "" when the deployment has none, which only
        tools without credentials can do with. previous_credentials_key: the one before, kept while values sealed with
        it are sealed anew. Both are secrets, never shown.
    allow_loopback: let tools be served from this machine, over plain http. For development only.
    """

    credentials_key: str = field(default="", repr=False)
    previous_credentials_key: str = field(default="", repr=False)
    allow_loopback: bool = False
