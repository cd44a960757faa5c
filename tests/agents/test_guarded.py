"""Whatever a function does ends its own call: each exception of Python's own, from each place, and a loop without an end."""

from __future__ import annotations

import asyncio

import pytest

from retain.agents.tools import guarded as module
from retain.agents.tools.guarded import guarded

ENDINGS: list[type[BaseException]] = [
    SystemExit,
    KeyboardInterrupt,
    GeneratorExit,
    asyncio.CancelledError,
    BaseException,
    RecursionError,
    MemoryError,
    StopIteration,
    StopAsyncIteration,
    BaseExceptionGroup,
]


def _of(kind: type[BaseException]) -> BaseException:
    return kind("x", [SystemExit()]) if kind is BaseExceptionGroup else kind()


@pytest.mark.parametrize("waits", [0, 1, 3])
@pytest.mark.parametrize("kind", ENDINGS)
async def test_what_a_function_raises_is_an_ordinary_exception(kind: type[BaseException], waits: int) -> None:
    async def raising() -> object:
        for _ in range(waits):
            await asyncio.sleep(0)
        raise _of(kind)

    with pytest.raises(Exception) as raised:  # noqa: PT011 -- a BaseException would pass this
        await guarded(raising)
    assert kind.__name__ in f"{raised.value!r} {raised.value.__cause__!r}"


async def test_a_cancelled_task_of_the_function_s_own_cancels_nothing_else() -> None:
    async def waiting() -> object:
        own: asyncio.Future[object] = asyncio.ensure_future(asyncio.sleep(60, "slept"))
        asyncio.get_running_loop().call_soon(own.cancel)
        return await own

    with pytest.raises(RuntimeError, match="CancelledError"):
        await guarded(waiting)


async def test_what_a_function_returns_and_awaits_is_passed_through() -> None:
    async def waiting() -> object:
        first, second = await asyncio.gather(asyncio.sleep(0, 1), asyncio.sleep(0.001, 2))
        async with asyncio.timeout(60):
            return first + second + await asyncio.to_thread(lambda: 3)

    assert await guarded(waiting) == 6


async def test_a_function_s_own_timeout_is_its_own() -> None:
    async def waiting() -> object:
        try:
            async with asyncio.timeout(0):
                await asyncio.sleep(60)
        except TimeoutError:
            return "late"
        return "never"

    assert await guarded(waiting) == "late"


async def test_a_cancellation_from_outside_reaches_the_function_and_its_caller() -> None:
    seen: list[str] = []

    async def waiting() -> object:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            seen.append("cancelled")
            raise
        return "never"

    task = asyncio.ensure_future(guarded(waiting))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert seen == ["cancelled"]


async def test_a_function_that_is_abandoned_is_closed() -> None:
    seen: list[str] = []

    async def waiting() -> object:
        try:
            await asyncio.sleep(60)
        finally:
            seen.append("closed")
        return "never"

    call = guarded(waiting)
    call.send(None)
    call.close()
    assert seen == ["closed"]


async def test_a_function_that_loops_without_an_end_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "DEADLINE_S", 0.01)

    async def looping() -> object:
        while True:
            await asyncio.sleep(0)

    with pytest.raises(TimeoutError):
        await guarded(looping)
