"""Each planted fault still is one: a few steps of the machine show it, and pass without it. Random walks find some late."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.lifecycle.records import planted
from tests.lifecycle.records.machine import RecordsMachine
from tests.lifecycle.records.model import Given

PLACE = ("acme", "agent")
HOME = {"subject": "quillon", "predicate": "lives_in", "object": "Oslo"}
OSLO, ROME = "Quillon lives in Oslo.", "Quillon lives in Rome."
Steps = Callable[[RecordsMachine], object]


def _tell(machine: RecordsMachine, given: Given, since: int | None = None, lasts: int | None = None) -> None:
    machine.tell(site=PLACE, drawn=(given, since, lasts), fault=None)


def _person_closes(machine: RecordsMachine) -> None:
    _tell(machine, Given(OSLO, parts=HOME))
    machine.close(number=0, at=0, person=True, fault=None)
    _tell(machine, Given(OSLO, parts=HOME))


def _two_claims(machine: RecordsMachine) -> None:
    _tell(machine, Given(OSLO, parts=HOME), -50_000)
    _tell(machine, Given(ROME, parts={**HOME, "object": "Rome"}), -1_000)
    _tell(machine, Given(OSLO, parts=HOME), 1_000)
    _tell(machine, Given("Quillon lives in Lima.", parts={**HOME, "object": "Lima"}), 40_000)
    machine.delete(number=2, fault=None)


def _other_metadata(machine: RecordsMachine) -> None:
    _tell(machine, Given(OSLO, metadata={"state": "open"}))
    _tell(machine, Given(OSLO.rstrip("."), metadata={"state": "shut"}))
    machine.work_daily(fault=None)


def _import_after_an_erasure(machine: RecordsMachine) -> None:
    _tell(machine, Given(OSLO, parts=HOME))
    machine.export()
    machine.erase_a_subject(name="Quillon", tenant="acme", fault=None)
    machine.import_(number=0, into="acme", unasked=True, fault=None)


def _reindex_after_a_delete(machine: RecordsMachine) -> None:
    _tell(machine, Given(OSLO))
    machine.delete(number=0, fault=None)
    machine.reindex(fault=None, tenant="acme")


def _erase_a_word(machine: RecordsMachine) -> None:
    _tell(machine, Given(OSLO))
    _tell(machine, Given(ROME))
    machine.erase_a_mention(term="Oslo", tenant="acme", fault=None)


def _erase_a_word_of_metadata(machine: RecordsMachine) -> None:
    _tell(machine, Given(OSLO, metadata={"via": "Xyla"}))
    machine.erase_a_mention(term="Xyla", tenant="acme", fault=None)


def _hear(machine: RecordsMachine) -> None:
    machine.ingest(place="agent", speaker="Quillon", messages=[("I live in Oslo.", -1_000)], fault=None)


def _import_into_facts(machine: RecordsMachine) -> None:
    _tell(machine, Given(OSLO, parts=HOME))
    machine.export()
    machine.wait(1_000)
    machine.tell(site=("mixed", "agent"), drawn=(Given(ROME, parts={**HOME, "object": "Rome"}), None, None), fault=None)
    machine.import_(number=0, into="mixed", unasked=True, fault=None)


def _tell_about_ann_and_bob(machine: RecordsMachine) -> None:
    for place in ("ann", "bob", "ann_everywhere"):
        machine.tell(site=("acme", place), drawn=(Given(OSLO), None, None), fault=None)


def _delete_what_replaced(machine: RecordsMachine) -> None:
    _tell(machine, Given(OSLO, parts=HOME))
    machine.wait(1_000)
    _tell(machine, Given(ROME, parts={**HOME, "object": "Rome"}))
    machine.delete(number=1, fault=None)


def _edit(machine: RecordsMachine) -> None:
    _tell(machine, Given(OSLO))
    machine.edit(number=0, changes={"content": ROME}, person=True, fault=None)


def _outlast(machine: RecordsMachine) -> None:
    _tell(machine, Given(OSLO), lasts=1_000)
    machine.wait(31_000)


def _tell_and_delete(machine: RecordsMachine) -> None:
    _tell(machine, Given(OSLO))
    machine.delete(number=0, fault=None)


def _lose_vectors(machine: RecordsMachine) -> None:
    _tell(machine, Given(OSLO))
    machine.lose_an_index(table="vectors", reindex=True)


SHOWN: dict[planted.Plant, Steps] = {
    planted.view_has_a_stranger: _tell_about_ann_and_bob,
    planted.get_ignores_scope: _tell_about_ann_and_bob,
    planted.list_ignores_scope: _tell_about_ann_and_bob,
    planted.users_share_a_scope: _tell_about_ann_and_bob,
    planted.deleted_facts_still_replace: _delete_what_replaced,
    planted.edit_not_recorded: _edit,
    planted.expiry_is_ignored: _outlast,
    planted.debts_are_lost: _lose_vectors,
    planted.vectors_are_left: _tell_and_delete,
    planted.search_rows_are_left: _tell_and_delete,
    planted.person_is_overruled: _person_closes,
    planted.supersession_skips_claims: _two_claims,
    planted.rules_merge_too_much: _other_metadata,
    planted.import_ignores_erasures: _import_after_an_erasure,
    planted.reindex_resurrects: _reindex_after_a_delete,
    planted.erasure_leaves_words: _erase_a_word,
    planted.erasure_forgets_metadata: _erase_a_word_of_metadata,
    planted.ingest_forgets_when: _hear,
    planted.import_skips_reconciling: _import_into_facts,
}


def _walk(steps: Steps) -> None:
    machine = RecordsMachine()
    try:
        machine.begin(lag_ms=0)
        steps(machine)
        machine.everybody_sees_what_the_model_allows()
    finally:
        machine.teardown()


@pytest.mark.parametrize("plant", planted.PLANTED, ids=lambda plant: plant.__name__)
def test_a_few_steps_show_a_planted_fault(plant: planted.Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    _walk(SHOWN[plant])
    plant(monkeypatch)
    with pytest.raises(AssertionError):
        _walk(SHOWN[plant])
