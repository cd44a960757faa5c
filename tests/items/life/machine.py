"""The machine: whatever happens to items, in any order."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import initialize

from tests.items.life.deployment import ALL_NAMES, LONG_LIVED, OWNERS, SIZES
from tests.items.life.erasures import Erasures
from tests.items.life.model import ItemName
from tests.items.life.phases import Phases
from tests.items.life.traffic import PLACES, Traffic


class ItemsMachine(Traffic, Phases, Erasures):
    """A deployment with two tenants, through the phases and back, with traffic, daily work, erasures and crashes."""

    @initialize(
        names=st.lists(
            st.one_of(st.sampled_from(ALL_NAMES), st.sampled_from(LONG_LIVED)), min_size=1, max_size=3, unique=True
        ),
        legacy=st.lists(st.tuples(PLACES, OWNERS, OWNERS, st.booleans()), max_size=3),
        steps=st.integers(0, 4),
        values=st.lists(st.tuples(OWNERS, SIZES, st.booleans(), OWNERS), max_size=3),
    )
    def begin(
        self,
        names: list[ItemName],
        legacy: list[tuple[set[str], str | None, str | None, bool]],
        steps: int,
        values: list[tuple[str | None, int, bool, str | None]],
    ) -> None:
        """A few items, some with values of other programs, in one of the phases."""
        self.names = names
        for number, (places, owner, named, pii) in enumerate(legacy):
            self.legacy_values_are_found(
                which_item=number, owners=[owner, named], pii=pii, size=2_000, named=named, places=places
            )
        for _ in range(steps):
            self.the_runbook_is_followed_to_the_next_phase()
        for number, (owner, size, pii, named) in enumerate(values):
            self.put(
                which_item=number,
                owner=owner,
                size=size,
                pii=pii,
                named=named,
                ttl=None,
                which=0,
                reads="checked",
                fault=None,
            )
