"""The switch against requests to real models is on in the test suites, and leaves loopback alone."""

import pytest

from retain.errors import Misconfigured
from retain.models.chat import ChatMessage, ChatModel, ChatRequest
from retain.models.openai_endpoint import OpenAiEndpoint
from retain.models.providers.anthropic import AnthropicChat, AnthropicEndpoint
from retain.models.providers.openai import OpenAiChat
from retain.models.requests import BINDING, check_model_request, forbid_model_requests, model_requests_allowed
from retain.models.retry import Retries
from retain.ports import HttpResponse
from tests.models.chat_contract import Heard

REAL = ["https://api.openai.com/v1", "http://10.0.0.1/v1", "https://localhost.example.com", "http://127.0.0.1.nip.io"]
REAL += ["http://[bad", BINDING]


@pytest.mark.parametrize("address", REAL)
def test_a_real_model_is_out_of_reach(address: str) -> None:
    with pytest.raises(Misconfigured) as caught:
        check_model_request(address)
    assert caught.value.code == "model_requests_forbidden"


@pytest.mark.parametrize("address", ["http://127.0.0.1:9/v1", "http://localhost/v1", "https://[::1]:80", ""])
def test_loopback_and_no_host_at_all_are_within_reach(address: str) -> None:
    check_model_request(address, allowed=False)


@pytest.mark.parametrize("address", REAL)
def test_a_test_that_means_it_lifts_the_ban_for_itself(address: str) -> None:
    with model_requests_allowed():
        check_model_request(address)
        with pytest.raises(Misconfigured):
            check_model_request(address, allowed=False)
    with pytest.raises(Misconfigured):
        check_model_request(address)


def test_the_ban_may_be_declared_twice() -> None:
    forbid_model_requests()
    with pytest.raises(Misconfigured):
        check_model_request(REAL[0])


async def test_no_adapter_sends_anything_while_it_holds(retries: Retries) -> None:
    async def fetch(method: str, url: str, **more: object) -> HttpResponse:
        raise AssertionError(f"{method} {url} was sent")

    endpoints = {"api_key": "k", "fetch_stream": fetch}
    models: list[ChatModel] = [
        OpenAiChat(OpenAiEndpoint("https://api.openai.com/v1", fetch, retries, **endpoints), model="m"),  # type: ignore[arg-type]
        AnthropicChat(AnthropicEndpoint("https://api.anthropic.com/v1", fetch, retries, **endpoints), model="m"),  # type: ignore[arg-type]
    ]
    for model in models:
        for heard in (None, Heard()):
            with pytest.raises(Misconfigured) as caught:
                await model.complete(ChatRequest([ChatMessage("user", "?")]), heard)
            assert caught.value.code == "model_requests_forbidden"
