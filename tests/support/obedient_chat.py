"""A chat model on the host that does what the run's input says: see `tests.e2e.puppet`."""

from __future__ import annotations

import json

from retain.models.chat import ChatReply, ChatRequest, OnText
from tests.e2e.puppet import obey


class ObedientChat:
    """Implements `ChatModel`. `requests` are what it was asked, in order."""

    name = "obedient"

    def __init__(self) -> None:
        self.requests: list[ChatRequest] = []

    async def complete(self, request: ChatRequest, on_text: OnText | None = None) -> ChatReply:
        """Answer as the last order says."""
        self.requests.append(request)
        last = max(place for place, message in enumerate(request.messages) if message.role == "user")
        results = [message.content for message in request.messages[last:] if message.role == "tool"]
        return obey(json.loads(request.messages[last].content), results)
