"""When and for whom a run acts, as its model and its functions read it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta, timezone

from retain.agents.calls.user import User
from retain.ports import TimeZones

_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


@dataclass(frozen=True, slots=True)
class Occasion:
    """The time of a run, and its user.

    date: aware, in the user's time zone, else in UTC. user: None when the run acts for nobody in particular.
    """

    date: datetime
    user: User | None

    @property
    def day(self) -> str:
        """The day as a sentence: the same text until midnight, so that a provider's prompt cache fits."""
        zone = "UTC" if self.user is None or self.user.timezone is None else self.user.timezone
        return f"Today is {_DAYS[self.date.weekday()]}, {self.date:%Y-%m-%d} ({zone})."

    @property
    def details(self) -> tuple[str, ...]:
        """What the application says of the user, one line per field."""
        if self.user is None:
            return ()
        named = (("name", self.user.name), ("locale", self.user.locale))
        return tuple(f"{name} = {value}" for name, value in named if value is not None)


def occasion_of(user: User | None, at_ms: int, zones: TimeZones) -> Occasion:
    """Return the occasion. Raises: InvalidInput (code `unknown_time_zone`)."""
    ahead_s = 0 if user is None or user.timezone is None else zones(user.timezone, at_ms)
    return Occasion(datetime.fromtimestamp(at_ms / 1000, timezone(timedelta(seconds=ahead_s))), user)
