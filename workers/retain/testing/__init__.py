"""For the tests of programs that embed Retain: the conformance suites of the contracts, and in-memory tiers.

Each suite has one test per invariant, named by its number.

    from retain.testing import ChatMemorySuite

    class TestMyChatMemory(ChatMemorySuite):
        async def open(self, session):
            return MyChatMemory(session)

pytest collects `test_cm1_…` to `test_cm6_…` from that. Neither pytest nor a plugin is required: `suite.cases()` returns the
same tests as coroutine functions, for any other runner and inside workerd.
"""

from __future__ import annotations

from retain.testing.chat_memory import ChatMemorySuite
from retain.testing.embedder import EmbedderSuite
from retain.testing.suite import Case, Suite
from retain.testing.vector_memory import VectorMemorySuite

__all__ = ["Case", "ChatMemorySuite", "EmbedderSuite", "Suite", "VectorMemorySuite"]
