"""Room in the memory of the isolate: what the requests under way may hold together.

An isolate has 128 MB, and many requests. What one of them needs is bounded by its route; what all of them need is bounded
here: a request that needs much waits until there is room, in order, and is refused after a while.

A waiting request looks again by a timer of its own, because no request may resume another one's work on the platform. One
whose caller went away may never run again, so what it held is free after `LEASE_MS`, and its position after `MISSED_MS`.

Source: https://developers.cloudflare.com/workers/platform/limits/#memory
"""

from __future__ import annotations

import asyncio
import itertools
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from typing import Final

from retain.errors import Unavailable
from retain.ports import Clock

REQUEST_BYTES: Final = 3 * 1_048_576
"""What bodies and answers of requests may have together. Parsed and written again, they take several times as much."""
BODY_BYTES: Final = 2 * 1_048_576
"""What bodies may have together while they arrive, before they need room as a request does: so a sender that is slow, or
stops, keeps nobody waiting but those who send large bodies themselves."""
ARRIVING_BYTES: Final = 10 * 1_048_576
"""What answers of upstreams that are passed on may have together: the largest that a tool may permit."""
RECALLING_BYTES: Final = 8 * 1_048_576
"""What the recalls of runs may have together."""
RECALL_BYTES: Final = 1_048_576
"""What one of them has: the records that it compares, each of up to 64 KiB."""
SMALL_BYTES: Final = 32 * 1024
"""What needs no room: a hundred of these are of no account, and they do not wait for larger ones."""
WAIT_S: Final = 20.0
"""How long a request waits for room."""
LOOK_S: Final = 0.02
"""How often a waiting request looks."""
MISSED_MS: Final = 2_000
"""A waiting request that has not looked for so long is gone."""
LEASE_MS: Final = 120_000
"""How long room is held at most."""
REMEMBERED: Final = 1_000
"""Of how many kinds of requests it is remembered how large their answers were."""


class Room:
    """Room for so many bytes. sleep: waits for seconds."""

    def __init__(
        self, capacity_bytes: int, clock: Clock, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    ) -> None:
        self._capacity = capacity_bytes
        self._clock = clock
        self._sleep = sleep
        self._numbers = itertools.count()
        self._held: dict[int, tuple[int, int]] = {}
        self._waiting: OrderedDict[int, int] = OrderedDict()

    async def take(self, size_bytes: int) -> int | None:
        """Take room, and return what to release: None for a small size, which needs none.

        More than there is counts as all of it. Raises: Unavailable (code `no_memory_left`) when there is none in time.
        """
        if size_bytes <= SMALL_BYTES:
            return None
        number, size = next(self._numbers), min(size_bytes, self._capacity)
        if self._waiting or not self._fits(size):
            await self._wait(number, size)
        self._held[number] = (size, self._clock() + LEASE_MS)
        return number

    def release(self, number: int) -> None:
        """Release what was taken. Idempotent."""
        self._held.pop(number, None)

    @asynccontextmanager
    async def held(self, size_bytes: int) -> AsyncIterator[None]:
        """Hold room until the end of the block. Raises: as `take`."""
        number = await self.take(size_bytes)
        try:
            yield
        finally:
            if number is not None:
                self.release(number)

    async def _wait(self, number: int, size: int) -> None:
        try:
            for _ in range(round(WAIT_S / LOOK_S)):
                self._waiting[number] = now = self._clock()
                while now - self._waiting[first := next(iter(self._waiting))] > MISSED_MS:
                    del self._waiting[first]
                if first == number and self._fits(size):
                    return
                await self._sleep(LOOK_S)
        finally:
            self._waiting.pop(number, None)
        raise Unavailable(
            "too many large requests are under way; try again in a few seconds", code="no_memory_left", retry_after_s=2
        )

    def _fits(self, size: int) -> bool:
        now = self._clock()
        for number in [number for number, (_, until_ms) in self._held.items() if until_ms <= now]:
            del self._held[number]
        return sum(held for held, _ in self._held.values()) + size <= self._capacity


class Answered:
    """How large the answers of one kind of requests were, so that small ones need not wait as large ones do."""

    def __init__(self) -> None:
        self._expected: OrderedDict[tuple[str, str], int] = OrderedDict()

    def expected(self, kind: tuple[str, str], most_bytes: int) -> int:
        """Return what an answer will probably take. most_bytes: what is assumed before there was one."""
        return self._expected.get(kind, most_bytes)

    def note(self, kind: tuple[str, str], size_bytes: int, most_bytes: int) -> None:
        """Note an answer. A larger one counts at once, twice its size; after smaller ones the expectation halves."""
        before = self._expected.pop(kind, 0)
        self._expected[kind] = min(most_bytes, max(2 * size_bytes, before // 2))
        if len(self._expected) > REMEMBERED:
            self._expected.popitem(last=False)


class Memory:
    """The memory of one isolate. requests: room for bodies and answers. bodies: for bodies while they arrive. arriving: for
    answers of upstreams."""

    def __init__(self, clock: Clock) -> None:
        self.bodies = Room(BODY_BYTES, clock)
        self.requests = Room(REQUEST_BYTES, clock)
        self.arriving = Room(ARRIVING_BYTES, clock)
        self.answered = Answered()

    @contextmanager
    def leased(self) -> Iterator[Lease]:
        """Return what a request takes, which is released at the end of the block."""
        lease = Lease(self)
        token = _lease.set(lease)
        try:
            yield lease
        finally:
            _lease.reset(token)
            lease.end()


class Lease:
    """What one request takes of the isolate's memory."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._taken: list[tuple[Room, int]] = []
        self._ended = False

    async def take(self, body_bytes: int, kind: tuple[str, str], most_bytes: int) -> None:
        """Take room for a body, and for an answer of this kind, at most so many bytes. Raises: as `Room.take`."""
        expected = self._memory.answered.expected(kind, most_bytes) if most_bytes else 0
        await self._take(self._memory.requests, body_bytes + expected)

    async def take_body(self, size_bytes: int) -> None:
        """Take room for a body that arrives. Raises: as `Room.take`."""
        await self._take(self._memory.bodies, size_bytes)

    def arrived(self) -> None:
        """Release what the body took while it arrived."""
        self._release(self._memory.bodies)

    def answers(self, size_bytes: int, kind: tuple[str, str], most_bytes: int) -> None:
        """Note how large the answer is."""
        if most_bytes:
            self._memory.answered.note(kind, size_bytes, most_bytes)

    async def take_arriving(self, size_bytes: int) -> None:
        """Take room for an answer that arrives, unless some is held: those that wait for it would never get theirs.

        What continues in the background after the request takes none: nobody would release it.
        """
        if not self._ended and all(room is not self._memory.arriving for room, _ in self._taken):
            await self._take(self._memory.arriving, size_bytes)

    def end(self) -> None:
        """Release everything."""
        self._ended = True
        self._release(*{room for room, _ in self._taken})

    def _release(self, *rooms: Room) -> None:
        for room, number in self._taken:
            if room in rooms:
                room.release(number)
        self._taken = [(room, number) for room, number in self._taken if room not in rooms]

    async def _take(self, room: Room, size_bytes: int) -> None:
        number = await room.take(size_bytes)
        if number is not None:
            self._taken.append((room, number))


_lease: ContextVar[Lease | None] = ContextVar("lease_of_memory", default=None)


async def arriving(size_bytes: int) -> None:
    """Take room for an answer that arrives, until the request ends; nothing outside a request. Raises: as `Room.take`."""
    lease = _lease.get()
    if lease is not None:
        await lease.take_arriving(size_bytes)
