"""PII: which values hold some, and their encryption at rest.

A value that is a JSON object or array with a declared field, at any depth, is sealed as a whole with AES-256-GCM, as
`{"v": 1, "kid": …, "data": …}`: the id of the key, and the base64 of nonce and ciphertext. The associated data is the
item's key, so that a seal copied to another place does not open there. A field whose value is null holds nothing. Text
that is not JSON, and JSON inside of a string, is not looked into.
"""

from __future__ import annotations

import binascii
import json
from collections.abc import Sequence
from hashlib import sha256
from typing import Any

from retain.errors import Forbidden, InvalidInput, Misconfigured
from retain.ports import Crypto

FIELDS = ("email", "phone", "address", "payment_method")
"""What is declared without configuration."""

_KEY_BYTES = 32
_VERSION = 1


def read_fields(text: str) -> tuple[str, ...]:
    """Return the field names of a setting, separated by commas; the usual ones for an empty one."""
    return tuple(name.strip() for name in text.split(",") if name.strip()) or FIELDS


def declared_in(value: str, fields: Sequence[str]) -> list[str]:
    """Return which declared fields the value holds, sorted. Upper and lower case are the same.

    Raises: InvalidInput (code `value_too_deep`).
    """
    declared = {name.casefold() for name in fields}
    found: set[str] = set()

    def seen(pairs: list[tuple[str, Any]]) -> bool:
        found.update(name.casefold() for name, held in pairs if held is not None and name.casefold() in declared)
        return True  # stands for the object, which is something

    if value.lstrip(" \t\r\n")[:1] not in ("{", "["):
        return []
    try:  # pairs, not dictionaries: of two fields of one name, neither hides the other
        json.loads(value, object_pairs_hook=seen)
    except ValueError:
        return []
    except RecursionError as error:
        raise InvalidInput("the value is nested too deeply to be searched for PII", code="value_too_deep") from error
    return sorted(found)


class Sealer:
    """Seals values with the deployment's key, and opens those of the key before as well."""

    def __init__(self, crypto: Crypto, key: str, previous: str = "", fields: Sequence[str] = FIELDS) -> None:
        """Take the keys as the secrets hold them: 32 bytes in base64; they are read when they are needed."""
        self._crypto = crypto
        self._key_text = key
        self._previous_text = previous
        self._fields = tuple(fields)

    def declared(self, value: str) -> list[str]:
        """Return which declared fields the value holds."""
        return declared_in(value, self._fields)

    def key_id(self) -> str:
        """Return the id of the key that seals now.

        Raises: Misconfigured (codes `memory_key_missing`, `invalid_memory_key`).
        """
        return _id_of(_read(self._key_text))

    async def seal(self, place: str, value: str) -> str:
        """Return the sealed value, different each time. place: the item's key. Raises: as `key_id`."""
        key = _read(self._key_text)
        data = binascii.b2a_base64(await self._crypto.encrypt(key, value.encode(), place.encode()), newline=False)
        return json.dumps({"v": _VERSION, "kid": _id_of(key), "data": data.decode()})

    async def open(self, place: str, sealed: str) -> str:
        """Return the value. Raises: Misconfigured (code `item_unreadable`) when no key of this deployment opens it."""
        try:
            envelope = json.loads(sealed)
            if envelope["v"] != _VERSION:
                raise ValueError("an envelope of an unknown version")
            data = binascii.a2b_base64(envelope["data"], strict_mode=True)
            return (await self._crypto.decrypt(self._named(envelope["kid"]), data, place.encode())).decode()
        except (ValueError, TypeError, LookupError, Forbidden) as error:
            raise Misconfigured(
                "the item's PII cannot be opened with this deployment's keys", code="item_unreadable"
            ) from (error)

    def _named(self, key_id: object) -> bytes:
        for text in (self._key_text, self._previous_text):
            if text and _id_of(key := _read(text)) == key_id:
                return key
        raise LookupError("sealed with a key that this deployment does not hold")


def _read(text: str) -> bytes:
    if not text:
        raise Misconfigured("the secret MEMORY_KEY is not set, and the value holds PII", code="memory_key_missing")
    try:
        key = binascii.a2b_base64(text, strict_mode=True)
    except ValueError as error:
        raise Misconfigured("MEMORY_KEY is not base64", code="invalid_memory_key") from error
    if len(key) != _KEY_BYTES:
        raise Misconfigured(f"MEMORY_KEY must be {_KEY_BYTES} bytes in base64", code="invalid_memory_key")
    return key


def _id_of(key: bytes) -> str:
    return sha256(key).hexdigest()[:8]
