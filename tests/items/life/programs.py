"""Programs of the machine's steps, for faults that random walks rarely find: what walks found, in few steps."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tests.items.life.machine import ItemsMachine
from tests.items.life.model import ItemName

_SHORT = ItemName("acme", "s-1", "preferences")
_NAMES = [_SHORT, ItemName("acme", "s-1", "conversation"), ItemName("acme", "s-1", "order_history")]


def _an_expiring_value_is_put_over_a_legacy_one(machine: ItemsMachine) -> None:
    machine.begin(names=[_SHORT], legacy=[({"first"}, None, None, False)], steps=4, values=[])
    machine.restart()
    machine.put(which_item=0, owner=None, size=0, pii=False, named=None, ttl=60, which=0, reads="checked", fault=None)
    machine.the_runbook_is_followed_to_the_next_phase()
    machine.every_law_holds()


def _a_deleted_item_is_copied_over_phases(machine: ItemsMachine) -> None:
    first, object_too = ({"first"}, None, None, False), ({"first", "second", "object"}, None, None, False)
    machine.begin(names=_NAMES, legacy=[first, first, object_too], steps=0, values=[])
    machine.delete(which_item=2, which=0, reads="checked", fault=None)
    machine.the_runbook_is_followed_to_the_next_phase()
    machine.deploy_the_flags_of_the_next_phase()
    machine.begin_the_next_phase(fault=None)
    machine.restart()
    machine.restart()
    machine.the_runbook_is_followed_to_the_next_phase()
    machine.every_law_holds()


PROGRAMS: Mapping[str, Callable[[ItemsMachine], None]] = {
    "an_expired_row_does_not_hide_its_legacy_value": _an_expiring_value_is_put_over_a_legacy_one,
    "any_object_is_adopted": _a_deleted_item_is_copied_over_phases,
}
"""By the planted fault that a program finds."""
