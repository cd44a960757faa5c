from collections.abc import Mapping

import pytest

from retain.errors import Misconfigured, RetainError, Unavailable, UpstreamFailed
from retain.models.embedders.static import StaticEmbedder
from retain.models.embedders.workers_ai import BGE_M3, MAX_CHARACTERS_M3, WorkersAiEmbedder
from retain.models.embedding import Embedder
from retain.models.retry import Retries
from retain.models.workers_ai import platform_failure
from retain.testing import EmbedderSuite

MODEL = "@cf/baai/bge-base-en-v1.5"


class Platform:
    """A bge model's answers with real vectors, scaled so that they are not of length one."""

    def __init__(self, static: StaticEmbedder, *failures: Exception, answered: int = 0) -> None:
        self.static = static
        self.failures = list(failures)
        self.answered = answered
        self.calls: list[tuple[str, Mapping[str, object]]] = []

    async def __call__(self, model: str, inputs: Mapping[str, object]) -> Mapping[str, object]:
        self.calls.append((model, inputs))
        if self.failures and len(self.calls) > self.answered:
            raise self.failures.pop(0)
        texts = inputs["text"]
        assert isinstance(texts, list)
        assert 1 <= len(texts) <= 100
        assert all(texts)
        data = [[value * 3 for value in vector] for vector in await self.static.embed(texts)]
        return {"shape": [len(data), 256], "data": data, "pooling": "mean"}


@pytest.mark.parametrize("name", EmbedderSuite.names())
async def test_the_contract_of_embedders(static: StaticEmbedder, retries: Retries, name: str) -> None:
    async def opened() -> Embedder:
        return WorkersAiEmbedder(Platform(static), retries, model=MODEL, dimensions=256)

    async def failing() -> Embedder:
        down = Platform(static, *(Unavailable("out of capacity") for _ in range(3)))
        return WorkersAiEmbedder(down, retries, model=MODEL, dimensions=256)

    async def interrupted() -> Embedder:
        down = Platform(static, *(Unavailable("out of capacity") for _ in range(6)), answered=1)
        return WorkersAiEmbedder(down, retries, model=MODEL, dimensions=256)

    await EmbedderSuite.of(opened, failing, interrupted).cases()[name]()


async def test_at_most_a_hundred_texts_are_sent_in_one_call(static: StaticEmbedder, retries: Retries) -> None:
    platform = Platform(static)
    texts = [f"text number {number}" for number in range(250)]
    vectors = await WorkersAiEmbedder(platform, retries, model=MODEL, dimensions=256).embed(texts)
    assert vectors[170] == pytest.approx((await static.embed([texts[170]]))[0])
    assert platform.calls == [
        (MODEL, {"text": texts[:100]}),
        (MODEL, {"text": texts[100:200]}),
        (MODEL, {"text": texts[200:]}),
    ]


async def test_a_platform_out_of_capacity_is_asked_again(static: StaticEmbedder, retries: Retries) -> None:
    platform = Platform(static, Unavailable("out of capacity"), Unavailable("out of capacity"))
    vectors = await WorkersAiEmbedder(platform, retries, model=MODEL, dimensions=256).embed(["a"])
    assert (len(vectors), len(platform.calls)) == (1, 3)


async def test_e3_a_refusal_is_raised_at_once(static: StaticEmbedder, retries: Retries) -> None:
    platform = Platform(static, UpstreamFailed("no such model"))
    with pytest.raises(UpstreamFailed):
        await WorkersAiEmbedder(platform, retries, model=MODEL, dimensions=256).embed(["a"])
    assert len(platform.calls) == 1


async def test_vectors_of_another_length_than_the_index_are_refused(static: StaticEmbedder, retries: Retries) -> None:
    with pytest.raises(Misconfigured) as caught:
        await WorkersAiEmbedder(Platform(static), retries, model=MODEL, dimensions=768).embed(["a"])
    assert caught.value.code == "embedding_dimensions"


async def test_bge_m3_is_asked_and_answers_as_it_is_documented(retries: Retries) -> None:
    """Source: https://developers.cloudflare.com/workers-ai/models/bge-m3/ (input and output "Embedding")."""
    calls: list[Mapping[str, object]] = []

    async def documented(model: str, inputs: Mapping[str, object]) -> Mapping[str, object]:
        assert model == "@cf/baai/bge-m3"
        texts = inputs["text"]
        assert isinstance(texts, list)
        assert set(inputs) <= {"text", "truncate_inputs"}
        calls.append(inputs)
        return {"shape": [len(texts), 1024], "data": [[0.25] * 1024 for _ in texts], "pooling": "cls"}

    embedder = WorkersAiEmbedder(documented, retries, model=BGE_M3, dimensions=1024)
    vectors = await embedder.embed(["Wo wohnt Frau Petrova?", "森田さんはどこに住んでいますか。", " "])
    assert [len(vector) for vector in vectors] == [1024] * 3
    assert [sum(value * value for value in vector) for vector in vectors] == pytest.approx([1, 1, 0])
    assert calls == [{"text": ["Wo wohnt Frau Petrova?", "森田さんはどこに住んでいますか。"], "truncate_inputs": True}]


async def test_a_call_of_bge_m3_stays_within_its_context(retries: Retries) -> None:
    sizes: list[int] = []

    async def run(model: str, inputs: Mapping[str, object]) -> Mapping[str, object]:
        texts = inputs["text"]
        assert isinstance(texts, list)
        sizes.append(sum(map(len, texts)))
        return {"data": [[1.0]] * len(texts)}

    await WorkersAiEmbedder(run, retries, model=BGE_M3, dimensions=1).embed(["京" * 800] * 100)
    assert sum(sizes) == 80_000
    assert max(sizes) <= MAX_CHARACTERS_M3


MALFORMED: dict[str, dict[str, object]] = {
    "an asynchronous request's ticket": {"request_id": "1", "status": "queued", "model": MODEL},
    "too few vectors": {"shape": [1, 1], "data": [[1.0]]},
    "no numbers": {"shape": [2, 1], "data": [["a"], ["b"]]},
    "no vectors": {"shape": [2, 1], "data": [1.0, 2.0]},
}


@pytest.mark.parametrize("answer", MALFORMED.values(), ids=MALFORMED)
async def test_an_answer_without_one_vector_per_text_is_refused(answer: dict[str, object], retries: Retries) -> None:
    async def run(model: str, inputs: Mapping[str, object]) -> Mapping[str, object]:
        return answer

    with pytest.raises(UpstreamFailed) as caught:
        await WorkersAiEmbedder(run, retries, model=MODEL, dimensions=1).embed(["a", "b"])
    assert caught.value.code == "malformed_answer"


FAILURES: dict[str, tuple[str, type[RetainError], str]] = {
    "out of capacity": (
        "InferenceUpstreamError: 3040: Capacity temporarily exceeded",
        Unavailable,
        "workers_ai_unavailable",
    ),
    "a timeout": ("3007: Request timeout", Unavailable, "workers_ai_unavailable"),
    "what tells no code": ("Network connection lost.", Unavailable, "workers_ai_unavailable"),
    "a number that is no code": ("at line 5007:12", Unavailable, "workers_ai_unavailable"),
    "no such model": ("AiError: 5007: No such model @cf/foo or task", UpstreamFailed, "model_refused"),
    "too much": ("Error: 3006: Request is too large", UpstreamFailed, "model_refused"),
    "the free allocation": (
        "AiError: 3036: You have used up your daily free allocation",
        UpstreamFailed,
        "model_quota",
    ),
    "an agreement": ("AiError: 5016: User has not agreed to the terms", Misconfigured, "model_credentials"),
}


@pytest.mark.parametrize(("text", "kind", "code"), FAILURES.values(), ids=FAILURES)
def test_a_failure_of_the_platform_is_classed_by_its_number(text: str, kind: type[RetainError], code: str) -> None:
    failure = platform_failure(text)
    assert (type(failure), failure.code) == (kind, code)
    assert text not in f"{failure} {failure.details}"
