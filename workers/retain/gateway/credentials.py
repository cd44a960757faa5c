"""Upstream credentials: sealed in KV, opened for one call.

A sealed credential is the JSON `{"v": 1, "kid": …, "data": …}`: the id of the key it was sealed with, and the base64 of
nonce and AES-256-GCM ciphertext. The associated data is the KV key it stands under, so that a sealed value copied to
another tenant or tool does not open there.
"""

from __future__ import annotations

import binascii
import json
from hashlib import sha256

from retain.errors import Forbidden, InvalidInput, LimitExceeded, Misconfigured
from retain.gateway.settings import GatewaySettings
from retain.ports import Clock, Crypto

MAX_CREDENTIAL_BYTES = 8192
CACHE_MS = 60_000
"""How long an opened credential may stay in memory."""
_CACHE_ENTRIES = 256
_KEY_BYTES = 32
_ENVELOPE_VERSION = 1


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
        key = binascii.a2b_base64(text, strict_mode=True)
    except ValueError as error:
        raise Misconfigured("CREDENTIALS_KEY is not base64", code="invalid_credentials_key") from error
    if len(key) != _KEY_BYTES:
        raise Misconfigured(f"CREDENTIALS_KEY must be {_KEY_BYTES} bytes in base64", code="invalid_credentials_key")
    return key


def check_credential(secret: str) -> str:
    """Return the credential, or refuse what cannot stand in a header.

    Raises: InvalidInput (code `invalid_credential`); LimitExceeded (code `credential_too_long`).
    """
    if len(secret) > MAX_CREDENTIAL_BYTES:
        raise LimitExceeded("the credential is too long", code="credential_too_long", limit_bytes=MAX_CREDENTIAL_BYTES)
    if not secret or secret != secret.strip() or not (secret.isascii() and secret.isprintable()):
        raise InvalidInput(
            "a credential is printable ASCII, not empty, without spaces around it", code="invalid_credential"
        )
    return secret


async def seal(crypto: Crypto, key: bytes, place: str, secret: str) -> str:
    """Return the envelope of the credential for the KV key `place`, different each time.

    Raises: InvalidInput, LimitExceeded as `check_credential`.
    """
    data = await crypto.encrypt(key, check_credential(secret).encode(), place.encode())
    text = binascii.b2a_base64(data, newline=False).decode()
    return json.dumps({"v": _ENVELOPE_VERSION, "kid": _key_id(key), "data": text})


class OpenedCredentials:
    """Opens sealed credentials, and keeps them for up to a minute.

    What is kept is keyed by the sealed text that KV answered just now, so a credential that was replaced or removed is
    never used: keeping saves the decryption, not the read.
    """

    def __init__(self, crypto: Crypto, clock: Clock, settings: GatewaySettings) -> None:
        self._crypto = crypto
        self._clock = clock
        self._settings = settings
        self._opened: dict[tuple[str, str], tuple[str, int]] = {}

    async def open(self, place: str, sealed: str) -> str:
        """Return the credential that stands sealed under the KV key `place`.

        Raises: Misconfigured (code `credential_unreadable`, and those of `read_credentials_key`).
        """
        now_ms = self._clock()
        found = self._opened.get((place, sealed))
        if found is not None and now_ms < found[1]:
            return found[0]
        secret = await self._decrypt(place, sealed)
        self._forget(now_ms)
        self._opened[place, sealed] = (secret, now_ms + CACHE_MS)
        return secret

    async def _decrypt(self, place: str, sealed: str) -> str:
        try:
            envelope = json.loads(sealed)
            if envelope["v"] != _ENVELOPE_VERSION:
                raise ValueError("an envelope of an unknown version")
            key = self._key(envelope["kid"])
            data = binascii.a2b_base64(envelope["data"], strict_mode=True)
            return check_credential((await self._crypto.decrypt(key, data, place.encode())).decode())
        except (ValueError, TypeError, LookupError, Forbidden, InvalidInput) as error:
            raise Misconfigured(
                "the tool's upstream credential cannot be opened: store it again", code="credential_unreadable"
            ) from error

    def _key(self, key_id: object) -> bytes:
        key = read_credentials_key(self._settings.credentials_key)
        if _key_id(key) == key_id:
            return key
        if self._settings.previous_credentials_key:
            key = read_credentials_key(self._settings.previous_credentials_key)
            if _key_id(key) == key_id:
                return key
        raise LookupError("sealed with a key that this deployment does not hold")

    def _forget(self, now_ms: int) -> None:
        self._opened = {name: kept for name, kept in self._opened.items() if now_ms < kept[1]}
        while len(self._opened) >= _CACHE_ENTRIES:
            del self._opened[next(iter(self._opened))]


def _key_id(key: bytes) -> str:
    return sha256(key).hexdigest()[:8]
