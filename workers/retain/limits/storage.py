"""The storage limits of Cloudflare, checked before a call.

Pure, so that every adapter refuses in the same way: local simulators do not enforce all of these, production does.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from retain.errors import (
    ConstraintViolated,
    InvalidInput,
    LimitExceeded,
    QuotaExceeded,
    RetainError,
    TenantElsewhere,
    TenantMoving,
    Unavailable,
)
from retain.errors.codes import UnavailableCode
from retain.ports import KV_KEYS as _KV_KEYS
from retain.ports import SqlValue

MAX_PARAMETERS = 100
"""Bound values of one SQL statement. Source: https://developers.cloudflare.com/d1/platform/limits/"""
MAX_STATEMENT_BYTES = 100_000
"""Length of one SQL statement. Source: https://developers.cloudflare.com/d1/platform/limits/"""
MEMORY_QUOTA: Final = "memory_quota"
"""What the trigger that bounds memories says (migrations/0037_quotas.sql), and the code of the error."""
MAX_VALUE_BYTES = 2_000_000
"""Size of one string, BLOB or row. Source: https://developers.cloudflare.com/d1/platform/limits/"""
MAX_DATABASE_BYTES = 10_000_000_000
"""Size of one D1 database, and of the SQLite of one Durable Object, on the paid plan; no plan has more.

Source: https://developers.cloudflare.com/d1/platform/limits/,
https://developers.cloudflare.com/durable-objects/platform/limits/
"""
MAX_QUERIES = 1000
"""Calls of D1 that one invocation of a Worker may make, on the paid plan; 50 on the free one. A batch is one.

Source: https://developers.cloudflare.com/d1/platform/limits/
"""
MAX_INTEGER = 2**53
"""The largest whole number that D1 stores exactly: numbers are sent as doubles.

Source: https://developers.cloudflare.com/d1/worker-api/#type-conversion
"""
MAX_KV_KEY_BYTES = 512
"""Source: https://developers.cloudflare.com/kv/platform/limits/"""
MAX_KV_VALUE_BYTES = 25 * 1024 * 1024
"""Source: https://developers.cloudflare.com/kv/platform/limits/"""
MIN_KV_TTL_S = 60
"""Source: https://developers.cloudflare.com/kv/api/write-key-value-pairs/#expiring-keys"""
MAX_OBJECT_KEY_BYTES = 1024
"""Source: https://developers.cloudflare.com/r2/platform/limits/"""
MAX_PAGE = 1000
"""Most keys in one page of a listing, in KV and in R2.

Source: https://developers.cloudflare.com/kv/api/list-keys/
"""

_NOT_ALLOWED = re.compile(r"\s*(BEGIN|COMMIT|END|ROLLBACK|SAVEPOINT|RELEASE|ATTACH|DETACH|VACUUM)\b", re.IGNORECASE)


def check_statement(sql: str, values: Sequence[SqlValue]) -> list[str | float | bytes | None]:
    """Return the values as the platform stores them: booleans and whole numbers become doubles.

    The platform binds every number as a double. A column of INTEGER affinity makes it an integer again; a TEXT column
    keeps "5.0", and `7 / ?` does not divide as integers. Source:
    https://developers.cloudflare.com/d1/worker-api/#type-conversion

    Raises: LimitExceeded (code `statement_too_long`, `too_many_parameters`, `value_too_large`); InvalidInput (code
        `unsupported_value` for another type, a number that is not finite or not exact, or text that is not Unicode;
        `statement_not_allowed` for transactions, which only `batch` creates).
    """
    _check_text(sql)
    if len(values) > MAX_PARAMETERS:
        raise LimitExceeded("too many values for one statement", code="too_many_parameters", limit=MAX_PARAMETERS)
    return [_checked_value(value) for value in values]


@lru_cache(maxsize=1024)
def _check_text(sql: str) -> None:
    """Check a statement's text, once for each: there are few texts, and most are constants."""
    if utf8_bytes(sql) > MAX_STATEMENT_BYTES:
        raise LimitExceeded("the SQL statement is too long", code="statement_too_long", limit_bytes=MAX_STATEMENT_BYTES)
    if _NOT_ALLOWED.match(sql):
        raise InvalidInput("this kind of SQL statement is not allowed", code="statement_not_allowed")


def statement_error(what: str, text: str, code: UnavailableCode) -> RetainError:
    """Return the error that the platform's refusal of a statement means to the caller. what: the database, for people.

    A full database refuses writes until something is removed. It is Unavailable, because what is owed to it has to be
    kept and sent again. The platform's own text may quote the input, and is not in the error.
    Source: https://developers.cloudflare.com/d1/observability/debug-d1/ (the texts)
    """
    if MEMORY_QUOTA in text:
        return memory_quota()
    moved = refused_place(text)
    if moved is not None:
        return moved
    if "constraint failed" in text or "SQLITE_CONSTRAINT" in text:
        return ConstraintViolated("a constraint of the database forbids it")
    if "Exceeded maximum" in text or "SQLITE_FULL" in text:
        return database_full(what)
    return Unavailable(f"{what} failed; try again", code=code)


def refused_place(text: str) -> TenantElsewhere | TenantMoving | None:
    """Return the error of a transaction that is refused for where a tenant is, or None (migrations/0053_shards.sql)."""
    if "tenant_elsewhere" in text:
        return TenantElsewhere("the tenant is not on this database")
    if "tenant_frozen" in text or "shard_moving" in text:
        return TenantMoving("a tenant moves to another database; ask again", retry_after_s=1)
    return None


def memory_quota() -> QuotaExceeded:
    """Return the error of a tenant that holds as many memories as it may."""
    return QuotaExceeded(
        "the tenant holds as many memories as it may; delete or erase some, or raise the quota", code=MEMORY_QUOTA
    )


def database_full(what: str) -> Unavailable:
    """Return the error of a database that has reached its largest size."""
    return Unavailable(f"{what} is full: it takes no writes until an operator removes data", code="database_full")


def _checked_value(value: SqlValue) -> str | float | bytes | None:
    if isinstance(value, str) and value.isascii() and len(value) <= MAX_VALUE_BYTES:  # most are so
        return value
    if value is None:
        return None
    if isinstance(value, str | bytes):
        if (utf8_bytes(value) if isinstance(value, str) else len(value)) > MAX_VALUE_BYTES:
            raise LimitExceeded("a value is too large", code="value_too_large", limit_bytes=MAX_VALUE_BYTES)
        return value
    if isinstance(value, int) and abs(value) <= MAX_INTEGER:
        return float(value)
    if isinstance(value, float) and math.isfinite(value):
        return value
    raise InvalidInput(f"the database cannot hold this {type(value).__name__}", code="unsupported_value")


def check_kv_key(key: str) -> str:
    """Return the key of a KV entry if it is valid.

    Raises: InvalidInput (code `invalid_key`); LimitExceeded (code `key_too_long`).
    """
    if key in {"", ".", ".."}:
        raise InvalidInput("a key cannot be empty, '.' or '..'", code="invalid_key")
    return _checked_key(key, MAX_KV_KEY_BYTES)


def check_kv_keys(keys: Sequence[str]) -> list[str]:
    """Return the keys of one bulk read if all are valid.

    Source: https://developers.cloudflare.com/kv/api/read-key-value-pairs/#multiple-keys
    Raises: as `check_kv_key`; InvalidInput (code `invalid_limit`) for more than 100.
    """
    if len(keys) > _KV_KEYS:
        raise InvalidInput(f"at most {_KV_KEYS} keys are read at once", code="invalid_limit", maximum=_KV_KEYS)
    return [check_kv_key(key) for key in keys]


def check_kv_write(key: str, value: str, ttl_s: int | None) -> None:
    """Check a write to KV.

    Raises: as `check_kv_key`; LimitExceeded (code `value_too_large`); InvalidInput (code `unsupported_value` for text
        that is not Unicode, `invalid_ttl`).
    """
    check_kv_key(key)
    if utf8_bytes(value) > MAX_KV_VALUE_BYTES:
        raise LimitExceeded("the value is too large", code="value_too_large", limit_bytes=MAX_KV_VALUE_BYTES)
    if ttl_s is not None and ttl_s < MIN_KV_TTL_S:
        raise InvalidInput(f"a key lives at least {MIN_KV_TTL_S} seconds", code="invalid_ttl", minimum_s=MIN_KV_TTL_S)


def check_object_key(key: str) -> str:
    """Return the key of an object if it is valid.

    Raises: InvalidInput (code `invalid_key`); LimitExceeded (code `key_too_long`).
    """
    if not key:
        raise InvalidInput("a key cannot be empty", code="invalid_key")
    return _checked_key(key, MAX_OBJECT_KEY_BYTES)


def wrong_size(size_bytes: int) -> InvalidInput:
    """Return the error for an object whose pieces are not as many bytes as were announced."""
    return InvalidInput(f"the content is not the {size_bytes} bytes that were announced", code="invalid_content")


def check_page(limit: int) -> int:
    """Return the page size if it is valid.

    Raises: InvalidInput (code `invalid_limit`).
    """
    if not 1 <= limit <= MAX_PAGE:
        raise InvalidInput(f"a page holds 1 to {MAX_PAGE} keys", code="invalid_limit", maximum=MAX_PAGE)
    return limit


def utf8_bytes(text: str) -> int:
    """Return the length of the text in UTF-8.

    Raises: InvalidInput (code `unsupported_value`) for text with a lone surrogate, which UTF-8 cannot express: the
        platform would store a replacement character instead.
    """
    if text.isascii():
        return len(text)
    try:
        return len(text.encode())
    except UnicodeEncodeError as error:
        raise InvalidInput("the text is not valid Unicode", code="unsupported_value") from error


def _checked_key(key: str, limit_bytes: int) -> str:
    if utf8_bytes(key) > limit_bytes:
        raise LimitExceeded("the key is too long", code="key_too_long", limit_bytes=limit_bytes)
    return key
