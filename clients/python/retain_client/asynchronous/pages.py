"""Lists, page by page."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Generic, TypeVar

from retain_client.api.types import UNSET, Unset

Item = TypeVar("Item")


class AsyncPages(Generic[Item]):
    """A list. Iterating over it reads the next page when it is needed; nothing is read before."""

    def __init__(self, read: Callable[[str | Unset], Awaitable[tuple[Sequence[Item], str | None]]]) -> None:
        self._read = read

    async def __aiter__(self) -> AsyncIterator[Item]:
        """Yield every entry."""
        async for page in self.pages():
            for item in page:
                yield item

    async def pages(self) -> AsyncIterator[Sequence[Item]]:
        """Yield the entries of each page."""
        cursor: str | Unset = UNSET
        while True:
            items, following = await self._read(cursor)
            yield items
            if following is None:
                return
            cursor = following
