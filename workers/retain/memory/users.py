"""What a tenant knows of its users: their profiles, and how much is kept of each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from retain.errors import InvalidInput, NotFound
from retain.identifiers import check_profile, check_user_id
from retain.memory.scope import OF_USER
from retain.ports import Clock, Row, Sql, TimeZones

_PROFILE = "user_id AS id, name, locale, timezone, created_at_ms, NULLIF(last_run_at_ms, 0) AS last_run_at_ms"
_LIST = f"SELECT {_PROFILE} FROM users WHERE tenant_id = ? AND user_id > ? ORDER BY user_id LIMIT ?"
_SHOW = f"SELECT {_PROFILE} FROM users WHERE tenant_id = ? AND user_id = ?"
_COUNTS = f"""
SELECT
  (SELECT COALESCE(SUM(records), 0) FROM scopes WHERE tenant_id = ?1 AND scope_id IN ({OF_USER})) AS memories,
  (SELECT COUNT(*) FROM conversations WHERE tenant_id = ?1 AND user_id = ?2) AS conversations,
  (SELECT COUNT(*) FROM agent_runs WHERE tenant_id = ?1 AND user_id = ?2) AS runs,
  (SELECT COUNT(*) FROM memory_items WHERE tenant_id = ?1 AND user_id = ?2 AND NOT deleted) AS items
"""
_PUT = """
INSERT INTO users (tenant_id, user_id, name, locale, timezone, created_at_ms, last_run_at_ms, last_run_id)
VALUES (?, ?, ?, ?, ?, ?, 0, '')
ON CONFLICT (tenant_id, user_id) DO UPDATE SET
  name = excluded.name, locale = excluded.locale, timezone = excluded.timezone
"""
_KNOWN = "SELECT 1 FROM users WHERE tenant_id = ? AND user_id = ?"


@dataclass(frozen=True, slots=True)
class UserPage:
    """Profiles of users by their ids, and the cursor of the next page (None on the last)."""

    users: list[Row]
    cursor: str | None

    def to_json(self) -> Mapping[str, object]:
        """Return the page as JSON."""
        return {"users": [dict(row) for row in self.users], "cursor": self.cursor}


class Users:
    """The users of one tenant. zones: the time zones that the platform knows."""

    def __init__(self, sql: Sql, tenant_id: str, clock: Clock, zones: TimeZones) -> None:
        self._sql = sql
        self._tenant_id = tenant_id
        self._clock = clock
        self._zones = zones

    async def page(self, *, limit: int, cursor: str | None) -> UserPage:
        """Return users in the order of their ids. Raises: InvalidInput (code `invalid_cursor`)."""
        if cursor is not None:
            try:
                check_user_id(cursor)
            except InvalidInput as error:
                raise InvalidInput("the cursor is not valid", code="invalid_cursor") from error
        rows = (await self._sql.run(_LIST, self._tenant_id, cursor or "", limit + 1)).rows
        return UserPage(list(rows[:limit]), str(rows[limit - 1]["id"]) if len(rows) > limit else None)

    async def show(self, user_id: str) -> Mapping[str, object]:
        """Return a user's profile, and how many memories, conversations, runs and items are theirs.

        Raises: NotFound (code `no_such_user`) for a user of whom nothing is known.
        """
        profile, counts = await self._sql.batch(
            [(_SHOW, (self._tenant_id, user_id)), (_COUNTS, (self._tenant_id, user_id))]
        )
        kept = dict(counts.rows[0])
        if profile.rows:
            return {**profile.rows[0], "counts": kept}
        if not any(kept.values()):
            raise NotFound("there is no such user", code="no_such_user")
        nothing = dict.fromkeys(("name", "locale", "timezone", "created_at_ms", "last_run_at_ms"))
        return {"id": user_id, **nothing, "counts": kept}

    async def put(self, user_id: str, name: str | None, locale: str | None, timezone: str | None) -> bool:
        """Set a user's profile; return whether the user is new. Idempotent. A later run may set it again.

        Raises: InvalidInput (code `invalid_user`, `unknown_time_zone`).
        """
        check_profile(name, locale, timezone)
        place, now = (self._tenant_id, check_user_id(user_id)), self._clock()
        if timezone is not None:
            self._zones(timezone, now)
        known, _ = await self._sql.batch([(_KNOWN, place), (_PUT, (*place, name, locale, timezone, now))])
        return not known.rows
