"""A run's events, over as many connections as they need."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import httpx

from retain_client.api.api.agents import create_run, follow_run
from retain_client.api.models.run_body import RunBody
from retain_client.api.models.run_result import RunResult
from retain_client.asynchronous.pause import sleep
from retain_client.errors import NO_ANSWER, RetainError
from retain_client.retries import Retries
from retain_client.server_events import EventReader, StreamedEvent, is_stream
from retain_client.values import fitting, or_unset


class AsyncRunStream:
    """What happens in a run, from its beginning or after an event, until it has ended.

    When the connection breaks, the stream continues after the last event that arrived. Only pieces of text
    (`text.delta`) may be missing then: `text.completed` has the whole. run_id, instance_id: of the run, once known.
    last_event_id: with it another stream continues after this one. result: of the run, once it has ended.
    """

    def __init__(
        self,
        http: httpx.AsyncClient,
        retries: Retries,
        tenant: str,
        agent_type: str,
        *,
        begin: tuple[RunBody, str] | None = None,
        run: tuple[str, str] | None = None,
        last_event_id: str | None = None,
    ) -> None:
        self._http = http
        self._retries = retries
        self._tenant = tenant
        self._agent_type = agent_type
        self._begin = begin
        self.instance_id: str | None = None if run is None else run[0]
        self.run_id: str | None = None if run is None else run[1]
        self.last_event_id = last_event_id
        self.result: RunResult | None = None
        self._failures = 0

    async def __aiter__(self) -> AsyncIterator[StreamedEvent]:
        """Yield the events. Raises: RetainError when the run is refused, or is no longer reached."""
        while True:
            try:
                async with self._http.stream(**self._request()) as response:
                    if response.status_code == 204:
                        return
                    async for event in self._events(response):
                        yield event
                        if event.is_last:
                            return
            except (httpx.TransportError, httpx.DecodingError) as error:
                await self._pause(error)

    async def _events(self, response: httpx.Response) -> AsyncIterator[StreamedEvent]:
        """Yield the events of one connection. Raises: httpx.TransportError when it breaks."""
        if not is_stream(response.headers):
            with fitting(response):
                self._note_begun(response.json())
            return
        reader = EventReader()
        brought = False
        async for piece in response.aiter_bytes():
            with fitting(response):
                events = reader.feed(piece)
            if reader.heard:
                self._failures = 0
            for event in events:
                brought = True
                with fitting(response):
                    self._note(event)
                yield event
        if not reader.heard:
            raise httpx.RemoteProtocolError("the stream ended without an event")
        if not brought:  # a proxy that only cuts is not asked without a pause
            await sleep(self._retries.first_pause_s)

    def _request(self) -> dict[str, Any]:
        """Return what httpx is asked: to begin the run until it is known, then to follow it."""
        after = or_unset(self.last_event_id)
        if self.run_id is None or self.instance_id is None:
            assert self._begin is not None
            body, key = self._begin
            return create_run._get_kwargs(
                self._tenant, self._agent_type, body=body, idempotency_key=key, last_event_id=after
            )
        return follow_run._get_kwargs(
            self._tenant, self._agent_type, self.instance_id, self.run_id, last_event_id_header=after
        )

    def _note(self, event: StreamedEvent) -> None:
        if event.id is not None:
            self.last_event_id = event.id
        if self.run_id is None and "run_id" in event.data:
            self._note_run(event.data)
        self.result = event.result

    def _note_begun(self, data: dict[str, Any]) -> None:
        if self.run_id is not None:
            raise ValueError("the events of a run are a stream")
        self._note_run(data)

    def _note_run(self, data: dict[str, Any]) -> None:
        self.run_id, self.instance_id = str(data["run_id"]), str(data["instance_id"])

    async def _pause(self, error: Exception) -> None:
        self._failures += 1
        pause = self._retries.after_failure(self._failures, sent=True, again=True)
        if pause is None:
            raise RetainError(str(error) or type(error).__name__, code=NO_ANSWER) from error
        await sleep(pause)
