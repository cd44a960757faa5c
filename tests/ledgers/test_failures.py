"""Unexpected failures of requests: what an entry says, and how many an isolate writes."""

from __future__ import annotations

import pytest

from retain.errors import InvalidInput
from retain.host.clock import ManualClock
from retain.identifiers import check_tenant
from retain.ledgers.failures import MAX_NOTED, NOTED_MS, Failures, place_of


def failed(text: str = "a secret") -> Exception:
    try:
        raise ValueError(text)
    except ValueError as error:
        return error


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


def test_an_entry_names_the_route_and_the_kind_of_failure_and_nothing_of_its_text(clock: ManualClock) -> None:
    trouble = Failures(clock).noted("GET /admin/tenants/{tenant}/memories", failed())
    assert trouble is not None
    assert (trouble.stage, trouble.code, trouble.tenant_id) == ("request", "internal", "")
    assert trouble.concerns == "GET /admin/tenants/{tenant}/memories ValueError -"


def test_the_place_is_the_last_line_of_retain_s_own_code() -> None:
    with pytest.raises(InvalidInput) as refused:
        check_tenant("NO")
    module, _, line = place_of(refused.value).partition(":")
    assert (module, line.isdigit()) == ("retain.identifiers", True)


def test_the_same_thing_is_noted_once_a_minute(clock: ManualClock) -> None:
    failures = Failures(clock)
    assert failures.noted("GET /a", failed("one")) is not None
    assert failures.noted("GET /a", failed("two")) is None
    assert failures.noted("GET /b", failed("one")) is not None
    clock.advance(NOTED_MS - 1)
    assert failures.noted("GET /a", failed("three")) is None
    clock.advance(1)
    assert failures.noted("GET /a", failed("four")) is not None


def test_an_isolate_notes_a_bounded_number_of_things(clock: ManualClock) -> None:
    failures = Failures(clock)
    noted = [failures.noted(f"GET /{number}", failed()) for number in range(MAX_NOTED + 10)]
    assert sum(one is not None for one in noted) == MAX_NOTED
    clock.advance(NOTED_MS)
    assert failures.noted("GET /again", failed()) is not None
