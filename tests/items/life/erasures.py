"""Erasures of users, mentions and tenants, and the renewal of the key."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from retain.items.resealing import reseal
from retain.tenants.register import Tenants
from tests.items.life.deployment import FAULTS, TENANTS, USERS, Failed, ItemsDeployment, OpenErasure, PlannedFault
from tests.items.life.stores import sealer_of


class Erasures(ItemsDeployment):
    """Erasures, one at a time, with other work between their slices."""

    # Keys and erasures.

    @rule(fault=FAULTS)
    def the_key_is_renewed(self, fault: PlannedFault) -> None:
        self.keys += 1
        old, new = self.keys - 1, sealer_of(self.keys, self.keys - 1)

        async def all_of(tenant: str) -> None:
            while (await reseal(self.newest.sql, new, tenant, self.newest.flags, 3)).left:
                pass

        for tenant in TENANTS:
            self.insist(fault, lambda tenant=tenant: all_of(tenant))  # type: ignore[misc]
        assert old >= 0
        self.restart()

    @precondition(lambda self: self.erasure is None)
    @rule(tenant=st.sampled_from(TENANTS), match=st.sampled_from(["subject", "user", "mention", "mention", "tenant"]),
          user=st.sampled_from(USERS), fault=FAULTS)  # fmt: skip
    def begin_an_erasure(self, tenant: str, match: str, user: str, fault: PlannedFault) -> None:
        if tenant in self.closed:
            return
        began = {cell.marker for name, item in self.model.items() if name.tenant == tenant for cell in item.history}
        self.erasure = OpenErasure(tenant, match, user, frozenset(began))
        for name, item in self.model.items():
            if name.tenant == tenant:
                item.begin_erasure(match, user)
        self._continue(fault)

    @precondition(lambda self: self.erasure is not None)
    @rule(fault=FAULTS, calls=st.integers(1, 12))
    def continue_the_erasure(self, fault: PlannedFault, calls: int) -> None:
        for _ in range(calls):
            if self.erasure is not None:
                self._continue(fault)
                fault = None

    def _continue(self, fault: PlannedFault) -> None:
        assert self.erasure is not None
        tenant, match, user = self.erasure.tenant, self.erasure.match, self.erasure.user
        erasure = self.newest.erasure()
        if match == "tenant":
            outcome = self.attempt(fault, lambda: erasure.erase_tenant(tenant))
            if self.stores.rows("SELECT 1 FROM erased_tenants WHERE tenant_id = ? AND closed", tenant):
                self.closed.add(tenant)
        elif match == "user":
            outcome = self.attempt(fault, lambda: erasure.erase_user(tenant, user))
        else:
            outcome = self.attempt(fault, lambda: erasure.erase_subject(tenant, user, match))  # type: ignore[arg-type]
        if isinstance(outcome, Failed):
            return
        if outcome.retry_after_ms is None:
            assert outcome.receipt.state == "completed"
            self._completed(self.erasure)
        else:
            self.clock.advance(outcome.retry_after_ms)

    def _completed(self, erasure: OpenErasure) -> None:
        self.erasure = None
        concerned = set[str]()
        for name, item in self.model.items():
            if name.tenant == erasure.tenant:
                item.end_erasure(erasure.match, erasure.user, erasure.began)
                concerned |= {
                    cell.marker
                    for cell in item.history
                    if cell.marker in erasure.began and cell.concerns(erasure.match, erasure.user)
                }
        left = self.run(self.stores.traces(concerned, sealer_of(self.keys)))
        assert not left, f"erased by {erasure.match}, and left: {left}"

    @precondition(lambda self: self.closed and self.erasure is None)
    @rule()
    def an_erased_tenant_comes_back(self) -> None:
        for tenant in sorted(self.closed):
            assert self.run(Tenants(self.stores.sql, self.clock).register(tenant))
        self.closed.clear()
