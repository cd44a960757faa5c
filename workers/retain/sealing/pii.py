"""PII: which values contain it, and their encryption at rest.

A value that is a JSON object or array with a declared field, at any depth, is sealed as a whole (`retain.sealing.keyring`)
for the key under which it is stored. A field that is null does not count. Text that is not JSON, and JSON inside a string,
are not searched.

The name of a field is read as words: `userEmail`, `e-mail` and `EMAIL_ADDRESS` are the field `email`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import cache
from typing import Any

from retain.errors import InvalidInput, Misconfigured
from retain.json_text import MAX_NESTING, NestedTooDeeply, read_json
from retain.ports import Crypto
from retain.sealing.keyring import Keyring, decode_key

FIELDS = ("email", "phone", "address", "payment_method")
"""The fields that are declared by default."""

_WORDS = re.compile(r"[^\W\d_]+|\d+")
_HUMPS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_SAME = {
    "address",
    "number",
    "no",
    "nr",
    "num",
    "line",
    "text",
    "value",
    "raw",
    "street",
    "city",
    "zip",
    "postcode",
    "country",
}
"""Words after a field's name that leave it the same field, as in `phoneNumber`; `email_draft` is another one."""
_OWNERS = {
    "account", "alternate", "backup", "billing", "business", "buyer", "cell", "client", "contact", "customer", "delivery",
    "employee", "guest", "home", "mailing", "member", "mobile", "my", "office", "owner", "patient", "person", "personal",
    "postal", "primary", "private", "recipient", "secondary", "seller", "sender", "shipping", "tele", "user", "work", "your",
}  # fmt: skip
"""Words before a field's name in names without marks between words: `useremail`, `telephone`. With marks any word may be."""


def read_fields(text: str) -> tuple[str, ...]:
    """Return the comma-separated field names of a setting; the default ones if it is empty."""
    return tuple(name.strip() for name in text.split(",") if name.strip()) or FIELDS


def declared_in(value: str, fields: Sequence[str]) -> list[str]:
    """Return which declared fields the value has, sorted, in any spelling (`spelled`).

    Raises: InvalidInput (code `value_too_deep`).
    """
    declared = {name.casefold(): _joined(name) for name in fields}
    found: set[str] = set()

    def seen(pairs: list[tuple[str, Any]]) -> str:
        for name, held in pairs:
            if held is not None:
                folded, words = name.casefold(), _words(name)
                found.update(one for one, joined in declared.items() if folded == one or spelled(words, joined))
        return "{}"  # stands for the object, which is not null

    if value.lstrip(" \t\r\n")[:1] not in ("{", "["):
        return []
    try:  # pairs, not dictionaries: of two fields with one name, neither hides the other
        read_json(value, levels=2 * MAX_NESTING, on_pairs=seen)
    except NestedTooDeeply as error:
        raise InvalidInput("the value is nested too deeply to be searched for PII", code="value_too_deep") from error
    except ValueError:
        return []
    return sorted(found)


def spelled(words: Sequence[str], declared: str) -> bool:
    """Return whether the words of a field's name spell a declared one. declared: its words, in lower case and without gaps.

    A name spells the field if some of its words do, together and perhaps in the plural, and only words such as "address",
    "number" or a digit follow them: `e-mail`, `userEmail`, `phoneNumber`, `addresses`, `address_line_2`. Without marks
    between the words only some may precede them: `useremail`, `telephone`.
    """
    for start in range(len(words)):
        for end in range(start + 1, len(words) + 1):
            if "".join(words[start:end]) in (declared, f"{declared}s", f"{declared}es"):
                return all(word.removesuffix("s") in _SAME or word in _SAME or word.isdigit() for word in words[end:])
    return _without_marks(declared).fullmatch("".join(words)) is not None


@cache
def _without_marks(declared: str) -> re.Pattern[str]:
    """Return the pattern of the declared name in a name without marks between its words."""
    return re.compile(rf"(?:{'|'.join(_OWNERS)})*{re.escape(declared)}(?:e?s)?(?:(?:{'|'.join(_SAME)})s?|\d)*")


@cache
def _joined(declared: str) -> str:
    """Return the words of a declared field without gaps."""
    return "".join(_words(declared))


def _words(name: str) -> list[str]:
    return [word.casefold() for word in _WORDS.findall(_HUMPS.sub(" ", unicodedata.normalize("NFKC", name)))]


def refuse_declared(value: str, fields: Sequence[str]) -> None:
    """Refuse a value with a declared field where it cannot be sealed.

    Raises: InvalidInput (code `pii_outside_warm`, and as `declared_in`).
    """
    declared = declared_in(value, fields)
    if declared:
        raise InvalidInput(
            "PII is sealed in the warm tier, and is not copied anywhere else", code="pii_outside_warm", fields=declared
        )


class Sealer:
    """Seals values with the deployment's current key, and also opens those sealed with its previous key."""

    def __init__(self, crypto: Crypto, key: str, previous: str = "", fields: Sequence[str] = FIELDS) -> None:
        """Take the keys as they are in the secrets: 32 bytes in base64, decoded on first use."""
        self._keys = Keyring(crypto, key, previous, _read)
        self.fields = tuple(fields)

    def declared(self, value: str) -> list[str]:
        """Return which declared fields the value has, sorted. Raises: as `declared_in`."""
        return declared_in(value, self.fields)

    def key_id(self) -> str:
        """Return the id of the current key, which seals new values.

        Raises: Misconfigured (codes `memory_key_missing`, `invalid_memory_key`).
        """
        return self._keys.key_id()

    async def seal(self, key: str, value: str) -> str:
        """Return the sealed value, which differs on each call. key: under which it is stored. Raises: as `key_id`."""
        return await self._keys.seal(key, value)

    async def open(self, key: str, sealed: str) -> str:
        """Return the value. key: as it was sealed for.

        Raises: Misconfigured (code `item_unreadable`) when no key of this deployment opens it.
        """
        try:
            return await self._keys.open(key, sealed)
        except ValueError as error:
            raise Misconfigured(
                "what is sealed here cannot be opened with this deployment's keys", code="item_unreadable"
            ) from error


def _read(text: str) -> bytes:
    if not text:
        raise Misconfigured("the secret MEMORY_KEY is not set, and the value holds PII", code="memory_key_missing")
    try:
        return decode_key(text)
    except ValueError as error:
        raise Misconfigured(f"MEMORY_KEY {error}", code="invalid_memory_key") from error
