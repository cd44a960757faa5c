"""No reader sees an older value after a newer one: a model of readers, writers, slow KV and crashes.

Operations are coroutines that the machine drives call by call, in any order, and may drop at any call: a crash. Every
read is checked against the values of D1, in their order.
"""

from __future__ import annotations

import os
from collections.abc import Coroutine, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from retain.errors import Unavailable
from retain.items.client import FoundItem, MemoryClient, Stored
from retain.items.entry import Held
from retain.items.rules import HotReads
from retain.items.tiers.sql_warm import SqlWarm
from retain.items.tiers.stores import ObjectsCold
from retain.ports import KeyPage
from tests.items.places import Central, Pause, Place
from tests.items.world import NAMESPACE, Tiered

CLIENTS = 3
EXAMPLES = int(os.environ.get("RETAIN_MODEL_EXAMPLES", "25"))
"""The number of examples per machine; more search deeper: RETAIN_MODEL_EXAMPLES=2000."""


class PausingObjects:
    """The objects of a deployment, with a pause before every call."""

    def __init__(self, world: Tiered) -> None:
        self._objects = world.objects

    async def get(self, key: str) -> bytes | None:
        await Pause()
        return await self._objects.get(key)

    async def put(self, key: str, value: bytes, *, content_type: str = "") -> None:
        await Pause()
        await self._objects.put(key, value, content_type=content_type)

    async def add(self, key: str, value: bytes, *, content_type: str = "") -> bool:
        await Pause()
        return await self._objects.add(key, value, content_type=content_type)

    async def delete(self, key: str) -> None:
        await Pause()
        await self._objects.delete(key)

    async def list(self, prefix: str, *, cursor: str | None = None, limit: int = 1000) -> KeyPage:
        await Pause()
        return await self._objects.list(prefix, cursor=cursor, limit=limit)


@dataclass
class Operation:
    """An operation under way. floor, since: the newest version seen by its client, and D1's newest, at its start."""

    client: int
    kind: str
    work: Coroutine[Any, Any, Any]
    floor: int
    since: int


@dataclass
class User:
    """A client. place: where it sees KV. floor: the newest version it completed; its session must not go below."""

    memory: MemoryClient
    place: Place
    floor: int = 0
    under_way: list[Operation] = field(default_factory=list)


class Consistency(RuleBasedStateMachine):
    """Three clients at two places, one item."""

    hot_reads: HotReads = "session"
    write_through = True

    def __init__(self) -> None:
        super().__init__()
        self.world = Tiered()
        self.central = Central(self.world.clock)
        self.places = [Place(self.central), Place(self.central)]
        self.disturbed = False
        self.history: list[tuple[int, str | None]] = [(0, None)]
        self.values: Iterator[int] = iter(range(1, 10_000))

    @initialize(data_type=st.sampled_from(["cart", "preferences", "order_history"]))
    def begin(self, data_type: str) -> None:
        self.data_type = data_type if self.write_through else "cart"
        self.users = [self._user(self.places[number % 2]) for number in range(CLIENTS)]

    def _user(self, place: Place) -> User:
        world = self.world
        builder = world.builder().with_hot(place).with_warm(SqlWarm(world.sql, "acme", world.clock))
        builder = builder.with_cold(ObjectsCold(PausingObjects(world)))
        return User(builder.with_rules(write_through=self.write_through, hot_reads=self.hot_reads).build(), place)

    @rule(client=st.integers(0, CLIENTS - 1), kind=st.sampled_from(["get", "get", "put", "delete"]))
    def start(self, client: int, kind: str) -> None:
        user = self.users[client]
        work: Coroutine[Any, Any, Any]
        if kind == "put":
            work = user.memory.put(self.data_type, "one", f"value {next(self.values)}")
        elif kind == "delete":
            work = user.memory.delete(self.data_type, "one")
        else:
            work = user.memory.find(self.data_type, "one")
        user.under_way.append(Operation(client, kind, work, user.floor, self.history[-1][0]))

    @rule(which=st.integers(0, 5), calls=st.integers(1, 12))
    @precondition(lambda self: any(user.under_way for user in self.users))
    def resume(self, which: int, calls: int) -> None:
        under_way = [(user, operation) for user in self.users for operation in user.under_way]
        user, operation = under_way[which % len(under_way)]
        for _ in range(calls):
            if not self._step(user, operation):
                break

    @rule(
        client=st.integers(0, CLIENTS - 1),
        kinds=st.lists(st.sampled_from(["get", "put", "delete"]), min_size=1, max_size=3),
    )
    def do(self, client: int, kinds: list[str]) -> None:
        """Run several operations one after another, with nothing between them."""
        for kind in kinds:
            self.start(client, kind)
            user = self.users[client]
            while self._step(user, operation := user.under_way[-1]):
                assert user.under_way[-1] is operation

    @rule(client=st.integers(0, CLIENTS - 1))
    def move(self, client: int) -> None:
        """The client's next requests arrive elsewhere, with its session."""
        user = self.users[client]
        if not user.under_way:
            self._continue_at(client, self.places[1 - self.places.index(user.place)])

    @rule(client=st.integers(0, CLIENTS - 1))
    def crash(self, client: int) -> None:
        """The client dies where it is; its session continues elsewhere."""
        user = self.users[client]
        self.disturbed = self.disturbed or bool(user.under_way)
        for operation in user.under_way:
            operation.work.close()
        self._continue_at(client, user.place)

    def _continue_at(self, client: int, place: Place) -> None:
        user, fresh = self.users[client], self._user(place)
        for key, seen in user.memory.session.known.items():
            fresh.memory.session.saw(key, seen)
        self.users[client] = User(fresh.memory, place, user.floor)

    @rule(place=st.integers(0, 1))
    def catch_up(self, place: int) -> None:
        self.places[place].catch_up()

    @rule(place=st.integers(0, 1))
    def fail_or_repair(self, place: int) -> None:
        self.places[place].down = not self.places[place].down
        self.disturbed = True

    @rule(ms=st.sampled_from([0, 1, 1000, 61_000, 901_000]))
    def wait(self, ms: int) -> None:
        self.world.clock.advance(ms)

    @rule()
    @precondition(lambda self: self.data_type == "preferences")
    def demote(self) -> None:
        """The daily work moves the item to the cold tier; no client may notice."""
        self.world.clock.advance(21 * 3_600_000)
        _run(self.world.demotion(lambda _item, _now: "demote").run())

    @invariant()
    def note_history(self) -> None:
        rows = self.world.rows()
        if rows and int(rows[0]["version"]) != self.history[-1][0]:
            row = rows[0]
            assert int(row["version"]) > self.history[-1][0]
            value = None if row["deleted"] else row["value"] or self._object(row["object_key"])
            self.history.append((int(row["version"]), value))

    @invariant()
    def no_stale_copy_stays(self) -> None:
        """When nothing is under way and nothing failed, a hot copy has D1's version."""
        if not self.disturbed and self.write_through and not any(user.under_way for user in getattr(self, "users", [])):
            for text, _ in self.central.values.values():
                version, value = self.history[-1]
                assert (Held.parse(text).version, Held.parse(text).value) == (version, value)

    def _object(self, object_key: str | None) -> str | None:
        content = None if object_key is None else _run(self.world.objects.get(object_key))
        return None if content is None else content.decode()

    def _step(self, user: User, operation: Operation) -> bool:
        """Drive an operation to its next call; return whether it is still under way."""
        try:
            operation.work.send(None)
        except StopIteration as end:
            self.note_history()
            user.under_way.remove(operation)
            self._check(user, operation, end.value)
            return False
        except Unavailable:
            user.under_way.remove(operation)
            return False
        self.note_history()
        return True

    def _check(self, user: User, operation: Operation, result: FoundItem | Stored | bool | None) -> None:
        if isinstance(result, Stored):
            assert result.version in dict(self.history)
            user.floor = max(user.floor, result.version)
        elif operation.kind == "delete":
            user.floor = max(user.floor, user.memory.session.of(f"{NAMESPACE}:{self.data_type}:one").version)
        elif isinstance(result, FoundItem):
            assert result.version >= operation.floor, "older than what the session saw before"
            if self.write_through:
                assert (result.version, result.value) in self.history
            if self.hot_reads == "checked":
                assert result.version >= operation.since, "older than what D1 held when the read began"
            user.floor = max(user.floor, result.version)
        elif self.write_through:
            newest = operation.since if self.hot_reads == "checked" else operation.floor
            ended = self.world.clock() >= newest + 86_400_000 and self.data_type == "cart"
            absent = self.history[-1][1] is None  # removing what never existed leaves no version in D1
            assert ended or absent or any(value is None and version >= newest for version, value in self.history)

    def teardown(self) -> None:
        for user in getattr(self, "users", []):
            for operation in user.under_way:
                operation.work.close()
        self.world.close()


class CheckedReads(Consistency):
    """Reads compare the hot version with D1's: no client sees an older value after any client saw a newer one."""

    hot_reads: HotReads = "checked"


class HotAlone(Consistency):
    """Only the hot tier has the value: each session sees versions grow, or an error that says to wait."""

    write_through = False


def _run(work: Coroutine[Any, Any, Any]) -> Any:
    """Drive a coroutine to completion without an event loop; return its result."""
    while True:
        try:
            work.send(None)
        except StopIteration as end:
            return end.value


@pytest.mark.parametrize("machine", [Consistency, CheckedReads, HotAlone])
def test_no_reader_sees_an_older_value_after_a_newer_one(machine: type[RuleBasedStateMachine]) -> None:
    run_state_machine_as_test(machine, settings=settings(max_examples=EXAMPLES, stateful_step_count=40, deadline=None))
