"""The port of attachments to the object store."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Protocol

from retain.ports import Objects


class StreamedObjects(Objects, Protocol):
    """An object store whose objects need not be in memory whole."""

    async def put_stream(
        self, key: str, pieces: AsyncIterator[bytes], *, size_bytes: int, content_type: str = "application/octet-stream"
    ) -> None:
        """Write an object of this size piece by piece, replacing any, without ever having all of it in memory.

        If the pieces end early, are more, or raise, nothing is written. Durable when it returns.
        Raises: what the pieces raise; InvalidInput (code `invalid_content`) when they are not `size_bytes`; Unavailable.
        """
        ...

    async def stream(self, key: str) -> AsyncIterator[bytes] | None:
        """Return the object's content piece by piece, to be read once, or None when there is no object."""
        ...
