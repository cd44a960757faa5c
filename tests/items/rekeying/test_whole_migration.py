"""The whole migration, with legacy data and concurrent traffic, in any order of steps, isolates and calls.

Isolates with the flags before and after a deployment run side by side. Each must always read the last acknowledged
value.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from retain.items.rekeying.reads import SETTLE_MS
from retain.items.tiers.sql_warm import SqlWarm
from tests.items.rekeying.deployment import Deployment, Isolate
from tests.memory.semantic.interleaving import Turns

Outcome = TypeVar("Outcome")
Flags = tuple[bool, bool]
PHASE_FLAGS: dict[int, Flags] = {1: (False, True), 2: (True, True), 3: (True, False)}

NAMES = st.sampled_from([("warm", "a"), ("warm", "b"), ("cold", "a"), ("cold", "b")])
ACTS = st.sampled_from(["put", "remove", "read"])
Item = tuple[str, str]


def _key(item: Item) -> str:
    return f"crm:acme:s1:cart:{item[1]}"


async def _read(isolate: Isolate, item: Item) -> str | None:
    if item[0] == "warm":
        return await isolate.warm().read(_key(item))
    return await isolate.cold().download_text(_key(item))


async def _put(isolate: Isolate, item: Item, value: str) -> None:
    await (
        isolate.warm().upsert(_key(item), value) if item[0] == "warm" else isolate.cold().upload_text(_key(item), value)
    )


async def _remove(isolate: Isolate, item: Item) -> None:
    await (isolate.warm().delete(_key(item)) if item[0] == "warm" else isolate.cold().delete(_key(item)))


class Migrating(RuleBasedStateMachine):
    """A deployment that moves through the phases and back, with traffic."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.deployment = Deployment()
        self.values: dict[Item, str | None] = {}
        self.phase = 1
        self.isolates = [self._isolate((False, True))]
        self.number = 0
        self.canonical: set[str] = set()

    def teardown(self) -> None:
        self._run(self.deployment.settled())
        self.deployment.close()
        self.loop.close()

    def _run(self, work: Awaitable[Outcome]) -> Outcome:
        return self.loop.run_until_complete(work)

    def _isolate(self, flags: Flags) -> Isolate:
        return self.deployment.isolate(*flags)

    def _migration(self) -> Any:
        return self.isolates[-1].migration()

    def _new_value(self) -> str:
        self.number += 1
        return f"value {self.number}"

    def _new_release(self) -> str:
        return self._new_value().replace(" ", "-")

    def _flags(self) -> Flags:
        """Return the most recently deployed flags."""
        flags = self.isolates[-1].flags
        return flags.write_canonical, flags.compat_read

    @initialize(held=st.dictionaries(NAMES, st.sampled_from(["acme:s1:cart:{}", "agent:s1:{}"]), min_size=2))
    def begin(self, held: dict[Item, str]) -> None:
        self._run(self._migration().advance(1))
        for item, template in held.items():
            value, key = self._new_value(), template.format(item[1])
            if item[0] == "warm":
                self._run(SqlWarm(self.deployment.sql, "acme", self.deployment.clock).upsert(key, value))
            else:
                self._run(self.deployment.objects.put(key, value.encode()))
            self.values[item] = value

    # Traffic.

    @rule(item=NAMES, act=ACTS, which=st.integers(0, 1))
    def one_request(self, item: Item, act: str, which: int) -> None:
        isolate = self.isolates[which % len(self.isolates)]
        if act == "put":
            self.values[item] = value = self._new_value()
            self._run(_put(isolate, item, value))
        elif act == "remove":
            self.values[item] = None
            self._run(_remove(isolate, item))
        assert self._run(_read(isolate, item)) == self.values.get(item)

    @rule(
        item=NAMES,
        acts=st.tuples(ACTS, ACTS, ACTS),
        which=st.tuples(*[st.integers(0, 1)] * 3),
        order=st.lists(st.integers(0, 2), max_size=24),
        backfill=st.booleans(),
    )
    def three_at_the_same_time(
        self, item: Item, acts: tuple[str, ...], which: tuple[int, ...], order: list[int], backfill: bool
    ) -> None:
        turns, before = Turns(), self.values.get(item)
        possible: set[str | None] = set()
        operations: list[Callable[[], Awaitable[object]]] = []
        for task, (act, number) in enumerate(zip(acts, which, strict=True)):
            live = self.isolates[number % len(self.isolates)]
            sql, objects = (turns.wrap(task, port) for port in (self.deployment.sql, self.deployment.objects))
            seen = self.deployment.isolate(live.flags.write_canonical, live.flags.compat_read, sql=sql, objects=objects)
            seen.reads = live.reads
            if task == 2 and backfill and self._may_backfill():
                operations.append(lambda seen=seen: seen.backfill().step())  # type: ignore[misc]
            elif act == "put":
                value = self._new_value()
                possible.add(value)
                operations.append(lambda seen=seen, value=value: _put(seen, item, value))  # type: ignore[misc]
            elif act == "remove":
                possible.add(None)
                operations.append(lambda seen=seen: _remove(seen, item))  # type: ignore[misc]
            else:
                operations.append(lambda seen=seen: _read(seen, item))  # type: ignore[misc]
        outcomes = self._run(turns.run(order, operations))
        assert [one for one in outcomes if isinstance(one, BaseException)] == []
        self.values[item] = found = self._run(_read(self.isolates[0], item))
        assert found in (possible or {before})

    # The migration, as in its runbook.

    def _may_backfill(self) -> bool:
        return self.phase == 2 and self._flags() == (True, True) and len(self.isolates) == 1 and self.settled

    settled = False

    @rule()
    def two_minutes_pass(self) -> None:
        """After that, no isolate with older flags is alive."""
        self.deployment.clock.advance(SETTLE_MS)
        self.isolates = self.isolates[-1:]
        self.settled = self.phase == 2

    @precondition(lambda self: self.phase < 3 and len(self.isolates) == 1)
    @rule()
    def deploy_the_flags_of_the_next_phase(self) -> None:
        flags = PHASE_FLAGS[min(self.phase + 1, 2)]
        if self._flags() != flags:
            self.isolates.append(self._isolate(flags))

    @precondition(lambda self: self.phase == 1 and self._flags() == (True, True))
    @rule()
    def begin_phase_2(self) -> None:
        self._run(self._migration().advance(2))
        self.phase, self.settled = 2, False

    @precondition(lambda self: self._may_backfill())
    @rule()
    def backfill_a_page(self) -> None:
        self._run(self.isolates[-1].backfill().step())

    @precondition(lambda self: self._may_backfill())
    @rule()
    def run_two_stable_cycles_and_begin_phase_3(self) -> None:
        isolate = self.isolates[-1]
        self._run(self.deployment.backfilled(isolate))
        self._run(isolate.reads.flush())
        self._run(self._migration().release(self._new_release()))  # closes the cycle that saw legacy hits
        for _ in range(2):
            self._run(self.deployment.stable_cycle(isolate, self._new_release()))
        self._run(self._migration().advance(3))
        self.phase = 3

    @precondition(lambda self: self.phase == 3 and len(self.isolates) == 1 and self._flags() == (True, True))
    @rule()
    def deploy_canonical_keys_alone(self) -> None:
        self.isolates.append(self._isolate((True, False)))

    @precondition(lambda self: self.phase == 3)
    @rule()
    def roll_back_to_compatible_reads(self) -> None:
        self._run(self._migration().roll_back(2))
        self.phase, self.settled = 2, False
        if self._flags() != (True, True):
            self.isolates = [self.isolates[-1], self._isolate((True, True))]

    @precondition(lambda self: self.phase == 2 and len(self.isolates) == 1)
    @rule()
    def roll_back_to_dual_read(self) -> None:
        self._run(self._migration().roll_back(1))
        self.phase, self.settled = 1, False
        self.deployment.clock.advance(SETTLE_MS)
        self.isolates.append(self._isolate((False, True)))

    @invariant()
    def every_isolate_reads_what_was_last_acknowledged(self) -> None:
        for isolate in self.isolates:
            for item, value in self.values.items():
                assert self._run(_read(isolate, item)) == value, (item, isolate.flags)

    @invariant()
    def no_canonical_key_was_lost(self) -> None:
        """In every phase a canonical row or object stays, even if only as the mark of a removed item."""
        rows = self._run(self.deployment.rows("SELECT key FROM memory_items WHERE namespace_key <> ''"))
        objects = self._run(self.deployment.objects.list("crm:")).keys
        now = {f"warm {row['key']}" for row in rows} | {f"cold {key}" for key in objects}
        assert now >= self.canonical
        self.canonical = now


Migrating.TestCase.settings = settings(max_examples=20, stateful_step_count=25, deadline=None)
TestMigrating = Migrating.TestCase
