"""What settling a debt leaves in D1 and in the ledger, and how many calls it makes. What is expected is spelled out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from retain.errors import Unavailable
from retain.limits.d1_calls import budget
from retain.memory.indexer import Indexed, Settled
from retain.memory.records.vector_names import record_id_of
from retain.memory.scope import Scope
from retain.ports import VectorEntry
from tests.memory.semantic.agreement import check_agreement
from tests.memory.semantic.indexes import RefusingIndex, _Passing
from tests.memory.semantic.substrate import AGENT, AGENT_SOURCE, PERSON, Substrate
from tests.memory.semantic.test_crash_points import broken, repaired
from tests.memory.semantic.test_reconciling import owe
from tests.memory.semantic.test_written_rows import CountingEmbedder
from tests.support.counted_d1 import CountedD1
from tests.support.faults import Faults

ANN = Scope("acme", "sdr", "sales", user_id="ann")
UNREADABLE = "Заказ отменён"
"""The shipped embedder has no vector for it."""


class WrittenIndex(_Passing):
    """Records the ids of each write and deletion."""

    def __init__(self, substrate: Substrate) -> None:
        super().__init__(substrate.vectors)
        self.written: list[list[str]] = []
        self.deleted: list[list[str]] = []

    async def upsert(self, entries: Sequence[VectorEntry]) -> str:
        self.written.append([entry.id for entry in entries])
        return await super().upsert(entries)

    async def delete_by_ids(self, ids: Sequence[str]) -> str:
        self.deleted.append(list(ids))
        return await super().delete_by_ids(ids)


class RestlessIndex(_Passing):
    """Edits a record whenever its vectors are written, as another writer would, up to a number of times."""

    def __init__(self, substrate: Substrate, record_id: str, times: int) -> None:
        super().__init__(substrate.vectors)
        self._substrate, self._record_id, self._left = substrate, record_id, times
        self.edits = 0

    async def upsert(self, entries: Sequence[VectorEntry]) -> str:
        if self.edits < self._left:
            self.edits += 1
            other = Substrate.memory(self._other())
            await other.edit(self._record_id, {"content": f"Ann keeps {self.edits} canoes."}, PERSON)
        return await super().upsert(entries)

    def _other(self) -> Substrate:
        other = Substrate()
        other.close()
        other.d1 = self._substrate.d1
        other.sql, other.index, other.clock = self._substrate.d1, self._substrate.vectors, self._substrate.clock
        return other


class SlowIndex(_Passing):
    """Takes a minute for each write, which it may refuse in the end."""

    def __init__(self, substrate: Substrate, refused: bool) -> None:
        super().__init__(substrate.vectors)
        self._substrate, self._refused = substrate, refused

    async def upsert(self, entries: Sequence[VectorEntry]) -> str:
        self._substrate.clock.advance(60_000)
        if self._refused:
            raise Unavailable("the index is away")
        return await super().upsert(entries)


async def debts(substrate: Substrate) -> list[tuple[object, ...]]:
    """Return each record's debt: its state, when it was sent or owed, and the failures."""
    rows = await substrate.rows("SELECT state, at_ms, attempts FROM memory_outbox ORDER BY record_id")
    return [tuple(row.values()) for row in rows]


async def parked(substrate: Substrate) -> list[tuple[object, ...]]:
    """Return what the error ledger has."""
    rows = await substrate.rows("SELECT stage, tenant_id, concerns, code, state, attempts, user_id FROM error_ledger")
    return [tuple(row.values()) for row in rows]


async def stored(substrate: Substrate, count: int = 1, scope: Scope = AGENT) -> list[str]:
    """Store records, and forget that the index was sent their vectors."""
    ids = [await substrate.store(f"Parcel number {number} is late.", scope) for number in range(count)]
    await substrate.d1.run("DELETE FROM memory_outbox")
    return ids


async def calls_of(substrate: Substrate, what: str) -> list[str]:
    """Return the calls of the ports that an indexer makes: settling the only record, reconciling, counting, or failing."""
    faults = broken(substrate)
    [record] = await substrate.listed()
    if what == "reconcile":
        await substrate.indexer().reconcile()
    elif what == "count":
        await substrate.indexer().vectors()
    elif what == "down":
        faults.down.add("index")
        assert await substrate.indexer().try_to_settle(record.id) is False
    else:
        await substrate.indexer().settle(record.id)
    repaired(substrate)
    return [point for _, point in faults.trace if not point.endswith(" done")]


def test_a_vector_s_record_is_named_before_the_number_of_its_part() -> None:
    assert record_id_of("01HZZZ#12") == "01HZZZ"


async def test_a_reconciled_debt_stays_as_sent_since_the_index_may_not_show_it_yet(substrate: Substrate) -> None:
    await owe(substrate, await stored(substrate))
    assert await substrate.indexer().reconcile() == Settled(1, 0)
    assert await debts(substrate) == [("sent", substrate.clock(), 0)]


async def test_a_debt_of_a_group_that_failed_stays_as_sent_when_it_is_settled_alone(substrate: Substrate) -> None:
    refused, settled = await stored(substrate, 2)
    substrate.index = RefusingIndex(substrate.vectors, {refused})
    await owe(substrate, [refused, settled])
    assert await substrate.indexer().reconcile() == Settled(1, 1)
    assert [(state, attempts) for state, _, attempts in await debts(substrate)] == [("owed", 1), ("sent", 0)]


@pytest.mark.parametrize(("still_fresh", "left"), [(None, []), (False, []), (True, ["sent"])])
async def test_a_debt_that_is_settled_at_once_stays_as_sent_if_its_vectors_are_fresh(
    substrate: Substrate, still_fresh: bool | None, left: list[str]
) -> None:
    [record_id] = await stored(substrate)
    await owe(substrate, [record_id])
    given = {} if still_fresh is None else {"still_fresh": still_fresh}
    assert await substrate.indexer().try_to_settle(record_id, **given) is True
    assert [state for state, *_ in await debts(substrate)] == left


async def test_settling_one_deletes_its_debt_and_settling_none_works(substrate: Substrate) -> None:
    [record_id] = await stored(substrate)
    await owe(substrate, [record_id])
    assert await substrate.indexer().try_to_settle() is True
    await substrate.indexer().settle(record_id)
    assert await debts(substrate) == []


async def test_the_debt_of_a_record_that_is_gone_is_deleted_however_it_is_settled(substrate: Substrate) -> None:
    [record_id] = await stored(substrate)
    await owe(substrate, [record_id])
    await substrate.d1.run("DELETE FROM memory_search")
    await substrate.d1.run("DELETE FROM memory_records")
    await substrate.indexer().reconcile()
    assert await debts(substrate) == []
    assert substrate.vectors.held() == {}


async def test_a_failure_is_parked_from_the_third_on_and_settled_with_the_debt(substrate: Substrate) -> None:
    first, second, third = await stored(substrate, 3, ANN)
    index = RefusingIndex(substrate.vectors, {first, second})
    substrate.index = index
    await owe(substrate, [first, second])
    seen = []
    for _ in range(3):
        assert await substrate.indexer().reconcile() == Settled(0, 2)
        seen.append(len(await parked(substrate)))
        substrate.clock.advance(3_600_000)
    assert seen == [0, 0, 2]
    entry = ("vectors", "acme", first, "upstream_failed", "parked", 3, "ann")
    assert entry in await parked(substrate)
    index.refused.remove(first)
    await owe(substrate, [third])
    substrate.clock.advance(3_600_000)
    assert await substrate.indexer().reconcile() == Settled(2, 1)
    states = {str(concerns): (state, attempts) for _, _, concerns, _, state, attempts, _ in await parked(substrate)}
    assert states == {first: ("replayed", 3), second: ("parked", 4)}


async def test_a_debt_is_settled_by_these_calls_each_made_once(substrate: Substrate) -> None:
    [record_id] = await stored(substrate)
    await owe(substrate, [record_id])
    await substrate.d1.run("UPDATE memory_outbox SET parts = 2")
    settling = ["sql.batch", "embedder.embed", "index.upsert", "index.delete_by_ids", "sql.batch"]
    assert await calls_of(substrate, "settle") == settling
    await owe(substrate, [record_id])
    await substrate.d1.run("UPDATE memory_outbox SET parts = 2, attempts = 3")
    assert await calls_of(substrate, "reconcile") == ["sql.batch", *settling, "sql.batch"], "the ledger is last"
    await substrate.memory().edit(record_id, {"content": "Ann keeps a canoe."}, PERSON)
    await substrate.d1.run("DELETE FROM memory_earlier")
    await substrate.d1.run("DELETE FROM memory_outbox")
    await owe(substrate, [record_id])
    assert await calls_of(substrate, "settle") == [
        *("sql.batch", "embedder.embed", "sql.batch"),
        *("embedder.embed", "index.upsert", "sql.batch"),
    ]
    await substrate.d1.run("DELETE FROM memory_outbox")
    await owe(substrate, [record_id])
    await substrate.d1.run("UPDATE memory_outbox SET attempts = 2")
    assert await calls_of(substrate, "down") == [
        "sql.batch",
        "embedder.embed",
        "index.upsert",
        "sql.batch",
        "sql.batch",
    ]
    assert await calls_of(substrate, "count") == ["index.count"]
    assert await substrate.indexer().vectors() == 1


async def test_a_success_after_two_failures_leaves_the_ledger_alone(substrate: Substrate) -> None:
    [record_id] = await stored(substrate)
    index = RefusingIndex(substrate.vectors, {record_id})
    substrate.index = index
    await owe(substrate, [record_id])
    for _ in range(2):
        await substrate.indexer().reconcile()
        substrate.clock.advance(3_600_000)
    index.refused.clear()
    counted = Faults(lambda owner: None)
    substrate.sql = counted.wrap("sql", substrate.d1, counted.life("reconciler"))
    assert await substrate.indexer().reconcile() == Settled(1, 0)
    calls = [point for _, point in counted.trace if not point.endswith(" done")]
    assert calls == ["sql.batch"] * 3, "the debts, what is owed, and what is settled"
    assert await parked(substrate) == []


async def test_a_failure_that_cannot_be_noted_either_is_left_to_the_reconciler(substrate: Substrate) -> None:
    [record_id] = await stored(substrate)
    await owe(substrate, [record_id])
    faults = Faults(lambda owner: None)
    substrate.sql = faults.wrap("sql", substrate.d1, faults.life("writer"))
    faults.down.add("sql")
    assert await substrate.indexer().try_to_settle(record_id) is False
    assert [(state, attempts) for state, _, attempts in await debts(substrate)] == [("owed", 0)]


async def test_a_record_that_changes_while_it_is_settled_is_settled_again(substrate: Substrate) -> None:
    [record_id] = await stored(substrate)
    await owe(substrate, [record_id])
    substrate.index = RestlessIndex(substrate, record_id, 1)
    counting = CountingEmbedder(substrate.embedder)
    substrate.embedder = counting
    await substrate.indexer().settle(record_id)
    assert counting.asked == [["Parcel number 0 is late."], ["Ann keeps 1 canoes."]]
    await substrate.reconcile()
    await check_agreement(substrate)


async def test_a_record_that_never_rests_is_given_up_after_five_tries(substrate: Substrate) -> None:
    [record_id] = await stored(substrate)
    await owe(substrate, [record_id])
    substrate.index = restless = RestlessIndex(substrate, record_id, 9)
    with pytest.raises(Unavailable) as raised:
        await substrate.indexer().settle(record_id)
    assert (raised.value.code, restless.edits) == ("contended", 5)


async def test_debts_are_settled_twenty_at_a_time_and_the_failures_of_one_group_hold_up_no_other(
    substrate: Substrate,
) -> None:
    await owe(substrate, await stored(substrate, 41))
    counting = CountingEmbedder(substrate.embedder)
    substrate.embedder = counting
    assert await substrate.indexer().reconcile() == Settled(41, 0)
    assert [len(texts) for texts in counting.asked] == [20, 20, 1]


async def test_the_groups_after_one_that_fails_are_settled(substrate: Substrate) -> None:
    ids = await stored(substrate, 21)
    substrate.index = RefusingIndex(substrate.vectors, {ids[0]})
    await owe(substrate, ids)
    assert await substrate.indexer().reconcile() == Settled(20, 1)


async def test_a_reconciler_takes_five_hundred_debts_unless_it_is_given_another_number(substrate: Substrate) -> None:
    [record_id] = await stored(substrate)
    await owe(substrate, [record_id])
    copies = "SELECT record_id || value, tenant_id, scope_id, 0, state, at_ms, due_at_ms, writers"
    await substrate.d1.run(
        "INSERT INTO memory_outbox (record_id, tenant_id, scope_id, parts, state, at_ms, due_at_ms, writers)"
        f" {copies} FROM memory_outbox, (WITH RECURSIVE n(value) AS (SELECT 1 UNION ALL SELECT value + 1 FROM n LIMIT 500)"
        " SELECT value FROM n)"
    )
    assert await substrate.indexer().reconcile() == Settled(500, 0)
    assert await substrate.indexer().reconcile() == Settled(1, 0)


async def test_a_reconciler_ends_with_the_calls_of_d1_and_counts_no_failure_then(substrate: Substrate) -> None:
    await owe(substrate, await stored(substrate, 60))
    substrate.sql = CountedD1(substrate.d1)
    counting = CountingEmbedder(substrate.embedder)
    substrate.embedder = counting
    with budget(4):  # the debts, a group's two, and the first of the next group
        assert await substrate.indexer().reconcile() == Settled(20, 0)
    assert [len(texts) for texts in counting.asked] == [20, 20]


@pytest.mark.parametrize(
    ("refused", "settled"), [(False, Settled(40, 0)), (True, Settled(0, 1))], ids=["slow", "refused"]
)
async def test_a_reconciler_ends_after_two_minutes(substrate: Substrate, refused: bool, settled: Settled) -> None:
    await owe(substrate, await stored(substrate, 60))
    substrate.index = SlowIndex(substrate, refused)
    began = substrate.clock()
    assert await substrate.indexer().reconcile() == settled
    assert substrate.clock() - began == 120_000


async def test_vectors_are_written_by_five_hundreds_and_deleted_by_thousands(substrate: Substrate) -> None:
    [record_id] = await stored(substrate)
    await owe(substrate, [record_id])
    substrate.index = index = WrittenIndex(substrate)
    record = await substrate.record(record_id)
    [indexed] = await substrate.indexer().read([record])
    await substrate.indexer().write([(record, Indexed(indexed.prepared, [indexed.vectors[0]] * 1001))])
    assert [len(ids) for ids in index.written] == [500, 500, 1]
    await substrate.d1.run("UPDATE memory_outbox SET parts = 2002")
    await substrate.indexer().settle(record_id)
    assert [len(ids) for ids in index.deleted] == [1000, 1000, 1]
    deleted = [number for ids in index.deleted for number in ids]
    assert (deleted[0], deleted[-1]) == (f"{record_id}#1", f"{record_id}#2001")
    assert substrate.vectors.held().keys() == {f"{record_id}#0"}


async def test_of_a_record_that_is_gone_the_first_vector_is_deleted_and_none_before_it(substrate: Substrate) -> None:
    [record_id] = await stored(substrate)
    substrate.index = index = WrittenIndex(substrate)
    await substrate.memory().delete(record_id, PERSON)
    assert index.deleted == [[f"{record_id}#0"]]


async def test_a_text_without_a_vector_has_none_in_the_index_and_a_changed_record_owes_none(
    substrate: Substrate,
) -> None:
    record_id = await substrate.store(UNREADABLE)
    record = await substrate.record(record_id)
    indexer = substrate.indexer()
    assert [list(one.vectors) for one in await indexer.read([record])] == [[]]
    assert substrate.vectors.held() == {}
    await substrate.d1.run("DELETE FROM memory_outbox")
    closed = replace(record, valid_to_ms=5)
    await substrate.d1.batch(list(indexer.debts({record_id: (record, closed)}).values()))
    assert await substrate.rows("SELECT parts, changed FROM memory_outbox") == [{"parts": 0, "changed": 0}]
    assert indexer.debts({record_id: (record, record)}) == {}


async def test_a_vector_names_the_first_64_characters_of_its_model_and_the_run_it_was_learned_from(
    substrate: Substrate,
) -> None:
    record = await substrate.record(await substrate.store("Ann likes tea.", AGENT, AGENT_SOURCE))
    named = CountingEmbedder(substrate.embedder)
    named.model = "".join(chr(ord("a") + number % 26) for number in range(70))
    substrate.embedder = named
    metadata = substrate.indexer().metadata
    assert metadata(record)["model"] == named.model[:60] + "ijkl"
    assert "learned_from_run_id" not in metadata(record)
    assert metadata(replace(record, source={"run_id": "run-1"}))["learned_from_run_id"] == "run-1"
    assert "learned_from_run_id" not in metadata(replace(record, source={"run_id": 1}))


async def test_earlier_texts_of_another_model_are_indexed_to_the_last_page(substrate: Substrate) -> None:
    [record_id] = await stored(substrate)
    for number in range(60):
        substrate.clock.advance(1)
        await substrate.memory().edit(record_id, {"content": f"Ann keeps {number} canoes."}, PERSON)
    other = CountingEmbedder(substrate.embedder)
    other.model = "another"
    substrate.embedder = other
    await substrate.indexer().settle(record_id)
    [found] = await substrate.rows("SELECT COUNT(*) AS n FROM memory_earlier WHERE embedding_model = 'another'")
    assert found["n"] == 60
    assert [len(texts) for texts in other.asked[:2]] == [50, 10]
