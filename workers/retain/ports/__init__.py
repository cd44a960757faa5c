"""What Retain needs from the platform, as protocols.

Each port has an adapter for the platform (`workers/adapters/`), one for the host (`retain.host`), and one contract
suite (`tests/ports/`) that both pass. Times are epoch milliseconds; durations have their unit in their name.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, Protocol

from retain.json_text import JsonObject
from retain.ports.http_response import HeldBody as HeldBody
from retain.ports.http_response import HttpResponse as HttpResponse
from retain.ports.vector_index import MetadataFilter as MetadataFilter
from retain.ports.vector_index import MetadataValue as MetadataValue
from retain.ports.vector_index import PropertyType as PropertyType
from retain.ports.vector_index import Vector as Vector
from retain.ports.vector_index import VectorEntry as VectorEntry
from retain.ports.vector_index import VectorIndex as VectorIndex
from retain.ports.vector_index import VectorMatch as VectorMatch

SqlValue = str | int | float | bytes | None
Row = Mapping[str, Any]
"""One result row: column name to value. BLOBs are `bytes`."""
KV_KEYS = 100
"""Most keys that one call of KV reads."""


class Kv(Protocol):
    """An eventually consistent key-value store (Workers KV).

    A read may lag a write by up to 60 seconds, except in the location that wrote.
    Source: https://developers.cloudflare.com/kv/concepts/how-kv-works/
    """

    async def get(self, key: str) -> str | None:
        """Return the value, or None when the key does not exist or has expired.

        Raises: Unavailable.
        """
        ...

    async def get_many(self, keys: Sequence[str]) -> list[str | None]:
        """Return the values of up to `KV_KEYS` keys, in their order: one call, and a read of each. No keys cost nothing.

        Source: https://developers.cloudflare.com/kv/api/read-key-value-pairs/#multiple-keys
        Raises: InvalidInput (code `invalid_limit`) for more keys; Unavailable.
        """
        ...

    async def put(self, key: str, value: str, *, ttl_s: int | None = None) -> None:
        """Write the value, replacing any. Idempotent.

        ttl_s: seconds until the key expires, at least 60.
        Raises: LimitExceeded for a key over 512 bytes or a value over 25 MiB; Unavailable.
        """
        ...

    async def delete(self, key: str) -> None:
        """Remove the key. Removing an absent key is not an error."""
        ...

    async def list(self, prefix: str, *, cursor: str | None = None, limit: int = 1000) -> KeyPage:
        """Return up to `limit` (at most 1000) keys that start with `prefix`, in lexicographic order."""
        ...


@dataclass(frozen=True, slots=True)
class KeyPage:
    """Keys of a listing, and the cursor of the next page (None at the end)."""

    keys: list[str]
    cursor: str | None


Statement = tuple[str, tuple[SqlValue, ...]]
"""A parameterised SQL statement: text with `?` placeholders, and its values."""


@dataclass(frozen=True, slots=True)
class SqlRows:
    """The rows of one statement."""

    rows: list[Row]


@dataclass(frozen=True, slots=True)
class SqlResult(SqlRows):
    """The rows of one statement, how many rows it changed, and the size of the database after it, None if not known."""

    changes: int
    database_bytes: int | None = None


class Sql(Protocol):
    """A shared SQL database with SQLite's dialect, reached over the network (D1)."""

    async def run(self, sql: str, *values: SqlValue) -> SqlResult:
        """Run one statement.

        Raises: Conflict (code `constraint`) when a constraint forbids it; Unavailable otherwise.
        """
        ...

    async def batch(self, statements: Sequence[Statement]) -> list[SqlResult]:
        """Run the statements in order, as one transaction.

        Raises: as `run`. An empty sequence does nothing.
        """
        ...


class ObjectSql(Protocol):
    """The SQLite of one Durable Object: synchronous, private to it.

    Statements with no `await` between them commit together. An exception rolls nothing back, except in `atomically`.
    Source: https://developers.cloudflare.com/durable-objects/api/sqlite-storage-api/
    """

    def run(self, sql: str, *values: SqlValue) -> SqlRows:
        """Run one statement and return all its rows. How many it changed is not counted: it would take two more."""
        ...

    def script(self, statements: Sequence[str]) -> None:
        """Run statements that take no values, in order. When one fails, those before it stay, except in `atomically`."""
        ...

    def atomically(self, work: Callable[[], None]) -> None:
        """Run the work; when it raises, roll back all its statements and raise the same. Must not be nested."""
        ...


class Objects(Protocol):
    """An object store, strongly consistent by key (R2)."""

    async def get(self, key: str) -> bytes | None:
        """Return the object's bytes, or None when there is none."""
        ...

    async def put(self, key: str, value: bytes, *, content_type: str = "application/octet-stream") -> None:
        """Write the object, replacing any. Idempotent. Durable when it returns."""
        ...

    async def add(self, key: str, value: bytes, *, content_type: str = "application/octet-stream") -> bool:
        """Write the object if there is none under the key, in one atomic step; return whether it was written.

        Durable when it returns. Idempotent: repeated, it returns False.
        """
        ...

    async def delete(self, key: str) -> None:
        """Remove the object. Removing an absent object is not an error."""
        ...

    async def list(self, prefix: str, *, cursor: str | None = None, limit: int = 1000) -> KeyPage:
        """Return up to `limit` (at most 1000) keys that start with `prefix`, in lexicographic order."""
        ...


class RateLimiter(Protocol):
    """Counts requests by key, without a store: roughly, and in one location."""

    async def allow(self, key: str) -> bool:
        """Count a request; return whether the key is still within its limit. Raises nothing: if the platform fails, True."""
        ...


MAX_RESPONSE_BYTES = 10 * 1024 * 1024
"""Most bytes of an answer's decoded body that are read where the caller names no limit of its own."""
MAX_STREAM_BYTES = 32 * 1024 * 1024
"""The same for an answer that is passed on as it arrives."""


Until = Callable[[bytes], bool]
"""Takes the next piece of an answer's decoded body; returns whether the answer is complete with it."""


class Fetch(Protocol):
    """An HTTP client."""

    async def __call__(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str],
        body: str | bytes | None,
        timeout_ms: int,
        limit_bytes: int = MAX_RESPONSE_BYTES,
        until: Until | None = None,
    ) -> HttpResponse:
        """Send one request and read the whole answer. Redirects are not followed.

        limit_bytes: most bytes of the decoded body. The answer is abandoned as soon as there are more.
        until: asked after each piece of a body without an announced length, which a server may leave open. What follows
            the piece that completes the answer is not waited for.
        Raises: Unavailable (code `upstream_unreachable`, `upstream_timeout`) when no complete answer arrived, with the
            `upstream_status` of one that broke off; UpstreamFailed (code `response_too_large`, with the
            `upstream_status`); InvalidInput (code `invalid_url`).
        """
        ...


@dataclass(frozen=True, slots=True)
class StreamedResponse:
    """A server's answer while it arrives. Header names are lower case.

    chunks: the decoded body's bytes, in pieces that are never empty and may end anywhere. Read once.
    """

    status: int
    headers: Mapping[str, str]
    chunks: AsyncIterator[bytes]


class FetchStream(Protocol):
    """An HTTP client that passes on an answer as it arrives."""

    def __call__(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str],
        body: str | bytes | None,
        silence_ms: int,
        timeout_ms: int,
        limit_bytes: int = MAX_STREAM_BYTES,
    ) -> AbstractAsyncContextManager[StreamedResponse]:
        """Send one request; enter when the answer begins. Leaving abandons the rest of it. Redirects are not followed.

        silence_ms: longest wait for the beginning and for each further piece. timeout_ms: for the whole exchange.
        limit_bytes: most bytes of the decoded body.

        Raises: Unavailable (code `upstream_unreachable`, `upstream_timeout`) on entering when no answer begins, and
            from `chunks` when the answer breaks off; UpstreamFailed (code `response_too_large`) from `chunks`;
            InvalidInput (code `invalid_url`).
        """
        ...


class Clock(Protocol):
    """The time."""

    def __call__(self) -> int:
        """Return the current time in epoch milliseconds."""
        ...


class TimeZones(Protocol):
    """The time zones of the IANA database."""

    def __call__(self, zone: str, at_ms: int) -> int:
        """Return how many seconds the zone is ahead of UTC at a time. zone: in the database's spelling, as `Europe/Zurich`.

        Raises: InvalidInput (code `unknown_time_zone`).
        """
        ...


class Crypto(Protocol):
    """The cryptography that the standard library lacks. Every method is a coroutine, as in Web Crypto."""

    async def encrypt(self, key: bytes, plaintext: bytes, associated: bytes) -> bytes:
        """AES-256-GCM: return a fresh random 12-byte nonce followed by the ciphertext and its tag.

        key: 32 bytes. associated: data that is authenticated and not stored.
        """
        ...

    async def decrypt(self, key: bytes, sealed: bytes, associated: bytes) -> bytes:
        """Undo `encrypt`.

        Raises: Forbidden (code `decryption_failed`) when key, data and associated data do not match.
        """
        ...

    async def verify_rs256(self, public_key: Mapping[str, str], message: bytes, signature: bytes) -> bool:
        """Return whether an RSASSA-PKCS1-v1_5 SHA-256 signature is valid. public_key: a JWK with `n` and `e`."""
        ...

    async def sign_es256(self, private_key: Mapping[str, str], message: bytes) -> bytes:
        """Return an ECDSA SHA-256 signature of 64 bytes. private_key: a JWK on the curve P-256 with `x`, `y` and `d`.

        Raises: InvalidInput (code `invalid_public_key`) for another JWK.
        """
        ...

    async def verify_es256(self, public_key: Mapping[str, str], message: bytes, signature: bytes) -> bool:
        """Return whether such a signature is valid. public_key: a JWK on P-256 with `x` and `y`. Raises: alike."""
        ...


class Alarm(Protocol):
    """The one timer of a Durable Object. It fires at least once, and again after a failure."""

    async def set(self, at_ms: int) -> None:
        """Fire at `at_ms`, which replaces any time set earlier."""
        ...

    async def get(self) -> int | None:
        """Return the time that is set, or None."""
        ...


class Background(Protocol):
    """Work that continues after the answer was sent (waitUntil)."""

    def __call__(self, work: Coroutine[Any, Any, None]) -> None:
        """Run the coroutine to completion. Its failure is logged, not raised."""
        ...


class AgentInstances(Protocol):
    """Access to living agents: each is one `AgentRuntime` Durable Object."""

    async def call(self, name: str, method: str, request: JsonObject) -> JsonObject:
        """Call a method of the instance with this namespace key; JSON in, JSON out.

        Raises: the RetainError that the instance raised; Unavailable when it could not be reached.
        """
        ...


class TenantWriters(Protocol):
    """Access to the one writer of each tenant's records: each is one `TenantWriter` Durable Object."""

    async def call(self, tenant_id: str, method: str, request: JsonObject) -> JsonObject:
        """Call a method of the tenant's writer; JSON in, JSON out.

        Raises: the RetainError that the writer raised; Unavailable when it could not be reached.
        """
        ...
