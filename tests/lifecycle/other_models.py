"""Embedding models other than the shipped one, to test what must detect a change of model."""

from __future__ import annotations

from collections.abc import Sequence

from retain.errors import UpstreamFailed
from tests.support.instances import shipped_embedder


class OtherModel:
    """The shipped model under another name, with other numbers. refuses: it cannot embed texts with this word."""

    def __init__(self, model: str = "another-model", refuses: str | None = None) -> None:
        self.model = model
        self.dimensions = shipped_embedder().dimensions
        self.refuses = refuses
        self.asked = 0

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """Return the shipped model's vectors reversed."""
        self.asked += len(texts)
        if self.refuses is not None and any(self.refuses in text for text in texts):
            raise UpstreamFailed("the model refused a text")
        return [vector[::-1] for vector in await shipped_embedder().embed(texts)]
