"""Pages of keys: the key range of a prefix, and cursors that name the last key returned."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence

from retain.errors import InvalidInput
from retain.limits.storage import utf8_bytes
from retain.ports import KeyPage


def prefix_range(prefix: str, cursor: str | None) -> tuple[bytes, bytes, bytes]:
    """Return the first key of the prefix, the key after which the page starts, and the exclusive upper bound.

    Raises: InvalidInput (code `invalid_cursor`, or `unsupported_value` for a prefix that is not Unicode).
    """
    utf8_bytes(prefix)
    first = prefix.encode()
    try:
        after = b"" if cursor is None else base64.b64decode(cursor.encode("ascii"), altchars=b"-_", validate=True)
    except (binascii.Error, UnicodeEncodeError) as error:
        raise InvalidInput("the cursor is not from a listing", code="invalid_cursor") from error
    return first, after, first + b"\xff"  # no byte of UTF-8 is 0xFF, so every key with the prefix is before it


def page_of(keys: Sequence[bytes], limit: int) -> KeyPage:
    """Return the page. keys: up to `limit` plus one, which shows that there are more."""
    shown = keys[:limit]
    more = len(keys) > limit
    return KeyPage([key.decode() for key in shown], base64.urlsafe_b64encode(shown[-1]).decode() if more else None)
