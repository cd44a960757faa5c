"""A port whose call waits until a test lets it continue, so that something else happens meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest


class Held:
    """Holds the first call of a port's method that matches: `begun` is set then, and `go` lets it continue.

    matches: gets the call's arguments. after: hold it once it has happened, before its answer arrives.
    """

    def __init__(
        self,
        monkeypatch: pytest.MonkeyPatch,
        port: object,
        method: str,
        matches: Callable[..., bool] = lambda *_, **__: True,
        *,
        after: bool = False,
    ) -> None:
        self.begun, self.go = asyncio.Event(), asyncio.Event()
        self._call = getattr(port, method)
        self._matches = matches
        self._after = after
        monkeypatch.setattr(port, method, self._held)

    async def _held(self, *values: Any, **named: Any) -> Any:
        if self.begun.is_set() or not self._matches(*values, **named):
            return await self._call(*values, **named)
        answer = await self._call(*values, **named) if self._after else None
        self.begun.set()
        await self.go.wait()
        return answer if self._after else await self._call(*values, **named)
