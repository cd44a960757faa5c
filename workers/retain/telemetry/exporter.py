"""The export of spans: queued, sent in batches after answers, and dropped with a count when the collector is away."""

from __future__ import annotations

import logging
from collections.abc import Coroutine, Mapping, Sequence

from retain.errors import RetainError
from retain.ports import Background, Clock, Fetch
from retain.telemetry.collector import Collector
from retain.telemetry.otlp import metrics_body, traces_body
from retain.telemetry.spans import Attribute, Span

MAX_QUEUED = 2048
"""Spans that wait to be sent. Those that come when so many wait are dropped."""
BATCH = 256
TIMEOUT_MS = 5_000
PAUSE_MS = 30_000
"""How long nothing is sent after the collector did not take a batch."""
STUCK_MS = 4 * TIMEOUT_MS
"""After how long without progress another request sends: the platform may have ended the one that did."""

_log = logging.getLogger(__name__)


class SpanExporter:
    """Sends an isolate's spans to a collector. resource: the attributes of the deployment."""

    def __init__(
        self,
        collector: Collector,
        fetch: Fetch,
        clock: Clock,
        background: Background,
        resource: Mapping[str, Attribute],
    ) -> None:
        self.collector = collector
        self._fetch = fetch
        self._clock = clock
        self._background = background
        self._resource = resource
        self._queue: list[Span] = []
        self._dropped = 0
        self._since_ms = clock()
        self._sending_until_ms = 0
        self._paused_until_ms = 0

    def add(self, spans: Sequence[Span]) -> None:
        """Queue spans, and begin to send if nobody does. Raises nothing, and waits for nothing."""
        room = MAX_QUEUED - len(self._queue)
        self._queue += spans[:room]
        self._dropped += max(0, len(spans) - room)
        now = self._clock()
        if self._queue and now >= max(self._sending_until_ms, self._paused_until_ms):
            self._sending_until_ms = now + STUCK_MS
            self._background(self._send())

    def later(self, work: Coroutine[object, object, Sequence[Span]]) -> None:
        """Queue the spans that some work returns, after the answer."""

        async def add() -> None:
            self.add(await work)

        self._background(add())

    async def _send(self) -> None:
        try:
            while self._queue:
                batch, self._queue = self._queue[:BATCH], self._queue[BATCH:]
                if not await self._sent(batch):
                    self._dropped += len(batch)
                    self._paused_until_ms = self._clock() + PAUSE_MS
                    return
                self._sending_until_ms = self._clock() + STUCK_MS
        finally:
            self._sending_until_ms = 0

    async def _sent(self, batch: Sequence[Span]) -> bool:
        """Send a batch, and what it adds to the metrics; return whether the collector took the spans."""
        if not await self._post("/v1/traces", traces_body(batch, self._resource)):
            return False
        now, dropped = self._clock(), self._dropped
        body = metrics_body(batch, self._resource, dropped=dropped, since_ms=self._since_ms, now_ms=now)
        if await self._post("/v1/metrics", body):
            self._dropped -= dropped
            self._since_ms = now
        return True

    async def _post(self, path: str, body: str) -> bool:
        headers = {**self.collector.headers, "content-type": "application/json"}
        url = f"{self.collector.endpoint}{path}"
        try:
            answer = await self._fetch(
                "POST", url, headers=headers, body=body, timeout_ms=TIMEOUT_MS, limit_bytes=65_536
            )
        except RetainError as error:
            _log.warning("the collector was not reached", extra={"path": path, "code": error.code})
            return False
        if not 200 <= answer.status < 300:
            _log.warning("the collector refused telemetry", extra={"path": path, "status": answer.status})
            return False
        return True
