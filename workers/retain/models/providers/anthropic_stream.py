"""A streamed answer of Anthropic's Messages API, assembled into the form of an unstreamed one.

Source: https://docs.claude.com/en/docs/build-with-claude/streaming
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncIterator
from typing import Any

from retain.errors import UnusableAnswer
from retain.models.endpoint import WireObject, failure_within, read_object
from retain.models.providers.delivery import Delivery
from retain.models.providers.openai_stream import until_ended
from retain.server_sent_events import ServerSentEvent

_Block = tuple[dict[str, Any], defaultdict[str, list[str]]]
"""A block as it began, and the pieces that its members have got since."""


class AnthropicStreamAnswer:
    """The part of an answer that has arrived. ended: whether the server has reported why it stopped."""

    def __init__(self, secret: str = "") -> None:
        """secret: the key that was sent, which no error may contain."""
        self.ended = False
        self._secret = secret
        self._blocks: list[_Block] = []
        self._open: dict[int, _Block] = {}
        self._stop_reason: object = None
        self._usage: dict[str, object] = {}

    def take(self, event: WireObject) -> str:
        """Add an event; return the text it adds. Events and deltas of other kinds are ignored.

        Raises: as `failure_within` for an error; UnusableAnswer (code `malformed_answer`).
        """
        match event:
            case {"type": "message_start", "message": {"usage": dict(usage)}}:
                self._usage |= usage
            case {"type": "content_block_start", "index": int(index), "content_block": dict(block)}:
                self._open[index] = (dict(block), defaultdict(list))  # some servers number every block 0
                self._blocks.append(self._open[index])
                text = block.get("text")
                return text if isinstance(text, str) and block.get("type") == "text" else ""
            case {"type": "content_block_delta", "index": int(index), "delta": dict(delta)} if index in self._open:
                return self._add(self._open[index], delta)
            case {"type": "message_delta", "delta": dict(delta)}:
                self._stop_reason = delta.get("stop_reason") or self._stop_reason
                self.ended = self._stop_reason is not None
                counted = event.get("usage")
                if isinstance(counted, dict):  # cumulative: it replaces
                    self._usage |= {name: value for name, value in counted.items() if value is not None}
            case {"type": "error"}:
                raise failure_within(event, self._secret)
            case {"type": "message_start" | "content_block_start" | "content_block_delta" | "message_delta"}:
                raise UnusableAnswer("the model's server sent an event of another shape", code="malformed_answer")
        return ""

    def _add(self, added: _Block, delta: dict[str, Any]) -> str:
        block, pieces = added
        match delta:
            case {"type": "text_delta", "text": str(text)}:
                pieces["text"].append(text)
                return text
            case {"type": "input_json_delta", "partial_json": str(part)}:
                pieces["input"].append(part)
            case {"type": "thinking_delta", "thinking": str(thought)}:
                pieces["thinking"].append(thought)
            case {"type": "signature_delta", "signature": str(signature)}:
                block["signature"] = signature
            case {"type": "text_delta" | "input_json_delta"}:
                raise UnusableAnswer("the model's server sent a delta of another shape", code="malformed_answer")
        return ""

    def whole(self) -> dict[str, Any]:
        """Return the answer in its unstreamed form, with the input of each call as the JSON text that arrived."""
        return {
            "role": "assistant",
            "content": [_joined(block, pieces) for block, pieces in self._blocks],
            "stop_reason": self._stop_reason,
            "usage": self._usage,
        }


def _joined(block: dict[str, Any], pieces: dict[str, list[str]]) -> dict[str, Any]:
    """Return a block with its pieces: after what it began with, except an input, which begins as an empty object."""
    texts = {name: "".join(parts) for name, parts in pieces.items()}
    begun = {name: "" if name == "input" else block.get(name) or "" for name in texts}
    return {**block, **{name: f"{begun[name]}{text}" for name, text in texts.items() if text}}


async def assembled(events: AsyncIterator[ServerSentEvent], delivery: Delivery, secret: str = "") -> WireObject:
    """Return the whole answer, after passing its text on piece by piece. secret: the key that was sent.

    Raises: as `AnthropicStreamAnswer.take` and the events; Unavailable (code `upstream_unreachable`) when the stream
        ends too early.
    """
    answer = AnthropicStreamAnswer(secret)
    async for event in until_ended(events, answer):
        found = read_object(event.data)
        if found.get("type") == "message_stop":
            answer.ended = True
            break
        await delivery.give(answer.take(found))
    return answer.whole()
