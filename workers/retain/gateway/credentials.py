"""Upstream credentials: sealed in KV under their own key's name, opened for one call."""

from __future__ import annotations

from retain.errors import InvalidInput, LimitExceeded, Misconfigured
from retain.gateway.settings import GatewaySettings
from retain.ports import Clock, Crypto
from retain.sealing.keyring import Keyring, decode_key, seal_with

MAX_CREDENTIAL_BYTES = 8192
CACHE_MS = 60_000
"""How long an opened credential may stay in memory."""
_CACHE_ENTRIES = 256


def credential_name(tenant_id: str, tool_name: str) -> str:
    """Return the KV key of a tool's upstream credential."""
    return f"gateway_credential:{tenant_id}:{tool_name}"


def read_credentials_key(text: str) -> bytes:
    """Return the 32 bytes of a CREDENTIALS_KEY.

    Raises: Misconfigured (code `credentials_key_missing`, `invalid_credentials_key`).
    """
    if not text:
        raise Misconfigured("the secret CREDENTIALS_KEY is not set", code="credentials_key_missing")
    try:
        return decode_key(text)
    except ValueError as error:
        raise Misconfigured(f"CREDENTIALS_KEY {error}", code="invalid_credentials_key") from error


def check_credential(secret: str) -> str:
    """Return the credential, or refuse what cannot be sent in a header.

    Raises: InvalidInput (code `invalid_credential`); LimitExceeded (code `credential_too_long`).
    """
    if len(secret) > MAX_CREDENTIAL_BYTES:
        raise LimitExceeded("the credential is too long", code="credential_too_long", limit_bytes=MAX_CREDENTIAL_BYTES)
    if not secret or secret != secret.strip() or not (secret.isascii() and secret.isprintable()):
        raise InvalidInput(
            "a credential is printable ASCII, not empty, without spaces around it", code="invalid_credential"
        )
    return secret


async def seal(crypto: Crypto, key: bytes, name: str, secret: str) -> str:
    """Return the credential sealed for the KV key `name`, different each time.

    Raises: InvalidInput, LimitExceeded as `check_credential`.
    """
    return await seal_with(crypto, key, name, check_credential(secret))


class OpenedCredentials:
    """Opens sealed credentials, and keeps them for up to a minute.

    The cache key is the sealed text that KV has just returned, so a credential that was replaced or removed is never
    used: the cache saves the decryption, not the read.
    """

    def __init__(self, crypto: Crypto, clock: Clock, settings: GatewaySettings) -> None:
        self._keys = Keyring(crypto, settings.credentials_key, settings.previous_credentials_key, read_credentials_key)
        self._clock = clock
        self._opened: dict[tuple[str, str], tuple[str, int]] = {}

    async def open(self, name: str, sealed: str) -> str:
        """Return the credential that is stored sealed under the KV key `name`.

        Raises: Misconfigured (code `credential_unreadable`, and those of `read_credentials_key`).
        """
        now_ms = self._clock()
        found = self._opened.get((name, sealed))
        if found is not None and now_ms < found[1]:
            return found[0]
        secret = await self._decrypt(name, sealed)
        self._forget(now_ms)
        self._opened[name, sealed] = (secret, now_ms + CACHE_MS)
        return secret

    async def _decrypt(self, name: str, sealed: str) -> str:
        self._keys.key_id()  # raises when the deployment has no key
        try:
            return check_credential(await self._keys.open(name, sealed))
        except (ValueError, InvalidInput) as error:
            raise Misconfigured(
                "the tool's upstream credential cannot be opened: store it again", code="credential_unreadable"
            ) from error

    def _forget(self, now_ms: int) -> None:
        self._opened = {name: kept for name, kept in self._opened.items() if now_ms < kept[1]}
        while len(self._opened) >= _CACHE_ENTRIES:
            del self._opened[next(iter(self._opened))]
