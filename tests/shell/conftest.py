"""A Worker for each test that asks for one."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.shell.worker import Worker, serving


@pytest.fixture
async def worker() -> AsyncIterator[Worker]:
    async with serving() as served:
        yield served
