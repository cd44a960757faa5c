"""Working memory: small JSON values for an hour, within 128 KiB, readable by the instance and mirrored in KV."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retain.errors import InvalidInput, LimitExceeded, Unavailable
from retain.host.clock import ManualClock
from retain.host.kv import SqliteKv
from retain.host.object_sql import SqliteObjectSql
from retain.memory.working import COPIES_SCHEMA, MAX_TOTAL_BYTES, SCHEMA, WorkingMemory
from retain.sealing.pii import FIELDS, declared_in

HOUR_MS = 3_600_000


def _declared(text: str) -> list[str]:
    return declared_in(text, FIELDS)


class Desk:
    """One instance's working memory on its own database. kv, clock: shared with other desks when given."""

    def __init__(
        self,
        tenant: str = "acme",
        instance: str = "main",
        kv: SqliteKv | None = None,
        clock: ManualClock | None = None,
        agent: str = "sdr",
    ) -> None:
        self.clock = clock or ManualClock()
        self.kv = kv or SqliteKv.open(self.clock)
        self.local = SqliteObjectSql.open()
        self.local.run(SCHEMA)
        self.local.run(COPIES_SCHEMA)
        self.memory = WorkingMemory(self.local, self.kv, self.clock, tenant, agent, instance, _declared)

    def close(self) -> None:
        self.local.close()
        self.kv.close()


@pytest.fixture
def desk() -> Iterator[Desk]:
    with closing(Desk()) as made:
        yield made


async def test_a_value_lives_for_an_hour_and_no_longer(desk: Desk) -> None:
    await desk.memory.set("k", {"x": 1})
    desk.clock.advance(HOUR_MS - 1)
    assert (desk.memory.get("k"), desk.memory.all()) == ({"x": 1}, {"k": {"x": 1}})
    assert await desk.kv.get("agent_working:acme:main:sdr.k") == '{"x":1}'
    desk.clock.advance(1)
    assert (desk.memory.get("k"), desk.memory.all()) == (None, {})
    assert await desk.kv.get("agent_working:acme:main:sdr.k") is None


async def test_writing_again_restarts_the_hour(desk: Desk) -> None:
    await desk.memory.set("k", 1)
    desk.clock.advance(HOUR_MS - 1)
    await desk.memory.set("k", 2)
    desk.clock.advance(HOUR_MS - 1)
    assert desk.memory.get("k") == 2
    assert await desk.kv.get("agent_working:acme:main:sdr.k") == "2"


async def test_a_value_outlives_its_object(desk: Desk) -> None:
    await desk.memory.set("k", 1)
    woken = WorkingMemory(desk.local, desk.kv, desk.clock, "acme", "sdr", "main", _declared)
    assert woken.get("k") == 1


async def test_all_values_are_returned_in_the_order_of_their_keys(desk: Desk) -> None:
    for key in ("b", "a.1", "B", "a"):
        await desk.memory.set(key, key)
    assert list(desk.memory.all()) == ["B", "a", "a.1", "b"]


async def test_invariant_8_128_kib_fit_exactly(desk: Desk) -> None:
    room = MAX_TOTAL_BYTES - len('k""')
    await desk.memory.set("k", "x" * room)
    for key, value in (("k", "x" * (room + 1)), ("j", 0)):
        with pytest.raises(LimitExceeded) as raised:
            await desk.memory.set(key, value)
        assert (raised.value.code, raised.value.details["limit_bytes"]) == ("working_memory_full", 131_072)
    assert desk.memory.all() == {"k": "x" * room}
    assert await desk.kv.get("agent_working:acme:main:sdr.j") is None
    await desk.memory.set("k", "x" * (room - 2))
    await desk.memory.set("j", 0)
    assert desk.memory.get("j") == 0


operations = st.lists(
    st.one_of(
        st.tuples(st.sampled_from("abc"), st.integers(0, MAX_TOTAL_BYTES + 10), st.sampled_from("x\u00e9\n")),
        st.integers(1, HOUR_MS),
    ),
    max_size=12,
)


@settings(max_examples=60, deadline=None)
@given(operations=operations)
async def test_a_value_is_accepted_exactly_when_it_fits_with_the_live_ones(
    operations: list[tuple[str, int, str] | int],
) -> None:
    alive: dict[str, tuple[str, int, int]] = {}  # key: value, bytes, expiry
    with closing(Desk()) as desk:
        for operation in operations:
            if isinstance(operation, int):
                desk.clock.advance(operation)
            else:
                key, length, letter = operation
                value = letter * length
                size = len(key) + len(json.dumps(value))
                now = desk.clock()
                alive = {name: entry for name, entry in alive.items() if entry[2] > now}
                if size + sum(entry[1] for name, entry in alive.items() if name != key) <= MAX_TOTAL_BYTES:
                    await desk.memory.set(key, value)
                    alive[key] = (value, size, now + HOUR_MS)
                else:
                    with pytest.raises(LimitExceeded):
                        await desk.memory.set(key, value)
            now = desk.clock()
            assert desk.memory.all() == {name: entry[0] for name, entry in sorted(alive.items()) if entry[2] > now}


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters()),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=60, deadline=None)
@given(value=json_values)
async def test_any_json_value_is_read_back_and_is_in_kv(value: Any) -> None:
    with closing(Desk()) as desk:
        await desk.memory.set("k", value)
        assert desk.memory.get("k") == value
        assert json.loads(await desk.kv.get("agent_working:acme:main:sdr.k") or "") == value


@pytest.mark.parametrize("value", [math.nan, math.inf, {1, 2}, b"x", object()], ids=lambda value: type(value).__name__)
async def test_what_is_not_json_is_refused(desk: Desk, value: Any) -> None:
    with pytest.raises(InvalidInput) as raised:
        await desk.memory.set("k", value)
    assert raised.value.code == "invalid_working_value"
    assert desk.memory.all() == {}


@pytest.mark.parametrize("key", ["a", "A.b_c-9", "k" * 64, "...", "-"])
async def test_a_key_is_one_to_64_letters_digits_dots_dashes_and_underscores(desk: Desk, key: str) -> None:
    await desk.memory.set(key, 1)
    assert desk.memory.get(key) == 1


@pytest.mark.parametrize("key", ["", "k" * 65, "a:b", "a b", "a/b", "*", "é", "a\n", "a\0"])
async def test_any_other_key_is_refused(desk: Desk, key: str) -> None:
    with pytest.raises(InvalidInput) as raised:
        await desk.memory.set(key, 1)
    assert raised.value.code == "invalid_working_key"
    assert (await desk.kv.list("")).keys == []


KEY = "agent_working:acme:main:sdr.k"


@pytest.fixture
def kv_down(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Let KV fail, and return what lets it answer again."""

    async def fail(key: str, value: str = "", *, ttl_s: int | None = None) -> None:
        raise Unavailable("429: too many requests", code="kv_unavailable")

    monkeypatch.setattr(desk.kv, "put", fail)
    monkeypatch.setattr(desk.kv, "delete", fail)
    return monkeypatch.undo


async def test_a_copy_that_kv_does_not_take_is_owed_and_paid_with_the_newest_value(
    desk: Desk, kv_down: Callable[[], None]
) -> None:
    await desk.memory.set("k", 1)
    assert desk.memory.get("k") == 1, "a tool that sets one key twice in a second does not fail"
    await desk.memory.set("k", 2)
    assert desk.memory.next_due_ms() == desk.clock() + 2000
    kv_down()
    desk.clock.advance(1999)
    await desk.memory.settle()
    assert await desk.kv.get(KEY) is None, "it is not due yet"
    desk.clock.advance(1)
    await desk.memory.settle()
    assert (await desk.kv.get(KEY), desk.memory.next_due_ms()) == ("2", None)
    desk.clock.advance(HOUR_MS - 2001)
    assert await desk.kv.get(KEY) == "2"
    desk.clock.advance(1)
    assert await desk.kv.get(KEY) is None, "it lives as long as the value, not an hour from the copy"


async def test_owed_copies_wait_longer_after_each_failure_up_to_five_minutes(
    desk: Desk, kv_down: Callable[[], None]
) -> None:
    await desk.memory.set("k", 1)
    waits = []
    for _ in range(9):
        due = desk.memory.next_due_ms()
        assert due is not None
        waits.append(due - desk.clock())
        desk.clock.advance(waits[-1])
        await desk.memory.settle()
    assert waits == [2000, 4000, 8000, 16_000, 32_000, 64_000, 128_000, 256_000, 300_000]
    kv_down()


async def test_what_expired_or_became_pii_while_its_copy_was_owed_is_removed_from_kv(desk: Desk) -> None:
    for key, late in (("gone", 1), ("email", "ann@example.com")):
        await desk.memory.set("k", "old")
        with pytest.MonkeyPatch.context() as patch:

            async def fail(key: str, value: str = "", *, ttl_s: int | None = None) -> None:
                raise Unavailable("KV is down")

            patch.setattr(desk.kv, "put", fail)
            patch.setattr(desk.kv, "delete", fail)
            await desk.memory.set("k", {key: late})
        desk.clock.advance(HOUR_MS - 59_000 if key == "gone" else 2000)
        await desk.memory.settle()
        assert (await desk.kv.get(KEY), desk.memory.next_due_ms()) == (None, None)


async def test_clearing_and_erasing_reach_keys_whose_copy_is_owed(desk: Desk, kv_down: Callable[[], None]) -> None:
    await desk.memory.set("ann", 1)
    await desk.memory.set("bob", 2)
    kv_down()
    await desk.memory.erase(lambda text: "ann" in text)
    desk.clock.advance(2000)
    await desk.memory.settle()
    assert (await desk.kv.list("")).keys == ["agent_working:acme:main:sdr.bob"]
    desk.local.run("INSERT INTO working_copies_owed VALUES ('bob', 1, 0, 0)")
    await desk.memory.clear()
    await desk.memory.settle()
    assert ((await desk.kv.list("")).keys, desk.memory.next_due_ms()) == ([], None)


async def test_clearing_removes_this_instance_s_keys_and_no_other_s(desk: Desk) -> None:
    others = [Desk(tenant, instance, desk.kv, desk.clock) for tenant, instance in (("acme", "main2"), ("acm", "e"))]
    for one in (desk, *others):
        await one.memory.set("k", 1)
        await one.memory.set("k2", 2)
    await desk.memory.clear()
    assert desk.memory.all() == {}
    assert (await desk.kv.list("")).keys == [
        "agent_working:acm:e:sdr.k",
        "agent_working:acm:e:sdr.k2",
        "agent_working:acme:main2:sdr.k",
        "agent_working:acme:main2:sdr.k2",
    ]
    for other in others:
        assert other.memory.all() == {"k": 1, "k2": 2}
        other.local.close()


async def test_an_instances_values_are_its_own_even_if_all_share_kv(desk: Desk) -> None:
    other = Desk("rival", "main", desk.kv, desk.clock)
    await desk.memory.set("k", "mine")
    assert other.memory.get("k") is None
    await other.memory.set("k", "theirs")
    assert desk.memory.get("k") == "mine"
    other.local.close()


async def test_instances_of_two_agents_with_one_id_have_their_own_keys_in_kv(desk: Desk) -> None:
    other = Desk(kv=desk.kv, clock=desk.clock, agent="support")
    await desk.memory.set("current_contact_id", "contact:7")
    await other.memory.set("current_contact_id", "contact:8")
    await other.memory.set("sdr.current_contact_id", "contact:9")
    assert await desk.kv.get("agent_working:acme:main:sdr.current_contact_id") == '"contact:7"'
    assert await desk.kv.get("agent_working:acme:main:support.current_contact_id") == '"contact:8"'
    await desk.memory.erase(lambda text: "contact" in text)
    await desk.memory.clear()
    assert (await desk.kv.list("agent_working:acme:main:")).keys == [
        "agent_working:acme:main:support.current_contact_id",
        "agent_working:acme:main:support.sdr.current_contact_id",
    ]
    other.local.close()


@pytest.mark.parametrize(
    ("key", "value"),
    [("contact", {"userEmail": "ann@shop.example"}), ("contacts", [{"phone": "1"}]), ("email", "ann@shop.example")],
    ids=["in a field", "in a list", "by the key's name"],
)
async def test_a_value_with_pii_is_kept_in_the_instance_and_not_in_kv(desk: Desk, key: str, value: Any) -> None:
    await desk.memory.set(key, None if key == "email" else {})
    await desk.memory.set("email_draft_v2", "Dear Ann")
    await desk.memory.set(key, value)
    assert desk.memory.get(key) == value
    assert (await desk.kv.list("")).keys == ["agent_working:acme:main:sdr.email_draft_v2"]


@pytest.fixture
def writes(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """Return what is written to KV from now on: the call, and the last part of its key."""
    seen: list[tuple[str, str]] = []
    put, delete = desk.kv.put, desk.kv.delete

    async def seen_put(key: str, value: str, *, ttl_s: int | None = None) -> None:
        seen.append(("put", key.rpartition(".")[2]))
        await put(key, value, ttl_s=ttl_s)

    async def seen_delete(key: str) -> None:
        seen.append(("delete", key.rpartition(".")[2]))
        await delete(key)

    monkeypatch.setattr(desk.kv, "put", seen_put)
    monkeypatch.setattr(desk.kv, "delete", seen_delete)
    return seen


async def test_each_change_is_written_to_kv_once_as_kv_takes_one_write_of_a_key_per_second(
    desk: Desk, writes: list[tuple[str, str]]
) -> None:
    for key in ("a", "b", "email"):
        await desk.memory.set(key, "x@shop.example" if key == "email" else 1)
    await desk.memory.settle()
    assert writes == [("put", "a"), ("put", "b"), ("delete", "email")]
    writes.clear()
    await desk.memory.erase(lambda text: text == "a")
    await desk.memory.clear()
    assert writes == [("delete", "a"), ("delete", "b"), ("delete", "email")]


async def test_a_copy_is_due_in_two_seconds_while_it_is_written_so_that_another_object_pays_it(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def die(key: str, value: str, *, ttl_s: int | None = None) -> None:
        raise ConnectionAbortedError

    monkeypatch.setattr(desk.kv, "put", die)
    with pytest.raises(ConnectionAbortedError):
        await desk.memory.set("k", 1)
    assert desk.memory.next_due_ms() == desk.clock() + 2000


async def test_what_has_expired_takes_no_room(desk: Desk) -> None:
    await desk.memory.set("k", "x" * (MAX_TOTAL_BYTES - len('k""')))
    desk.clock.advance(HOUR_MS)
    await desk.memory.set("j", "x" * (MAX_TOTAL_BYTES - len('j""')))
    assert list(desk.memory.all()) == ["j"]


async def test_what_is_erased_or_cleared_is_gone_from_the_instance_with_its_owed_copy(
    desk: Desk, kv_down: Callable[[], None]
) -> None:
    for key in ("ann", "bob"):
        await desk.memory.set(key, key)
        desk.clock.advance(1)
    kv_down()
    await desk.memory.erase(lambda text: text == "ann")
    assert (desk.memory.all(), desk.memory.next_due_ms()) == ({"bob": "bob"}, desk.clock() + 1999)
    await desk.memory.clear()
    assert (desk.memory.all(), desk.memory.next_due_ms()) == ({}, None)


@pytest.mark.parametrize(("left_s", "copied"), [(60, "2"), (59, None)])
async def test_a_late_copy_is_written_while_kv_can_keep_it_as_long_as_the_value_lives(
    desk: Desk, kv_down: Callable[[], None], left_s: int, copied: str | None
) -> None:
    await desk.memory.set("k", 2)
    kv_down()
    desk.clock.advance(HOUR_MS - left_s * 1000)
    await desk.memory.settle()
    assert await desk.kv.get(KEY) == copied


async def test_a_value_that_is_not_copied_for_its_pii_is_in_the_log_by_its_fields(
    desk: Desk, caplog: pytest.LogCaptureFixture
) -> None:
    await desk.memory.set("k", 1)
    assert caplog.messages == []
    await desk.memory.set("k", {"email": "ann@shop.example"})
    assert caplog.messages == ["a working value with PII is not copied to KV"]
