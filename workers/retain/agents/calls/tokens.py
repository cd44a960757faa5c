"""An estimate of how many tokens a text has, without a model's vocabulary."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import dataclass

from retain.models.chat import ChatMessage, ToolCall, ToolSpec

BYTES_PER_TOKEN = {"claude": 3.5}
"""UTF-8 bytes per token, by a part of the model's name.

Source: https://docs.claude.com/en/docs/about-claude/glossary#tokens (about 3.5 English characters)
"""
DEFAULT_BYTES_PER_TOKEN = 4.0
"""Source: https://help.openai.com/en/articles/4936856-what-are-tokens-and-how-to-count-them"""


@dataclass(frozen=True, slots=True)
class Estimate:
    """How the tokens of one model are counted."""

    bytes_per_token: float = DEFAULT_BYTES_PER_TOKEN

    @classmethod
    def of(cls, model: str) -> Estimate:
        """Return the estimate for the model with this name."""
        name = model.lower()
        return cls(next((size for part, size in BYTES_PER_TOKEN.items() if part in name), DEFAULT_BYTES_PER_TOKEN))

    def text(self, text: str) -> int:
        """Return about how many tokens a text has, rounded up."""
        return math.ceil(len(text.encode("utf-8", "surrogatepass")) / self.bytes_per_token)

    def message(self, message: ChatMessage) -> int:
        """Return about how many tokens a message has, with the calls in it and its attachments."""
        calls = sum(map(self._call, message.tool_calls))
        files = sum(file.tokens(self.bytes_per_token) for file in message.attachments)
        return self.text(message.content) + calls + files

    def _call(self, call: ToolCall) -> int:
        reasoning = 0 if call.reasoning is None else self.text(json.dumps(dict(call.reasoning)))
        return self.text(call.name) + self.text(json.dumps(dict(call.arguments))) + reasoning

    def messages(self, messages: Iterable[ChatMessage]) -> int:
        """Return about how many tokens the messages have together."""
        return sum(map(self.message, messages))

    def specs(self, specs: Iterable[ToolSpec]) -> int:
        """Return about how many tokens the description of the tools takes."""
        return sum(
            self.text(spec.name) + self.text(spec.description) + self.text(json.dumps(spec.parameters))
            for spec in specs
        )
