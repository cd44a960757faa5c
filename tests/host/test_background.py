"""TaskBackground: work continues, its failures are logged, and its completion can be awaited."""

from __future__ import annotations

import asyncio
import logging

import pytest

from retain.errors import Unavailable
from retain.host.background import TaskBackground


async def test_settled_waits_for_work_and_for_what_it_started_in_turn() -> None:
    background = TaskBackground()
    done: list[str] = []

    async def inner() -> None:
        await asyncio.sleep(0)
        done.append("inner")

    async def outer() -> None:
        await asyncio.sleep(0)
        background(inner())
        done.append("outer")

    background(outer())
    assert done == []
    await background.settled()
    assert done == ["outer", "inner"]


async def test_settled_returns_at_once_without_work() -> None:
    await TaskBackground().settled()


async def test_a_failure_is_logged_and_does_not_stop_other_work(caplog: pytest.LogCaptureFixture) -> None:
    background = TaskBackground()
    done: list[str] = []

    async def fail() -> None:
        raise Unavailable("the database is away")

    async def work() -> None:
        await asyncio.sleep(0)
        done.append("work")

    with caplog.at_level(logging.ERROR, logger="retain.host.background"):
        background(fail())
        background(work())
        await background.settled()
    assert done == ["work"]
    assert [record.message for record in caplog.records] == ["background work failed"]
    assert caplog.records[0].exc_info is not None
    assert isinstance(caplog.records[0].exc_info[1], Unavailable)


async def test_cancelled_work_is_not_a_failure(caplog: pytest.LogCaptureFixture) -> None:
    background = TaskBackground()

    async def cancelled() -> None:
        raise asyncio.CancelledError

    background(cancelled())
    await background.settled()
    assert caplog.records == []
