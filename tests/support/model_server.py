"""A model server on loopback in OpenAI's wire format, with real vectors, real tool calls and failures on demand.

    with ModelServer(scripts={"triage": script}) as server:
        server.fail(Failure(status=429, retry_after="0"), times=2)
        endpoint = OpenAiEndpoint(server.base_url, fetch, retries, api_key=server.api_key)

`/v1/embeddings` embeds with the local static table; `/v1/chat/completions` answers by the script that the request's
`model` names, or what `say` lined up, and streams when it is asked to. Source of the format: https://platform.openai.com/docs/api-reference
"""

from __future__ import annotations

import asyncio
import json
import math
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread
from types import TracebackType
from typing import Any, Literal

from retain.errors import UpstreamFailed
from retain.models.chat import ChatMessage, ChatReply, ChatRequest, ToolCall, ToolSpec
from retain.models.embedders.static import StaticEmbedder
from retain.models.scripted.chat import Script, ScriptedChat

SHIPPED_TABLE = Path(__file__).parents[2] / "models" / "static-minilm-256-i8.bin"

Fault = Literal[
    "status",
    "cut",
    "malformed",
    "html",
    "whole",
    "wrong_dimensions",
    "never",
    "drop",
    "break",
    "stall",
    "error_event",
    "malformed_event",
]


@dataclass(frozen=True, slots=True)
class Failure:
    """What goes wrong with one request.

    fault: `status` answers with that status; `cut` with that status and half a body; `malformed` with bytes that are not
    JSON; `html` with a page; `whole` without streaming; `wrong_dimensions` with vectors that lack a value; `never` does not
    answer before the server stops; `drop` closes the connection without an answer. Of a stream `break` sends the first
    `events` and closes the connection, `stall` falls silent then, `error_event` reports a failure with the `code`, and
    `malformed_event` sends what is not JSON.
    retry_after: the header, sent as it is. code: the error code in the body.
    """

    fault: Fault = "status"
    status: int = 500
    retry_after: str | None = None
    code: str | None = None
    events: int = 0


@dataclass(frozen=True, slots=True)
class Received:
    """One request as it was received. Header names are lower case."""

    path: str
    headers: Mapping[str, str]
    body: dict[str, Any]


@dataclass(frozen=True, slots=True)
class _Answer:
    status: int
    body: Mapping[str, Any]


@dataclass
class ModelServer:
    """The server, a context manager. Requests are kept in `received`, each request uses up one failure.

    scripts: by the model name that selects them. matryoshka: whether vectors may be shortened by `dimensions`.
    """

    scripts: Mapping[str, Script] = field(default_factory=dict)
    api_key: str = "test-model-key"
    matryoshka: bool = True
    received: list[Received] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.stopping = Event()
        self._embedder = StaticEmbedder(SHIPPED_TABLE)
        self._failures: deque[Failure | None] = deque()
        self._replies: deque[Mapping[str, Any]] = deque()

    def __enter__(self) -> ModelServer:
        self._http = _Http(self)
        self._thread = Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stopping.set()
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    @property
    def base_url(self) -> str:
        """The address for OpenAI-compatible clients, with the version."""
        return f"http://127.0.0.1:{self._http.server_address[1]}/v1"

    def fail(self, failure: Failure, *, times: int = 1, after: int = 0) -> None:
        """Let `times` requests fail in this way, after `after` good ones, and after what was asked for before."""
        self._failures.extend([None] * after + [failure] * times)

    def say(self, reply: ChatReply | Mapping[str, Any]) -> None:
        """Line up the answer of the next chat request, before any script is asked. A mapping is sent as it is."""
        self._replies.append(self.written(reply) if isinstance(reply, ChatReply) else reply)

    def written(self, reply: ChatReply) -> Mapping[str, Any]:
        """Return the reply as the body of an answer."""
        return chat_reply_to_wire(reply, "any")

    def events(self, answer: Mapping[str, Any]) -> list[bytes]:
        """Return the server-sent events in which the answer streams."""
        return chat_events(answer)

    def error(self, status: int, message: str, code: str | None) -> Mapping[str, Any]:
        """Return the body of an error."""
        return _error(status, message, code).body

    def error_event(self, code: str | None) -> bytes:
        """Return the event that reports a failure within a stream."""
        return _event({"error": {"message": "asked to fail", "type": "server_error", "code": code}})

    def next_failure(self) -> Failure | None:
        """Take the failure that is planned for this request, if any."""
        return self._failures.popleft() if self._failures else None

    def key_of(self, headers: Mapping[str, str]) -> str | None:
        """Return what the request brings as its key."""
        return headers.get("authorization")

    def answer(self, path: str, authorization: str | None, body: dict[str, Any]) -> _Answer:
        """Answer a request as a healthy server does."""
        if authorization != f"Bearer {self.api_key}":
            return _error(401, f"Incorrect API key provided: {authorization}", "invalid_api_key")
        if path == "/v1/embeddings":
            return self._embeddings(body)
        if path == "/v1/chat/completions":
            return self._chat(body)
        return _error(404, f"Unknown request URL: {path}", "unknown_url")

    def _embeddings(self, body: dict[str, Any]) -> _Answer:
        texts = body["input"]
        if not texts or len(texts) > 2048 or "" in texts or body.get("encoding_format") != "float":
            return _error(400, f"'$.input' is invalid: {texts}", "invalid_input")
        length = body.get("dimensions", self._embedder.dimensions)
        if length != self._embedder.dimensions and not self.matryoshka:
            return _error(400, "This model does not support specifying dimensions.", "invalid_dimensions")
        vectors = [_cut(vector, length) for vector in asyncio.run(self._embedder.embed(texts))]
        data = [{"object": "embedding", "index": place, "embedding": vector} for place, vector in enumerate(vectors)]
        data.reverse()  # the format promises no order
        tokens = sum(len(text) for text in texts) // 4
        usage = {"prompt_tokens": tokens, "total_tokens": tokens}
        return _Answer(200, {"object": "list", "model": body["model"], "data": data, "usage": usage})

    def _chat(self, body: dict[str, Any]) -> _Answer:
        if self._replies:
            return _Answer(200, self._replies.popleft())
        script = self.scripts.get(body["model"])
        if script is None:
            return _error(404, f"The model '{body['model']}' does not exist", "model_not_found")
        try:
            reply = asyncio.run(ScriptedChat(script).complete(chat_request_from_wire(body)))
        except UpstreamFailed as error:
            return _error(400, error.message, error.code)
        return _Answer(200, chat_reply_to_wire(reply, body["model"]))


class _Http(ThreadingHTTPServer):
    daemon_threads = False  # stopping waits for them, so that no connection outlives its test
    request_queue_size = 64

    def __init__(self, owner: ModelServer) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.owner = owner


class _Handler(BaseHTTPRequestHandler):
    server: _Http

    def do_POST(self) -> None:
        owner = self.server.owner
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        headers = {name.lower(): value for name, value in self.headers.items()}
        owner.received.append(Received(self.path, headers, body))
        failure = owner.next_failure()
        match failure.fault if failure else None:
            case "drop":
                self.close_connection = True
            case "never":
                owner.stopping.wait()
            case "malformed":
                self._send(200, b'{"object": "list", "data": [', {})
            case "html":
                self._send(200, b"\n<!doctype html><p>Welcome</p>", {})
            case "status" if failure is not None:
                wait = {} if failure.retry_after is None else {"Retry-After": failure.retry_after}
                refusal = owner.error(failure.status, f"asked to fail; you sent {headers}", failure.code)
                self._send(failure.status, json.dumps(refusal).encode(), wait)
            case "cut" if failure is not None:
                self._send(failure.status, b'{"error": {"message": "half', {"Content-Length": "60"})
                self.close_connection = True
            case fault:
                answer = owner.answer(self.path, owner.key_of(headers), body)
                if fault == "wrong_dimensions":
                    for entry in answer.body["data"]:
                        entry["embedding"].pop()
                if body.get("stream") and answer.status == 200 and fault != "whole":
                    self._stream(owner.events(answer.body), failure)
                    return
                self._send(answer.status, json.dumps(answer.body).encode(), {})

    def _send(self, status: int, body: bytes, headers: Mapping[str, str]) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", "Content-Length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        with suppress(OSError):  # the client may have given up
            self.wfile.write(body)

    def _stream(self, events: list[bytes], failure: Failure | None) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream; charset=utf-8")
        self.end_headers()
        self.close_connection = True
        for event in events[: failure.events] if failure else events:
            self.wfile.write(event)
            self.wfile.flush()
        match failure.fault if failure else None:
            case "stall":
                self.server.owner.stopping.wait()
            case "error_event" if failure is not None:
                self.wfile.write(self.server.owner.error_event(failure.code))
            case "malformed_event":
                self.wfile.write(b'data: {"half\n\n')

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 -- the base class's name
        """Say nothing."""


def _error(status: int, message: str, code: str | None) -> _Answer:
    return _Answer(status, {"error": {"message": message, "type": "invalid_request_error", "code": code}})


def _cut(vector: list[float], length: int) -> list[float]:
    norm = math.hypot(*vector[:length])
    return [value / norm if norm else 0.0 for value in vector[:length]]


def chat_request_from_wire(body: Mapping[str, Any]) -> ChatRequest:
    """Read a request's body as the server of the format does."""
    return ChatRequest(
        messages=[
            ChatMessage(
                role=message["role"],
                content=_text_of(message["content"]),
                tool_calls=tuple(
                    ToolCall(call["id"], call["function"]["name"], json.loads(call["function"]["arguments"]))
                    for call in message.get("tool_calls", ())
                ),
                tool_call_id=message.get("tool_call_id"),
            )
            for message in body["messages"]
        ],
        tools=[
            ToolSpec(tool["function"]["name"], tool["function"]["description"], tool["function"]["parameters"])
            for tool in body.get("tools", ())
        ],
        max_output_tokens=body.get("max_completion_tokens", body.get("max_tokens", 1024)),
        temperature=body.get("temperature"),
    )


def _text_of(content: str | list[dict[str, Any]] | None) -> str:
    """Return the last text of a message: before it, parts are files."""
    if isinstance(content, list):
        return next((part["text"] for part in reversed(content) if part["type"] == "text"), "")
    return content or ""


def chat_reply_to_wire(reply: ChatReply, model: str) -> dict[str, Any]:
    """Write an answer's body as the server of the format does."""
    message: dict[str, Any] = {"role": "assistant", "content": reply.content or None, "refusal": None}
    if reply.tool_calls:
        message["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": json.dumps(dict(call.arguments))},
            }
            for call in reply.tool_calls
        ]
    return {
        "id": "chatcmpl-test",
        "object": "chat.completion",
        "created": 0,
        "model": model,
        "choices": [
            {"index": 0, "message": message, "finish_reason": reply.finish_reason},
        ],
        "usage": {
            "prompt_tokens": reply.usage.input_tokens,
            "completion_tokens": reply.usage.output_tokens,
            "total_tokens": reply.usage.input_tokens + reply.usage.output_tokens,
            "prompt_tokens_details": {"cached_tokens": reply.usage.cached_input_tokens},
        },
    }


def chat_events(answer: Mapping[str, Any]) -> list[bytes]:
    """Return the server-sent events in which an answer streams: text in words, arguments in pieces, usage at the end."""
    [choice] = answer["choices"]
    message = choice["message"]

    def chunk(delta: Mapping[str, Any], finish_reason: str | None = None) -> bytes:
        part = {"index": 0, "delta": delta, "finish_reason": finish_reason}
        return _event({"object": "chat.completion.chunk", "model": "any", "choices": [part], "usage": None})

    events = [b": processing\n\n", chunk({"role": "assistant", "content": "", "refusal": None})]
    events += [chunk({"content": piece}) for piece in pieces(message["content"] or "")]
    for index, call in enumerate(message.get("tool_calls", [])):
        function = call["function"]
        events.append(chunk({"tool_calls": [{**call, "index": index, "function": {**function, "arguments": ""}}]}))
        events += [
            chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
            for piece in pieces(function["arguments"])
        ]
    events.append(chunk({}, choice["finish_reason"]))
    if answer.get("usage"):
        events.append(_event({"object": "chat.completion.chunk", "choices": [], "usage": answer["usage"]}))
    return [*events, b"data: [DONE]\n\n"]


def pieces(text: str, size: int = 5) -> list[str]:
    """Return the text in pieces of a few characters."""
    return [text[start : start + size] for start in range(0, len(text), size)]


def _event(content: Mapping[str, Any]) -> bytes:
    return f"data: {json.dumps(content, ensure_ascii=False)}\n\n".encode()
