"""Each limit one below, at and one above: what fits is there whole; what does not is refused, and changes nothing."""

from __future__ import annotations

import inspect

import pytest

from tests.limits.limit import TENANT, Bench, Limit, ServedLimit, refused
from tests.limits.table import PURE, SERVED


async def _tried(limit: Limit, size: int) -> None:
    found = limit.attempt(size)
    if inspect.isawaitable(found):
        await found


@pytest.mark.parametrize("limit", PURE, ids=lambda limit: limit.name)
async def test_a_limit_of_the_code(limit: Limit) -> None:
    for size in limit.accepted:
        await _tried(limit, size)
    with refused(limit.code):
        await _tried(limit, limit.beyond)


@pytest.mark.parametrize("limit", SERVED, ids=lambda limit: limit.name)
async def test_a_limit_of_requests(limit: ServedLimit) -> None:
    for size in limit.accepted:
        async with limit.serving() as worker:
            await worker.tenant(TENANT)
            bench = Bench(worker)
            await limit.prepare(bench)
            await limit.attempt(bench, size)
    async with limit.serving() as worker:
        await worker.tenant(TENANT)
        bench = Bench(worker)
        await limit.prepare(bench)
        await worker.settled()
        bench.begin()
        with refused(limit.code):
            await limit.attempt(bench, limit.beyond)
        await worker.settled()
        assert limit.writes or bench.rows() == bench.before
