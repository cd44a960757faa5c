"""Every way to recall returns five memories unless it is asked for another number."""

from __future__ import annotations

import inspect

from retain.admin.mcp import RecallArguments
from retain.admin.memories.memory_bodies import RecallBody
from retain.admin.memories.memory_desk import MemoryDesk
from retain.memory.facts import recall
from retain.memory.recall.recall import RecallQuery


def test_a_recall_over_http_and_mcp_and_in_python_asks_for_five() -> None:
    assert RecallBody(query="tea").top_k == 5
    assert RecallArguments(query="tea").top_k == 5
    assert RecallQuery("tea").top_k == 5
    for function in (recall, MemoryDesk.recall):
        assert inspect.signature(function).parameters["top_k"].default == 5
