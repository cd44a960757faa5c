"""A deployment on the host, with a namespace and a profile in it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.agent_memory.account import Account
from tests.shell.worker import serving


@pytest.fixture
async def account() -> AsyncIterator[Account]:
    """The account, whose namespace `acme` is empty."""
    async with serving() as worker:
        found = Account(worker)
        await found.result("POST", "", {"name": "acme"}, status=201)
        yield found
