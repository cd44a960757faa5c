"""The embedding port: text in, vectors out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class Embedder(Protocol):
    """Turns texts into vectors of one model.

    Invariants: equal input gives equal output (E1); no side effect beyond caching (E2); failure is an error, never a
    vector (E3).
    """

    @property
    def model(self) -> str:
        """The model's name. Vectors of different models are never compared."""
        ...

    @property
    def dimensions(self) -> int:
        """Length of every vector."""
        ...

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """Return one vector a text, in order, L2-normalised; all zeros where the model finds nothing in the text.

        Raises: Unavailable when retrying may help; UpstreamFailed when it will not; Misconfigured for refused
            credentials or a wrong number of dimensions.
        """
        ...
