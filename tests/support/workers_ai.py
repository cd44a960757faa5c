"""Workers AI's binding as the adapters see it: what `run` returns, whole or as a stream, with failures on demand.

Source: https://developers.cloudflare.com/workers-ai/features/function-calling/ and the formats that
https://github.com/cloudflare/ai/tree/main/packages/workers-ai-provider reads.
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Literal

from retain.errors import Unavailable
from retain.models.chat import ChatReply
from retain.models.workers_ai import platform_failure
from tests.support.model_server import Failure, chat_events, chat_reply_to_wire, pieces

Format = Literal["native", "openai"]
_CODES = {400: "5004", 401: "5018", 402: "3036", 403: "5018", 404: "3042", 413: "3006", 408: "3007", 429: "3040"}


class WorkersAiStandIn:
    """Returns what `say` lined up, in the format of the models that it stands in for. calls: what it was asked.

    streams: whether it streams when it is asked to; some models do not.
    """

    def __init__(self, written_as: Format = "native", *, streams: bool = True) -> None:
        self.calls: list[tuple[str, Mapping[str, Any]]] = []
        self._format = written_as
        self._streams = streams
        self._replies: deque[Mapping[str, Any]] = deque()
        self._failures: deque[Failure] = deque()

    def say(self, reply: ChatReply | Mapping[str, Any]) -> None:
        """Line up the answer of the next call. A mapping is returned as it is."""
        self._replies.append(self._written(reply) if isinstance(reply, ChatReply) else reply)

    def fail(self, failure: Failure, *, times: int = 1) -> None:
        """Let the next calls fail in this way."""
        self._failures.extend([failure] * times)

    async def __call__(self, model: str, inputs: Mapping[str, object]) -> Mapping[str, object]:
        """Answer whole: the port `AiRunner`."""
        self.calls.append((model, json.loads(json.dumps(inputs))))
        if self._failures:
            await _fail(self._failures.popleft())
        return self._replies.popleft()

    @asynccontextmanager
    async def stream(
        self, model: str, inputs: Mapping[str, object], *, silence_ms: int
    ) -> AsyncIterator[Mapping[str, object] | AsyncIterator[bytes]]:
        """Answer as a stream: the port `AiStreamer`."""
        self.calls.append((model, json.loads(json.dumps(inputs))))
        failure = self._failures.popleft() if self._failures else None
        if failure is not None and failure.fault in ("status", "never", "drop", "malformed"):
            await _fail(failure)
        answer = self._replies.popleft()
        if not self._streams:
            yield answer
            return
        events = chat_events(answer) if "choices" in answer else native_events(answer)
        yield _bytes(events, failure, silence_ms)

    def _written(self, reply: ChatReply) -> Mapping[str, Any]:
        wire = chat_reply_to_wire(reply, "any")
        if self._format == "openai":
            return wire
        calls = [{"id": call.id, "name": call.name, "arguments": dict(call.arguments)} for call in reply.tool_calls]
        response = reply.content or (None if calls else "")
        native: dict[str, Any] = {"response": response, "usage": wire["usage"], "finish_reason": reply.finish_reason}
        return native | ({"tool_calls": calls} if calls else {})


def native_events(answer: Mapping[str, Any]) -> list[bytes]:
    """Return the events of an answer in Workers AI's own format."""
    chunks: list[dict[str, Any]] = [{"response": piece, "p": "abc"} for piece in pieces(answer["response"] or "")]
    if answer.get("tool_calls"):
        chunks.append({"response": None, "tool_calls": answer["tool_calls"]})
    counted = {name: answer[name] for name in ("usage", "finish_reason") if name in answer}
    chunks.append({"response": "", **counted})
    return [*(f"data: {json.dumps(chunk)}\n\n".encode() for chunk in chunks), b"data: [DONE]\n\n"]


async def _bytes(events: list[bytes], failure: Failure | None, silence_ms: int) -> AsyncIterator[bytes]:
    stream = b"".join(events[: failure.events] if failure else events)
    for start in range(0, len(stream), 7):  # as it arrives over the network: not by events
        yield stream[start : start + 7]
    match failure.fault if failure else None:
        case "stall":
            raise Unavailable("the server did not answer in time", code="upstream_timeout")
        case "error_event" if failure is not None:
            yield f'data: {{"errors": [{{"code": {failure.code or 3040}, "message": "failed"}}]}}\n\n'.encode()
        case "malformed_event":
            yield b'data: {"half\n\n'


async def _fail(failure: Failure) -> None:
    match failure.fault:
        case "never":
            await asyncio.Event().wait()
        case "malformed":
            return
        case "drop":
            raise Unavailable("the server could not be reached", code="upstream_unreachable")
    raise platform_failure(f"InferenceUpstreamError: {_CODES.get(failure.status, '')}: asked to fail")
