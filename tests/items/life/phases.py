"""The migration of keys, in the order of its runbook, forward and back."""

from __future__ import annotations

from hypothesis.stateful import precondition, rule

from retain.errors import Conflict
from retain.items.placement import MATRIX
from retain.items.rekeying.compatible import ReadOutcome
from retain.items.rekeying.reads import FLUSH_MS, SETTLE_MS
from tests.items.life.deployment import FAULTS, PHASE_FLAGS, ItemsDeployment, PlannedFault


class Phases(ItemsDeployment):
    """Deployments with other flags, next to those that they replace."""

    # The migration, as in its runbook.

    @precondition(lambda self: self.phase < 2 and len(self.isolates) == 1)
    @rule()
    def deploy_the_flags_of_the_next_phase(self) -> None:
        flags = PHASE_FLAGS[self.phase + 1]
        if self.newest.both != flags:
            self.isolates.append(self.isolate(flags))

    @rule()
    def two_minutes_pass(self) -> None:
        """After that, no isolate with older flags is alive."""
        self.clock.advance(SETTLE_MS)
        self.isolates = self.isolates[-1:]
        self.settled = self.phase == 2

    @precondition(lambda self: self.phase < 2 and self.newest.both == PHASE_FLAGS[self.phase + 1])
    @rule(fault=FAULTS)
    def begin_the_next_phase(self, fault: PlannedFault) -> None:
        to = self.phase + 1
        self.insist(fault, lambda: self.newest.migration().advance(to))
        self.phase, self.settled = to, False

    @rule()
    def the_runbook_is_followed_to_the_next_phase(self) -> None:
        self.two_minutes_pass()
        if self.phase < 2:
            self.deploy_the_flags_of_the_next_phase()
            self.two_minutes_pass()
            self.begin_the_next_phase(fault=None)
            self.two_minutes_pass()
        elif self.phase == 2 and self._may_backfill():
            self.run_two_stable_cycles_and_begin_phase_3()
        elif self.newest.both == (True, True):
            self.deploy_canonical_keys_alone()
            self.two_minutes_pass()

    def _may_backfill(self) -> bool:
        return self.phase == 2 and self.settled and self.newest.both == (True, True) and len(self.isolates) == 1

    @precondition(lambda self: self._may_backfill())
    @rule(fault=FAULTS)
    def backfill_a_page(self, fault: PlannedFault) -> None:
        self._note_adoption()
        self.attempt(fault, lambda: self.newest.backfill().step())

    def _note_adoption(self) -> None:
        for name, item in self.model.items():
            if item.sure is None and item.loose and MATRIX[name.kind].prefix:
                item.maybe |= {None, *(cell for cell in item.loose if not cell.pii)}

    @precondition(lambda self: self._may_backfill())
    @rule()
    def run_two_stable_cycles_and_begin_phase_3(self) -> None:
        async def through() -> None:
            isolate, migration = self.newest, self.newest.migration()
            await isolate.backfill().again()
            while not await isolate.backfill().step():
                pass
            await isolate.reads.flush()
            await migration.release(self._release())  # closes the cycle that saw legacy hits
            for _ in range(2):
                for _ in range(120):
                    isolate.reads.found("warm", ReadOutcome.CANONICAL)
                await isolate.reads.flush()
                self.clock.advance(FLUSH_MS)
                await migration.release(self._release())
            await migration.advance(3)

        self._note_adoption()
        try:
            self.run(through())
        except Conflict as error:
            assert error.code == "not_ready"
            assert any(store == "r2" for store, _ in self.clear), "what was refused has no PII"
            return
        self.phase = 3
        for name, item in self.model.items():
            if item.sure is None and item.maybe & item.loose and self.erasure is None:
                assert self.seen(name, (True, True)) is not None, "the backfill left a value out"

    def _release(self) -> str:
        self.number += 1
        return f"release-{self.number}"

    @precondition(lambda self: self.phase == 3 and len(self.isolates) == 1 and self.newest.both == (True, True))
    @rule()
    def deploy_canonical_keys_alone(self) -> None:
        self.isolates.append(self.isolate((True, False)))

    @precondition(lambda self: self.phase > 0 and len(self.isolates) == 1)
    @rule(fault=FAULTS)
    def roll_back_a_phase(self, fault: PlannedFault) -> None:
        to = self.phase - 1
        self.insist(fault, lambda: self.newest.migration().roll_back(to))
        self.phase, self.settled = to, False
        if to == 1:
            self.clock.advance(SETTLE_MS)
        if self.newest.both != PHASE_FLAGS[to]:
            self.isolates.append(self.isolate(PHASE_FLAGS[to]))
