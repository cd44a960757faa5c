"""Every chat adapter keeps the contract of chat, and those with a provider also keep that of providers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from retain.errors import UnusableAnswer
from retain.host.fetch import HostFetch
from retain.models.chat import ChatReply, ChatRequest, Usage
from retain.models.openai_endpoint import OpenAiEndpoint
from retain.models.providers.anthropic import AnthropicChat, AnthropicEndpoint
from retain.models.providers.openai import OpenAiChat
from retain.models.providers.structured import CheckedChat
from retain.models.providers.workers_ai import WorkersAiChat
from retain.models.retry import Retries
from tests.models import chat_contract, provider_contract
from tests.models.chat_contract import ASKED, Heard, Stage
from tests.models.conftest import Waits
from tests.models.stages import BindingStage, ScriptedStage, ServerStage
from tests.ports import Case, cases, raises
from tests.support.anthropic_server import AnthropicServer
from tests.support.model_server import Failure, Fault, ModelServer
from tests.support.workers_ai import WorkersAiStandIn

PROVIDERS = ["openai", "anthropic", "workers-ai", "workers-ai in OpenAI's format"]
MakeStage = Callable[..., Stage]


@pytest.fixture
def stage_of(fetch: HostFetch, retries: Retries, waits: Waits) -> Iterator[MakeStage]:
    with ExitStack() as stack:

        def make(provider: str, timeout_ms: int = 30_000) -> Stage:
            if provider == "scripted":
                return ScriptedStage()
            if provider.startswith("workers-ai"):
                platform = WorkersAiStandIn("openai" if "OpenAI" in provider else "native")
                name = "@cf/openai" if "OpenAI" in provider else "@cf/native"
                adapter = WorkersAiChat(platform, platform.stream, retries, model=name, timeout_ms=timeout_ms)
                return BindingStage(CheckedChat(adapter), platform, waits)
            server = stack.enter_context(AnthropicServer() if provider == "anthropic" else ModelServer())
            reach = (server.base_url, fetch, retries, server.api_key, timeout_ms, fetch.stream)
            if provider == "anthropic":
                return ServerStage(CheckedChat(AnthropicChat(AnthropicEndpoint(*reach), model="m")), server, waits)
            return ServerStage(CheckedChat(OpenAiChat(OpenAiEndpoint(*reach), model="m")), server, waits)

        yield make


@pytest.mark.parametrize("provider", ["scripted", *PROVIDERS])
@pytest.mark.parametrize("case", cases(chat_contract).values(), ids=cases(chat_contract))
async def test_the_contract_of_chat(stage_of: MakeStage, case: Case, provider: str) -> None:
    await case(stage_of(provider))


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("case", cases(provider_contract).values(), ids=cases(provider_contract))
async def test_the_contract_of_providers(stage_of: MakeStage, case: Case, provider: str) -> None:
    await case(stage_of(provider, provider_contract.TIMEOUTS_MS.get(case, 30_000)))


@pytest.mark.parametrize("provider", ["openai", "anthropic"])
async def test_a_server_that_does_not_stream_is_read_whole(stage_of: MakeStage, provider: str) -> None:
    stage = stage_of(provider)
    assert isinstance(stage, ServerStage)
    heard, answer = Heard(), ChatReply("It will be cold.", usage=Usage(3, 2))
    stage.say(answer)
    stage.fail(Failure("whole"))
    assert await stage.model.complete(ChatRequest(ASKED), heard) == answer
    assert (heard.pieces, stage.asked) == ([answer.content], 1)


@pytest.mark.parametrize("provider", ["openai", "anthropic"])
@pytest.mark.parametrize("fault", ["html", "malformed"])
async def test_an_answer_that_is_not_a_stream_is_a_failure_of_the_server_and_not_of_the_connection(
    stage_of: MakeStage, provider: str, fault: Fault
) -> None:
    stage = stage_of(provider)
    assert isinstance(stage, ServerStage)
    for heard in (None, Heard()):
        before = stage.asked
        stage.fail(Failure(fault))
        with raises(UnusableAnswer, code="malformed_answer"):
            await stage.model.complete(ChatRequest(ASKED), heard)
        assert stage.asked - before == 1
