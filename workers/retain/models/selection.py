"""Choose model adapters by configuration."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from retain.errors import Misconfigured
from retain.models.chat import ChatModel
from retain.models.embedders.openai import OpenAiEmbedder
from retain.models.embedders.static import StaticEmbedder
from retain.models.embedders.workers_ai import WorkersAiEmbedder
from retain.models.embedding import Embedder
from retain.models.openai_endpoint import OpenAiEndpoint
from retain.models.providers.anthropic import AnthropicChat, AnthropicEndpoint
from retain.models.providers.openai import OpenAiChat
from retain.models.providers.structured import CheckedChat
from retain.models.providers.workers_ai import AiStreamer, WorkersAiChat
from retain.models.requests import BINDING, check_model_request
from retain.models.reranking import Reranker, WorkersAiReranker
from retain.models.retry import Retries
from retain.models.scripted.chat import ScriptedChat
from retain.models.workers_ai import AiRunner
from retain.ports import Fetch, FetchStream
from retain.settings import ModelSettings, Settings

OPENAI_URL = "https://api.openai.com/v1"
ANTHROPIC_URL = "https://api.anthropic.com/v1"


@dataclass(frozen=True, slots=True)
class ChatPorts:
    """The ports through which chat adapters reach their models."""

    fetch: Fetch
    fetch_stream: FetchStream
    ai: AiRunner
    ai_stream: AiStreamer


def chosen_chat(settings: Settings, *, provider: str | None = None, name: str | None = None) -> ModelSettings:
    """Return how to reach the chat model that an agent names, or the deployment's if it names none.

    Raises: Misconfigured (code `model_unnamed`) for an agent that names a provider other than the deployment's without
        a model.
    """
    chat = settings.chat
    if provider is None or provider == chat.provider:
        return replace(chat, name=name or chat.name)
    if provider == "scripted":
        return replace(chat, provider=provider)
    if name is None:
        raise Misconfigured(
            f"an agent that names the provider '{provider}' must name a model of it", code="model_unnamed"
        )
    account = settings.accounts.get(provider)
    if account is None:
        return ModelSettings(provider, name, "", "", chat.allow_requests)
    return replace(account, name=name, allow_requests=chat.allow_requests)


def chat_model(settings: ModelSettings, ports: ChatPorts, script: Callable[[], Any]) -> ChatModel:
    """Return the chat model of these settings. script: loads the script, if the provider is `scripted`.

    Raises: Misconfigured (code `unknown_provider`, `model_requests_forbidden`, or as `script`).
    """
    match settings.provider:
        case "scripted":
            return CheckedChat(ScriptedChat(script()))
        case "openai":
            return CheckedChat(OpenAiChat(_openai(settings, ports.fetch, ports.fetch_stream), model=settings.name))
        case "anthropic":
            base_url = _allowed(settings, ANTHROPIC_URL)
            endpoint = AnthropicEndpoint(
                base_url,
                ports.fetch,
                _retries(),
                settings.api_key,
                fetch_stream=ports.fetch_stream,
                key_name=settings.key_name,
            )
            return CheckedChat(AnthropicChat(endpoint, model=settings.name))
        case "workers-ai":
            check_model_request(BINDING, allowed=settings.allow_requests)
            return CheckedChat(WorkersAiChat(ports.ai, ports.ai_stream, _retries(), model=settings.name))
        case other:
            raise Misconfigured(f"there is no chat provider named '{other}'", code="unknown_provider")


def embedder(
    settings: ModelSettings, dimensions: int, *, fetch: Fetch, ai: AiRunner, table: Callable[[], bytes]
) -> Embedder:
    """Return the embedder of these settings. table: reads the local table, if the provider is `static`.

    Raises: Misconfigured (code `unknown_provider`, `model_requests_forbidden`).
    """
    match settings.provider:
        case "static":
            return StaticEmbedder(table, model=settings.name, dimensions=dimensions)
        case "openai":
            return OpenAiEmbedder(_openai(settings, fetch), model=settings.name, dimensions=dimensions)
        case "workers-ai":
            check_model_request(BINDING, allowed=settings.allow_requests)
            return WorkersAiEmbedder(ai, _retries(), model=settings.name, dimensions=dimensions)
        case other:
            raise Misconfigured(f"there is no embedding provider named '{other}'", code="unknown_provider")


def reranker(model: str, ai: AiRunner, *, allow_requests: bool = True) -> Reranker | None:
    """Return the reranker with this name on Workers AI, or None for an empty name.

    Raises: Misconfigured (code `model_requests_forbidden`).
    """
    if not model:
        return None
    check_model_request(BINDING, allowed=allow_requests)
    return WorkersAiReranker(ai, _retries(), model=model)


def _openai(settings: ModelSettings, fetch: Fetch, fetch_stream: FetchStream | None = None) -> OpenAiEndpoint:
    base_url = _allowed(settings, OPENAI_URL)
    return OpenAiEndpoint(
        base_url, fetch, _retries(), settings.api_key, fetch_stream=fetch_stream, key_name=settings.key_name
    )


def _allowed(settings: ModelSettings, usual_url: str) -> str:
    base_url = settings.base_url or usual_url
    check_model_request(base_url, allowed=settings.allow_requests)
    return base_url


def _retries() -> Retries:
    return Retries(asyncio.sleep, random.random)
