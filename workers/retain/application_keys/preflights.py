"""What is answered to a page of which no key is known: to a preflight, which carries none, and where a key is refused.

An isolate reads the origins of all keys at once and keeps them for ten seconds, so that preflights, from whomever, cost it
at most one query to D1 in that time. What a preflight allows is only to ask: a request is refused unless its own key has
the origin.
"""

from __future__ import annotations

from collections.abc import Collection

from retain.application_keys.origins import METHODS, PREFLIGHT_S, SENT, CallingPage, refused_origin
from retain.json_text import read_own_json
from retain.ports import Clock, Sql

FRESH_MS = 10_000
"""How long the origins that were read are used."""
MAX_READ = 1_000
"""Of how many keys the origins are read. In a deployment that has more keys with origins, any origin may ask."""
_READ = """
SELECT origins FROM (
  SELECT origins FROM application_keys WHERE revoked_at_ms IS NULL AND origins <> '[]' AND expires_at_ms IS NULL
  UNION ALL
  SELECT origins FROM application_keys WHERE revoked_at_ms IS NULL AND origins <> '[]' AND expires_at_ms > ?
) LIMIT ?
"""


class Preflights:
    """The origins that any key of the deployment allows. One per isolate."""

    def __init__(self, sql: Sql, clock: Clock) -> None:
        self._sql = sql
        self._clock = clock
        self._known: Collection[str] | None = None
        self._read_ms = 0
        self._is_whole = True

    async def answer(self, page: CallingPage, origin: str) -> None:
        """Let a page ask, if any key has its origin. Raises: Forbidden (code `origin_not_allowed`); Unavailable."""
        if not await self._allows(origin):
            raise refused_origin(origin)
        page.open()
        page.headers["access-control-allow-methods"] = ", ".join(METHODS)
        page.headers["access-control-allow-headers"] = ", ".join(SENT)
        page.headers["access-control-max-age"] = str(PREFLIGHT_S)

    async def open_refusal(self, page: CallingPage) -> None:
        """Let a page read that its key or token was refused, if any key has its origin. Raises: Unavailable."""
        if page.origin is not None and await self._allows(page.origin):
            page.open()

    async def _allows(self, origin: str) -> bool:
        now_ms = self._clock()
        if self._known is None or now_ms >= self._read_ms + FRESH_MS:
            self._read_ms = now_ms  # requests that arrive meanwhile use what was known
            rows = (await self._sql.run(_READ, now_ms, MAX_READ + 1)).rows
            self._known = {origin for row in rows for origin in read_own_json(str(row["origins"]))}
            self._is_whole = len(rows) <= MAX_READ
        return origin in self._known or not self._is_whole
