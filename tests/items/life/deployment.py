"""What the machine works on, how its operations fail and die, and what must hold after every step."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from hypothesis import strategies as st
from hypothesis.stateful import invariant, rule

from retain.errors import Unavailable, UpstreamFailed
from retain.host.clock import ManualClock
from retain.items.entry import Held
from retain.items.placement import MATRIX
from retain.items.rules import HotReads
from retain.lifecycle.user_export import export_user_page
from retain.namespace import Namespace
from tests.items.life.model import Cell, ItemModel, ItemName
from tests.items.life.stores import MARKER, Flags, Isolate, ItemStores, sealer_of
from tests.support.faults import Crash, Fault, Faults
from tests.support.machines import CountedMachine

Outcome = TypeVar("Outcome")
PHASE_FLAGS: dict[int, Flags] = {0: (False, False), 1: (False, True), 2: (True, True), 3: (True, False)}
USERS = ("ann@shop.example", "bob@shop.example")
TENANTS = ("acme", "other")
WARM_KINDS = ("preferences", "conversation")
KINDS = (*WARM_KINDS, "cart", "session_state", "order_history", "system_logs")
DAY_MS = 86_400_000

ALL_NAMES = [ItemName(tenant, "s-1", kind) for tenant in TENANTS for kind in KINDS]
ALL_NAMES += [ItemName("acme", "s-2", "preferences"), ItemName("acme", "s-2", "order_history")]
LONG_LIVED = [name for name in ALL_NAMES if name.kind in ("preferences", "order_history")]
"""Items that neither expire soon nor vanish: what moves between the tiers is mostly theirs."""
WHICH_ITEM = st.integers(0, 3)
"""One of the few items of a walk: many steps are to meet each other at one item."""
OWNERS = st.sampled_from([None, *USERS])
SIZES = st.sampled_from([0, 0, 0, 2_000, 2_000, 120_000, 1_100_000])
FAULTS = st.one_of(
    st.none(), st.none(), st.none(), st.none(), st.tuples(st.sampled_from(["crash", "error"]), st.integers(1, 14))
)
READS: st.SearchStrategy[HotReads] = st.sampled_from(["checked", "session"])
WHICH = st.integers(0, 1)
PlannedFault = tuple[str, int] | None


@dataclass(frozen=True, slots=True)
class Failed:
    """An operation that raised Unavailable, or died."""


@dataclass(frozen=True, slots=True)
class OpenErasure:
    """An erasure that is under way. began: the markers of what was stored before it."""

    tenant: str
    match: str
    user: str
    began: frozenset[str]


class ItemsDeployment(CountedMachine):
    """Two tenants on one deployment, and the model of what their readers may see."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.clock = ManualClock(1_700_000_000_000)
        self.stores, self.mirror = ItemStores(self.clock), ItemStores(self.clock)
        self.faults = Faults(lambda _: None)
        self.keys = 0
        self.model = {name: ItemModel() for name in ALL_NAMES}
        self.names = ALL_NAMES[:4]
        self.phase, self.settled = 0, False
        self.isolates = [self.isolate((False, False))]
        self.number = 0
        self.clear: set[tuple[str, str]] = set()
        self.erasure: OpenErasure | None = None
        self.closed: set[str] = set()
        self.disturbed = False

    def teardown(self) -> None:
        for store in (self.stores, self.mirror):
            store.close()
        self.loop.close()

    # How operations run.

    def run(self, work: Awaitable[Outcome]) -> Outcome:
        async def whole() -> Outcome:
            try:
                return await work
            finally:
                for isolate in self.isolates:
                    while isolate.later:
                        await isolate.later.pop()

        return self.loop.run_until_complete(whole())

    def attempt(self, fault: PlannedFault, work: Callable[[], Awaitable[Outcome]]) -> Outcome | Failed:
        """Run an operation, in which one call of a store fails or is the last; after a crash, restart."""
        if fault is not None:
            error = Crash("planned") if fault[0] == "crash" else Unavailable("planned")
            self.faults.plan(Fault(error, fault[1]))
        try:
            return self.run(work())
        except Crash:
            self.restart()
            return Failed()
        except Unavailable as unavailable:
            assert unavailable.message == "planned" or unavailable.code == "contended", unavailable
            return Failed()
        finally:
            self.disturbed = fault is not None and not self.faults.pending
            self.faults.cancel()

    @rule()
    def restart(self) -> None:
        """Every isolate ends; others take over, with new clients on the same stores."""
        self.faults.kill()
        for isolate in self.isolates:
            for work in isolate.later:
                work.close()
        self.isolates = [self.isolate(isolate.both) for isolate in self.isolates]

    def isolate(self, both: Flags) -> Isolate:
        return Isolate(self.stores, both, sealer_of(self.keys), self.faults)

    def one(self, which: int) -> Isolate:
        return self.isolates[which % len(self.isolates)]

    @property
    def newest(self) -> Isolate:
        """The isolate that was deployed last, which does the daily work."""
        return self.isolates[-1]

    def cell(self, name: ItemName, owner: str | None, size: int, pii: bool, named: str | None, **more: Any) -> Cell:
        self.number += 1
        marker = f"<{self.number:05d}>"
        text = f"{marker} of {name.key}" + (f", for {named}" if named else "") + "." * size
        if pii:
            text = json.dumps({"contact": {"e-mail": named or "nobody"}, "note": text})
        names = frozenset({named} if named else ())
        cell = Cell(marker, text, self.clock(), owner, names, pii=pii, **more)
        self.model[name].history.append(cell)
        return cell

    def insist(self, fault: PlannedFault, work: Callable[[], Awaitable[object]]) -> None:
        if isinstance(self.attempt(fault, work), Failed):
            assert not isinstance(self.attempt(None, work), Failed)

    # What holds after every step.

    def seen(self, name: ItemName, both: Flags) -> str | None:
        """Return what a checked reader sees, without changing anything."""
        self.stores.copy_into(self.mirror)
        reader = Isolate(self.mirror, both, sealer_of(self.keys))
        return self.run(reader.client(namespace_of(name)).get(name.kind, "one"))

    @invariant()
    def every_law_holds(self) -> None:
        self.stores.copy_into(self.mirror)
        self.every_reader_sees_what_the_model_says()
        self.a_user_is_shown_their_own_alone()
        self.nothing_lies_where_it_must_not()

    def every_reader_sees_what_the_model_says(self) -> None:
        for both in {isolate.both for isolate in self.isolates}:
            reader = Isolate(self.mirror, both, sealer_of(self.keys))
            for name, item in self.model.items():
                if item.untouched:
                    continue
                allowed = item.shown(both, self.clock())
                try:
                    text = self.run(reader.client(namespace_of(name)).get(name.kind, "one"))
                except UpstreamFailed as error:
                    assert error.code == "cold_value_missing"
                    assert self.erasure is not None
                    continue
                assert text in allowed, f"{name.key} under {both}: {shortened(text)} is seen, of {shortened(*allowed)}"

    def a_user_is_shown_their_own_alone(self) -> None:
        stores = Isolate(self.mirror, self.newest.both, sealer_of(self.keys)).lifecycle()
        for tenant in TENANTS:
            for user in USERS:
                page = self.run(export_user_page(stores, tenant, user, "items."))
                exported = set(MARKER.findall("\n".join(page.lines)))
                mine = {cell.marker for name, cell in self.cells() if name.tenant == tenant and cell.owner == user}
                assert exported <= mine, f"{user} of {tenant} is shown what is not theirs"
                gone = {marker for name, item in self.model.items() for marker in item.gone}
                assert not exported & gone, f"{user} is shown what is gone"

    def nothing_lies_where_it_must_not(self) -> None:
        cells = {cell.marker: (name, cell) for name, cell in self.cells()}
        gone = {marker for item in self.model.values() for marker in item.gone}
        for store, key, text in self.stores.texts():
            for marker in MARKER.findall(text):
                if marker not in cells:
                    raise AssertionError(f"a refused value is stored in {store} under {key}")
                name, cell = cells[marker]
                item = key.rpartition("@")[0].partition("/")[2] if store == "r2" and "@" in key else key
                assert item in (name.key, *name.legacy), f"a value of {name.key} lies in {store} under {key}"
                assert not cell.pii or (store, key) in self.clear, f"PII lies in clear in {store} under {key}"
                if store == "d1":
                    assert marker not in gone, f"what is gone lies in D1 under {key}"
                if store == "kv" and key == name.key and self.clock() >= self.model[name].stale_until_ms:
                    held = Held.parse(text)
                    possible = {one.text for one in self.model[name].possible() if one is not None}
                    assert held.value in possible or not held.shown(self.clock()), f"an old copy of {key} is hot"

    def cells(self) -> list[tuple[ItemName, Cell]]:
        return [(name, cell) for name, item in self.model.items() for cell in item.history]


def namespace_of(name: ItemName) -> Namespace:
    return Namespace("shop", name.tenant, name.session)


def hot_life_s(name: ItemName) -> int:
    placement = MATRIX[name.kind]
    return placement.ttl_s or 0 if placement.tier == "hot" else 900


def shortened(*texts: str | None) -> str:
    return ", ".join(sorted(str(text)[:60] for text in texts))
