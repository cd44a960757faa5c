"""Identifiers: their grammar as tables, and laws over any text."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ulid import ULID

from retain.errors import InvalidInput
from retain.identifiers import (
    check_agent_type,
    check_id,
    check_instance_id,
    check_tenant,
    check_tool_name,
    id_after,
    namespace_key,
    new_id,
)

Check = Callable[[object], str]
ALL: dict[str, Check] = {
    "tenant": check_tenant,
    "agent_type": check_agent_type,
    "tool_name": check_tool_name,
    "instance_id": check_instance_id,
    "id": check_id,
}

_ULID = "01J9ZK3V5Q8XG7R2M4N6P8S0T1"


@pytest.mark.parametrize(
    ("check", "value"),
    [
        (check_tenant, "a"),
        (check_tenant, "0"),
        (check_tenant, "acme-corp-2"),
        (check_tenant, "a-"),
        (check_tenant, "a" * 40),
        (check_agent_type, "a"),
        (check_agent_type, "order_triage"),
        (check_agent_type, "v2"),
        (check_agent_type, "a" * 32),
        (check_tool_name, "recall_memory"),
        (check_instance_id, "A"),
        (check_instance_id, "order-1042.retry_2"),
        (check_instance_id, "-"),
        (check_instance_id, "a" * 64),
        (check_id, _ULID),
        (check_id, "7" + "Z" * 25),
        (check_id, "0" * 26),
    ],
)
def test_a_valid_identifier_is_returned_as_it_is(check: Check, value: str) -> None:
    assert check(value) == value


@pytest.mark.parametrize(
    ("check", "value"),
    [
        (check_tenant, "a" * 41),
        (check_tenant, "-a"),
        (check_tenant, "Acme"),
        (check_tenant, "acme_corp"),
        (check_tenant, "é"),
        (check_tenant, "٣"),
        (check_agent_type, "a" * 33),
        (check_agent_type, "2nd"),
        (check_agent_type, "_a"),
        (check_agent_type, "order-triage"),
        (check_agent_type, "Order"),
        (check_tool_name, "recall memory"),
        (check_instance_id, "a" * 65),
        (check_instance_id, "a/b"),
        (check_instance_id, "a%20b"),
        (check_instance_id, "é"),
        (check_id, _ULID.lower()),
        (check_id, _ULID[:-1]),
        (check_id, _ULID + "0"),
        (check_id, "8" + "0" * 25),
        (check_id, "0" * 25 + "I"),
        (check_id, "0" * 25 + "L"),
        (check_id, "0" * 25 + "O"),
        (check_id, "0" * 25 + "U"),
    ],
)
def test_what_breaks_the_grammar_is_refused(check: Check, value: str) -> None:
    with pytest.raises(InvalidInput):
        check(value)


@pytest.mark.parametrize("check", ALL.values(), ids=ALL.keys())
@pytest.mark.parametrize(
    "value",
    ["", " ", "*", ":", "a:b", "a*", "a\n", "\na", "a\0", "a b", "../a", None, 1, True, b"a", ["a"], {"a": 1}],
    ids=repr,
)
def test_no_identifier_is_empty_a_wildcard_or_holds_a_delimiter(check: Check, value: object) -> None:
    with pytest.raises(InvalidInput):
        check(value)


@pytest.mark.parametrize(("name", "check"), ALL.items(), ids=ALL.keys())
def test_a_refusal_names_what_was_wrong_and_does_not_repeat_it(name: str, check: Check) -> None:
    with pytest.raises(InvalidInput) as raised:
        check("<script>hunter2")
    assert raised.value.code == f"invalid_{name}"
    assert name.replace("_", " ") in raised.value.message
    assert "hunter2" not in raised.value.message


@given(st.text() | st.from_regex(r"[a-z0-9-]{1,45}", fullmatch=True))
def test_a_tenant_that_is_accepted_fits_every_place_it_is_used_in(value: str) -> None:
    try:
        tenant = check_tenant(value)
    except InvalidInput:
        return
    assert re.fullmatch(r"[a-z0-9][a-z0-9-]*", tenant, re.ASCII)
    assert len(f"agent_memory_semantic:{tenant}".encode()) <= 64


@pytest.mark.parametrize("check", ALL.values(), ids=ALL.keys())
@given(value=st.text() | st.from_regex(r"[A-Za-z0-9._-]{1,70}", fullmatch=True))
def test_an_accepted_identifier_is_ascii_short_and_free_of_delimiters(check: Check, value: str) -> None:
    try:
        accepted = check(value)
    except InvalidInput:
        return
    assert accepted == value
    assert accepted.isascii()
    assert 1 <= len(accepted) <= 64
    assert not set(accepted) & set(":*/\\ \n\0%?#")


def test_new_ids_are_valid_distinct_and_of_now() -> None:
    before_ms = datetime.now(UTC).timestamp() * 1000
    ids = [new_id() for _ in range(1000)]
    after_ms = datetime.now(UTC).timestamp() * 1000
    assert len(set(ids)) == len(ids)
    assert all(check_id(one) == one for one in ids)
    assert all(before_ms - 1 <= ULID.from_str(one).milliseconds <= after_ms for one in ids)


@given(st.integers(0, 2**48 - 1), st.integers(0, 2**48 - 1))
def test_ids_are_ordered_by_their_time(first_ms: int, second_ms: int) -> None:
    first, second = (check_id(str(ULID.from_timestamp(ms / 1000))) for ms in (first_ms, second_ms))
    if abs(first_ms - second_ms) > 1:  # the library takes seconds as a float, which may round by a millisecond
        assert (first < second) == (first_ms < second_ms)


_segments = st.from_regex(r"[A-Za-z0-9._@+-]{1,64}", fullmatch=True)
_tenants = st.from_regex(r"[a-z0-9][a-z0-9-]{0,39}", fullmatch=True)


@given(_segments, _tenants, _segments)
def test_a_namespace_key_can_be_taken_apart_again(service: str, tenant_id: str, session_id: str) -> None:
    assert namespace_key(service, tenant_id, session_id).split(":") == [service, tenant_id, session_id]


@given(st.lists(st.tuples(_segments, _tenants, _segments), min_size=2, max_size=2, unique=True))
def test_different_segments_never_share_a_namespace_key(pair: list[tuple[str, str, str]]) -> None:
    assert namespace_key(*pair[0]) != namespace_key(*pair[1])


@pytest.mark.parametrize("place", [0, 1, 2], ids=["service", "tenant", "session"])
@pytest.mark.parametrize("segment", ["", ":", "a:b", "*", "a*", "a?", "é", "a\n", "a b", "acme:session"], ids=repr)
def test_a_namespace_segment_that_is_empty_a_wildcard_or_holds_the_delimiter_is_refused(
    place: int, segment: str
) -> None:
    segments = ["retain", "acme", "session"]
    segments[place] = segment
    with pytest.raises(InvalidInput) as raised:
        namespace_key(*segments)
    assert raised.value.code == "invalid_namespace"


_ulids = st.integers(0, 2**128 - 2).map(lambda number: str(ULID.from_int(number)))


@given(new=_ulids, last=_ulids)
def test_an_id_after_another_is_the_new_one_or_a_little_greater_than_the_last(new: str, last: str) -> None:
    after = id_after(new, last)
    assert after > last
    assert after == new or int(ULID.from_str(after)) - int(ULID.from_str(last)) <= 1 << 48


def test_ids_after_the_same_one_differ_and_are_not_its_successors() -> None:
    later = [str(ULID.from_int(int(ULID.from_str(_ULID)) + number)) for number in range(1, 1_000)]
    earlier = [str(ULID.from_int(number)) for number in range(1_000)]
    found = {id_after(new, last) for new in earlier[:30] for last in [_ULID, *later[:30]]}
    assert len(found | set(later)) == 30 * 31 + 999


@pytest.mark.parametrize("last", ["0" * 26, "0" * 23 + "HZZ", "7" + "Z" * 24 + "Y"])
def test_an_id_carries_over_and_stays_a_ulid(last: str) -> None:
    assert last < check_id(id_after("0" * 26, last)) <= "7" + "Z" * 25


def test_no_id_follows_the_greatest() -> None:
    with pytest.raises(InvalidInput):
        id_after(_ULID, "7" + "Z" * 25)
