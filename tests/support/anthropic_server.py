"""A model server on loopback in the format of Anthropic's Messages API, with failures on demand.

It refuses what the API refuses of what Retain could send: turns that do not alternate, results apart from their calls, blank
text. Source: https://docs.claude.com/en/api/messages
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from retain.models.chat import ChatReply
from tests.support.model_server import ModelServer, _Answer, pieces

_STOPS = {"stop": "end_turn", "tool_calls": "tool_use", "length": "max_tokens", "content_filter": "refusal"}
_TYPES = {400: "invalid_request_error", 401: "authentication_error", 403: "permission_error", 404: "not_found_error"}
_TYPES |= {
    402: "billing_error",
    413: "request_too_large",
    429: "rate_limit_error",
    500: "api_error",
    529: "overloaded_error",
}


class AnthropicServer(ModelServer):
    """The server. It answers what `say` lined up."""

    def key_of(self, headers: Mapping[str, str]) -> str | None:
        return headers.get("x-api-key") if headers.get("anthropic-version") == "2023-06-01" else None

    def answer(self, path: str, authorization: str | None, body: dict[str, Any]) -> _Answer:
        if authorization != self.api_key:
            return _Answer(401, self.error(401, f"invalid x-api-key: {authorization}", None))
        if path != "/v1/messages":
            return _Answer(404, self.error(404, f"not found: {path}", None))
        complaint = _complaint(body)
        if complaint or not self._replies:
            return _Answer(400, self.error(400, complaint or "nothing was lined up", None))
        return _Answer(200, self._replies.popleft())

    def written(self, reply: ChatReply) -> Mapping[str, Any]:
        content: list[dict[str, Any]] = [{"type": "text", "text": reply.content}] if reply.content else []
        content += [
            {"type": "tool_use", "id": call.id, "name": call.name, "input": dict(call.arguments)}
            for call in reply.tool_calls
        ]
        read = {
            "input_tokens": reply.usage.input_tokens - reply.usage.cached_input_tokens,
            "cache_read_input_tokens": reply.usage.cached_input_tokens,
        }
        return {
            "id": "msg_test",
            "type": "message",
            "role": "assistant",
            "model": "any",
            "content": content,
            "stop_reason": _STOPS[reply.finish_reason],
            "stop_sequence": None,
            "usage": {**read, "output_tokens": reply.usage.output_tokens},
        }

    def events(self, answer: Mapping[str, Any]) -> list[bytes]:
        usage = {**answer["usage"], "output_tokens": 1}
        started = {**answer, "content": [], "stop_reason": None, "usage": usage}
        events = [_event("message_start", message=started), _event("ping")]
        for index, block in enumerate(answer["content"]):
            is_text = block["type"] == "text"
            empty = {**block, "text": ""} if is_text else {**block, "input": {}}
            events.append(_event("content_block_start", index=index, content_block=empty))
            # What is sent as it is may hold the input as text, to be sent as it is.
            given = block.get("text") if is_text else block["input"]
            text = given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)
            for piece in ["", *pieces(text)]:
                delta = (
                    {"type": "text_delta", "text": piece}
                    if is_text
                    else {"type": "input_json_delta", "partial_json": piece}
                )
                events.append(_event("content_block_delta", index=index, delta=delta))
            events.append(_event("content_block_stop", index=index))
        ended = {"stop_reason": answer["stop_reason"], "stop_sequence": None}
        usage = {"output_tokens": answer["usage"]["output_tokens"]}
        return [*events, _event("message_delta", delta=ended, usage=usage), _event("message_stop")]

    def error(self, status: int, message: str, code: str | None) -> Mapping[str, Any]:
        kind = code or _TYPES.get(status, "api_error")
        return {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_test"}

    def error_event(self, code: str | None) -> bytes:
        return _event("error", error={"type": code or "overloaded_error", "message": "Overloaded"})


def _complaint(body: Mapping[str, Any]) -> str | None:
    """Return what the API would refuse, None for nothing."""
    roles = [turn["role"] for turn in body["messages"]]
    if not isinstance(body.get("max_tokens"), int) or roles != (["user", "assistant"] * len(roles))[: len(roles)]:
        return "roles must alternate, beginning with user"
    waiting: list[str] = []
    for turn in body["messages"]:
        if not turn["content"] or any(
            block["type"] == "text" and not block["text"].strip() for block in turn["content"]
        ):
            return "text content blocks must be non-empty"
        if [block["tool_use_id"] for block in turn["content"] if block["type"] == "tool_result"] != waiting:
            return "each tool_use must have its tool_result in the next message"
        waiting = [block["id"] for block in turn["content"] if block["type"] == "tool_use"]
    return None


def _event(kind: str, **content: Any) -> bytes:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **content}, ensure_ascii=False)}\n\n".encode()
