"""A chat model that an agent may not have."""

from __future__ import annotations

from typing import NoReturn

from retain.errors import RetainError
from retain.models.chat import ChatRequest, OnText


class RefusedChat:
    """Implements the `ChatModel` port: refuses when it is asked. Until then, the agent may turn out to be defined again."""

    def __init__(self, name: str, error: RetainError) -> None:
        self._name = name
        self._error = error

    @property
    def name(self) -> str:
        """Return the model's name."""
        return self._name

    async def complete(self, request: ChatRequest, on_text: OnText | None = None) -> NoReturn:  # noqa: ARG002
        """Raise the error."""
        raise self._error
