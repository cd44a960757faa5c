"""The recalls of many instances at once do not hold more of the isolate's memory than there is for them."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from retain.limits.room import RECALL_BYTES, RECALLING_BYTES
from retain.ports import Sql, VectorIndex
from tests.support.instances import Deployment

MOST = RECALLING_BYTES // RECALL_BYTES


class _Slow:
    """Counts the searches that are under way at once, each of which takes a while."""

    def __init__(self, index: VectorIndex) -> None:
        self._index = index
        self._searching = self.most = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._index, name)

    async def query(self, *asked: Any, **how: Any) -> Any:
        """Search."""
        self._searching += 1
        self.most = max(self.most, self._searching)
        await asyncio.sleep(0.05)
        self._searching -= 1
        return await self._index.query(*asked, **how)


class _Watched(Deployment):
    """Searches slowly."""

    def __init__(self) -> None:
        super().__init__()
        self.slow = _Slow(self.index)

    def shared(self) -> tuple[Sql, VectorIndex]:
        """Return the D1, and the slow index."""
        return self.sql, cast("VectorIndex", self.slow)


@pytest.mark.parametrize("instances", [MOST - 1, MOST, MOST + 1, 3 * MOST])
async def test_so_many_runs_recall_at_once(instances: int) -> None:
    deployment = _Watched()
    runs = [deployment.run("sdr", "What is the sky?", instance=f"i{number}") for number in range(instances)]
    reports = await asyncio.gather(*runs)
    assert {report["status"] for report in reports} == {"completed"}
    assert deployment.slow.most == min(instances, MOST)
    deployment.close()
