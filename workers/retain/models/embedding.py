"""The embedding port: text in, vectors out."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Protocol

from retain.errors import Unavailable


class Embedder(Protocol):
    """Turns texts into vectors of one model.

    E1. Output is stable: for one text and one model the vector is the same in every call, whatever the text's position
        in the call and whatever else is embedded. Nothing is random.
    E2. Embedding has no side effect beyond caching: no argument is changed, no result is shared with a later result,
        and no call changes what another one returns.
    E3. Failure is an error that is raised: a result is never empty, partial or made up.

    Each text gets one vector, also when it is repeated, blank, or one of hundreds. Calls at the same time do not mix.

    Stability: stable. docs/contracts.md says what that promises.
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
        """Return one vector per text, in order, L2-normalised; all zeros where the model finds nothing in the text.

        Raises: Unavailable when retrying may help; UpstreamFailed when it will not; Misconfigured for refused
            credentials or a wrong number of dimensions.
        """
        ...


async def embed_in_time(embedder: Embedder, texts: Sequence[str], limit_ms: int) -> list[list[float]]:
    """Return what the embedder returns, with all its attempts within `limit_ms`.

    Raises: as `Embedder.embed`; Unavailable (code `upstream_timeout`) after that time.
    """
    try:
        async with asyncio.timeout(limit_ms / 1000):
            return await embedder.embed(texts)
    except TimeoutError as error:
        raise Unavailable("the embedding model did not answer in time; try again", code="upstream_timeout") from error
