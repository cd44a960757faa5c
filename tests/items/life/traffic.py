"""Traffic, the daily work, and what other programs left."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from retain.errors import Conflict, InvalidInput, UpstreamFailed
from retain.items.demotion import GRACE_MS
from retain.items.entry import Draft
from retain.items.placement import MATRIX
from retain.items.rules import HotReads
from retain.items.tiers.sql_warm import SqlWarm
from tests.items.life.deployment import (
    DAY_MS,
    FAULTS,
    OWNERS,
    READS,
    SIZES,
    WARM_KINDS,
    WHICH,
    WHICH_ITEM,
    Failed,
    ItemsDeployment,
    PlannedFault,
    hot_life_s,
    namespace_of,
    shortened,
)
from tests.items.life.model import Cell

PLACES = st.sets(st.sampled_from(["first", "second", "object", "kv"]), min_size=1)
"""Where other programs may have left a value of an item: rows under both legacy keys, an object, a key in KV."""
_POINTED_TO = """
SELECT object_key FROM memory_items WHERE NOT deleted
UNION ALL SELECT object_key FROM memory_item_objects WHERE noted_at_ms > ?
"""


class Traffic(ItemsDeployment):
    """Reads and writes of applications, and the work that runs every day."""

    # Traffic.

    @rule(
        which_item=WHICH_ITEM,
        owner=OWNERS,
        size=SIZES,
        pii=st.sampled_from([False, False, True]),
        named=OWNERS,
        ttl=st.sampled_from([None, None, 60, 7200]),
        which=WHICH,
        reads=READS,
        fault=FAULTS,
    )
    def put(
        self,
        which_item: int,
        owner: str | None,
        size: int,
        pii: bool,
        named: str | None,
        ttl: int | None,
        which: int,
        reads: HotReads,
        fault: PlannedFault,
    ) -> None:
        name = self.names[which_item % len(self.names)]
        seconds = MATRIX[name.kind].ttl_s if ttl is None else ttl
        if MATRIX[name.kind].tier != "cold":
            size = min(size, 120_000)
        expires_at_ms = None if seconds is None else self.clock() + seconds * 1000
        refused = pii and name.kind not in WARM_KINDS
        cell = self.cell(name, owner, size, pii, named, expires_at_ms=expires_at_ms)
        item, memory = self.model[name], self.one(which).client(namespace_of(name), reads)
        try:
            done = self.attempt(fault, lambda: memory.put(name.kind, "one", cell.text, user_id=owner, ttl_s=ttl))
        except InvalidInput as error:
            assert (refused, error.code) == (True, "pii_outside_warm")
            item.history.remove(cell)
            return
        except Conflict as error:
            assert error.code in ("tenant_erased", "item_erased")
            assert name.tenant in self.closed or (error.code == "item_erased" and self.erasure is not None)
            return
        assert not refused
        if self.disturbed:
            item.stale_until_ms = self.clock() + 1000 * hot_life_s(name)
        if isinstance(done, Failed):
            item.tried_put(cell)
            return
        assert name.tenant not in self.closed, "an erased tenant took a value"
        item.put(cell)
        if self.erasure is not None and self.erasure.tenant == name.tenant:
            item.begin_erasure(self.erasure.match, self.erasure.user)

    @rule(which_item=WHICH_ITEM, which=WHICH, reads=READS, fault=FAULTS)
    def read(self, which_item: int, which: int, reads: HotReads, fault: PlannedFault) -> None:
        name, isolate = self.names[which_item % len(self.names)], self.one(which)
        memory = isolate.client(namespace_of(name), reads)
        try:
            found = self.attempt(fault, lambda: memory.find(name.kind, "one"))
        except UpstreamFailed as error:  # a value may vanish under a read while it is erased
            assert error.code == "cold_value_missing"
            assert self.erasure is not None
            return
        if isinstance(found, Failed):
            return
        item = self.model[name]
        allowed = item.shown(isolate.both, self.clock())
        if reads == "session" and self.clock() < item.stale_until_ms:
            allowed |= {cell.text for cell in item.history}
        text = None if found is None else found.value
        assert text in allowed, f"{name.key}: {shortened(text)} is read, of {shortened(*allowed)}"
        if found is not None and found.tier != "hot":
            assert found.user_id in {cell.owner for cell in item.history if cell.text == text}

    @rule(which_item=WHICH_ITEM, which=WHICH, reads=READS, fault=FAULTS)
    def delete(self, which_item: int, which: int, reads: HotReads, fault: PlannedFault) -> None:
        name = self.names[which_item % len(self.names)]
        item, memory = self.model[name], self.one(which).client(namespace_of(name), reads)
        shown = item.shown((True, True), self.clock())
        done = self.attempt(fault, lambda: memory.delete(name.kind, "one"))
        if self.disturbed:
            item.stale_until_ms = self.clock() + 1000 * hot_life_s(name)
        if isinstance(done, Failed):
            item.tried_removal()
            return
        assert done or None in shown, "a delete did not find what readers see"
        item.removed()

    @rule(ms=st.sampled_from([1, 1_000, 61_000, 901_000, 7_201_000, DAY_MS]))
    def wait(self, ms: int) -> None:
        self.clock.advance(ms)

    @rule(days=st.sampled_from([1, 1, 2, 8, 31, 91]), fault=FAULTS)
    def the_daily_work_runs(self, days: int, fault: PlannedFault) -> None:
        self.clock.advance(days * DAY_MS)
        worker = self.newest
        done = self.attempt(fault, lambda: worker.demotion().run())
        now = self.clock()
        for name, item in self.model.items():
            sure, kept = item.sure, MATRIX[name.kind].retention_s
            if _expired(sure, now):
                if not isinstance(done, Failed) and not item.maybe:
                    item.removed()
            elif sure is not None and kept is not None and now >= sure.at_ms + kept * 1000:
                item.maybe.add(None)  # when it was last used, the machine does not count
                if self.seen(name, self.newest.both) is None and self.newest.both != (False, False):
                    item.removed()
        if isinstance(done, Failed):
            return
        assert {name for name in ("refused", "unsealed") if done.get(name)} == set()
        self.clear -= {place for place in self.clear if place[0] == "d1"}
        kept_objects = {row["object_key"] for row in self.stores.rows(_POINTED_TO, now - GRACE_MS)}
        legacy = {key for name in self.model for key in name.legacy}
        orphans = {key for store, key, _ in self.stores.texts() if store == "r2"} - kept_objects - legacy
        assert not orphans, f"objects that no item points to are left: {orphans}"

    # What other programs left.

    @precondition(lambda self: self.phase < 2 and not self.newest.both[0])
    @rule(
        which_item=WHICH_ITEM,
        owners=st.lists(OWNERS, min_size=2, max_size=2),
        pii=st.booleans(),
        size=SIZES,
        named=OWNERS,
        places=PLACES,
    )
    def legacy_values_are_found(
        self, which_item: int, owners: list[str | None], pii: bool, size: int, named: str | None, places: set[str]
    ) -> None:
        name = self.names[which_item % len(self.names)]
        item = self.model[name]
        if not item.untouched or name.tenant in self.closed or self.erasure is not None or len(self.isolates) > 1:
            return
        rows = [place for place in ("first", "second")[: len(name.legacy)] if place in places]
        warm = SqlWarm(self.stores.sql, name.tenant, self.clock)
        for place, owner in zip(rows, owners, strict=False):
            key, second = name.legacy[place == "second"], place == "second" and len(rows) == 1
            cell = self.cell(name, owner, min(size, 120_000), pii, named, second=second)
            self.run(warm.write(key, Draft("warm", cell.text, len(cell.text), user_id=owner)))
            self.clear |= {("d1", key)} if pii else set()
            if item.sure is None:
                item.sure = cell
            else:
                item.below.add(cell)
        for place, key in zip(("object", "kv"), (name.legacy[-1], name.legacy[0]), strict=True):
            if place not in places:
                continue
            cell = self.cell(name, None, 0, pii, named, row=False)
            self.clear |= {("r2" if place == "object" else "kv", key)} if pii else set()
            if place == "kv":
                self.run(self.stores.kv.put(key, cell.text))
                item.gone.add(cell.marker)
            else:
                self.run(self.stores.objects.put(key, cell.text.encode()))
                (item.loose if item.sure is None else item.below).add(cell)


def _expired(cell: Cell | None, now_ms: int) -> bool:
    return cell is not None and cell.expires_at_ms is not None and now_ms >= cell.expires_at_ms
