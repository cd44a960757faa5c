"""Sealed text: AES-256-GCM under a key that can be replaced.

A sealed text is the JSON `{"v": 1, "kid": …, "data": …}`: the id of the key, and the base64 of nonce and ciphertext.
The associated data is the name under which the text is stored, so a sealed text copied elsewhere does not open there.
"""

from __future__ import annotations

import binascii
import json
from collections.abc import Callable
from hashlib import sha256
from typing import Any

from retain.errors import Forbidden
from retain.json_text import read_json
from retain.ports import Crypto

KEY_BYTES = 32
_VERSION = 1


def decode_key(text: str) -> bytes:
    """Return the 32-byte key that a secret holds in base64. Raises: ValueError, with what is wrong with the secret."""
    try:
        key = binascii.a2b_base64(text, strict_mode=True)
    except ValueError as error:
        raise ValueError("is not base64") from error
    if len(key) != KEY_BYTES:
        raise ValueError(f"must be {KEY_BYTES} bytes in base64")
    return key


async def seal_with(crypto: Crypto, key: bytes, name: str, text: str) -> str:
    """Return the text sealed for the name under which it will be stored; different each time."""
    data = binascii.b2a_base64(await crypto.encrypt(key, text.encode(), name.encode()), newline=False)
    return json.dumps({"v": _VERSION, "kid": _id_of(key), "data": data.decode()})


class Keyring:
    """Seals with the current key, and opens what it or the previous key sealed.

    The keys are given as the secrets hold them, empty for none, and are decoded when they are needed.
    read: decodes a secret into its key, and raises the area's own error for one that is missing or invalid.
    """

    def __init__(self, crypto: Crypto, current: str, previous: str, read: Callable[[str], bytes]) -> None:
        self._crypto = crypto
        self._current = current
        self._previous = previous
        self._read = read

    def key_id(self) -> str:
        """Return the id of the current key. Raises: as `read`."""
        return _id_of(self._read(self._current))

    async def seal(self, name: str, text: str) -> str:
        """Return the text sealed with the current key for the name under which it will be stored. Raises: as `read`."""
        return await seal_with(self._crypto, self._read(self._current), name, text)

    def is_current(self, sealed: str) -> bool:
        """Return whether the current key sealed a text. Raises: ValueError when it is not a sealed text; as `read`."""
        try:
            envelope: Any = read_json(sealed)
            return bool(envelope["kid"] == self.key_id())
        except (TypeError, LookupError) as error:
            raise ValueError("the text is not sealed") from error

    async def open(self, name: str, sealed: str) -> str:
        """Return the text that is stored sealed under a name.

        Raises: ValueError when it is not a sealed text, or no key of the ring opens it under this name; as `read`.
        """
        try:
            envelope: Any = read_json(sealed)
            if envelope["v"] != _VERSION:
                raise ValueError("sealed in an unknown format version")
            data = binascii.a2b_base64(envelope["data"], strict_mode=True)
            return (await self._crypto.decrypt(self._named(envelope["kid"]), data, name.encode())).decode()
        except (TypeError, LookupError, Forbidden) as error:
            raise ValueError("the sealed text cannot be opened") from error

    def _named(self, key_id: object) -> bytes:
        for text in (self._current, self._previous):
            if text and _id_of(key := self._read(text)) == key_id:
                return key
        raise ValueError("sealed with a key that this deployment does not have")


def _id_of(key: bytes) -> str:
    return sha256(key).hexdigest()[:8]
