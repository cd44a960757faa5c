"""Scheduled work that the platform ends in the middle: the steps after the one that did not end have their turn."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from importlib import import_module
from typing import Any

import pytest

from retain.errors import Unavailable
from retain.memory.indexer import Indexed, Indexer
from retain.memory.records.record import Record
from retain.scheduled_steps import done
from tests.admin.test_brief_steps import STEPS
from tests.shell.test_cron import BRIEF, CATCH_UP, stored
from tests.shell.worker import Worker, bindings, root

scheduled: Any = import_module("assembly.scheduled")
NAMES = [*STEPS, "brief"]
MINUTE_MS = 60_000
PARKED = "SELECT concerns, code, attempts, state FROM error_ledger"


class Ended(BaseException):
    """The platform ends the invocation: nothing of it runs any more."""


class Planned:
    """Steps that only note that they were done. fatal: the one at which an invocation ends."""

    def __init__(self, worker: Worker, fatal: str | None) -> None:
        self.worker = worker
        self.fatal = fatal
        self.done: list[str] = []

    def step(self, name: str) -> Callable[[], Awaitable[object]]:
        async def work() -> object:
            if name == self.fatal:
                raise Ended
            self.done.append(name)
            return {}

        sql = root.assembly_of(self.worker.env).platform.sql
        return lambda: done(name, work(), sql, bindings.now_ms)

    async def brief(self, *_: object) -> object:
        return await self.step("brief")()

    async def cron(self, schedule: str, *, after_minutes: int) -> list[str]:
        """Let time pass and a schedule run, and return what it did."""
        self.worker.clock.advance(after_minutes * MINUTE_MS)
        del self.done[:]
        with suppress(Ended):
            await self.worker.cron(schedule)
        return sorted(self.done)


@pytest.fixture
async def planned(worker: Worker, monkeypatch: pytest.MonkeyPatch) -> Planned:
    planned = Planned(worker, None)
    names = [*scheduled.steps_of(root.assembly_of(worker.env))]
    assert {*names, "brief"} == {*NAMES}
    monkeypatch.setattr(scheduled, "steps_of", lambda _: {name: planned.step(name) for name in names})
    monkeypatch.setattr(scheduled, "_brief", planned.brief)
    return planned


@pytest.mark.parametrize("fatal", NAMES)
async def test_a_step_that_ends_each_invocation_keeps_no_other_from_its_turn(planned: Planned, fatal: str) -> None:
    planned.fatal = fatal
    done = await planned.cron(BRIEF, after_minutes=0)
    assert await planned.cron(CATCH_UP, after_minutes=5) == [], "the brief may still be under way"
    for minutes in (15, 5, 20):
        done += await planned.cron(CATCH_UP, after_minutes=minutes)
    assert sorted(done) == sorted({*NAMES} - {fatal}), "each once"
    [parked] = await planned.worker.rows(PARKED)
    assert dict(parked) == {"concerns": fatal, "code": "step_interrupted", "attempts": 1, "state": "parked"}


async def test_a_step_that_did_not_end_is_begun_every_twenty_minutes_and_settled_once_it_ends(planned: Planned) -> None:
    planned.fatal = "mutations"
    await planned.cron(BRIEF, after_minutes=0)
    begun = []
    for minute in range(5, 105, 5):
        await planned.cron(CATCH_UP, after_minutes=5)
        [row] = await planned.worker.rows("SELECT begun_at_ms FROM steps_left WHERE step = 'mutations'")
        begun += [minute] if row["begun_at_ms"] == planned.worker.clock() else []
    assert begun == [20, 40, 60, 80, 100]
    planned.fatal = None
    assert await planned.cron(CATCH_UP, after_minutes=20) == ["mutations"]
    [settled] = await planned.worker.rows(PARKED)
    assert dict(settled) == {"concerns": "mutations", "code": "step_interrupted", "attempts": 5, "state": "replayed"}
    assert await planned.worker.rows("SELECT * FROM steps_left") == []


async def test_a_step_to_which_an_ended_brief_did_not_come_is_not_parked_although_it_had_left_something(
    planned: Planned,
) -> None:
    await planned.worker.rows("INSERT INTO steps_left (step, since_ms) SELECT 'backups', ?", planned.worker.clock())
    planned.fatal = NAMES[0]
    assert await planned.cron(BRIEF, after_minutes=3) == []
    await planned.cron(CATCH_UP, after_minutes=20)
    assert "backups" in planned.done or "backups" in await planned.cron(CATCH_UP, after_minutes=5)
    assert await planned.worker.rows(PARKED) == []


async def test_what_the_brief_does_is_not_done_by_the_work_of_the_same_minute(planned: Planned) -> None:
    seen: list[list[str]] = []
    ordinary = planned.step

    def step(name: str) -> Callable[[], Awaitable[object]]:
        async def overlapping() -> object:
            if name == "pruned":
                await planned.worker.cron(CATCH_UP)
                seen.append([*planned.done])
            return await ordinary(name)()

        return overlapping

    planned.step = step  # type: ignore[method-assign]
    done = await planned.cron(BRIEF, after_minutes=0)
    assert done == sorted(NAMES)
    assert "pruned" not in seen[0]
    assert await planned.worker.rows("SELECT * FROM steps_left") == []


async def test_settling_that_fails_keeps_no_step_from_its_turn(
    planned: Planned, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def faulty(*_: object) -> None:
        raise ValueError("a fault of Retain")

    planned.fatal = "consolidation"
    await planned.cron(BRIEF, after_minutes=0)
    planned.fatal = None
    monkeypatch.setattr("retain.memory.indexer.Indexer.reconcile", faulty)
    with pytest.raises(ValueError, match="a fault"):
        await planned.cron(CATCH_UP, after_minutes=20)
    assert sorted(planned.done) == sorted(NAMES)


async def test_a_memory_that_cannot_be_settled_keeps_no_other_debt_from_its_turn(
    worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    await worker.tenant()
    worker.vectors.down = True
    first, second = await stored(worker, "Ann prefers e-mail.", "Bob prefers a call.")
    worker.vectors.down = False
    ordinary = Indexer.read

    async def faulty(indexer: Indexer, records: Sequence[Record]) -> list[Indexed]:
        if any(record.id == first for record in records):
            raise ValueError("a fault of Retain")
        return await ordinary(indexer, records)

    monkeypatch.setattr(Indexer, "read", faulty)
    worker.clock.advance(5 * MINUTE_MS)
    await worker.cron(CATCH_UP)
    assert await worker.vectors.store.get_by_ids([f"{second}#0"])
    [owed] = await worker.rows("SELECT record_id, attempts, last_error FROM memory_outbox WHERE state = 'owed'")
    assert dict(owed) == {"record_id": first, "attempts": 1, "last_error": "internal"}


async def test_a_step_that_fails_now_and_then_is_repeated_five_minutes_after_each_first_failure(
    planned: Planned, worker: Worker
) -> None:
    sql = root.assembly_of(worker.env).platform.sql

    async def failing() -> None:
        raise Unavailable("down")

    await worker.cron(CATCH_UP)
    for _ in range(8):  # each week it fails once, and succeeds when it is repeated
        await done("pruned", failing(), sql, bindings.now_ms)
        assert await planned.cron(CATCH_UP, after_minutes=4) == []
        assert await planned.cron(CATCH_UP, after_minutes=1) == ["pruned"]
        worker.clock.advance(7 * 24 * 60 * MINUTE_MS)
    await done("pruned", failing(), sql, bindings.now_ms)
    [parked] = await worker.rows(PARKED)
    assert (parked["attempts"], parked["state"]) == (1, "parked")
