"""Which adapter the settings select, and what an agent may name instead."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest

from retain.errors import Misconfigured
from retain.models.chat import ChatMessage, ChatRequest
from retain.models.requests import model_requests_allowed
from retain.models.selection import ChatPorts, chat_model, chosen_chat, embedder, reranker
from retain.ports import MAX_RESPONSE_BYTES, HttpResponse, StreamedResponse, Until
from retain.settings import ModelSettings, read_settings
from tests.models.chat_contract import Heard
from tests.support.workers_ai import WorkersAiStandIn

VARIABLES = {
    "EMBEDDING_DIMENSIONS": "256",
    "CHAT_PROVIDER": "openai",
    "CHAT_MODEL": "gpt",
    "CHAT_BASE_URL": "http://127.0.0.1/v1",
    "CHAT_API_KEY": "chat-key",
    "ANTHROPIC_API_KEY": "anthropic-key",
    "OPENAI_BASE_URL": "http://gateway/v1",
    "OPENAI_API_KEY": "openai-key",
}
SCRIPT: dict[str, Any] = {"name": "yes", "rules": [{"rule": "any", "when": {}, "reply": {"text": "yes"}}]}


class Sent:
    """A fetch that keeps what it is asked for, and answers with a refusal."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, Mapping[str, str]]] = []

    async def __call__(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str],
        body: str | bytes | None,
        timeout_ms: int,
        limit_bytes: int = MAX_RESPONSE_BYTES,
        until: Until | None = None,
    ) -> HttpResponse:
        self.requests.append((url, headers))
        return HttpResponse(401, {}, b"")

    @asynccontextmanager
    async def refusing_stream(self, *_: object, **__: object) -> AsyncIterator[StreamedResponse]:
        async def nothing() -> AsyncIterator[bytes]:
            yield b""

        yield StreamedResponse(401, {}, nothing())

    def stream(self, *_: object, **__: object) -> Any:
        raise AssertionError("nothing streams here")


async def asked_of(settings: ModelSettings) -> tuple[str, str | None]:
    """Return where the selected adapter sends its request, and with which key."""
    sent, ai = Sent(), WorkersAiStandIn()
    model = chat_model(settings, ChatPorts(sent, sent.stream, ai, ai.stream), lambda: SCRIPT)
    with pytest.raises(Misconfigured):
        await model.complete(ChatRequest([ChatMessage("user", "?")]))
    [(url, headers)] = sent.requests
    return url, headers.get("authorization") or headers.get("x-api-key")


OPENAI = ("https://api.openai.com/v1/chat/completions", "Bearer chat-key")
CHOSEN: dict[str, tuple[dict[str, str], dict[str, str], tuple[str, str | None]]] = {
    "the deployment's": ({}, {}, ("http://127.0.0.1/v1/chat/completions", "Bearer chat-key")),
    "the deployment's, named": (
        {},
        {"provider": "openai"},
        ("http://127.0.0.1/v1/chat/completions", "Bearer chat-key"),
    ),
    "at its own address": ({"CHAT_BASE_URL": ""}, {}, OPENAI),
    "another": (
        {},
        {"provider": "anthropic", "name": "claude"},
        ("https://api.anthropic.com/v1/messages", "anthropic-key"),
    ),
    "another with an address": (
        {"CHAT_PROVIDER": "anthropic", "CHAT_BASE_URL": ""},
        {"provider": "openai", "name": "gpt"},
        ("http://gateway/v1/chat/completions", "Bearer openai-key"),
    ),
}


@pytest.mark.parametrize(("variables", "wish", "expected"), CHOSEN.values(), ids=CHOSEN)
async def test_an_agent_gets_the_provider_that_it_names_with_that_ones_key(
    variables: dict[str, str], wish: dict[str, str], expected: tuple[str, str | None]
) -> None:
    with model_requests_allowed():  # nothing is sent
        assert await asked_of(chosen_chat(read_settings({**VARIABLES, **variables}), **wish)) == expected


@pytest.mark.parametrize(
    ("variables", "wish", "named"),
    [
        pytest.param({}, {}, "correct the secret CHAT_API_KEY", id="the deployment's"),
        pytest.param({"CHAT_API_KEY": ""}, {}, "the secret CHAT_API_KEY is not set", id="none"),
        pytest.param(
            {"ANTHROPIC_API_KEY": ""},
            {"provider": "anthropic", "name": "claude"},
            "the secret ANTHROPIC_API_KEY is not set",
            id="another provider's",
        ),
    ],
)
@pytest.mark.parametrize("on_text", [None, Heard()], ids=["whole", "streamed"])
async def test_refused_credentials_name_the_secret_and_say_whether_it_is_set(
    variables: dict[str, str], wish: dict[str, str], named: str, on_text: Heard | None
) -> None:
    chosen, sent, ai = chosen_chat(read_settings({**VARIABLES, **variables}), **wish), Sent(), WorkersAiStandIn()
    with model_requests_allowed():
        model = chat_model(chosen, ChatPorts(sent, sent.refusing_stream, ai, ai.stream), lambda: SCRIPT)
        with pytest.raises(Misconfigured) as refused:
            await model.complete(ChatRequest([ChatMessage("user", "?")]), on_text)
    assert refused.value.message == f"the model's server refused the credentials: {named}"
    assert (refused.value.code, refused.value.details["status"]) == ("model_credentials", 401)


def test_an_agent_that_names_a_model_keeps_the_deployments_provider() -> None:
    chosen = chosen_chat(read_settings(VARIABLES), name="gpt-large")
    assert chosen == replace(read_settings(VARIABLES).chat, name="gpt-large")


def test_an_agent_that_names_another_provider_must_name_its_model() -> None:
    with pytest.raises(Misconfigured) as caught:
        chosen_chat(read_settings(VARIABLES), provider="anthropic")
    assert caught.value.code == "model_unnamed"


async def test_workers_ai_and_the_script_need_no_address() -> None:
    sent, ai = Sent(), WorkersAiStandIn()
    ports = ChatPorts(sent, sent.stream, ai, ai.stream)
    ai.say({"response": "hello"})
    with model_requests_allowed():
        platform = chat_model(ModelSettings("workers-ai", "@cf/any", "", ""), ports, lambda: SCRIPT)
        reply = await platform.complete(ChatRequest([ChatMessage("user", "?")]))
    assert (platform.name, reply.content) == ("@cf/any", "hello")
    scripted = chat_model(chosen_chat(read_settings(VARIABLES), provider="scripted"), ports, lambda: SCRIPT)
    reply = await scripted.complete(ChatRequest([ChatMessage("user", "?")]))
    assert (scripted.name, reply.content) == ("scripted/yes", "yes")


@pytest.mark.parametrize("provider", ["openai", "anthropic", "workers-ai"])
def test_a_deployment_may_forbid_requests_to_real_models(provider: str) -> None:
    settings = read_settings(
        {**VARIABLES, "CHAT_PROVIDER": provider, "CHAT_BASE_URL": "", "ALLOW_MODEL_REQUESTS": "false"}
    )
    sent, ai = Sent(), WorkersAiStandIn()
    with model_requests_allowed():
        with pytest.raises(Misconfigured) as caught:
            chat_model(settings.chat, ChatPorts(sent, sent.stream, ai, ai.stream), lambda: SCRIPT)
        assert caught.value.code == "model_requests_forbidden"
        if provider != "anthropic":
            with pytest.raises(Misconfigured):
                embedder(settings.chat, 256, fetch=sent, ai=ai, table=lambda: b"")
        with pytest.raises(Misconfigured):
            reranker("@cf/any", ai, allow_requests=settings.chat.allow_requests)


@pytest.mark.parametrize("value", ["no", "", "False", "0"])
def test_the_switch_is_true_or_false(value: str) -> None:
    with pytest.raises(Misconfigured) as caught:
        read_settings({**VARIABLES, "ALLOW_MODEL_REQUESTS": value})
    assert caught.value.code == "invalid_setting"


def test_an_unknown_provider_is_a_matter_of_configuration() -> None:
    sent, ai = Sent(), WorkersAiStandIn()
    with pytest.raises(Misconfigured) as caught:
        chat_model(ModelSettings("bard", "m", "", ""), ChatPorts(sent, sent.stream, ai, ai.stream), lambda: SCRIPT)
    assert caught.value.code == "unknown_provider"


def test_no_key_is_shown() -> None:
    assert "-key" not in repr(read_settings(VARIABLES))
