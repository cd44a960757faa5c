"""The backend of `file_chat_memory.py` against the published suite."""

from __future__ import annotations

from pathlib import Path

import pytest

from examples.file_chat_memory import FileChatMemory
from retain.namespace import Namespace
from retain.testing import ChatMemorySuite


class TestFileChatMemory(ChatMemorySuite):
    """CM1 to CM6 on files."""

    @pytest.fixture(autouse=True)
    def in_a_folder(self, tmp_path: Path) -> None:
        """Give each test a folder of its own."""
        self.folder = tmp_path

    async def open(self, session: str) -> FileChatMemory:
        """Return the conversation of a session."""
        return FileChatMemory(self.folder, Namespace("example", "acme", session))
