"""The phases: what allows one to begin, what blocks it, how to roll back; and a backfill that is interrupted."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from retain.errors import Conflict, InvalidInput, Unavailable
from retain.items.rekeying.compatible import ReadOutcome
from retain.items.rekeying.flags import Namespacing
from retain.items.rekeying.migration import TIERS, Migration
from retain.items.rekeying.obstacles import (
    BackfillIncomplete,
    CyclesUnstable,
    FlagsDiffer,
    HitRateLow,
    NoPatterns,
    Obstacle,
    ValuesRefused,
    in_words,
    obstacles,
)
from retain.items.rekeying.phases import MIN_READS, Counts, below, verdict
from retain.items.rekeying.reads import SETTLE_MS
from retain.items.tiers.sql_warm import SqlWarm
from tests.items.rekeying.deployment import Deployment, Isolate
from tests.support.faults import Fault, Faults


@pytest.fixture
async def deployment() -> AsyncIterator[Deployment]:
    made = Deployment()
    yield made
    made.close()


async def _blocked(isolate: Isolate) -> list[Obstacle]:
    migration = isolate.migration()
    return migration.blocked(await migration.standing())


async def _refused(isolate: Isolate, to: int) -> Conflict:
    with pytest.raises(Conflict) as raised:
        await isolate.migration().advance(to)
    return raised.value


async def _phase(isolate: Isolate) -> int:
    return (await isolate.migration().standing()).phase


@pytest.mark.parametrize("both", [(False, False), (True, True), (True, False)], ids=str)
async def test_phase_1_requires_its_flags(deployment: Deployment, both: tuple[bool, bool]) -> None:
    refusal = await _refused(deployment.isolate(*both), 1)
    assert refusal.code == "not_ready"
    assert "MEMORY_NAMESPACE_WRITE_CANONICAL=false" in str(refusal.details["obstacles"])
    assert await _phase(deployment.isolate(*both)) == 0


async def test_without_patterns_there_is_nothing_to_migrate() -> None:
    assert obstacles(1, Namespacing(False, True), 0.99, [], [], ()) == [NoPatterns()]


@pytest.mark.parametrize(
    ("obstacle", "words"),
    [
        (NoPatterns(), "MEMORY_NAMESPACE_LEGACY_PATTERNS is empty: there is nothing to migrate"),
        (
            FlagsDiffer(True, False),
            "deploy MEMORY_NAMESPACE_WRITE_CANONICAL=true, MEMORY_NAMESPACE_COMPAT_READ=false",
        ),
        (BackfillIncomplete("warm", "{entityId}"), "the backfill of {entityId} in the warm tier is not complete"),
        (ValuesRefused("cold", "{entityId}", 2), "2 values of {entityId} in the cold tier could not be copied"),
        (CyclesUnstable(()), "the last 2 release cycles must be stable, but are: none"),
        (
            CyclesUnstable(("stable", "below_baseline")),
            "the last 2 release cycles must be stable, but are: stable, below_baseline",
        ),
        (HitRateLow(0.99, ("cold", "warm")), "the canonical hit rate is below the baseline of 0.99 in: cold, warm"),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, str) else "",
)
def test_every_obstacle_is_explained_in_words(obstacle: Obstacle, words: str) -> None:
    assert in_words(obstacle) == words


async def test_phases_follow_one_after_another_and_repeating_one_changes_nothing(deployment: Deployment) -> None:
    first = deployment.isolate(False, True)
    assert (await _refused(first, 2)).code == "wrong_phase"
    with pytest.raises(Conflict) as raised:
        await first.migration().roll_back(-1)
    assert raised.value.code == "wrong_phase"
    since = (await first.migration().advance(1, 0.9)).since_ms
    deployment.clock.advance(1000)
    again = await first.migration().advance(1)
    assert (again.since_ms, again.baseline, len(again.cycles)) == (since, 0.9, 1)
    assert (await _refused(first, 3)).code == "wrong_phase"
    assert (await _refused(first, 2)).code == "not_ready"
    assert (await deployment.isolate(True, True).migration().advance(2)).phase == 2


@pytest.mark.parametrize("baseline", [0.0, 1.1, -1.0, float("nan")])
async def test_a_baseline_is_a_share(deployment: Deployment, baseline: float) -> None:
    with pytest.raises(InvalidInput) as raised:
        await deployment.isolate(False, True).migration().advance(1, baseline)
    assert raised.value.code == "invalid_baseline"


async def test_phase_3_waits_for_the_backfill_and_for_two_stable_cycles(deployment: Deployment) -> None:
    await SqlWarm(deployment.sql, "acme", deployment.clock).upsert("acme:s1:cart:active", "old")
    isolate = await deployment.to_phase_2()
    *unfilled, cycles = await _blocked(isolate)
    assert {one.tier for one in unfilled if isinstance(one, BackfillIncomplete)} == set(TIERS)
    assert len(unfilled) == 4
    assert cycles == CyclesUnstable(())
    await deployment.backfilled(isolate)
    await deployment.stable_cycle(isolate, "1.1.0")
    assert await _blocked(isolate) == [CyclesUnstable(("stable",))]
    assert (await _refused(isolate, 3)).code == "not_ready"
    await deployment.stable_cycle(isolate, "1.2.0")
    assert await _blocked(isolate) == []
    assert (await isolate.migration().advance(3)).phase == 3


@pytest.mark.parametrize(
    ("reads", "verdict"),
    [
        ({ReadOutcome.CANONICAL: MIN_READS - 1}, "too_few_reads"),
        ({ReadOutcome.ABSENT: 10 * MIN_READS}, "too_few_reads"),
        ({ReadOutcome.CANONICAL: 98 * 2, ReadOutcome.LEGACY: 2 * 2}, "below_baseline"),
    ],
    ids=["few", "misses alone", "legacy hits"],
)
async def test_an_unstable_cycle_blocks_phase_3_until_two_stable_ones_follow(
    deployment: Deployment, reads: dict[ReadOutcome, int], verdict: str
) -> None:
    isolate = await deployment.to_phase_2()
    await deployment.backfilled(isolate)
    await deployment.stable_cycle(isolate, "1")
    for where, number in reads.items():
        for _ in range(number):
            isolate.reads.found("warm", where)
    await isolate.reads.flush()
    assert (await isolate.migration().release("2")).cycles[-2].verdict == verdict
    await deployment.stable_cycle(isolate, "3")
    assert (await _refused(isolate, 3)).code == "not_ready"
    await deployment.stable_cycle(isolate, "4")
    assert (await isolate.migration().advance(3)).phase == 3


async def test_phase_3_is_refused_below_the_current_baseline_whatever_the_cycles_were(deployment: Deployment) -> None:
    isolate = await deployment.to_phase_2()
    await deployment.backfilled(isolate)
    await deployment.stable_cycle(isolate, "1")
    await deployment.stable_cycle(isolate, "2")
    isolate.reads.found("cold", ReadOutcome.LEGACY)
    await isolate.reads.flush()
    refusal = await _refused(isolate, 3)
    assert refusal.details["obstacles"] == ["the canonical hit rate is below the baseline of 0.99 in: cold"]


async def test_a_release_is_recorded_once_and_from_phase_1_on(deployment: Deployment) -> None:
    isolate = deployment.isolate(False, True)
    with pytest.raises(Conflict) as raised:
        await isolate.migration().release("1")
    assert raised.value.code == "wrong_phase"
    await isolate.migration().advance(1)
    first = await isolate.migration().release("1")
    assert (await isolate.migration().release("1")).cycles == first.cycles
    for name in ("", "a b", "x" * 65, "phase 2"):
        with pytest.raises(InvalidInput) as refused:
            await isolate.migration().release(name)
        assert refused.value.code == "invalid_release"


async def _rows(deployment: Deployment) -> list[dict[str, object]]:
    return await deployment.rows("SELECT * FROM memory_items ORDER BY key")


async def test_rolling_back_is_always_allowed_and_removes_nothing(deployment: Deployment) -> None:
    await SqlWarm(deployment.sql, "acme", deployment.clock).upsert("acme:s1:cart:active", "old")
    isolate = await deployment.to_phase_2()
    await deployment.backfilled(isolate)
    for name in ("1", "2"):
        await deployment.stable_cycle(isolate, name)
    await isolate.migration().advance(3)
    before, objects = await _rows(deployment), await deployment.objects.list("")
    late = deployment.isolate(True, False)
    for _ in range(20):
        await late.warm().read("crm:acme:s1:cart:none")
    with pytest.raises(Conflict) as raised:
        await late.migration().roll_back(1)
    assert raised.value.code == "wrong_phase"
    assert (await late.migration().roll_back(2)).phase == 2
    assert (await late.migration().roll_back(2)).phase == 2
    assert (await _refused(deployment.isolate(True, True), 3)).code == "not_ready"  # two stable cycles again
    assert (await late.migration().roll_back(1)).phase == 1
    assert (await late.migration().roll_back(0)).phase == 0
    assert (await _rows(deployment), await deployment.objects.list("")) == (before, objects)


async def test_phase_3_advises_a_roll_back_when_misses_could_have_been_answered(deployment: Deployment) -> None:
    isolate = await deployment.to_phase_2()
    await deployment.backfilled(isolate)
    for name in ("1", "2"):
        await deployment.stable_cycle(isolate, name)
    await isolate.migration().advance(3)
    await SqlWarm(deployment.sql, "acme", deployment.clock).upsert("acme:s1:cart:late", "written by an old service")
    late = deployment.isolate(True, False)
    await deployment.objects.put("acme:s1:cart:late", b"written by an old service")
    for _ in range(20):  # each request creates its own tiers
        assert await late.cold().download_text("crm:acme:s1:cart:late") is None
        assert await late.warm().find("crm:acme:s1:cart:late") is None
    await late.reads.flush()
    migration = late.migration()
    shown = migration.shown(await migration.standing())
    assert (shown["below_baseline"], shown["roll_back"]) == (["cold", "warm"], True)


async def test_of_two_concurrent_phase_changes_one_is_refused(deployment: Deployment) -> None:
    await deployment.isolate(False, True).migration().advance(1)
    isolate = deployment.isolate(True, True)
    standing = await isolate.migration().standing()
    await isolate.migration().advance(2)

    class Late(Migration):
        async def standing(self):  # type: ignore[no-untyped-def]
            return standing

    late = Late(deployment.sql, deployment.clock, isolate.flags)
    for act in (late.advance(2), late.release("9"), late.roll_back(0)):
        with pytest.raises(Conflict) as raised:
            await act
        assert raised.value.code == "migration_moved"
    assert len((await isolate.migration().standing()).cycles) == 2


@pytest.mark.parametrize("phase", ["none", "phase 1", "unsettled", "other flags"])
async def test_nothing_is_backfilled_outside_a_settled_phase_2(deployment: Deployment, phase: str) -> None:
    isolate = deployment.isolate(True, True)
    if phase != "none":
        await deployment.isolate(False, True).migration().advance(1)
    if phase in ("unsettled", "other flags"):
        await isolate.migration().advance(2)
        deployment.clock.advance(SETTLE_MS - (phase == "unsettled"))
    if phase == "other flags":
        isolate = deployment.isolate(False, True)
    with pytest.raises(Conflict) as raised:
        await isolate.backfill().step()
    assert raised.value.code == "backfill_not_allowed"


async def _seed(deployment: Deployment, number: int) -> None:
    warm = SqlWarm(deployment.sql, "acme", deployment.clock)
    for one in range(number):
        await warm.upsert(f"acme:s1:cart:e{one}", f"warm {one}")
        await deployment.objects.put(f"agent:s1:f{one}", f"cold {one}".encode())
    await warm.upsert("of/another/shape", "x")
    await warm.upsert("UPPER:s1:cart:x", "x")
    await deployment.objects.put("briefs/1.json", b"{}")


@pytest.mark.parametrize("nth", [1, 2, 5, 60, 130, 170, 250])
@pytest.mark.parametrize("kind", ["", " done"], ids=["before", "after"])
async def test_an_interrupted_backfill_resumes_and_copies_everything_once(
    deployment: Deployment, nth: int, kind: str
) -> None:
    await _seed(deployment, 60)
    await deployment.to_phase_2()
    faults = Faults(lambda owner: None)
    wrapped = deployment.isolate(
        True,
        True,
        sql=faults.wrap("sql", deployment.sql, faults.life("x")),
        objects=faults.wrap("objects", deployment.objects, faults.life("x")),
    )
    faults.plan(Fault(Unavailable("no"), nth=nth))
    failures = 0
    for _ in range(100):
        try:
            if await wrapped.backfill().step():
                break
        except Unavailable:
            failures += 1
    assert failures == 1
    rows = {
        (row["tier"], row["template"][:6]): row for row in await deployment.rows("SELECT * FROM namespace_backfill")
    }
    warm, cold = rows["warm", "{tenan"], rows["cold", "agent:"]
    assert warm["copied"] + warm["present"] >= 60
    assert warm["skipped"] >= 2
    assert cold["copied"] + cold["present"] == 60
    reader = deployment.isolate(True, False)
    for one in range(60):
        assert await reader.warm().read(f"crm:acme:s1:cart:e{one}") == f"warm {one}"
        assert await reader.cold().download_text(f"crm:acme:s1:cart:f{one}") == f"cold {one}"
        assert await deployment.objects.get(f"agent:s1:f{one}") is not None
    assert await deployment.backfilled(wrapped) == 1


async def test_a_step_is_bounded_and_a_repetition_from_the_beginning_changes_nothing(deployment: Deployment) -> None:
    await _seed(deployment, 60)
    isolate = await deployment.to_phase_2()
    faults = Faults(lambda owner: None)
    counting = deployment.isolate(True, True, sql=faults.wrap("sql", deployment.sql, faults.life("x")))
    while True:
        faults.trace.clear()
        done = await counting.backfill().step()
        assert len(faults.trace) / 2 <= 5 * 50 + 10
        if done:
            break
    rows = await _rows(deployment)
    deployment.clock.advance(1000)
    await isolate.backfill().again()
    assert await deployment.backfilled(isolate) > 1
    assert await _rows(deployment) == rows


async def test_a_value_that_cannot_be_copied_is_counted_and_blocks_phase_3(deployment: Deployment) -> None:
    await deployment.objects.put("agent:s1:f1", b"\xff\xfe")
    await deployment.objects.put("agent:s1:f2", b"text")
    isolate = await deployment.to_phase_2()
    await deployment.backfilled(isolate)
    assert await deployment.objects.get("crm:acme:s1:cart:f2") == b"text"
    for name in ("1", "2"):
        await deployment.stable_cycle(isolate, name)
    [refused] = await _blocked(isolate)
    assert isinstance(refused, ValuesRefused)
    assert refused.values == 1
    await deployment.objects.put("agent:s1:f1", b"mended")
    await isolate.backfill().again()
    await deployment.backfilled(isolate)
    assert await _blocked(isolate) == []


async def test_entering_phase_2_again_starts_a_new_backfill(deployment: Deployment) -> None:
    isolate = await deployment.to_phase_2()
    await deployment.backfilled(isolate)
    await isolate.migration().roll_back(1)
    old = deployment.isolate(False, True)
    await old.warm().upsert("crm:acme:s1:cart:late", "late")
    await isolate.migration().advance(2)
    deployment.clock.advance(SETTLE_MS)
    await deployment.backfilled(isolate)
    assert await deployment.isolate(True, False).warm().read("crm:acme:s1:cart:late") == "late"


def test_a_tier_is_measured_without_the_absent_items() -> None:
    assert Counts().hit_rate is None
    assert Counts(canonical=99, legacy=1, absent=5000).hit_rate == 0.99
    assert Counts(canonical=99, unread=1).hit_rate == 0.99
    tiers = {"hot": Counts(canonical=10_000), "warm": Counts(canonical=90, legacy=10), "cold": Counts()}
    assert below(tiers, 0.99) == ["warm"]
    assert verdict(tiers, 0.99) == "below_baseline"
    assert verdict(tiers, 0.9) == "stable"
