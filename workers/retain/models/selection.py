"""Choose model adapters by configuration."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import Any

from retain.errors import Misconfigured
from retain.models.chat import ChatModel
from retain.models.embedding import Embedder
from retain.models.openai_chat import OpenAiChat
from retain.models.openai_embeddings import OpenAiEmbedder
from retain.models.openai_endpoint import OpenAiEndpoint
from retain.models.reranking import Reranker, WorkersAiReranker
from retain.models.retry import Retries
from retain.models.scripted import ScriptedChat
from retain.models.static import StaticEmbedder
from retain.models.workers_ai import AiRunner, WorkersAiEmbedder
from retain.ports import Fetch
from retain.settings import ModelSettings


def chat_model(settings: ModelSettings, fetch: Fetch, script: Callable[[], Any]) -> ChatModel:
    """Return the chat model of these settings. script: loads the script, should the provider be `scripted`.

    Raises: Misconfigured (code `unknown_provider`, or as `script`).
    """
    match settings.provider:
        case "scripted":
            return ScriptedChat(script())
        case "openai":
            return OpenAiChat(_endpoint(settings, fetch), model=settings.name)
        case other:
            raise Misconfigured(f"there is no chat provider named '{other}'", code="unknown_provider")


def embedder(
    settings: ModelSettings, dimensions: int, *, fetch: Fetch, ai: AiRunner, table: Callable[[], bytes]
) -> Embedder:
    """Return the embedder of these settings. table: reads the local table, should the provider be `static`.

    Raises: Misconfigured (code `unknown_provider`).
    """
    match settings.provider:
        case "static":
            return StaticEmbedder(table, model=settings.name, dimensions=dimensions)
        case "openai":
            return OpenAiEmbedder(_endpoint(settings, fetch), model=settings.name, dimensions=dimensions)
        case "workers-ai":
            return WorkersAiEmbedder(ai, _retries(), model=settings.name, dimensions=dimensions)
        case other:
            raise Misconfigured(f"there is no embedding provider named '{other}'", code="unknown_provider")


def reranker(model: str, ai: AiRunner) -> Reranker | None:
    """Return the reranker of this name on Workers AI, None for no name."""
    return WorkersAiReranker(ai, _retries(), model=model) if model else None


def _endpoint(settings: ModelSettings, fetch: Fetch) -> OpenAiEndpoint:
    return OpenAiEndpoint(settings.base_url, fetch, _retries(), settings.api_key)


def _retries() -> Retries:
    return Retries(asyncio.sleep, random.random)
