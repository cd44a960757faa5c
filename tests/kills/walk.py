"""Kill workerd at each fault point of each scenario, start it again, repeat the work, and compare with no kill at all."""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import httpx

from tests.e2e.local_state import LocalState
from tests.e2e.puppet import MODEL, Puppet
from tests.e2e.servers import client_of, staged
from tests.kills.points import Points
from tests.kills.scenarios import SCENARIOS, Facts, Place
from tools.local_server import LocalServer, start, stop
from tools.paths import ROOT

_SETTLED_S = 60
_AS_OFTEN = 2
"""A point that is met again and again is killed at its first two times."""
Fault = tuple[str, str, int]
"""Scenario, point, and which time."""


@dataclass
class Table:
    """What a walk found. faults: how many there are. not_met: those that the work did not come by. wrong: what differed."""

    seed: int
    faults: int = 0
    kills: int = 0
    not_met: list[Fault] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    seconds: float = 0.0
    points: set[str] = field(default_factory=set)

    def __str__(self) -> str:
        lines = [
            f"fault points: seed {self.seed}, {self.kills} kills at {len(self.points)} points, of {self.faults} faults"
            f" ({len(self.not_met)} not met), in {self.seconds:.0f} s; lost, doubled or stuck: {len(self.wrong)}"
        ]
        return "\n".join([*lines, *(f"  {one}" for one in self.wrong)])


class Killed:
    """A deployment with fault points, which is killed and started again."""

    def __init__(self, config: Path, state: Path, points: Points) -> None:
        self._config = config
        self.state = LocalState(state)
        self.points = points
        self.server: LocalServer = start(state, config=config)
        self.api = client_of(self.server)

    def kill(self) -> None:
        """End the process group at once."""
        self.server.kill()
        self.api.close()
        self.points.arm()

    def restart(self) -> None:
        """Start again on what is left."""
        self.server = start(self.state.root, config=self._config)
        self.api = client_of(self.server)

    def place(self, tenant: str) -> Place:
        """Return a tenant as a scenario sees it."""
        return Place(self.api, self.state, tenant)


@contextmanager
def killable(state: Path) -> Iterator[Killed]:
    """Serve a deployment with fault points on a migrated state."""
    points = Points()
    try:
        with Puppet() as puppet:
            model = {"CHAT_PROVIDER": "openai", "CHAT_BASE_URL": puppet.base_url, "CHAT_MODEL": MODEL}
            with staged("kills", {**model, "CHAT_API_KEY": puppet.api_key}) as config:
                points.add_to(ROOT / f".build-kills-{os.getpid()}")
                served = Killed(config, state, points)
                try:
                    yield served
                finally:
                    served.api.close()
                    stop(served.server)
    finally:
        points.close()


class Walk:
    """Walks through the faults. served: where. seed: decides their order."""

    def __init__(self, served: Killed, seed: int) -> None:
        self._served = served
        self._random = Random(seed)
        self._numbers = itertools.count(1)
        self._expected: dict[str, Facts] = {}
        self.table = Table(seed)

    def faults(self, names: Sequence[str]) -> list[Fault]:
        """Do each scenario once without a kill; return every fault that it can meet, in the seed's order."""
        found: list[Fault] = []
        for name in names:
            place = self._prepared(name)
            self._served.points.arm()
            SCENARIOS[name].act(place)
            self._expected[name] = _settled(name, place, None)
            for point, times in self._served.points.seen.items():
                found += [(name, point, time) for time in range(1, min(times, _AS_OFTEN) + 1)]
        self.table.faults = len(found)
        self._random.shuffle(found)
        return found

    def until(self, deadline: float, names: Sequence[str] = tuple(SCENARIOS)) -> Table:
        """Kill at one fault after the other, until all were met or the time is over (`time.monotonic`)."""
        begun = time.monotonic()
        for fault in self.faults(names):
            if time.monotonic() > deadline:
                break
            self.kill_at(fault)
        self.table.seconds = time.monotonic() - begun
        return self.table

    def kill_at(self, fault: Fault) -> None:
        """Do the scenario, kill at the fault, repeat it, and compare."""
        name, point, time_ = fault
        place = self._prepared(name)
        points = self._served.points
        points.arm(point, time_)
        with ThreadPoolExecutor(1) as pool:
            work: Future[None] = pool.submit(SCENARIOS[name].act, place)
            while not points.met.wait(0.05) and not work.done():
                pass
            met = points.met.wait(5)
            if met:
                self._served.kill()
                work.exception()
        if met:
            self.table.kills += 1
            self.table.points.add(point)
            self._served.restart()
        else:
            self.table.not_met.append(fault)
            points.arm()
        self._check(name, f"{name}, killed at {point} ({time_})", self._served.place(place.tenant))

    def _check(self, name: str, named: str, place: Place) -> None:
        try:
            _repeated(name, place)
            facts = _settled(name, place, self._expected[name])
        except (AssertionError, httpx.HTTPError) as error:
            self.table.wrong.append(f"{named}: {str(error)[:400]}")
            return
        different = [key for key, value in self._expected[name].items() if facts.get(key) != value]
        self.table.wrong += [
            f"{named}: {key} is {str(facts.get(key))[:200]} instead of {str(self._expected[name][key])[:200]}"
            for key in different
        ]

    def _prepared(self, name: str) -> Place:
        self._served.points.arm()
        place = self._served.place(f"kill-{next(self._numbers)}")
        place.ask("PUT", "/admin/tenants/{tenant}")
        SCENARIOS[name].prepare(place)
        return place


def _repeated(name: str, place: Place) -> None:
    """Repeat the work until it is answered, as a client does. Raises: AssertionError when it is not, in time."""
    deadline = time.monotonic() + _SETTLED_S
    while True:
        try:
            SCENARIOS[name].act(place)
        except (AssertionError, httpx.HTTPError):
            if time.monotonic() > deadline:
                raise
            time.sleep(0.5)
        else:
            return


def _settled(name: str, place: Place, expected: Facts | None) -> Facts:
    """Return the facts once they are as expected, or no longer change. Raises: AssertionError when an invariant breaks."""
    deadline = time.monotonic() + (_SETTLED_S if expected is not None else 20)
    last: Facts = {}
    while time.monotonic() < deadline:
        facts = SCENARIOS[name].facts(place)
        if facts == expected or (expected is None and facts == last):
            return facts
        last = facts
        time.sleep(0.5)
    return last
