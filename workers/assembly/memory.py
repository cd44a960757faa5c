"""What agents remember: semantic memory, its ingest and its index."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import bindings
from retain.agent_memory.context import AgentMemoryContext
from retain.ingest.extraction import Extractor
from retain.ingest.extractors.selection import extractor
from retain.ingest.ingestion import Ingestion
from retain.memory.indexer import Indexer
from retain.memory.scope import Scope, View
from retain.memory.semantic import SemanticMemory
from retain.memory.writing.group import GroupWriter
from retain.memory.writing.remote import RemoteWriter
from retain.tenants.model_calls import CallPayer

if TYPE_CHECKING:
    from assembly.root import Assembly

_SCRIPT_OF_ANSWERS = "agent_memory"
"""The script of answers, if the deployment's chat model is the scripted one."""


class MemoryParts:
    """What agents remember."""

    def __init__(self, root: Assembly) -> None:
        self._root = root
        self._platform = root.platform

    def semantic(self, scope: Scope, view: View | None = None) -> SemanticMemory:
        """Return the semantic memory of a scope. view: what it sees, when that is not the scope's own path."""
        platform, models = self._platform, self._root.models
        return SemanticMemory(
            scope,
            platform.sql,
            platform.index,
            models.embedder,
            bindings.now_ms,
            view=view,
            reranker=models.reranker,
            writer=RemoteWriter(platform.writers),
            kept=models.signatures,
        )

    def group_writer(self) -> GroupWriter:
        """Return what a tenant's one writer stores with."""
        return GroupWriter(self._platform.sql, bindings.now_ms, self.indexer())

    def ingestion(self, scope: Scope) -> Ingestion:
        """Return the ingest of a scope."""
        return Ingestion(self.semantic(scope), self._platform.sql, partial(self._extractor, scope), bindings.now_ms)

    def indexer(self) -> Indexer:
        """Return the indexer, which makes the vector index agree with D1."""
        return Indexer(self._platform.sql, self._platform.index, self._root.models.embedder, bindings.now_ms)

    def _extractor(self, scope: Scope) -> Extractor:
        payer = CallPayer(scope.tenant_id, "ingest", scope.agent_type or "")
        models = self._root.models
        return extractor(self._platform.settings.extractor, lambda: models.deployment_chat("extraction", payer))


def agent_memory_context(root: Assembly) -> AgentMemoryContext:
    """Return what the routes of Agent Memory's interface work with.

    A development deployment that names no account answers for any; production then for none.
    """
    settings = root.platform.settings
    account = settings.agent_memory_account or ("" if settings.development else None)
    return AgentMemoryContext(
        account=account,
        tenants=root.directory.tenants,
        sql=root.platform.sql,
        semantic=root.memory.semantic,
        ingestion=root.memory.ingestion,
        stores=root.lifecycle.stores,
        clock=bindings.now_ms,
        background=bindings.in_background,
        chat=(lambda tenant_id: root.models.deployment_chat(_SCRIPT_OF_ANSWERS, CallPayer(tenant_id, "answer")))
        if settings.agent_memory_answers == "chat"
        else None,
    )
