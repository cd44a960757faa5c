"""The gateway: it gets only KV, an HTTP client, cryptography, a clock and its own settings."""

from __future__ import annotations

import bindings
from bindings import Platform
from retain.errors import Misconfigured
from retain.gateway.routes import Gateway
from retain.gateway.settings import GatewaySettings


def gateway_of(platform: Platform) -> Gateway:
    """Return the tool proxy with its MCP server. Raises: Misconfigured (code `invalid_setting`) for an invalid resolver."""
    resolver_url = platform.settings.resolver_url
    if resolver_url and not resolver_url.startswith(("https://", "http://127.0.0.1:")):
        raise Misconfigured("RESOLVER_URL must be an https address", code="invalid_setting")
    settings = GatewaySettings(
        credentials_key=platform.settings.credentials_key,
        previous_credentials_key=platform.settings.previous_credentials_key,
        allow_loopback=platform.settings.development,
        resolver_url=resolver_url,
        kept_ms=platform.settings.gateway_kept_s * 1000,
    )
    return Gateway(platform.kv, bindings.fetch, platform.crypto, bindings.now_ms, settings, platform.rates)
