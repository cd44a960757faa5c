"""Reranking: a model that reads query and text together reorders the best candidates. Optional."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from typing import Protocol

from retain.errors import Unavailable, UpstreamFailed
from retain.limits.deadlines import RERANKING_MS
from retain.models.retry import Retries, with_retries
from retain.models.workers_ai import AiRunner

MAX_CHARACTERS = 2_000
"""Most characters of a text that are sent: bge-reranker-base reads 512 tokens of query and text together.

Source: https://developers.cloudflare.com/workers-ai/models/bge-reranker-base/
"""


class Reranker(Protocol):
    """Scores how well texts answer a query. Equal input gives equal output."""

    @property
    def model(self) -> str:
        """The model's name."""
        ...

    async def rerank(self, query: str, texts: Sequence[str]) -> list[float]:
        """Return one relevance per text, in order; greater is better.

        Raises: Unavailable when retrying may help; UpstreamFailed when it will not.
        """
        ...


async def rerank_in_time(reranker: Reranker, query: str, texts: Sequence[str]) -> list[float]:
    """Return what the reranker returns, with all its attempts within `RERANKING_MS`.

    Raises: as `Reranker.rerank`; Unavailable (code `upstream_timeout`) after that time.
    """
    try:
        async with asyncio.timeout(RERANKING_MS / 1000):
            return await reranker.rerank(query, texts)
    except TimeoutError as error:
        raise Unavailable("the reranker did not answer in time", code="upstream_timeout") from error


class WorkersAiReranker:
    """Reranks with a model of the bge-reranker family on Workers AI. Implements the `Reranker` port."""

    def __init__(self, run: AiRunner, retries: Retries, *, model: str) -> None:
        """Set the model (such as `@cf/baai/bge-reranker-base`)."""
        self._run = run
        self._retries = retries
        self._model = model

    @property
    def model(self) -> str:
        """Return the model's name."""
        return self._model

    async def rerank(self, query: str, texts: Sequence[str]) -> list[float]:
        """Return one relevance per text. The platform answers {"response": [{"id": index, "score": number}]}.

        Raises: as the port; UpstreamFailed (code `malformed_answer`) for an answer that leaves a text out.
        """
        if not texts:
            return []
        inputs = {"query": query[:MAX_CHARACTERS], "contexts": [{"text": text[:MAX_CHARACTERS]} for text in texts]}
        answer = await with_retries(lambda: self._run(self._model, inputs), self._retries)
        listed = answer.get("response")
        scores: dict[int, float] = {}
        for entry in listed if isinstance(listed, list) else []:
            if (
                isinstance(entry, dict)
                and isinstance(entry.get("id"), int)
                and isinstance(entry.get("score"), int | float)
            ):
                scores[entry["id"]] = float(entry["score"])
        found = [scores.get(place, math.nan) for place in range(len(texts))]
        if not all(math.isfinite(score) for score in found):
            raise UpstreamFailed("the reranker did not score every text", code="malformed_answer")
        return found
