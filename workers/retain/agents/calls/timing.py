"""When a schedule is due: the times of a cron expression in a time zone, or one time.

The expressions are those of Debian's cron, read by cronsim, which gets times without a zone: with one it skips hours that
exist, or loops for ever, where clocks change by less than an hour or in the midst of one. Where clocks are put forward, a
fixed time that is missing is due when the gap is over; where they are put back, it is due once, at the first of the two.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo

from retain.errors import InvalidInput
from retain.ports import TimeZones
from retain.retention import DAY_MS

MAX_CRON_CHARACTERS = 100
"""Longest cron expression."""
MAX_AHEAD_MS = 5 * 366 * DAY_MS
"""How far ahead the one time of a schedule may be: five years."""
_SKIPPED = 1_500
"""How many minutes that clocks skip an expression may name before one that exists: a day has 1,440."""
_FIELDS = 5
_DAY = timedelta(days=1)
_MINUTE = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class Timing:
    """When a schedule is due: either `cron` in `timezone`, an IANA name, or once at `at_ms`."""

    cron: str | None
    timezone: str | None
    at_ms: int | None

    def first_ms(self, now_ms: int, zones: TimeZones) -> int:
        """Return the first time of a new schedule.

        Raises: InvalidInput (code `invalid_cron`, `unknown_time_zone`, `invalid_at_ms`).
        """
        if self.cron is not None:
            return cron_after(self.cron, self.timezone or "UTC", now_ms, zones)
        at_ms = self.at_ms
        if at_ms is None or not now_ms < at_ms <= now_ms + MAX_AHEAD_MS:
            raise InvalidInput("the time must be in the next five years", code="invalid_at_ms")
        return at_ms

    def following_ms(self, now_ms: int, zones: TimeZones) -> int | None:
        """Return the first time after `now_ms`; None when there is none any more."""
        if self.cron is None:
            return None
        try:
            return cron_after(self.cron, self.timezone or "UTC", now_ms, zones)
        except InvalidInput:  # the platform knows the zone no longer
            return None


def cron_after(expression: str, zone: str, after_ms: int, zones: TimeZones) -> int:
    """Return the first time of a cron expression after `after_ms`, in epoch milliseconds.

    Raises: InvalidInput (code `invalid_cron`) also for an expression that names no time in 50 years; (code
        `unknown_time_zone`).
    """
    from cronsim import CronSim, CronSimError  # most isolates never read a cron expression

    fields = expression.split()
    if len(expression) > MAX_CRON_CHARACTERS or len(fields) != _FIELDS:
        raise InvalidInput(
            f"a cron expression has five fields, and {MAX_CRON_CHARACTERS} characters at most", code="invalid_cron"
        )
    local, after = IanaZone(zone, zones), datetime.fromtimestamp(after_ms // 1000, UTC)
    times_of = local.times_of if any(field.startswith("*") for field in fields[:2]) else local.first_of
    # A change of clocks after that comes after the next time, or is far from it.
    near = (local.offset_at(after), local.offset_at(after + _DAY))
    found: list[datetime] = []
    skipped = 0
    try:
        for wall in CronSim(expression, after + min(near)):
            if (found and wall - max(near) >= found[0]) or skipped > _SKIPPED:
                break
            times = times_of(wall)
            skipped += not times
            found = sorted(due for due in (*found, *times) if due > after)[:1]
    except CronSimError as error:
        raise InvalidInput(f"the cron expression is not valid: {error}", code="invalid_cron") from error
    if not found:
        raise InvalidInput("the cron expression names no time", code="invalid_cron")
    return round(found[0].timestamp() * 1000)


class IanaZone(tzinfo):
    """A time zone of the IANA database for `datetime`, on the port that knows its offsets."""

    def __init__(self, name: str, zones: TimeZones) -> None:
        self._name = name
        self._zones = zones

    def utcoffset(self, dt: datetime | None) -> timedelta:
        """Return the offset of a local time. `fold` chooses where there are two; see PEP 495 for those that are skipped."""
        if dt is None:
            return timedelta(0)
        before, after, fitting = self._around(dt.replace(tzinfo=UTC))
        if len(fitting) == 1:
            return fitting[0]
        return after if dt.fold else before

    def fromutc(self, dt: datetime) -> datetime:
        """Return the local time of a time in UTC."""
        offset = self.offset_at(dt.replace(tzinfo=UTC))
        local = dt + offset
        return local if self.utcoffset(local) == offset else local.replace(fold=1)

    def dst(self, dt: datetime | None) -> None:
        """Return None: how much of an offset is daylight saving is not known."""

    def tzname(self, dt: datetime | None) -> str:  # noqa: ARG002
        """Return the zone's name."""
        return self._name

    def times_of(self, wall: datetime) -> list[datetime]:
        """Return the times in UTC when the clocks show a time, which is given as if it were UTC: none, one or two."""
        *_, fitting = self._around(wall)
        return [wall - offset for offset in fitting]

    def first_of(self, wall: datetime) -> list[datetime]:
        """Return the first time when the clocks show a time or, where it is missing, the end of the gap."""
        while not (times := self.times_of(wall)):
            wall += _MINUTE
        return times[:1]

    def offset_at(self, at: datetime) -> timedelta:
        """Return the offset at a time."""
        return timedelta(seconds=self._zones(self._name, round(at.timestamp() * 1000)))

    def _around(self, wall: datetime) -> tuple[timedelta, timedelta, list[timedelta]]:
        """Return the offsets before and after a local time, and those at which the clocks show it, the earlier first."""
        before, after = self.offset_at(wall - _DAY), self.offset_at(wall + _DAY)
        if before == after:
            return before, after, [before]
        return before, after, [offset for offset in (before, after) if self.offset_at(wall - offset) == offset]
