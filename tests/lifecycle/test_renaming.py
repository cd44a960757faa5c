"""The ids of memories that are moved to another tenant."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from retain.identifiers import check_id
from retain.lifecycle.transfer.renaming import renamed_id

_IDS = st.from_regex(r"[0-6][0-9A-HJKMNP-TV-Z]{25}", fullmatch=True)
_TENANTS = st.from_regex(r"[a-z0-9][a-z0-9-]{0,39}", fullmatch=True)


@given(_IDS, _TENANTS)
def test_an_id_is_unchanged_in_its_own_tenant(memory_id: str, tenant: str) -> None:
    assert renamed_id(memory_id, tenant, tenant) == memory_id


@given(_IDS, _IDS, _TENANTS)
def test_ids_keep_their_order_and_stay_distinct_elsewhere(one: str, other: str, tenant: str) -> None:
    moved = [renamed_id(memory_id, "source.of.all", tenant) for memory_id in (one, other)]
    assert (moved[0] < moved[1], moved[0] == moved[1]) == (one < other, one == other)
    assert [check_id(memory_id) for memory_id in moved] == moved


@given(_IDS, _TENANTS, _TENANTS)
def test_an_id_has_another_one_in_each_tenant_and_the_same_each_time(memory_id: str, one: str, other: str) -> None:
    source = "source.of.all"
    assert renamed_id(memory_id, source, one) != memory_id
    assert (renamed_id(memory_id, source, one) == renamed_id(memory_id, source, other)) == (one == other)


@given(_IDS, _TENANTS)
def test_the_time_of_an_id_changes_by_at_most_a_millisecond(memory_id: str, tenant: str) -> None:
    def time(ulid: str) -> int:
        number = 0
        for letter in ulid[:10]:
            number = number * 32 + "0123456789ABCDEFGHJKMNPQRSTVWXYZ".index(letter)
        return number

    assert time(renamed_id(memory_id, "source.of.all", tenant)) - time(memory_id) in (0, 1)
