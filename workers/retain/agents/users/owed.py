"""What a run owes to D1 of its user."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from retain.agents.calls.run_request import RunRequest
from retain.agents.calls.user import User
from retain.outbox import OwedStatement

_MEET = """
INSERT INTO users (tenant_id, user_id, name, locale, timezone, created_at_ms, last_run_at_ms, last_run_id)
VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (tenant_id, user_id) DO UPDATE SET
"""


@dataclass(frozen=True, slots=True)
class MeetUser(OwedStatement):
    """The row of a run's user: what the application said of them last."""

    NAME: ClassVar[str] = "meet_user"
    SQL: ClassVar[str] = f"""
        {_MEET}
          name = COALESCE(excluded.name, name), locale = COALESCE(excluded.locale, locale),
          timezone = COALESCE(excluded.timezone, timezone),
          last_run_at_ms = excluded.last_run_at_ms, last_run_id = excluded.last_run_id
        WHERE excluded.last_run_id >= last_run_id
    """

    tenant_id: str
    user_id: str
    name: str | None
    locale: str | None
    timezone: str | None
    created_at_ms: int
    last_run_at_ms: int
    last_run_id: str

    @classmethod
    def of(cls, tenant_id: str, user: User, run_id: str, now_ms: int) -> MeetUser:
        """Return the row of a user whose run begins now."""
        return cls(tenant_id, user.id, user.name, user.locale, user.timezone, now_ms, now_ms, run_id)


@dataclass(frozen=True, slots=True)
class MeetUserAgain(MeetUser):
    """The row of the user of a run that repeats what was said of them: it changes nothing that is known.

    A delegate's may arrive before its caller's, which is older and says something new, so it does not become the last run.
    """

    NAME: ClassVar[str] = "meet_user_again"
    SQL: ClassVar[str] = f"{_MEET} last_run_at_ms = MAX(last_run_at_ms, excluded.last_run_at_ms)"


def met(request: RunRequest, user: User, tenant_id: str, run_id: str, now_ms: int) -> MeetUser:
    """Return what D1 is owed of the user of a run that begins.

    A delegate, a fork and a schedule repeat what was said before.
    """
    first = request.parent is None and request.fork is None and request.schedule_id is None
    return (MeetUser if first else MeetUserAgain).of(tenant_id, user, run_id, now_ms)
