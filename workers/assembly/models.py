"""The models that the deployment configures."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import bindings
from assembly.directory import tenant_models
from retain.admin.definitions.checking import invalid_definition
from retain.agents.calls.tokens import Estimate
from retain.agents.definitions import AgentDefinition
from retain.models.chat import ChatModel
from retain.models.embedders.static import table_file
from retain.models.embedding import Embedder
from retain.models.providers.counted import CountedChat
from retain.models.providers.refused import RefusedChat
from retain.models.reranking import Reranker
from retain.models.selection import ChatPorts, chat_model, chosen_chat, embedder, reranker
from retain.tenants.model_calls import CallCounts, CallPayer

if TYPE_CHECKING:
    from assembly.root import Assembly
    from retain.memory.recall.sources.fresh import KeptSignatures


class ModelParts:
    """The models of the deployment."""

    def __init__(self, root: Assembly) -> None:
        self._root = root
        self._ai = root.platform.ai
        self._settings = root.platform.settings
        self._chat_ports = ChatPorts(bindings.fetch, bindings.fetch_stream, self._ai, self._ai.stream)

    @cached_property
    def embedder(self) -> Embedder:
        """The configured embedding model."""
        return embedder(
            self._settings.embedding,
            self._settings.embedding_dimensions,
            fetch=bindings.fetch,
            ai=self._ai,
            table=lambda: bindings.staged_bytes(table_file(self._settings.embedding.name)),
        )

    @cached_property
    def signatures(self) -> KeptSignatures:
        """What the isolate's recalls have read of the signatures that the model's vectors have."""
        from retain.memory.recall.sources.fresh import KeptSignatures  # only for recalls

        return KeptSignatures()

    @cached_property
    def reranker(self) -> Reranker | None:
        """The configured reranker, if any."""
        return reranker(self._settings.rerank_model, self._ai, allow_requests=self._settings.chat.allow_requests)

    def chat(self, definition: AgentDefinition) -> ChatModel:
        """Return the chat model that the agent names, or the deployment's when it names none.

        That of a tenant's own agent is checked here as well: a definition may be older than the setting, or restored.
        """
        wish = definition.model
        settings = chosen_chat(self._settings, provider=wish.provider, name=wish.name)
        problems = (
            [] if self._root.directory.catalogue.defines(definition) else tenant_models(self._root).problems(wish)
        )
        if problems:
            return RefusedChat(settings.name, invalid_definition(problems))
        return chat_model(settings, self._chat_ports, lambda: self._root.directory.catalogue.script(wish.script))

    def deployment_chat(self, script: str, payer: CallPayer) -> ChatModel:
        """Return the deployment's chat model, whose calls are counted. script: that of the scripted model."""
        catalogue = self._root.directory.catalogue
        model = chat_model(self._settings.chat, self._chat_ports, lambda: catalogue.script(script))
        counts = CallCounts(self._root.platform.sql, bindings.now_ms, payer)
        return CountedChat(model, counts, Estimate.of(model.name).message)
