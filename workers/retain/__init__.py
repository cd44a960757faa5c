"""Retain: agents that remember, on Cloudflare Workers.

The library. It never imports the platform: what it needs from it is passed in through the ports of `retain.ports`.

The names in `__all__` are its public interface, which docs/library.md shows with examples. Each is imported when it is
first used, so `import retain` is cheap, and a program loads only what it uses.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from retain.version import __version__

if TYPE_CHECKING:
    from retain.agents.tools.functions import ToolContext, tool
    from retain.contracts.chat import ChatMemory
    from retain.contracts.vectors import VectorMemory
    from retain.errors import RetainError
    from retain.items.builder import MemoryBuilder
    from retain.memory.recall.recall import Hit, RecallQuery
    from retain.memory.records.record import NewRecord, RecordSource
    from retain.memory.scope import Scope
    from retain.memory.semantic import SemanticMemory
    from retain.models.embedders.static import StaticEmbedder
    from retain.models.embedding import Embedder
    from retain.namespace import Namespace

__all__ = [
    "ChatMemory",
    "Embedder",
    "Hit",
    "MemoryBuilder",
    "Namespace",
    "NewRecord",
    "RecallQuery",
    "RecordSource",
    "RetainError",
    "Scope",
    "SemanticMemory",
    "StaticEmbedder",
    "ToolContext",
    "VectorMemory",
    "__version__",
    "tool",
]

_MODULES = {
    "ChatMemory": "retain.contracts.chat",
    "Embedder": "retain.models.embedding",
    "Hit": "retain.memory.recall.recall",
    "MemoryBuilder": "retain.items.builder",
    "Namespace": "retain.namespace",
    "NewRecord": "retain.memory.records.record",
    "RecallQuery": "retain.memory.recall.recall",
    "RecordSource": "retain.memory.records.record",
    "RetainError": "retain.errors",
    "Scope": "retain.memory.scope",
    "SemanticMemory": "retain.memory.semantic",
    "StaticEmbedder": "retain.models.embedders.static",
    "ToolContext": "retain.agents.tools.functions",
    "VectorMemory": "retain.contracts.vectors",
    "tool": "retain.agents.tools.functions",
}

if not TYPE_CHECKING:  # otherwise a type checker would accept any name

    def __getattr__(name: str) -> object:
        """Import a public name when it is first used. Raises: AttributeError."""
        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(import_module(_MODULES[name]), name)
        globals()[name] = value
        return value

    def __dir__() -> list[str]:
        return sorted(__all__)
