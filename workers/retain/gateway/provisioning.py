"""What KV must hold for a tenant to call a tool: made here, written by the command line, tests and the demo."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from retain.errors import InvalidInput, LimitExceeded
from retain.gateway.credentials import credential_name, seal
from retain.gateway.keys import ANY_TOOL, KEY_PREFIX, STORED_PREFIX, Grant, stored_name, write_grant
from retain.gateway.proxy import prepare_tool
from retain.gateway.tool_config import tool_name_in_kv
from retain.identifiers import check_tenant, check_tool_name
from retain.ports import Crypto, Kv

MAX_CONFIG_BYTES = 65_536
MAX_LIFETIME_MS = 3_650 * 86_400_000
_KEY_BYTES = 32
KEY_ID_CHARACTERS = 16


@dataclass(frozen=True, slots=True)
class KvEntry:
    """One key to write, and its value."""

    key: str
    value: str

    async def write(self, kv: Kv) -> None:
        """Write the entry."""
        await kv.put(self.key, self.value)


@dataclass(frozen=True, slots=True)
class NewApiKey:
    """An API key just made. api_key: stored nowhere. entry: what to write, without the key."""

    api_key: str = field(repr=False)
    key_id: str
    entry: KvEntry


def new_api_key(tenant_id: str, scopes: Sequence[str], *, now_ms: int, lifetime_ms: int | None = None) -> NewApiKey:
    """Make an API key for the tools in `scopes`, or for all ("*").

    Raises: InvalidInput (code `invalid_tenant`, `invalid_tool_name`, `invalid_scopes`, `invalid_lifetime`).
    """
    if not scopes:
        raise InvalidInput("a key needs at least one tool, or '*'", code="invalid_scopes")
    if lifetime_ms is not None and not 0 < lifetime_ms <= MAX_LIFETIME_MS:
        raise InvalidInput(
            "a key's lifetime must be positive, and at most ten years (3,650 days)", code="invalid_lifetime"
        )
    checked = tuple(scope if scope == ANY_TOOL else check_tool_name(scope) for scope in scopes)
    random = base64.urlsafe_b64encode(os.urandom(_KEY_BYTES)).decode().rstrip("=")
    api_key = f"{KEY_PREFIX}{check_tenant(tenant_id)}_{random}"
    name = stored_name(api_key)
    key_id = name.removeprefix(STORED_PREFIX)[:KEY_ID_CHARACTERS]
    expires_at_ms = None if lifetime_ms is None else now_ms + lifetime_ms
    grant = Grant(tenant_id, key_id, checked, now_ms, expires_at_ms)
    return NewApiKey(api_key, key_id, KvEntry(name, write_grant(grant)))


def tool_entry(
    tenant_id: str,
    tool_name: str,
    config: Mapping[str, object],
    *,
    allow_loopback: bool = False,
    allow_query_credential: bool = False,
) -> KvEntry:
    """Return the entry of a tool, with its configuration checked as the proxy checks it.

    allow_query_credential: accept a credential in the query, which is then in the URL, and in traces of the platform.

    Raises: InvalidInput (code `invalid_tenant`, `invalid_tool_name`, `invalid_tool_configuration`,
        `forbidden_upstream`); LimitExceeded (code `tool_configuration_too_large`).
    """
    try:
        text = json.dumps(config, sort_keys=True, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise InvalidInput("the configuration is not JSON", code="invalid_tool_configuration") from error
    if len(text) > MAX_CONFIG_BYTES:
        raise LimitExceeded(
            "the configuration is too large", code="tool_configuration_too_large", limit_bytes=MAX_CONFIG_BYTES
        )
    prepared = prepare_tool(text, allow_loopback=allow_loopback)
    if prepared.config.auth.kind == "query" and not allow_query_credential:
        raise InvalidInput(
            "a credential in the query is part of the URL, which traces of the platform and logs of the upstream record;"
            " send it in a header, or allow it with --allow-query-credential",
            code="query_credential",
        )
    return KvEntry(tool_name_in_kv(check_tenant(tenant_id), check_tool_name(tool_name)), text)


async def credential_entry(
    crypto: Crypto, credentials_key: bytes, tenant_id: str, tool_name: str, secret: str
) -> KvEntry:
    """Return the entry of a tool's upstream credential, sealed for this tenant and tool.

    Raises: InvalidInput (code `invalid_tenant`, `invalid_tool_name`, `invalid_credential`); LimitExceeded (code
        `credential_too_long`).
    """
    place = credential_name(check_tenant(tenant_id), check_tool_name(tool_name))
    return KvEntry(place, await seal(crypto, credentials_key, place, secret))
