from __future__ import annotations

from collections.abc import Mapping

import pytest

from retain.errors import Unavailable, UpstreamFailed
from retain.models.reranking import MAX_CHARACTERS, WorkersAiReranker
from retain.models.retry import Retries


async def _no_wait(_: float) -> None:
    return None


class Runner:
    """Answers as the platform does: by how many of the query's words a text has, best first."""

    def __init__(self, *failures: Exception, answer: Mapping[str, object] | None = None) -> None:
        self.failures = list(failures)
        self.answer = answer
        self.asked: list[tuple[str, Mapping[str, object]]] = []

    async def __call__(self, model: str, inputs: Mapping[str, object]) -> Mapping[str, object]:
        self.asked.append((model, inputs))
        if self.failures:
            raise self.failures.pop(0)
        if self.answer is not None:
            return self.answer
        contexts = inputs["contexts"]
        assert isinstance(contexts, list)
        words = set(str(inputs["query"]).split())
        scored = [{"id": n, "score": len(words & set(c["text"].split()))} for n, c in enumerate(contexts)]
        return {"response": sorted(scored, key=lambda entry: -entry["score"])}


def reranker(runner: Runner) -> WorkersAiReranker:
    return WorkersAiReranker(runner, Retries(_no_wait, lambda: 0.5), model="@cf/baai/bge-reranker-base")


async def test_relevance_is_returned_in_the_order_of_the_texts() -> None:
    assert await reranker(Runner()).rerank("red vase", ["a lamp", "a red vase", "red"]) == [0.0, 2.0, 1.0]


async def test_no_texts_ask_nothing() -> None:
    runner = Runner()
    assert await reranker(runner).rerank("red vase", []) == []
    assert runner.asked == []


async def test_long_texts_are_cut_to_what_the_model_reads() -> None:
    runner = Runner()
    await reranker(runner).rerank("q", ["x" * (MAX_CHARACTERS + 1)])
    [(model, inputs)] = runner.asked
    assert model == "@cf/baai/bge-reranker-base"
    assert inputs["contexts"] == [{"text": "x" * MAX_CHARACTERS}]


async def test_a_transient_failure_is_retried() -> None:
    runner = Runner(Unavailable("busy"))
    assert await reranker(runner).rerank("red", ["red"]) == [1.0]
    assert len(runner.asked) == 2


@pytest.mark.parametrize(
    "answer",
    [{}, {"response": None}, {"response": [{"id": 1, "score": 1.0}]}, {"response": [{"id": 0, "score": "high"}]}],
    ids=["empty", "no list", "text left out", "score is text"],
)
async def test_an_answer_that_does_not_judge_every_text_is_an_error(answer: Mapping[str, object]) -> None:
    with pytest.raises(UpstreamFailed) as raised:
        await reranker(Runner(answer=answer)).rerank("red", ["red"])
    assert raised.value.code == "malformed_answer"
