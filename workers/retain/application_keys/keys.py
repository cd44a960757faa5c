"""The keys of a deployment's applications, in D1.

A key is `retainapp_<tenant>_<43 characters>`: a prefix for secret scanners, the tenant so that a leaked key can be traced to
its owner, and 32 random bytes in base64url. D1 holds only its SHA-256: 256 random bits need neither salt nor a slow hash.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any

from retain.application_keys.scope import KeyScope
from retain.errors import NotFound, QuotaExceeded, Unauthenticated
from retain.identifiers import new_id
from retain.json_text import read_own_json
from retain.ports import Background, Clock, Sql, SqlValue

PREFIX = "retainapp_"
RANDOM_CHARACTERS = 43
MAX_CHARACTERS = 160
MAX_KEYS = 100
"""Most keys of a tenant that are neither revoked nor expired."""
FRESH_MS = 10_000
"""How long an isolate uses a key that it has read: a revoked one is refused everywhere after that."""
USED_EVERY_MS = 60_000
"""How exact the last use of a key is: it is written at most once a minute."""
_REMEMBERED = 1_000

_COLUMNS = """
key_id, tenant_id, name, scopes, origins, created_by, created_at_ms, expires_at_ms, revoked_at_ms, last_used_at_ms
"""
_FIND = f"SELECT {_COLUMNS} FROM application_keys WHERE hash = ?"  # noqa: S608
_FIND_ID = f"SELECT {_COLUMNS} FROM application_keys WHERE key_id = ?"  # noqa: S608
_ONE = f"SELECT {_COLUMNS} FROM application_keys WHERE tenant_id = ? AND key_id = ?"  # noqa: S608
_PAGE = f"""
SELECT {_COLUMNS} FROM application_keys WHERE tenant_id = ? AND key_id < ? ORDER BY key_id DESC LIMIT ?
"""  # noqa: S608
_CREATE = f"""
INSERT INTO application_keys (key_id, tenant_id, name, scopes, origins, hash, created_by, created_at_ms, expires_at_ms)
SELECT ?, ?, ?, ?, ?, ?, ?, ?, ?
WHERE (SELECT COUNT(*) FROM application_keys
       WHERE tenant_id = ? AND revoked_at_ms IS NULL AND (expires_at_ms IS NULL OR expires_at_ms > ?)) < ?
RETURNING {_COLUMNS}
"""  # noqa: S608
_CHANGE = f"""
UPDATE application_keys SET name = COALESCE(?, name), origins = COALESCE(?, origins)
WHERE tenant_id = ? AND key_id = ? AND revoked_at_ms IS NULL
RETURNING {_COLUMNS}
"""  # noqa: S608
_REVOKE = f"""
UPDATE application_keys SET revoked_at_ms = ? WHERE tenant_id = ? AND key_id = ? AND revoked_at_ms IS NULL
RETURNING {_COLUMNS}
"""  # noqa: S608
_LIVES = "COALESCE(lives_ms, expires_at_ms - created_at_ms, -1)"
_LIFE = f"SELECT NULLIF({_LIVES}, -1) AS lives_ms FROM application_keys WHERE tenant_id = ? AND key_id = ?"  # noqa: S608
_LIMIT_LIFE = f"""
UPDATE application_keys SET lives_ms = {_LIVES}, expires_at_ms = MIN(COALESCE(expires_at_ms, ?), ?)
WHERE tenant_id = ? AND key_id = ?
"""  # noqa: S608
_USED = """
UPDATE application_keys SET last_used_at_ms = ?
WHERE key_id = ? AND (last_used_at_ms IS NULL OR last_used_at_ms <= ?)
"""
_LAST_ID = "~"
"""Sorts after every id."""


@dataclass(frozen=True, slots=True)
class ApplicationKey:
    """What is known of a key, which is never shown again. Times: epoch milliseconds.

    origins: whose pages may use it, and tokens made with it. last_used_at_ms: to the minute. expires_at_ms: None for a key
    that does not expire.
    """

    key_id: str
    tenant_id: str
    name: str
    scopes: tuple[KeyScope, ...]
    origins: tuple[str, ...]
    created_by: str
    created_at_ms: int
    expires_at_ms: int | None
    revoked_at_ms: int | None
    last_used_at_ms: int | None

    def valid(self, now_ms: int) -> bool:
        """Return whether the key is accepted."""
        return self.revoked_at_ms is None and (self.expires_at_ms is None or now_ms < self.expires_at_ms)

    def to_json(self) -> dict[str, object]:
        """Return the key as HTTP answers have it."""
        shown = {name: getattr(self, name) for name in self.__slots__ if name != "tenant_id"}
        return {**shown, "scopes": list(self.scopes), "origins": list(self.origins)}


@dataclass(frozen=True, slots=True)
class ApplicationKeyPage:
    """Keys, the newest first, and the cursor of the next page: None on the last."""

    keys: Sequence[ApplicationKey]
    cursor: str | None


def presented_key(headers: Mapping[str, str]) -> str | None:
    """Return the application key that a request carries as `authorization: Bearer …`, or None."""
    scheme, _, token = headers.get("authorization", "").partition(" ")
    key = token.strip()
    return key if scheme.lower() == "bearer" and key.startswith(PREFIX) else None


def tenant_of_key(text: str) -> str:
    """Return the tenant that the text of a key names. It is to be found in D1, which says whose it is."""
    return text.removeprefix(PREFIX)[: -RANDOM_CHARACTERS - 1][:40]


class ApplicationKeys:
    """The keys of a deployment. One per isolate: it keeps what it has read for ten seconds."""

    def __init__(self, sql: Sql, clock: Clock, background: Background) -> None:
        """background: does what a request need not wait for."""
        self._sql = sql
        self._clock = clock
        self._background = background
        self._known: dict[str, tuple[ApplicationKey, int]] = {}

    async def create(
        self,
        tenant_id: str,
        name: str,
        scopes: Sequence[KeyScope],
        *,
        by: str,
        origins: Sequence[str] = (),
        expires_at_ms: int | None = None,
    ) -> tuple[ApplicationKey, str]:
        """Create a key; return it and its text, which cannot be read again. by: who creates it. origins: valid ones.

        Raises: QuotaExceeded (code `too_many_keys`).
        """
        text = f"{PREFIX}{tenant_id}_{secrets.token_urlsafe(32)}"
        now_ms = self._clock()
        kept = (json.dumps(sorted(set(scopes))), json.dumps(origins))
        values = (new_id(), tenant_id, name, *kept, _hash(text), by, now_ms, expires_at_ms)
        rows = (await self._sql.run(_CREATE, *values, tenant_id, now_ms, MAX_KEYS)).rows
        if not rows:
            raise QuotaExceeded(f"a tenant has at most {MAX_KEYS} keys", code="too_many_keys", limit=MAX_KEYS)
        return _key(rows[0]), text

    async def rotate(
        self, tenant_id: str, key_id: str, *, by: str, grace_ms: int
    ) -> tuple[ApplicationKey, ApplicationKey, str]:
        """Create a key like another one, which expires after the grace period; return the old one, the new one and its text.

        The new one lives as long as the old one was to, also when the old one was replaced before. It is written first: if
        the old one could then not be changed, both are valid, and the old one can be revoked.

        Raises: NotFound (code `no_such_key`), also for a key that is no longer valid; QuotaExceeded (code `too_many_keys`).
        """
        now_ms = self._clock()
        old = await self._one(tenant_id, key_id)
        if not old.valid(now_ms):
            raise NotFound("the key is no longer valid", code="no_such_key")
        lives_ms = (await self._sql.run(_LIFE, tenant_id, key_id)).rows[0]["lives_ms"]
        expires_at_ms = None if lives_ms is None else now_ms + lives_ms
        new, text = await self.create(
            tenant_id, old.name, old.scopes, by=by, origins=old.origins, expires_at_ms=expires_at_ms
        )
        ends_ms = now_ms + grace_ms
        await self._sql.run(_LIMIT_LIFE, ends_ms, ends_ms, tenant_id, key_id)
        self._known.clear()
        return await self._one(tenant_id, key_id), new, text

    async def change(
        self, tenant_id: str, key_id: str, *, name: str | None = None, origins: Sequence[str] | None = None
    ) -> ApplicationKey:
        """Change a key's name, its origins or both. Isolates that have read it use what it had for ten seconds more.

        Raises: NotFound (code `no_such_key`), also for a key that was revoked.
        """
        kept = None if origins is None else json.dumps(origins)
        rows = (await self._sql.run(_CHANGE, name, kept, tenant_id, key_id)).rows
        self._known.clear()
        if not rows:
            raise NotFound("the tenant has no such key, or it was revoked", code="no_such_key")
        return _key(rows[0])

    async def revoke(self, tenant_id: str, key_id: str) -> ApplicationKey:
        """Revoke a key. Idempotent. Raises: NotFound (code `no_such_key`)."""
        rows = (await self._sql.run(_REVOKE, self._clock(), tenant_id, key_id)).rows
        self._known.clear()
        return _key(rows[0]) if rows else await self._one(tenant_id, key_id)

    async def page(self, tenant_id: str, *, after: str | None, limit: int) -> ApplicationKeyPage:
        """Return the keys of a tenant that are older than the one with the id `after`, revoked and expired ones too."""
        rows = (await self._sql.run(_PAGE, tenant_id, after or _LAST_ID, limit + 1)).rows
        keys = [_key(row) for row in rows[:limit]]
        return ApplicationKeyPage(keys, keys[-1].key_id if len(rows) > limit else None)

    async def authenticate(self, text: str) -> ApplicationKey:
        """Return the key with this text, and note its use in the background.

        Raises: Unauthenticated (code `invalid_api_key`) for one that is unknown, revoked or expired; Unavailable.
        """
        if len(text) > MAX_CHARACTERS or not text.isascii():
            raise _refused()
        return await self._valid(_FIND, _hash(text))

    async def require(self, key_id: str) -> ApplicationKey:
        """Return the key with this id, as a token that was made with it is used. Raises: as `authenticate`."""
        return await self._valid(_FIND_ID, key_id)

    async def _valid(self, find: str, name: str) -> ApplicationKey:
        now_ms = self._clock()
        known = self._known.get(name)
        if known is None or now_ms >= known[1]:
            rows = (await self._sql.run(find, name)).rows
            if not rows:
                raise _refused()
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            known = (_key(rows[0]), now_ms + FRESH_MS)
            self._known[name] = known
        key, until_ms = known
        if not key.valid(now_ms):
            raise _refused()
        if key.last_used_at_ms is None or now_ms - key.last_used_at_ms >= USED_EVERY_MS:
            self._known[name] = (replace(key, last_used_at_ms=now_ms), until_ms)
            self._background(self._note_use(key.key_id, now_ms))
        return key

    async def _note_use(self, key_id: str, now_ms: int) -> None:
        await self._sql.run(_USED, now_ms, key_id, now_ms - USED_EVERY_MS)

    async def _one(self, tenant_id: str, key_id: str) -> ApplicationKey:
        rows = (await self._sql.run(_ONE, tenant_id, key_id)).rows
        if not rows:
            raise NotFound("the tenant has no such key", code="no_such_key")
        return _key(rows[0])


def _key(row: Mapping[str, SqlValue]) -> ApplicationKey:
    fields: dict[str, Any] = dict(row)
    lists = {name: tuple(read_own_json(fields[name])) for name in ("scopes", "origins")}
    return ApplicationKey(**{**fields, **lists})


def _hash(text: str) -> str:
    return sha256(text.encode()).hexdigest()


def _refused() -> Unauthenticated:
    return Unauthenticated("the API key is unknown, revoked or expired", code="invalid_api_key")
