"""API keys: what a caller presents, and what KV holds of it.

A key is `retain_<tenant>_<43 characters>`: a prefix for secret scanners, the tenant so that a leaked key can be traced
to its owner, and 32 random bytes in base64url. KV holds only its SHA-256. Neither salt nor slow hash is needed, since
256 random bits cannot be guessed; nor is a comparison in constant time, since the lookup is by the hash, and knowing
how much of a hash matches reveals nothing about the key.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from typing import Any

from retain.errors import InvalidInput, Misconfigured, Unauthenticated
from retain.gateway.entries import Entries, ToolEntries
from retain.identifiers import check_tenant
from retain.json_text import read_json

KEY_PREFIX = "retain_"
MAX_KEY_CHARACTERS = 128
STORED_PREFIX = "gateway_key:"
_READ_GRANTS = 1_000
ANY_TOOL = "*"
"""The scope that allows every tool of the tenant."""


@dataclass(frozen=True, slots=True)
class Grant:
    """What an API key allows.

    key_id: the first characters of the key's hash; names the key in logs and commands. scopes: tool names, or "*".
    expires_at_ms: None for a key that does not expire.
    """

    tenant_id: str
    key_id: str
    scopes: tuple[str, ...]
    created_at_ms: int
    expires_at_ms: int | None = None

    def allows(self, tool_name: str) -> bool:
        """Return whether the key may call the tool."""
        return tool_name in self.scopes or ANY_TOOL in self.scopes


def stored_name(api_key: str) -> str:
    """Return the KV key under which the API key's grant is stored."""
    return STORED_PREFIX + sha256(api_key.encode()).hexdigest()


def presented_key(headers: Mapping[str, str]) -> str:
    """Return the API key a request carries, as `authorization: Bearer …` or `x-api-key`.

    Raises: Unauthenticated (code `missing_api_key`).
    """
    scheme, _, token = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer" and token:
        return token.strip()
    api_key = headers.get("x-api-key")
    if api_key:
        return api_key
    raise Unauthenticated("send an API key as 'authorization: Bearer …' or 'x-api-key'", code="missing_api_key")


async def authenticate(
    entries: Entries, api_key: str, now_ms: int, tool_name: str | None
) -> tuple[Grant, ToolEntries | None]:
    """Return what the key allows, and the entries of the tool that is called if they were read with it.

    A revoked key stops working as soon as KV shows it, and what the isolate keeps of it is too old (`Entries`).
    A text that cannot be an API key costs no read. tool_name: None for a request that calls none.

    Raises: Unauthenticated (code `invalid_api_key`) for an unknown or expired key; Unavailable; Misconfigured (code
        `invalid_key_record`).
    """
    if not api_key.startswith(KEY_PREFIX) or len(api_key) > MAX_KEY_CHARACTERS or not api_key.isascii():
        raise _refused()
    name = stored_name(api_key)
    text, read = await entries.key(name, tool_name)
    if text is None:
        raise _refused()
    grant = read_grant(text)
    if grant.expires_at_ms is not None and grant.expires_at_ms <= now_ms:
        raise _refused()
    entries.keep_key(name, text, grant.tenant_id)
    return grant, read


@lru_cache(maxsize=_READ_GRANTS)
def read_grant(text: str) -> Grant:
    """Return the grant that KV holds. Each text is read once per isolate.

    Raises: Misconfigured (code `invalid_key_record`).
    """
    try:
        record: Any = read_json(text)
        scopes = tuple(record["scopes"])
        expires_at_ms = record.get("expires_at_ms")
        valid = (
            isinstance(record["key_id"], str)
            and isinstance(record["scopes"], list)
            and all(isinstance(scope, str) for scope in scopes)
            and isinstance(record["created_at_ms"], int)
            and (expires_at_ms is None or isinstance(expires_at_ms, int))
        )
        if not valid:
            raise TypeError("a field of the key's record has a wrong type")
        return Grant(
            check_tenant(record["tenant_id"]), record["key_id"], scopes, record["created_at_ms"], expires_at_ms
        )
    except (ValueError, TypeError, LookupError, AttributeError, InvalidInput) as error:
        raise Misconfigured("the API key's record in KV is not readable", code="invalid_key_record") from error


def write_grant(grant: Grant) -> str:
    """Return the text that `read_grant` reads."""
    record: dict[str, object] = {
        "tenant_id": grant.tenant_id,
        "key_id": grant.key_id,
        "scopes": list(grant.scopes),
        "created_at_ms": grant.created_at_ms,
    }
    if grant.expires_at_ms is not None:
        record["expires_at_ms"] = grant.expires_at_ms
    return json.dumps(record)


def _refused() -> Unauthenticated:
    return Unauthenticated("the API key is unknown or has expired", code="invalid_api_key")
