"""Embeddings from any server that speaks OpenAI's wire format."""

from __future__ import annotations

from collections.abc import Sequence

from retain.errors import Misconfigured, UpstreamFailed
from retain.models.embedders.batches import checked, embed_in_batches
from retain.models.openai_endpoint import OpenAiEndpoint, WireObject

MAX_TEXTS = 100
"""Most texts in one request.

OpenAI takes 2,048, but the answer for 300 of them has more bytes than are read of one. Gemini's endpoint takes 100.
Source: https://platform.openai.com/docs/api-reference/embeddings/create
"""

MAX_CHARACTERS = 300_000
"""Most characters in one request. OpenAI's limit is 300,000 tokens, and a token has at least one character.

Source: https://platform.openai.com/docs/api-reference/embeddings/create
"""


class OpenAiEmbedder:
    """Embeds through `POST {base_url}/embeddings`. Implements the `Embedder` port."""

    def __init__(self, endpoint: OpenAiEndpoint, *, model: str, dimensions: int) -> None:
        """Set the model and the length of its vectors."""
        self._endpoint = endpoint
        self._model = model
        self._dimensions = dimensions
        self._shortens = False

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

        Raises: as `OpenAiEndpoint.post`; Misconfigured (code `embedding_dimensions`).
        """
        return await embed_in_batches(
            texts,
            self._embed,
            dimensions=self._dimensions,
            max_texts=MAX_TEXTS,
            max_characters=MAX_CHARACTERS,
        )

    async def _embed(self, batch: list[str]) -> list[list[float]]:
        """Return the vectors of a batch. A model whose vectors are too long is asked for shorter ones from then on.

        Most models refuse that, so it is not asked of one whose vectors fit.
        Source: https://platform.openai.com/docs/guides/embeddings#reducing-embedding-dimensions
        """
        try:
            return await self._asked(batch)
        except Misconfigured as error:
            found = error.details.get("found")
            if self._shortens or not isinstance(found, int) or found < self._dimensions:
                raise
            try:
                vectors = await self._asked(batch, shorten=True)
            except UpstreamFailed:
                raise error from None
            self._shortens = True
            return vectors

    async def _asked(self, batch: list[str], *, shorten: bool = False) -> list[list[float]]:
        payload: dict[str, object] = {"model": self._model, "input": batch, "encoding_format": "float"}
        if shorten or self._shortens:
            payload["dimensions"] = self._dimensions
        answer = await self._endpoint.post("/embeddings", payload)
        return from_wire(answer, count=len(batch), dimensions=self._dimensions)


def from_wire(answer: WireObject, *, count: int, dimensions: int) -> list[list[float]]:
    """Return the answer's vectors in the order of the texts, whatever the answer's order.

    Raises: UpstreamFailed (code `malformed_answer`) unless there is exactly one vector per text; as `checked`.
    """
    data = answer.get("data")
    entries = data if isinstance(data, list) else []
    by_index = {entry.get("index"): entry.get("embedding") for entry in entries if isinstance(entry, dict)}
    if len(entries) != count or set(by_index) != set(range(count)):
        raise UpstreamFailed("the model's server did not answer with one vector per text", code="malformed_answer")
    return [checked(by_index[index], dimensions) for index in range(count)]
