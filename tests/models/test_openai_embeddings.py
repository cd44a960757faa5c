from collections.abc import Callable

import pytest

from retain.errors import Misconfigured, Unavailable, UpstreamFailed
from retain.models.embedders import openai
from retain.models.embedders.openai import MAX_TEXTS, OpenAiEmbedder, from_wire
from retain.models.embedders.static import StaticEmbedder
from retain.models.embedding import Embedder
from retain.models.endpoint import MAX_ANSWER_BYTES
from retain.models.openai_endpoint import OpenAiEndpoint
from retain.testing import EmbedderSuite
from tests.support.model_server import Failure, ModelServer

EndpointOf = Callable[..., OpenAiEndpoint]


@pytest.fixture
def embedder(server: ModelServer, endpoint_of: EndpointOf) -> OpenAiEmbedder:
    return OpenAiEmbedder(endpoint_of(server), model="text-embedding-test", dimensions=256)


@pytest.mark.parametrize("name", EmbedderSuite.names())
async def test_the_contract_of_embedders(
    server: ModelServer, embedder: OpenAiEmbedder, endpoint_of: EndpointOf, name: str
) -> None:
    async def opened() -> Embedder:
        return embedder

    async def failing() -> Embedder:
        server.fail(Failure(status=503), times=3)  # as often as it is tried
        return embedder

    async def interrupted() -> Embedder:
        server.fail(Failure(status=503), times=6, after=1)  # in the second batch, and in the next call
        return OpenAiEmbedder(endpoint_of(server), model="text-embedding-test", dimensions=256)

    await EmbedderSuite.of(opened, failing, interrupted).cases()[name]()


async def test_vectors_are_those_of_the_server_in_the_order_of_the_texts(
    embedder: OpenAiEmbedder, static: StaticEmbedder
) -> None:
    texts = ["one apple", "two pears", "three plums"]
    for vector, expected in zip(await embedder.embed(texts), await static.embed(texts), strict=True):
        assert vector == pytest.approx(expected)


async def test_the_request_names_model_and_format_and_no_dimensions(
    server: ModelServer, embedder: OpenAiEmbedder
) -> None:
    await embedder.embed(["one apple"])
    assert server.received[0].body == {
        "model": "text-embedding-test",
        "input": ["one apple"],
        "encoding_format": "float",
    }
    assert (embedder.model, embedder.dimensions) == ("text-embedding-test", 256)


async def test_texts_over_the_batch_size_are_sent_in_several_requests(
    server: ModelServer, embedder: OpenAiEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(openai, "MAX_TEXTS", 2)
    assert len(await embedder.embed(["a", "b", "", "c", "d", "e"])) == 6
    assert [received.body["input"] for received in server.received] == [["a", "b"], ["c", "d"], ["e"]]


def test_the_answer_for_the_most_texts_is_read_also_with_the_longest_vectors() -> None:
    value = "-0.0069292834959924221,"
    assert MAX_TEXTS * 3_072 * len(value) < MAX_ANSWER_BYTES


async def test_blank_texts_alone_need_no_request(server: ModelServer, embedder: OpenAiEmbedder) -> None:
    assert await embedder.embed(["", " "]) == [[0.0] * 256] * 2
    assert server.received == []


async def test_a_model_whose_vectors_are_too_long_is_asked_for_shorter_ones_from_then_on(
    server: ModelServer, endpoint_of: EndpointOf
) -> None:
    embedder = OpenAiEmbedder(endpoint_of(server), model="m", dimensions=64)
    for _ in range(2):
        [vector] = await embedder.embed(["one apple"])
        assert len(vector) == 64
    assert [received.body.get("dimensions") for received in server.received] == [None, 64, 64]


async def test_of_a_model_that_cannot_be_shortened_the_length_is_reported(
    server: ModelServer, endpoint_of: EndpointOf
) -> None:
    server.matryoshka = False
    with pytest.raises(Misconfigured) as caught:
        await OpenAiEmbedder(endpoint_of(server), model="m", dimensions=64).embed(["one apple"])
    assert (caught.value.code, caught.value.details) == ("embedding_dimensions", {"expected": 64, "found": 256})


async def test_vectors_of_another_length_than_the_index_are_refused(
    server: ModelServer, embedder: OpenAiEmbedder
) -> None:
    server.fail(Failure("wrong_dimensions"))
    with pytest.raises(Misconfigured) as caught:
        await embedder.embed(["one apple"])
    assert caught.value.code == "embedding_dimensions"
    assert caught.value.details == {"expected": 256, "found": 255}


async def test_e3_a_failure_in_a_later_batch_is_an_error_not_some_vectors(
    server: ModelServer, embedder: OpenAiEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(openai, "MAX_TEXTS", 1)
    server.fail(Failure(status=503), times=3, after=1)
    with pytest.raises(Unavailable):
        await embedder.embed(["one apple", "two pears"])
    assert len(server.received) == 4


ENTRY = {"object": "embedding", "index": 0, "embedding": [1.0]}
MALFORMED: dict[str, dict[str, object]] = {
    "no data": {},
    "data of another shape": {"data": {"0": [1.0]}},
    "an entry too few": {"data": [ENTRY]},
    "an entry too many": {"data": [ENTRY, {**ENTRY, "index": 1}, {**ENTRY, "index": 2}]},
    "an index twice": {"data": [ENTRY, ENTRY]},
    "an entry without index": {"data": [ENTRY, {"embedding": [1.0]}]},
    "an entry without vector": {"data": [ENTRY, {"index": 1}]},
    "base64 in place of numbers": {"data": [ENTRY, {"index": 1, "embedding": "AACAPw=="}]},
}


@pytest.mark.parametrize("answer", MALFORMED.values(), ids=MALFORMED)
def test_an_answer_without_exactly_one_vector_per_text_is_refused(answer: dict[str, object]) -> None:
    with pytest.raises(UpstreamFailed) as caught:
        from_wire(answer, count=2, dimensions=1)
    assert caught.value.code == "malformed_answer"
