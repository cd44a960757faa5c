"""What an isolate keeps of fresh records' signatures: never stale, never another tenant's, and bounded."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from retain.memory.filters import UNCONDITIONAL
from retain.memory.recall.candidates import Visible
from retain.memory.recall.sources import fresh
from retain.memory.recall.sources.fresh import KEPT_MS, LATE_MS, FreshReading, KeptSignatures
from retain.memory.scope import Reach, Scope
from retain.ports import Row, SqlResult, SqlValue, Statement
from tests.memory.semantic.indexes import LaggingIndex
from tests.memory.semantic.notes import NOTES, fill
from tests.memory.semantic.substrate import AGENT, HOUSE, PERSON, Substrate
from tests.support.instances import shipped_embedder

CAT, BICYCLE = NOTES[1], NOTES[0]
QUERIES = ("feline napping", "cycling in warm months", "boat motor", "bills and payments")


class Watched:
    """D1, with the signatures that each recall's first trip returned, and its calls."""

    def __init__(self, substrate: Substrate) -> None:
        self._sql = substrate.d1
        self.returned: list[int] = []
        self.calls = 0

    async def run(self, sql: str, *values: SqlValue) -> SqlResult:
        self.calls += 1
        return await self._sql.run(sql, *values)

    async def batch(self, statements: Sequence[Statement]) -> list[SqlResult]:
        self.calls += 1
        results = await self._sql.batch(statements)
        for result in results:
            if result.rows and "names" in result.rows[0]:
                given = (result.rows[0]["signatures"] or "").split(",")
                self.returned.append(sum(1 for one in given if one))
        return results


@pytest.fixture
def watched(substrate: Substrate) -> Watched:
    """Let the index be late, and watch D1."""
    substrate.index = LaggingIndex(substrate.vectors, substrate.clock, 600_000)
    substrate.sql = found = Watched(substrate)
    return found


async def hits(substrate: Substrate, query: str, scope: Scope = AGENT) -> list[tuple[str, float]]:
    """Return what is found, with scores."""
    return [(hit.record.id, hit.score) for hit in await substrate.hits(query, scope, top_k=50)]


async def assert_as_in_a_new_isolate(substrate: Substrate, *scopes: Scope) -> None:
    """Compare what is found with what an isolate finds that has read nothing yet."""
    kept = substrate.kept
    for scope in scopes or (AGENT,):
        for query in QUERIES:
            found = await hits(substrate, query, scope)
            substrate.kept = KeptSignatures()
            assert found == await hits(substrate, query, scope)
            substrate.kept = kept


async def test_signatures_are_read_once_and_then_only_those_of_newer_writes(
    substrate: Substrate, watched: Watched
) -> None:
    await fill(substrate)
    substrate.clock.advance(LATE_MS + 1)
    first = await hits(substrate, "feline napping")
    assert await hits(substrate, "feline napping") == first
    await substrate.store("Ships have engines.")
    await hits(substrate, "boat motor")
    assert watched.returned == [len(NOTES), 0, 1]
    await assert_as_in_a_new_isolate(substrate)


async def test_what_was_written_just_now_is_read_again_because_others_may_commit_later(
    substrate: Substrate, watched: Watched
) -> None:
    await fill(substrate)
    await hits(substrate, "feline napping")
    substrate.clock.advance(LATE_MS - 1)
    await hits(substrate, "feline napping")
    assert watched.returned == [len(NOTES)] * 2


@pytest.mark.parametrize("back_ms", [0, 1, LATE_MS, 60_000])
async def test_a_write_whose_clock_is_behind_is_found_by_its_meaning(
    substrate: Substrate, watched: Watched, back_ms: int
) -> None:
    await fill(substrate, (NOTES[0], *NOTES[2:]))
    substrate.clock.advance(LATE_MS + 1)
    now_ms = substrate.clock()
    await hits(substrate, "feline napping")
    substrate.clock.set(now_ms - LATE_MS - 1 - back_ms)
    await substrate.store(CAT)
    substrate.clock.set(now_ms)
    before = watched.calls
    assert await substrate.found("feline napping", top_k=1) == [CAT]
    assert watched.calls - before == 3, "its signature is read in a trip of its own"
    await hits(substrate, "feline napping")
    assert watched.calls - before == 5, "once"
    await assert_as_in_a_new_isolate(substrate)


async def test_an_edit_is_found_by_its_new_meaning_whatever_the_clock_says(
    substrate: Substrate, watched: Watched
) -> None:
    """The index is owed the last version at the very time at which it was owed the first."""
    record_id = await substrate.store("Ships have engines.")
    await fill(substrate, (NOTES[0], *NOTES[2:]))
    stored_ms = substrate.clock()
    substrate.clock.advance(LATE_MS + 1)
    await hits(substrate, "feline napping")
    substrate.clock.set(stored_ms - 1)
    await substrate.memory().edit(record_id, {"content": "Trains have wheels."}, PERSON)
    substrate.clock.set(stored_ms)
    await substrate.memory().edit(record_id, {"content": CAT}, PERSON)
    owed = await substrate.rows("SELECT at_ms FROM memory_outbox WHERE record_id = ?", record_id)
    assert owed == [{"at_ms": stored_ms}]
    substrate.clock.set(stored_ms + LATE_MS + 1)
    assert await substrate.found("feline napping", top_k=1) == [CAT]
    assert watched.returned[-1] == 0
    await assert_as_in_a_new_isolate(substrate)


async def test_vectors_that_a_model_of_the_same_name_makes_again_are_read(
    substrate: Substrate, watched: Watched
) -> None:
    """A provider may change what a name means. The index is owed the record again, here by a clock that is behind."""
    stored_ms = substrate.clock()
    record_id = await substrate.store("Ships have engines.")
    await substrate.store(CAT)
    substrate.clock.advance(LATE_MS + 1)
    await hits(substrate, "feline napping")
    [cat] = await substrate.rows("SELECT signature FROM memory_search ORDER BY number DESC LIMIT 1")
    await substrate.rows(
        "UPDATE memory_search SET signature = ? WHERE number = (SELECT number FROM memory_records WHERE id = ?)",
        cat["signature"],
        record_id,
    )
    await substrate.rows("UPDATE memory_outbox SET at_ms = ? WHERE record_id = ?", stored_ms - 1, record_id)
    both = await substrate.hits("feline napping")
    assert len({hit.components["vector"] for hit in both}) == 1
    assert watched.returned == [2, 0]


async def test_what_is_deleted_or_no_longer_valid_is_not_found(substrate: Substrate, watched: Watched) -> None:
    await fill(substrate)
    expiring = await substrate.store("A kitten dozes.", expires_at_ms=substrate.clock() + LATE_MS + 2)
    substrate.clock.advance(LATE_MS + 1)
    assert expiring in dict(await hits(substrate, "feline napping"))
    [record_id] = [record.id for record in await substrate.listed() if record.content == CAT]
    await substrate.memory().delete(record_id, PERSON)
    substrate.clock.advance(1)
    assert dict(await hits(substrate, "feline napping")).keys().isdisjoint((record_id, expiring))
    assert substrate.kept.count == len(NOTES) - 1
    await assert_as_in_a_new_isolate(substrate)


async def test_another_model_s_signatures_are_read(substrate: Substrate, watched: Watched) -> None:
    class Renamed:
        model, dimensions = "another", shipped_embedder().dimensions

        async def embed(self, texts: Sequence[str]) -> list[list[float]]:
            return [[-value for value in vector] for vector in await shipped_embedder().embed(texts)]

    await fill(substrate)
    substrate.clock.advance(LATE_MS + 1)
    await hits(substrate, "feline napping")
    substrate.embedder = Renamed()
    await substrate.store("A kitten dozes.")
    assert await substrate.found("feline napping", top_k=1) == ["A kitten dozes."]
    assert watched.returned == [len(NOTES), 1]
    await assert_as_in_a_new_isolate(substrate)


async def test_scopes_and_tenants_keep_their_own(substrate: Substrate, watched: Watched) -> None:
    other = Scope("globex", "sdr", "sales")
    await fill(substrate, (CAT, BICYCLE))
    await fill(substrate, (CAT, BICYCLE), scope=HOUSE)
    await fill(substrate, (BICYCLE,), scope=other)
    substrate.clock.advance(LATE_MS + 1)
    for scope in (AGENT, HOUSE, other, AGENT, HOUSE, other):
        await hits(substrate, "feline napping", scope)
    assert watched.returned == [4, 2, 1, 0, 0, 0]
    assert await substrate.found("feline napping", other) == [BICYCLE]
    await assert_as_in_a_new_isolate(substrate, AGENT, HOUSE, other)


@pytest.mark.parametrize(
    ("tenant", "scopes", "whole", "model"),
    [
        ("globex", ("agent.sdr",), False, "table"),
        ("acme", ("agent.clerk",), False, "table"),
        ("acme", ("agent.sdr", "tenant"), False, "table"),
        ("acme", ("agent.sdr",), True, "table"),
        ("acme", ("agent.sdr",), False, "another"),
    ],
    ids=["tenant", "scope", "scopes", "whole tenant", "model"],
)
async def test_nothing_kept_for_one_view_is_taken_for_another(
    substrate: Substrate, tenant: str, scopes: tuple[str, ...], whole: bool, model: str
) -> None:
    """Even if D1 would name records of both alike."""
    kept = KeptSignatures()

    def reading(reach: Reach, by: str) -> FreshReading:
        return FreshReading(kept, Visible(reach, 9_000, None, UNCONDITIONAL, ()), by, 0, 9_000)

    row: Row = {"names": "id.hash1", "changed": "0", "signatures": "f", "latest": 1}
    own = Reach("acme", ("agent.sdr",))
    assert (await reading(own, "table").read(row, substrate.d1)).signatures == [15]
    assert reading(own, "table").statement()[1][5] == 1
    assert (await reading(own, "table").read({**row, "signatures": ""}, substrate.d1)).signatures == [15]
    other = reading(Reach(tenant, scopes, whole=whole), model)
    assert other.statement()[1][5] == -1
    assert (await other.read({**row, "signatures": ""}, substrate.d1)).ids == []


async def test_a_filter_and_another_time_read_what_they_need(substrate: Substrate, watched: Watched) -> None:
    await fill(substrate, NOTES[2:])
    later_ms = substrate.clock() + 3_600_000
    await substrate.store(CAT, metadata={"pet": "cat"}, valid_from_ms=later_ms)
    await substrate.store("A kitten dozes.", metadata={"pet": "kitten"})
    substrate.clock.advance(LATE_MS + 1)
    await hits(substrate, "feline napping")
    kept = substrate.kept.count
    assert await substrate.found("feline napping", filter={"metadata.pet": "kitten"}) == ["A kitten dozes."]
    assert substrate.kept.count == kept
    assert CAT in await substrate.found("feline napping", valid_at_ms=later_ms)
    assert substrate.kept.count == kept
    assert CAT not in await substrate.found("feline napping")
    assert watched.returned[-1] == 0


async def test_what_is_kept_is_bounded_and_the_view_that_was_used_last_stays(
    substrate: Substrate, watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fresh, "KEPT_LIMIT", 10)
    scopes = [Scope("acme", f"agent_{number}", "sales") for number in range(5)]
    for scope in scopes:
        await fill(substrate, NOTES[:4], scope=scope)
    substrate.clock.advance(LATE_MS + 1)
    for scope in scopes:
        await hits(substrate, "feline napping", scope)
        assert substrate.kept.count <= 10
    watched.returned.clear()
    for scope in (scopes[4], scopes[3], scopes[0], scopes[3], scopes[4]):
        await hits(substrate, "feline napping", scope)
    assert watched.returned == [0, 0, 4, 0, 4]


async def test_a_recall_does_not_look_at_what_is_kept_of_all_others(
    substrate: Substrate, watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thousand users who were written for lately: the view that needs their room costs as much as it takes from them."""
    looked = 0

    class Counted(dict[str, int]):
        def __len__(self) -> int:
            nonlocal looked
            looked += 1
            return super().__len__()

    monkeypatch.setattr(fresh, "KEPT_LIMIT", 1000)
    for number in range(1000):
        view = ("globex", (f"user.{number}",), False, "model")
        substrate.kept.put(view, fresh._KeptView(by_name=Counted({f"{number}": 1}), at_ms=substrate.clock()))
    await fill(substrate)
    looked = 0
    await hits(substrate, "feline napping")
    assert looked == len(NOTES), "as many as make room"
    assert substrate.kept.count == 1000
    assert substrate.kept.of(("globex", ("user.0",), False, "model"), substrate.clock()).by_name == {}
    assert substrate.kept.of(("globex", ("user.999",), False, "model"), substrate.clock()).by_name == {"999": 1}


async def test_what_nobody_uses_is_forgotten_after_a_while(substrate: Substrate, watched: Watched) -> None:
    await fill(substrate)
    substrate.clock.advance(LATE_MS + 1)
    await hits(substrate, "feline napping")
    assert substrate.kept.count == len(NOTES)
    substrate.clock.advance(KEPT_MS + 1)
    await hits(substrate, "feline napping", Scope("globex", "sdr"))
    assert substrate.kept.count == 0


@pytest.mark.parametrize("seed", range(4))
async def test_whatever_happens_an_isolate_finds_what_a_new_one_finds(
    substrate: Substrate, watched: Watched, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Writes of all kinds by clocks that go back and forth, in two scopes, between the recalls of two isolates."""
    monkeypatch.setattr(fresh, "FRESH_LIMIT", 6)
    monkeypatch.setattr(fresh, "KEPT_LIMIT", 14)
    chance = random.Random(seed)
    isolates = [KeptSignatures(), KeptSignatures()]
    for number in range(30):
        substrate.clock.advance(chance.choice((0, 0, 1, 700, LATE_MS, 30_000, -1, -700, -LATE_MS)))
        substrate.kept = chance.choice(isolates)
        scope, text = chance.choice((AGENT, HOUSE)), f"{chance.choice(NOTES)} {number % 3}"
        ids = [record.id for record in await substrate.listed()]
        what = chance.choice(("store", "store", "edit", "delete", "invalidate", "settle", "recall"))
        if what == "store" or not ids:
            await substrate.store(text, scope)
        elif what == "edit":
            record = await substrate.record(chance.choice(ids))
            if all(one.content != text for one in await substrate.listed()):
                await substrate.memory(HOUSE).edit(record.id, {"content": text}, PERSON)
        elif what == "delete":
            await substrate.memory(HOUSE).delete(chance.choice(ids), PERSON)
        elif what == "invalidate":
            await substrate.memory(HOUSE).invalidate(chance.choice(ids), substrate.clock(), PERSON)
        elif what == "settle":
            await substrate.indexer().reconcile()
        await assert_as_in_a_new_isolate(substrate, scope)
