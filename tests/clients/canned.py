"""A server that answers what a test has prepared, and its answers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import httpx

STARTED = 'id: 0\nevent: run.started\ndata: {"run_id": "1", "instance_id": "desk"}\n\n'
COMPLETED = {"run_id": "1", "instance_id": "desk", "status": "completed", "output": "done", "steps": 1}
SPENT = {
    "usage": {"input_tokens": 1, "output_tokens": 1, "delegated_tokens": 0, "delegations": 0, "cached_input_tokens": 0},
    "memory": {"episodes_used": 0, "records_used": 0, "messages_used": 0},
}
ENDED = f"id: 4\nevent: run.completed\ndata: {json.dumps(COMPLETED | SPENT)}\n\n"


def problem(status: int, code: str, **headers: str) -> httpx.Response:
    body = {"code": code, "detail": "no", "request_id": "r1", "limit": 7}
    return httpx.Response(status, json=body, headers={name.replace("_", "-"): value for name, value in headers.items()})


def streamed(*events: str) -> httpx.Response:
    return httpx.Response(200, text="".join(events), headers={"content-type": "text/event-stream"})


class Server:
    """Answers with these, one after the other. sent: the requests."""

    def __init__(self, library: Any, *answers: httpx.Response | Exception) -> None:
        self.sent: list[httpx.Request] = []
        self._answers = list(answers)
        self._library = library

    def _answer(self, request: httpx.Request) -> httpx.Response:
        self.sent.append(request)
        found = self._answers.pop(0)
        if isinstance(found, Exception):
            raise found
        return found

    def calling(self, kind: str, call: Callable[[Any], Any]) -> Any:
        """Return what a call of a client answers, or the names of a stream's events."""
        quick = self._library.Retries(attempts=3, first_pause_s=0.001, longest_pause_s=0.01)
        options: dict[str, Any] = {"retries": quick, "transport": httpx.MockTransport(self._answer)}
        if kind == "Retain":
            with self._library.Retain("https://retain.example", "k", "acme", **options) as retain:
                found = call(retain)
                return [event.name for event in found] if hasattr(found, "last_event_id") else found
        return asyncio.run(self._asynchronously(call, options))

    async def _asynchronously(self, call: Callable[[Any], Any], options: dict[str, Any]) -> Any:
        async with self._library.AsyncRetain("https://retain.example", "k", "acme", **options) as retain:
            found = call(retain)
            return [event.name async for event in found] if hasattr(found, "last_event_id") else await found


def standing() -> httpx.Response:
    return httpx.Response(202, json={"run_id": "1", "instance_id": "desk", "status": "running"})
