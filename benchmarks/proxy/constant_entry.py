"""The smallest Worker in Python: it answers a constant."""

from __future__ import annotations

from typing import Any

import js  # noqa: TID251

from workers import WorkerEntrypoint  # noqa: TID251


class Default(WorkerEntrypoint):
    """The Worker's entrypoint."""

    async def fetch(self, _: Any) -> Any:
        """Answer the constant."""
        return js.Response.new("constant")
