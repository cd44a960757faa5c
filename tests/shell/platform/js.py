"""`js`: the globals of the platform."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo

from retain.host.clock import ManualClock
from tests.shell.platform.ffi import Buffer, JsException, ParsedObject, PlainObject, bytes_of
from tests.shell.platform.http import AbortController, AbortSignal, Headers, Request, Response, fetch
from tests.shell.platform.streams import FixedLengthStream, ReadableStream, TransformStream
from tests.shell.platform.webcrypto import crypto

__all__ = [
    "JSON",
    "URL",
    "AbortController",
    "AbortSignal",
    "Date",
    "FixedLengthStream",
    "Headers",
    "Intl",
    "Object",
    "ReadableStream",
    "Request",
    "Response",
    "TextEncoder",
    "TransformStream",
    "Uint8Array",
    "clearTimeout",
    "clock",
    "crypto",
    "fetch",
    "setTimeout",
]

clock = ManualClock(1_700_000_000_000)
"""What `Date.now` returns. A test moves it."""


pace = 1.0
"""How long a second of a timer lasts, in seconds. A test that waits for a deadline shortens it."""


def setTimeout(work: Callable[[], None], delay_ms: int) -> asyncio.TimerHandle:
    """Call the function after a while."""
    return asyncio.get_running_loop().call_later(pace * delay_ms / 1000, work)


def clearTimeout(timer: asyncio.TimerHandle) -> None:
    """Do not call it."""
    timer.cancel()


class JSON:
    """Texts of JSON."""

    @staticmethod
    def parse(text: str) -> Any:
        """Return the value of a text, an object as one of JavaScript."""
        return json.loads(text, object_hook=ParsedObject)


class Date:
    """The time."""

    @staticmethod
    def now() -> float:
        """Return epoch milliseconds."""
        return float(clock())


class Object:
    """Plain objects."""

    @staticmethod
    def fromEntries(entries: Iterable[tuple[str, Any]]) -> PlainObject:
        """Return an object with these properties."""
        return PlainObject(dict(entries))


class Uint8Array(Buffer):
    """Bytes."""

    @classmethod
    def new(cls, source: int | Buffer) -> Uint8Array:
        """Return zeros of a length, or a view of a buffer."""
        return cls(bytes(source) if isinstance(source, int) else bytes_of(source))


class TextEncoder:
    """Encodes UTF-8."""

    @classmethod
    def new(cls) -> TextEncoder:
        """Return an encoder."""
        return cls()

    def encode(self, text: str) -> Buffer:
        """Return the text's bytes."""
        return Buffer(text.encode())


class URL:
    """Addresses."""

    @staticmethod
    def canParse(url: str) -> bool:
        """Return whether the text is an address."""
        try:
            parts = urlsplit(url)
            return bool(parts.scheme and parts.hostname) and (parts.port or 0) >= 0
        except ValueError:
            return False


class DateTimeFormat:
    """Shows a time in a zone."""

    def __init__(self, zone: ZoneInfo) -> None:
        self._zone = zone

    @classmethod
    def new(cls, locale: str, *, timeZone: str, timeZoneName: str) -> DateTimeFormat:
        """Return a format. Raises: JsException (RangeError) for an unknown zone."""
        if (locale, timeZoneName) != ("en-US", "longOffset"):
            raise JsException("another form of the offset than the shell reads", "RangeError")
        try:
            return cls(ZoneInfo(timeZone))
        except (LookupError, ValueError, OSError):
            raise JsException(f"Invalid time zone specified: {timeZone}", "RangeError") from None

    def format(self, at_ms: int) -> str:
        """Return the day and the offset: `11/14/2023, GMT+01:00`."""
        at = datetime.fromtimestamp(at_ms / 1000, UTC).astimezone(self._zone)
        offset = at.utcoffset()
        assert offset is not None
        seconds = int(offset.total_seconds())
        sign, size = ("-", -seconds) if seconds < 0 else ("+", seconds)
        shown = f"GMT{sign}{size // 3600:02}:{size % 3600 // 60:02}" if size else "GMT"
        return f"{at:%m/%d/%Y}, {shown}" + (f":{size % 60:02}" if size % 60 else "")


class Intl:
    """What depends on a language or a place."""

    DateTimeFormat = DateTimeFormat
