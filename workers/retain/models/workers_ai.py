"""Embeddings from Workers AI, through its binding."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Protocol

from retain.errors import Detail, Misconfigured, RetainError, Unavailable, UpstreamFailed
from retain.models.retry import Retries, with_retries
from retain.models.vectors import checked, embed_in_batches

MAX_TEXTS = 100
"""Most texts of one call. Source: https://developers.cloudflare.com/workers-ai/models/bge-base-en-v1.5/"""

MAX_CHARACTERS = 400_000
"""Most characters of one call: more than 100 texts of the 512 tokens that a bge model reads of each."""


class AiRunner(Protocol):
    """Runs a model of Workers AI: the binding's `run`."""

    async def __call__(self, model: str, inputs: Mapping[str, object]) -> Mapping[str, object]:
        """Return the model's answer, as plain Python values.

        Raises: Unavailable when retrying may help (out of capacity, timeout); UpstreamFailed when it will not.
        """
        ...


_CODE = re.compile(r"\b([35]0\d\d): ")
_PASSING = {"3007", "3008", "3040"}  # timeout, aborted, out of capacity
_NOT_ALLOWED = {"3023", "3041", "5016", "5018"}  # the account is blocked, or may not use the model
_USED_UP = "3036"


def platform_failure(text: str) -> RetainError:
    """Return the error for what the binding raised. text: as `InferenceUpstreamError: 3040: out of capacity`.

    What tells no code is taken as passing. Source: https://developers.cloudflare.com/workers-ai/platform/errors/
    """
    found = _CODE.search(text)
    if found is None or found[1] in _PASSING:
        return Unavailable("Workers AI failed; try again", code="workers_ai_unavailable")
    details: dict[str, Detail] = {"upstream_code": found[1]}
    if found[1] in _NOT_ALLOWED:
        return Misconfigured("the account may not use this model of Workers AI", code="model_credentials", **details)
    if found[1] == _USED_UP:
        return UpstreamFailed("the account has used up its allocation of Workers AI", code="model_quota", **details)
    return UpstreamFailed("Workers AI refused the request", code="model_refused", **details)


class WorkersAiEmbedder:
    """Embeds with a model of the bge family. Implements the `Embedder` port."""

    def __init__(self, run: AiRunner, retries: Retries, *, model: str, dimensions: int) -> None:
        """Name the model (as `@cf/baai/bge-base-en-v1.5`) and the length of its vectors."""
        self._run = run
        self._retries = retries
        self._model = model
        self._dimensions = dimensions

    @property
    def model(self) -> str:
        """Return the model's name."""
        return self._model

    @property
    def dimensions(self) -> int:
        """Return the length of every vector."""
        return self._dimensions

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """Return one vector a text, in order, L2-normalised; all zeros for a blank text.

        Of a text longer than 512 tokens only the beginning is read, as the platform does it.

        Raises: Unavailable when attempts are used up; UpstreamFailed (code `malformed_answer` among others);
            Misconfigured (code `embedding_dimensions`).
        """
        return await embed_in_batches(
            texts,
            self._embed,
            dimensions=self._dimensions,
            max_texts=MAX_TEXTS,
            max_characters=MAX_CHARACTERS,
        )

    async def _embed(self, batch: list[str]) -> list[list[float]]:
        answer = await with_retries(lambda: self._run(self._model, {"text": batch}), self._retries)
        data = answer.get("data")
        if not isinstance(data, list) or len(data) != len(batch):
            raise UpstreamFailed("Workers AI did not answer with one vector a text", code="malformed_answer")
        return [checked(values, self._dimensions) for values in data]
