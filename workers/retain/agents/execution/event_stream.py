"""A run as a stream of server-sent events: the instance is polled for what is new.

The streaming side holds no state: a broken connection, or an instance that dies, costs one more poll.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress

from retain.agents.calls.answers import News
from retain.agents.calls.client import InstanceClient
from retain.agents.calls.requests import BEGINNING, FollowRequest, ReadPosition
from retain.agents.execution.stream import CLOSING, KEEP_ALIVE, RETRY_MS
from retain.errors import InvalidInput, NotFound, Unavailable
from retain.http import Response

WAIT_S = 15
"""How long the instance waits for news before it answers without any."""
MAX_QUIET = 20
"""After how many answers without news the stream ends: five minutes. The client reconnects with `Last-Event-ID`."""
MAX_FAILURES = 5
"""After how many consecutive failures to reach the instance the stream ends."""

_ID = re.compile(r"[0-9]{1,9}")


def last_event_id(headers: Mapping[str, str], query: str | None = None) -> int:
    """Return the id after which a stream continues, `BEGINNING` for all of it. query: used if the header is missing.

    Raises: InvalidInput (code `invalid_last_event_id`).
    """
    text = headers.get("last-event-id") or query or ""
    if text and _ID.fullmatch(text) is None:
        raise InvalidInput("the last event id must be an event's number", code="invalid_last_event_id")
    return int(text) if text else BEGINNING


def event_stream(instance: InstanceClient, run_id: str, after: int) -> Response:
    """Return the response that streams a run from after the event with the id `after`."""
    return streamed(_events(instance, run_id, after))


def streamed(pieces: AsyncIterator[str], media_type: str = "text/event-stream; charset=utf-8") -> Response:
    """Return the response that sends pieces of an event stream, each as soon as it is there."""
    headers = {"content-type": media_type, "cache-control": "no-store", "x-accel-buffering": "no"}
    return Response(200, "", headers, pieces)


async def nothing_follows(instance: InstanceClient, run_id: str, after: int) -> bool:
    """Return whether the run has ended and its last event was read: a browser that learns this does not reconnect.

    Raises: NotFound (code `no_such_run`); Unavailable.
    """
    news = await instance.follow(FollowRequest(run_id, ReadPosition(after)))
    return not news.events and news.final


async def followed(instance: InstanceClient, run_id: str, after: int = BEGINNING) -> AsyncIterator[News | None]:
    """Yield what happens in a run after an event until it ends, or nothing happens for a while.

    None: nothing has happened for `WAIT_S`. Raises: NotFound (code `no_such_run`); Unavailable, when the instance cannot be
    reached again and again.
    """
    position = ReadPosition(after)
    quiet = failures = 0
    while quiet < MAX_QUIET:
        try:
            news = await instance.follow(FollowRequest(run_id, position, WAIT_S))
        except Unavailable:
            failures += 1
            if failures == MAX_FAILURES:
                raise
            continue
        failures = 0
        position = news.position
        ends = news.final or any(event.name in CLOSING for event in news.events)
        if news.events or ends:
            yield news
        if ends:
            return
        quiet = 0 if news.events else quiet + 1
        if not news.events:
            yield None


async def _events(instance: InstanceClient, run_id: str, after: int) -> AsyncIterator[str]:
    """Yield the events of a run until it ends or is removed, or nothing happens for a while."""
    yield f"retry: {RETRY_MS}\n\n"
    with suppress(NotFound):  # which whoever reconnects is answered
        async for news in followed(instance, run_id, after):
            if news is None:
                yield KEEP_ALIVE
            else:
                for event in news.events:
                    yield event.text()
