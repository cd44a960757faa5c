"""Kill workerd at each fault point of each scenario, start it again, repeat the work, and compare with no kill at all.

Several works are under way at once, each of a tenant of its own. Each is held at a fault point of its own, and one kill
ends them all: a start of the server takes longer than a work.
"""

from __future__ import annotations

import itertools
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from random import Random

import httpx

from tests.kills.place import Place, Things
from tests.kills.points import Work
from tests.kills.scenarios import SCENARIOS
from tests.kills.served import Killed
from tests.kills.table import Fault, Table

WIDTH = 12
"""Works that one kill ends."""
SETTLED_S = 150
"""How long a work may take to be answered, or its outcome to be as it should be. Longer than a job's lease."""
_AT_FIRST_S = 20
"""The same, of a work that is not interrupted."""
_AFTERWARDS_S = 5
"""How long after its answer a work may still come by a point."""
_AS_OFTEN = 2
"""A point that is met again and again is killed at its first two times."""
_FAILURES = (AssertionError, httpx.HTTPError, LookupError, ValueError)


class Walk:
    """Walks through the faults.

    served: where. seed: decides their order. progress: gets a line after each kill. numbers: of the
    tenants that work, from 1 if they are not given. settled_s: how long an outcome is waited for.
    """

    def __init__(
        self,
        served: Killed,
        seed: int,
        progress: Callable[[str], None] = lambda _: None,
        numbers: Iterable[int] | None = None,
        settled_s: float = SETTLED_S,
    ) -> None:
        self._served = served
        self._random = Random(seed)
        self._progress = progress
        self._numbers = iter(numbers or itertools.count(1))
        self._expected: dict[str, Things] = {}
        self._settled_s = settled_s
        self.table = Table(seed)
        self.points: set[str] = set()
        self.tables: set[str] = set()

    def faults(self, names: Sequence[str]) -> list[Fault]:
        """Do each scenario once without a kill; return every fault that it can meet: each point once, then the others."""
        found: list[Fault] = []
        for name in names:
            work, place = self._work(name)
            SCENARIOS[name].act(place)
            self._expected[name] = _settled(name, place, None, _AT_FIRST_S)
            self.points |= {point.rpartition(":")[0] for point in work.seen}
            self.tables |= work.tables
            for point, times in work.seen.items():
                found += [(name, point, time) for time in range(1, min(times, _AS_OFTEN) + 1)]
        self._served.points.release()
        self.table.faults = len(found)
        self._random.shuffle(found)
        return every_point_first(found)

    def until(self, deadline: float, names: Sequence[str] = tuple(SCENARIOS)) -> Table:
        """Kill at the faults, some at a time, until all were met or the time is over (`time.monotonic`)."""
        begun, reported = time.monotonic(), 0
        for faults in batches(self.faults(names), WIDTH):
            if time.monotonic() > deadline:
                break
            self.kill_at(faults)
            self.table.seconds = time.monotonic() - begun
            self._progress("\n".join([self.table.summary, *self.table.wrong[reported:]]))
            reported = len(self.table.wrong)
        return self.table

    def kill_at(self, faults: Sequence[Fault]) -> None:
        """Do the works, kill each at its fault, repeat them, and compare."""
        begun = [self._work(name, point, time_) for name, point, time_ in faults]
        with ThreadPoolExecutor(2 * len(faults)) as pool:  # a work that is held occupies its thread
            acts = [
                pool.submit(SCENARIOS[fault[0]].act, place) for fault, (_, place) in zip(faults, begun, strict=True)
            ]
            met = list(pool.map(_held, [work for work, _ in begun], acts))
            self._served.kill()
            for act in acts:
                act.exception()
        self._served.restart({place.tenant for _, place in begun})
        self.table.starts += 1
        for fault, was_met in zip(faults, met, strict=True):
            if was_met:
                self.table.row(fault).killed += 1
            else:
                self.table.not_met.append(fault)
        places = [self._served.place_of(place) for _, place in begun]
        with ThreadPoolExecutor(len(faults)) as pool:
            repeated = list(pool.map(self._repeat, faults, places))
            self._served.catch_up()
            list(pool.map(self._compare, faults, places, repeated))

    def _repeat(self, fault: Fault, place: Place) -> bool:
        """Repeat a work until it is answered; return whether it was."""
        try:
            _repeated(fault[0], place, self._settled_s)
        except _FAILURES as error:
            self.table.stuck(fault, error)
            return False
        return True

    def _compare(self, fault: Fault, place: Place, repeated: bool) -> None:
        """Compare what a repeated work came to."""
        if not repeated:
            return
        expected = self._expected[fault[0]]
        try:
            self.table.compare(fault, _settled(fault[0], place, expected, self._settled_s), expected)
        except _FAILURES as error:
            self.table.stuck(fault, error)

    def _work(self, name: str, point: str | None = None, time: int = 1) -> tuple[Work, Place]:
        """Prepare a tenant for a scenario, and watch what it does from then on."""
        place = self._served.place(next(self._numbers))
        place.ask("PUT", "/admin/tenants/{tenant}")
        SCENARIOS[name].prepare(place)
        _quiet(place)
        return self._served.points.watch(SCENARIOS[name].work or place.tenant, point, time), place


def every_point_first(faults: Iterable[Fault]) -> list[Fault]:
    """Return the faults so that a walk which is cut short has been at as many points as it can."""
    before: Counter[str] = Counter()
    ranked = []
    for fault in faults:
        before[fault[1]] += 1
        ranked.append((before[fault[1]], fault))
    return [fault for _, fault in sorted(ranked, key=lambda one: one[0])]


def batches(faults: Iterable[Fault], width: int) -> Iterator[list[Fault]]:
    """Yield the faults, some at a time. Of those that share something, there is at most one in each."""
    waiting = list(faults)
    while waiting:
        batch: list[Fault] = []
        for fault in waiting:
            shared = SCENARIOS[fault[0]].shares
            if len(batch) < width and (
                shared is None or shared not in {SCENARIOS[name].shares for name, _, _ in batch}
            ):
                batch.append(fault)
        waiting = [fault for fault in waiting if fault not in batch]
        yield batch


def _held(work: Work, act: Future[None]) -> bool:
    """Return whether the work is held at its point, once it is, or has ended without coming by."""
    while not work.held.wait(0.02):
        if act.done():
            return work.held.wait(_AFTERWARDS_S)
    return True


def _quiet(place: Place) -> None:
    """Return once what was prepared is written: the instances write to D1 after their answers."""
    last: Sequence[object] = []
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        runs = place.rows("SELECT run_id, status FROM agent_runs WHERE tenant_id = ?")
        if not runs:
            return
        events = place.rows("SELECT COUNT(*) AS n FROM run_events WHERE tenant_id = ?")
        found = [runs, events, place.rows("SELECT COUNT(*) AS n FROM memory_records WHERE tenant_id = ?")]
        if found == last:
            return
        last = found
        time.sleep(0.5)


def _repeated(name: str, place: Place, within_s: float) -> None:
    """Repeat the work until it is answered, as a client does. Raises: as `act` when it is not answered in time."""
    deadline = time.monotonic() + within_s
    while True:
        try:
            SCENARIOS[name].act(place)
        except _FAILURES:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.5)
        else:
            return


def _settled(name: str, place: Place, expected: Things | None, within_s: float) -> Things:
    """Return what is found once it is as expected, or no longer changes. Raises: AssertionError when an invariant breaks."""
    deadline = time.monotonic() + within_s
    last: Things = {}
    while True:
        try:
            found = SCENARIOS[name].found(place)
        except _FAILURES:
            if time.monotonic() > deadline:
                raise
        else:
            if found == expected or (expected is None and found == last) or time.monotonic() > deadline:
                return found
            last = found
        time.sleep(0.5)
