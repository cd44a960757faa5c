"""What a tenant knows of a run's user, where the run itself does not say it: name, locale and time zone."""

from __future__ import annotations

from dataclasses import dataclass

from retain.agents.calls.user import User
from retain.errors import InvalidInput
from retain.ports import SqlResult, Statement, TimeZones

_PROFILE = "SELECT name, locale, timezone FROM users WHERE tenant_id = ? AND user_id = ?"


@dataclass(frozen=True, slots=True)
class UserQuery:
    """The query for a run's user. user: as the run names them. zones: those of the platform, at a time."""

    tenant_id: str
    user: User
    zones: TimeZones
    at_ms: int

    @classmethod
    def of(cls, tenant_id: str, user: User | None, zones: TimeZones, at_ms: int) -> UserQuery | None:
        """Return the query, None for a run that names nobody or says everything."""
        if user is None or None not in (user.name, user.locale, user.timezone):
            return None
        return cls(tenant_id, user, zones, at_ms)

    def statement(self) -> Statement:
        """Return the query: one row, found by its key."""
        return _PROFILE, (self.tenant_id, self.user.id)

    def found(self, result: SqlResult) -> User:
        """Return the user: what the run says, and of the rest what is known, except a zone that the platform lacks."""
        named = self.user
        if not result.rows:
            return named
        row = result.rows[0]
        return User(
            named.id,
            row["name"] if named.name is None else named.name,
            row["locale"] if named.locale is None else named.locale,
            self._known_zone(row["timezone"]) if named.timezone is None else named.timezone,
        )

    def _known_zone(self, zone: str | None) -> str | None:
        if zone is None:
            return None
        try:
            self.zones(zone, self.at_ms)
        except InvalidInput:
            return None
        return zone
