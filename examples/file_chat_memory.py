"""Conversations in files: a backend of the `ChatMemory` contract, one JSON file a session."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from uuid import uuid4

from retain.contracts.messages import message_from, message_texts
from retain.models.chat import ChatMessage
from retain.namespace import Namespace

MAX_BYTES = 8_000_000


class FileChatMemory:
    """One session's conversation. It can be cleared."""

    def __init__(self, folder: Path, namespace: Namespace) -> None:
        # A digest: names that differ only in case are different sessions, also where the file system has no case.
        self._path = folder / f"{sha256(str(namespace).encode()).hexdigest()}.json"

    async def load(self) -> list[ChatMessage]:
        """Return all messages: a file is read as a whole, so it is one moment's (CM1, CM3); without a file, [] (CM5)."""
        try:
            text = await asyncio.to_thread(self._path.read_text, "utf-8")
        except FileNotFoundError:
            return []
        return [message_from(fields) for fields in json.loads(text)]

    async def save(self, messages: Sequence[ChatMessage]) -> None:
        """Write a temporary file, then replace the old one with it: a load sees either (CM2, CM4)."""
        texts = message_texts(messages, max_message_bytes=MAX_BYTES, max_session_bytes=MAX_BYTES)
        await asyncio.to_thread(self._replace, f"[{','.join(texts)}]")

    async def clear(self) -> None:
        """Remove the file (CM6)."""
        await asyncio.to_thread(self._path.unlink, missing_ok=True)

    def _replace(self, text: str) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        temporary = self._path.with_name(f"{self._path.name}.{uuid4().hex}")
        with temporary.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(self._path)
