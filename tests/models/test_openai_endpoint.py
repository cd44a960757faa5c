import json
from collections.abc import Callable

import pytest

from retain.errors import Misconfigured, RetainError, Unavailable, UpstreamFailed
from retain.host.fetch import HostFetch
from retain.models.endpoint import failure
from retain.models.openai_endpoint import OpenAiEndpoint
from retain.models.retry import Retries
from tests.models.conftest import Waits
from tests.support.model_server import Failure, ModelServer

EndpointOf = Callable[..., OpenAiEndpoint]
BODY = {"model": "static", "input": ["a refund"], "encoding_format": "float"}


async def test_a_request_is_json_with_the_key_as_bearer_token(server: ModelServer, endpoint_of: EndpointOf) -> None:
    answer = await endpoint_of(server).post("/embeddings", BODY)
    assert answer["object"] == "list"
    [received] = server.received
    assert received.path == "/v1/embeddings"
    assert received.headers["authorization"] == "Bearer test-model-key"
    assert received.headers["content-type"] == "application/json"
    assert received.body == BODY


async def test_without_a_key_no_token_is_sent(server: ModelServer, endpoint_of: EndpointOf) -> None:
    with pytest.raises(Misconfigured):
        await endpoint_of(server, api_key="").post("/embeddings", BODY)
    assert "authorization" not in server.received[0].headers


PASSING = {
    "429 with a wait": (Failure(status=429, retry_after="0.4"), 0.4),
    "429 without a wait": (Failure(status=429), 0.05),
    "408": (Failure(status=408), 0.05),
    "500": (Failure(status=500), 0.05),
    "503 with a wait": (Failure(status=503, retry_after="0.2"), 0.2),
    "a dropped connection": (Failure("drop"), 0.05),
}


@pytest.mark.parametrize(("failure", "wait_s"), PASSING.values(), ids=PASSING)
async def test_a_transient_failure_is_retried_after_a_wait(
    server: ModelServer, endpoint_of: EndpointOf, waits: Waits, failure: Failure, wait_s: float
) -> None:
    server.fail(failure)
    answer = await endpoint_of(server).post("/embeddings", BODY)
    assert answer["object"] == "list"
    assert (len(server.received), waits.asked_s) == (2, [wait_s])


async def test_a_slow_answer_is_given_up_and_asked_for_again(
    server: ModelServer, endpoint_of: EndpointOf, waits: Waits
) -> None:
    server.fail(Failure("never"), times=3)
    with pytest.raises(Unavailable) as caught:
        await endpoint_of(server, timeout_ms=100).post("/embeddings", BODY)
    assert caught.value.code == "upstream_timeout"
    assert waits.asked_s == [0.05, 0.1]


LASTING = {
    "429": (Failure(status=429), "model_rate_limited"),
    "500": (Failure(status=500), "model_unavailable"),
    "dropped connections": (Failure("drop"), "upstream_unreachable"),
    "answers that break off": (Failure("cut", status=200), "upstream_unreachable"),
    "429 that breaks off": (Failure("cut", status=429), "model_rate_limited"),
}


@pytest.mark.parametrize(("failure", "code"), LASTING.values(), ids=LASTING)
async def test_a_failure_that_lasts_is_unavailable(
    server: ModelServer, endpoint_of: EndpointOf, failure: Failure, code: str
) -> None:
    server.fail(failure, times=3)
    with pytest.raises(Unavailable) as caught:
        await endpoint_of(server).post("/embeddings", BODY)
    assert (caught.value.code, len(server.received)) == (code, 3)


async def test_a_server_that_asks_for_a_long_wait_is_not_asked_again(
    server: ModelServer, endpoint_of: EndpointOf
) -> None:
    server.fail(Failure(status=429, retry_after="20"))
    with pytest.raises(Unavailable) as caught:
        await endpoint_of(server).post("/embeddings", BODY)
    assert (caught.value.details["retry_after_ms"], len(server.received)) == (20_000, 1)


TERMINAL: dict[str, tuple[Failure, type[RetainError], str]] = {
    "401": (Failure(status=401, code="invalid_api_key"), Misconfigured, "model_credentials"),
    "403": (Failure(status=403), Misconfigured, "model_credentials"),
    "400": (Failure(status=400, code="context_length_exceeded"), UpstreamFailed, "model_refused"),
    "404": (Failure(status=404, code="model_not_found"), UpstreamFailed, "model_refused"),
    "302": (Failure(status=302), UpstreamFailed, "model_refused"),
    "no credit": (Failure(status=429, code="insufficient_quota"), UpstreamFailed, "model_quota"),
    "no JSON": (Failure("malformed"), UpstreamFailed, "malformed_answer"),
    "400 that breaks off": (Failure("cut", status=400), UpstreamFailed, "model_refused"),
    "401 that breaks off": (Failure("cut", status=401), Misconfigured, "model_credentials"),
}


@pytest.mark.parametrize(("failure", "kind", "code"), TERMINAL.values(), ids=TERMINAL)
async def test_a_failure_that_retrying_cannot_fix_is_raised_at_once(
    server: ModelServer, endpoint_of: EndpointOf, failure: Failure, kind: type[RetainError], code: str
) -> None:
    server.fail(failure)
    with pytest.raises(kind) as caught:
        await endpoint_of(server).post("/embeddings", BODY)
    assert (caught.value.code, len(server.received)) == (code, 1)
    if failure.fault == "status":
        upstream_code = failure.code or "invalid_request_error"
        details = caught.value.details
        assert (details["status"], details["upstream_code"]) == (failure.status, upstream_code)
        assert ("upstream_message" in details) is (failure.status != 401)


@pytest.mark.parametrize("status", [400, 401, 403, 429, 500])
async def test_the_key_is_not_in_an_error_and_the_server_s_words_are(
    server: ModelServer, endpoint_of: EndpointOf, status: int
) -> None:
    server.fail(Failure(status=status, code="no such code: test-model-key"), times=3)
    with pytest.raises(RetainError) as caught:
        await endpoint_of(server).post("/embeddings", BODY)
    shown = f"{caught.value} {json.dumps(dict(caught.value.details))} {caught.value.__cause__!r}"
    assert "test-model-key" not in shown
    assert ("asked to fail; you sent" in shown) is (status != 401)


KEY = "sk-proj-abcdefghijklmnop"
MESSAGES: dict[str, tuple[object, str | None]] = {
    "OpenAI's": ({"error": {"message": "The model 'x' does not exist"}}, "The model 'x' does not exist"),
    "Cloudflare's": ({"errors": [{"code": 7009, "message": "no such model"}]}, "no such model"),
    "words": ({"error": "model not found"}, "model not found"),
    "a message alone": ({"message": "bad request"}, "bad request"),
    "a detail": ({"detail": "max_tokens is too large"}, "max_tokens is too large"),
    "problems as a list": (
        {"detail": [{"loc": ["body", "top_k"], "msg": "Extra inputs are not permitted"}, {"msg": "odd"}, {}, "no"]},
        "body.top_k: Extra inputs are not permitted; odd",
    ),
    "problems within the message": (
        {"object": "error", "message": {"detail": [{"loc": ["body", "top_k"], "msg": "not permitted"}]}},
        "body.top_k: not permitted",
    ),
    "problems without words": ({"detail": [{"loc": ["body"]}]}, None),
    "Gemini's list": ([{"error": {"code": 400, "message": "API key not valid"}}], "API key not valid"),
    "nothing": ({"error": {"code": 1}}, None),
    "no object": ("no", None),
    "the key": ({"message": f"you sent {KEY}, which is wrong"}, "you sent [redacted], which is wrong"),
    "a part of the key": ({"message": "you sent 'sk-proj-abcd***mnop'"}, "you sent '[redacted]'"),
    "another key": ({"message": "not sk-0123456789abcdefghij"}, "not [redacted]"),
    "a header": ({"message": "authorization: Basic dXNlcjpwYXNzd29yZA=="}, "[redacted]"),
    "lines and half a character": ({"message": "one\n two\x00\ud83e three"}, "one two three"),
    "very much": ({"message": "a " * 1_000}, ("a " * 1_000)[:500] + "\u2026"),
}


@pytest.mark.parametrize(("body", "message"), MESSAGES.values(), ids=MESSAGES)
def test_a_server_s_words_are_kept_without_secrets(body: object, message: str | None) -> None:
    error = failure(400, json.dumps(body).encode(), {}, KEY)
    assert error.details.get("upstream_message") == message


@pytest.mark.parametrize("base_url", ["", "/v1", "ftp://127.0.0.1/v1"])
async def test_an_address_that_cannot_be_called_is_a_matter_of_configuration(
    fetch: HostFetch, retries: Retries, base_url: str
) -> None:
    with pytest.raises(Misconfigured) as caught:
        await OpenAiEndpoint(base_url, fetch, retries, api_key="k").post("/embeddings", BODY)
    assert caught.value.code == "model_endpoint"


def test_the_key_is_not_in_the_endpoints_representation(server: ModelServer, endpoint_of: EndpointOf) -> None:
    assert server.api_key not in repr(endpoint_of(server))


SHAPES: dict[str, tuple[bytes, str | None]] = {
    "a code": (
        b'{"error": {"code": "context_length_exceeded", "type": "invalid_request_error"}}',
        "context_length_exceeded",
    ),
    "a type": (b'{"type": "error", "error": {"type": "not_found_error", "message": "x"}}', "not_found_error"),
    "a number": (b'{"error": {"code": 404}}', "404"),
    "Cloudflare's list": (b'{"success": false, "errors": [{"code": 7009, "message": "x"}]}', "7009"),
    "AI Gateway's list": (b'{"success": false, "error": [{"code": 2001, "message": "x"}]}', "2001"),
    "Gemini's list": (b'[{"error": {"code": 404, "message": "x", "status": "NOT_FOUND"}}]', "404"),
    "Mistral's": (b'{"object": "error", "message": "Invalid model", "type": "invalid_model", "code": "1500"}', "1500"),
    "an empty list": (b'{"errors": []}', None),
    "a list of nothing": (b"[]", None),
    "words": (b'{"error": "model not found"}', None),
    "no JSON": (b"<html>", None),
    "no text": (b"\xff", None),
    "words where a code should be": (b'{"error": {"code": "you sent sk-123 !"}}', None),
}


@pytest.mark.parametrize(("body", "code"), SHAPES.values(), ids=SHAPES)
def test_the_servers_own_code_is_found_in_every_shape_of_error(body: bytes, code: str | None) -> None:
    error = failure(404, body, {})
    assert (type(error), error.details.get("upstream_code")) == (UpstreamFailed, code)


def test_an_input_that_the_server_s_filter_refuses_is_one_that_it_withholds_an_answer_to() -> None:
    body = b'{"error": {"message": "The response was filtered", "type": null, "code": "content_filter"}}'
    assert failure(400, body, {}).code == "content_filtered"


async def test_a_failure_with_the_status_of_a_success_is_a_failure(
    server: ModelServer, endpoint_of: EndpointOf, waits: Waits
) -> None:
    server.say({"error": {"code": 502, "message": "Provider returned error"}})
    server.say({"error": {"code": 402, "message": "Insufficient credits"}})
    with pytest.raises(UpstreamFailed) as caught:
        await endpoint_of(server).post("/chat/completions", {"model": "any"})
    assert (caught.value.code, caught.value.details["upstream_message"]) == ("model_quota", "Insufficient credits")
    assert waits.asked_s == [0.05]


async def test_a_server_that_was_set_up_without_streaming_is_a_matter_of_configuration(
    server: ModelServer, endpoint_of: EndpointOf
) -> None:
    with pytest.raises(Misconfigured) as caught:
        async with endpoint_of(server).open("/chat/completions", {}):
            raise AssertionError("it was opened")
    assert caught.value.code == "model_endpoint"


def test_an_answer_that_nothing_is_at_the_address_says_so() -> None:
    assert (
        failure(404, b"404 page not found", {}).message
        == "the model's server has no such model, or not at this address"
    )
    assert failure(400, b"no", {}).message == "the model's server refused the request"
