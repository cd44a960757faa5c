"""Room in memory: requests that need much wait for each other, in order, and nothing that went away blocks the others."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from retain.errors import Unavailable
from retain.host.clock import ManualClock
from retain.limits import room as module
from retain.limits.room import LEASE_MS, MISSED_MS, SMALL_BYTES, Answered, Memory, Room, arriving

MIB = 1_048_576
KIND = ("/list", "acme")


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(1_700_000_000_000)


@pytest.fixture
def room(clock: ManualClock) -> Room:
    return Room(4 * MIB, clock, _looking(clock))


def _looking(clock: ManualClock) -> Callable[[float], Awaitable[None]]:
    async def sleep(seconds: float) -> None:
        clock.advance(round(seconds * 1000))
        await asyncio.sleep(0)

    return sleep


async def _taken(room: Room, size: int) -> int:
    number = await room.take(size)
    assert number is not None
    return number


@pytest.mark.parametrize("size", [4 * MIB - 1, 4 * MIB, 4 * MIB + 1])
async def test_what_is_larger_than_the_room_has_all_of_it(room: Room, size: int) -> None:
    await _taken(room, size)
    with pytest.raises(Unavailable):
        await room.take(MIB)


@pytest.mark.parametrize(
    ("size", "needs_room"), [(SMALL_BYTES - 1, False), (SMALL_BYTES, False), (SMALL_BYTES + 1, True)]
)
async def test_what_is_small_needs_no_room(room: Room, size: int, needs_room: bool) -> None:
    await _taken(room, 4 * MIB)
    if needs_room:
        with pytest.raises(Unavailable) as refused:
            await room.take(size)
        assert (refused.value.code, refused.value.details["retry_after_s"]) == ("no_memory_left", 2)
    else:
        assert await room.take(size) is None


async def test_requests_wait_in_order_until_there_is_room(room: Room) -> None:
    first = await _taken(room, 3 * MIB)
    order: list[str] = []

    async def wait(name: str, size: int) -> None:
        await room.take(size)
        order.append(name)

    large = asyncio.create_task(wait("large", 3 * MIB))
    await asyncio.sleep(0)
    fitting = asyncio.create_task(wait("fitting", MIB))
    for _ in range(5):
        await asyncio.sleep(0)
    assert order == [], "what would fit waits for what came before"
    room.release(first)
    await asyncio.gather(large, fitting)
    assert order == ["large", "fitting"]


async def test_what_a_lost_request_held_is_free_after_its_lease(room: Room, clock: ManualClock) -> None:
    await _taken(room, 4 * MIB)
    clock.advance(LEASE_MS - 1)
    assert not room._fits(MIB)
    clock.advance(1)
    assert room._fits(4 * MIB)


async def test_a_lost_request_does_not_hold_up_those_after_it(clock: ManualClock) -> None:
    never = asyncio.Event()

    async def lost(_: float) -> None:
        await never.wait()

    room = Room(4 * MIB, clock, lost)
    held = await _taken(room, 4 * MIB)
    gone = asyncio.create_task(room.take(MIB))
    await asyncio.sleep(0)
    room.release(held)
    vars(room)["_sleep"] = _looking(clock)
    assert await asyncio.wait_for(_taken(room, MIB), 5)
    assert clock() - 1_700_000_000_000 >= MISSED_MS
    gone.cancel()


async def test_a_lease_releases_everything_also_after_an_error(clock: ManualClock) -> None:
    memory = Memory(clock)

    async def fail() -> None:
        with memory.leased() as lease:
            await lease.take(4 * MIB, KIND, 0)
            await arriving(10 * MIB)
            raise RuntimeError

    with pytest.raises(RuntimeError):
        await fail()
    assert memory.requests._fits(module.REQUEST_BYTES)
    assert memory.arriving._fits(module.ARRIVING_BYTES)


async def test_a_body_that_arrives_keeps_no_room_from_requests_without_one(clock: ManualClock) -> None:
    memory = Memory(clock)
    with memory.leased() as sender, memory.leased() as reader:
        await sender.take_body(4 * MIB)
        assert not memory.bodies._fits(SMALL_BYTES + 1)
        await asyncio.wait_for(reader.take(0, KIND, module.REQUEST_BYTES), 1)
        assert not memory.requests._fits(1)
        sender.arrived()
        assert memory.bodies._fits(module.BODY_BYTES)
        assert not memory.requests._fits(1)
    assert memory.requests._fits(module.REQUEST_BYTES)


async def test_a_request_that_holds_an_answer_does_not_wait_for_another(clock: ManualClock) -> None:
    memory = Memory(clock)
    with memory.leased():
        await arriving(10 * MIB)
        await asyncio.wait_for(arriving(10 * MIB), 1)


async def test_work_in_the_background_takes_nothing_once_the_request_has_ended(clock: ManualClock) -> None:
    memory = Memory(clock)
    ended = asyncio.Event()

    async def work() -> None:
        await ended.wait()
        await arriving(10 * MIB)

    with memory.leased():
        background = asyncio.create_task(work())
        await asyncio.sleep(0)
    ended.set()
    await background
    assert memory.arriving._fits(module.ARRIVING_BYTES)


async def test_outside_a_request_nothing_is_taken() -> None:
    await arriving(100 * MIB)


def test_answers_that_are_small_are_soon_expected_to_be() -> None:
    answered = Answered()
    assert answered.expected(KIND, MIB) == MIB
    answered.note(KIND, 1_000, MIB)
    assert answered.expected(KIND, MIB) == 2_000
    answered.note(KIND, 400_000, MIB)
    assert answered.expected(KIND, MIB) == 800_000
    answered.note(KIND, 1_000, MIB)
    assert answered.expected(KIND, MIB) == 400_000
    assert answered.expected(("/list", "other"), MIB) == MIB


def test_what_is_remembered_of_answers_is_bounded() -> None:
    answered = Answered()
    for number in range(module.REMEMBERED + 1):
        answered.note(("/list", f"t{number}"), 1_000, MIB)
    assert answered.expected(("/list", "t0"), MIB) == MIB
    assert answered.expected(("/list", "t1"), MIB) == 2_000
