"""Embeddings from Workers AI, through its binding."""

from __future__ import annotations

from collections.abc import Sequence

from retain.errors import UpstreamFailed
from retain.models.embedders.batches import checked, embed_in_batches
from retain.models.retry import Retries, with_retries
from retain.models.workers_ai import AiRunner

MAX_TEXTS = 100
"""Most texts in one call. Source: https://developers.cloudflare.com/workers-ai/models/bge-base-en-v1.5/"""

MAX_CHARACTERS = 400_000
"""Most characters in one call: more than 100 texts of 512 tokens, which is all that a bge model reads of a text."""

BGE_M3 = "@cf/baai/bge-m3"
"""The model for many languages: 1,024 dimensions. It refuses texts that are too long, unless `truncate_inputs` is set."""
MAX_CHARACTERS_M3 = 60_000
"""Most characters in one call of `BGE_M3`: its context has 60,000 tokens, and a token has about a character at least.

Source: https://developers.cloudflare.com/workers-ai/models/bge-m3/
"""


class WorkersAiEmbedder:
    """Embeds with a model of the bge family. Implements the `Embedder` port."""

    def __init__(self, run: AiRunner, retries: Retries, *, model: str, dimensions: int) -> None:
        """Set the model (such as `@cf/baai/bge-base-en-v1.5`) and the length of its vectors."""
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
        """Return one vector per text, in order, L2-normalised; all zeros for a blank text.

        The platform reads only the first 512 tokens of a text; `BGE_M3` reads more.

        Raises: Unavailable when attempts are used up; UpstreamFailed (code `malformed_answer` among others);
            Misconfigured (code `embedding_dimensions`).
        """
        return await embed_in_batches(
            texts,
            self._embed,
            dimensions=self._dimensions,
            max_texts=MAX_TEXTS,
            max_characters=MAX_CHARACTERS_M3 if self._model == BGE_M3 else MAX_CHARACTERS,
        )

    async def _embed(self, batch: list[str]) -> list[list[float]]:
        inputs: dict[str, object] = {"text": batch}
        if self._model == BGE_M3:
            inputs["truncate_inputs"] = True
        answer = await with_retries(lambda: self._run(self._model, inputs), self._retries)
        data = answer.get("data")
        if not isinstance(data, list) or len(data) != len(batch):
            raise UpstreamFailed("Workers AI did not answer with one vector per text", code="malformed_answer")
        return [checked(values, self._dimensions) for values in data]
