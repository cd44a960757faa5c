"""A run as a stream of server-sent events: the instance is asked again and again for what is new.

Whoever streams holds no state: a connection that breaks, or an instance that dies, costs nothing but the next question.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Mapping
from typing import Any

from retain.agents.runs.stream import CLOSING, KEEP_ALIVE, RETRY_MS, RunStreamEvent
from retain.errors import InvalidInput, Unavailable
from retain.http import Request, Response
from retain.ports import AgentInstances

WAIT_S = 15
"""How long the instance waits for news before it answers that there is none."""
MAX_QUIET = 20
"""After how many answers without news the stream ends: five minutes. The client comes back with `Last-Event-ID`."""
MAX_FAILURES = 5
"""After how many failures in a row to reach the instance the stream ends."""

_OPEN = ("running", "waiting")
_ID = re.compile(r"[0-9]{1,9}")


def last_event_id(request: Request) -> int:
    """Return the id behind which a stream goes on, -1 for its beginning. The query `last_event_id` does as well.

    Raises: InvalidInput (code `invalid_last_event_id`).
    """
    text = request.headers.get("last-event-id") or request.query.get("last_event_id") or ""
    if text and _ID.fullmatch(text) is None:
        raise InvalidInput("the last event's id is not one of a run's", code="invalid_last_event_id")
    return int(text) if text else -1


def event_stream(instances: AgentInstances, name: str, run: Mapping[str, Any], after: int) -> Response:
    """Return the response that streams a run. run: what names it in a call of its instance."""
    headers = {
        "content-type": "text/event-stream; charset=utf-8",
        "cache-control": "no-store",
        "x-accel-buffering": "no",
    }
    return Response(200, "", headers, _events(instances, name, run, after))


async def nothing_follows(instances: AgentInstances, name: str, run: Mapping[str, Any], after: int) -> bool:
    """Tell whether the run has ended and its last event was read: a browser that is told so does not come back.

    Raises: NotFound (code `no_such_run`); Unavailable.
    """
    news = await instances.call(name, "follow", {**run, "after": after, "turn": 0, "offset": 0, "wait_s": 0})
    return not news["events"] and news["status"] not in _OPEN


async def _events(instances: AgentInstances, name: str, run: Mapping[str, Any], after: int) -> AsyncIterator[str]:
    """Yield the events of a run until it has ended, or nothing happened for a while."""
    place: dict[str, Any] = {"after": after, "turn": 0, "offset": 0}
    quiet = failures = 0
    yield f"retry: {RETRY_MS}\n\n"
    while quiet < MAX_QUIET:
        try:
            news = await instances.call(name, "follow", {**run, **place, "wait_s": WAIT_S})
        except Unavailable:
            failures += 1
            if failures == MAX_FAILURES:
                raise
            continue
        failures = 0
        place = {key: news[key] for key in place}
        events = [RunStreamEvent.from_json(event) for event in news["events"]]
        for event in events:
            yield event.text()
        if news["status"] not in _OPEN or any(event.name in CLOSING for event in events):
            return
        quiet = 0 if events else quiet + 1
        if not events:
            yield KEEP_ALIVE
