"""The module `adapters/exchange.mjs`, as Python imports it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any

from tests.shell.platform import js
from tests.shell.platform.ffi import Array, Buffer, JsException, PlainObject, bytes_of
from tests.shell.platform.http import AbortController, AbortSignal, Response


class Sent:
    """A request, which can be given up. answer: what it is answered with."""

    def __init__(self, work: Coroutine[Any, Any, Any], controller: AbortController) -> None:
        self.answer = asyncio.ensure_future(work)
        self.answer.add_done_callback(lambda done: done.cancelled() or done.exception())
        self._controller = controller

    def giveUp(self) -> None:
        """End the request."""
        self._controller.abort()


@dataclass(frozen=True)
class Exchanged:
    """An answer, and its content if that was received with it; its size is -1 otherwise."""

    response: Response
    content: Buffer | None
    size: int


def send(method: str, url: str, headers: str, body: object, timeout_ms: int) -> Sent:
    """Send a request."""
    controller = AbortController.new()
    signal = AbortSignal.any(Array([controller.signal, AbortSignal.timeout(timeout_ms)]))
    content = bytes_of(body) if isinstance(body, Buffer) else body
    given = {"method": method, "headers": PlainObject(json.loads(headers)), "redirect": "manual", "signal": signal}
    return Sent(js.fetch(url, PlainObject({**given, "body": content})), controller)


def exchange(method: str, url: str, headers: str, body: object, timeout_ms: int, at_once_bytes: int) -> Sent:
    """Send a request, and receive a small answer."""
    sent = send(method, url, headers, body, timeout_ms)
    return Sent(_received(sent, at_once_bytes), sent._controller)


async def _received(sent: Sent, at_once_bytes: int) -> Exchanged:
    response: Response = await sent.answer
    length = response.headers.get("content-length")
    size = int(length) if isinstance(length, str) and length.isdecimal() else -1
    if not 0 <= size <= at_once_bytes or isinstance(response.headers.get("content-encoding"), str):
        return Exchanged(response, None, -1)
    try:
        return Exchanged(response, await response.arrayBuffer(), size)
    except JsException as error:
        error.answered = response.status
        raise
