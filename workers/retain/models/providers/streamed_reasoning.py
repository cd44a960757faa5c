"""What a model thought, as it arrives in OpenAI's format. Some servers want it back with an answer's calls.

Source: https://api-docs.deepseek.com/guides/thinking_mode
Source: https://openrouter.ai/docs/guides/best-practices/reasoning-tokens
"""

from __future__ import annotations

from typing import Any

from retain.models.endpoint import WireObject

_JOINED = ("text", "summary")
"""The members of a detail that arrive in pieces."""


class StreamedReasoning:
    """The part of it that has arrived."""

    def __init__(self) -> None:
        self._content: list[str] = []
        self._details: list[tuple[dict[str, Any], dict[str, list[str]]]] = []
        """Each with the pieces of its members that arrive in pieces."""

    def add(self, delta: WireObject) -> None:
        """Add what a delta has of it; another shape is ignored."""
        content, details = delta.get("reasoning_content"), delta.get("reasoning_details")
        if isinstance(content, str):
            self._content.append(content)
        for detail in details if isinstance(details, list) else ():
            if isinstance(detail, dict):
                self._add_detail(detail)

    def _add_detail(self, detail: dict[str, Any]) -> None:
        arrived = {name: detail[name] for name in _JOINED if isinstance(detail.get(name), str)}
        last, pieces = self._details[-1] if self._details else ({}, {})
        if not arrived.keys() & pieces.keys() or any(last.get(name) != detail.get(name) for name in ("type", "index")):
            last, pieces = dict(detail), {}
            self._details.append((last, pieces))
        last |= {name: value for name, value in detail.items() if value is not None}
        for name, text in arrived.items():
            pieces.setdefault(name, []).append(text)

    def whole(self) -> dict[str, Any]:
        """Return it as the members of a whole message."""
        content = "".join(self._content)
        details = [
            {**detail, **{name: "".join(texts) for name, texts in pieces.items()}} for detail, pieces in self._details
        ]
        return ({"reasoning_content": content} if content else {}) | ({"reasoning_details": details} if details else {})
