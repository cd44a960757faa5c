"""Records of every feature together: see `tests.lifecycle.records.machine`."""

from __future__ import annotations

import pytest

from tests.lifecycle.records.machine import RecordsMachine
from tests.support.machines import bounded

pytestmark = pytest.mark.timeout(600)

TestRecords = pytest.mark.soak(RecordsMachine.TestCase)
TestRecords.settings = bounded(examples=30, steps=24)


def test_what_an_ingest_records_before_it_has_to_wait_was_known_then() -> None:
    machine = RecordsMachine()
    machine.begin(lag_ms=0)
    machine.everybody_sees_what_the_model_allows()
    for _ in range(2):
        machine.export()
        machine.everybody_sees_what_the_model_allows()
        machine.verify_and_repair(fault=None, tenant="acme")
        machine.everybody_sees_what_the_model_allows()
    machine.erase_a_user(fault=("fails", 11), user="ann")
    machine.everybody_sees_what_the_model_allows()
    messages: list[tuple[str, int | None]] = [("I live in Oslo.", 0), ("hello", -50_000), ("I live in Rome.", 0)]
    machine.ingest(place="ann", speaker="Zandor", messages=messages, fault=("dies", 24))
    machine.everybody_sees_what_the_model_allows()
    machine.teardown()
