"""Episodic memory in D1: which episodes a run gets, how many a tenant may have, and how old ones are pruned."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import closing

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retain.errors import QuotaExceeded
from retain.host.sql import SqliteSql
from retain.memory.episodes import (
    EPISODE_RULES,
    MAX_PER_TENANT,
    OF_INSTANCE,
    OF_USER,
    WARN_PER_TENANT,
    AppendEpisode,
    Episode,
    Turns,
    episode_id,
    last_episodes,
)
from retain.memory.scope import Scope
from retain.ports import Statement
from retain.retention import TEXT_KEPT_MS, prune
from tests.support.databases import migrated_d1

SDR = Scope("acme", "sdr")
ALL = Turns("agent", "main", None)


@pytest.fixture
async def sql() -> AsyncIterator[SqliteSql]:
    with closing(migrated_d1()) as database:
        yield database


def appended(
    run_id: str,
    turn: int = 1,
    *,
    tenant: str = "acme",
    agent: str = "sdr",
    at_ms: int = 0,
    content: str = "text",
    user_id: str | None = None,
) -> Statement:
    """Return the statement with which an instance's outbox writes an episode to D1."""
    owed = AppendEpisode(episode_id(run_id, turn), tenant, agent, "main", run_id, turn, content, at_ms, user_id)
    return owed.SQL, owed.values()


async def counts(sql: SqliteSql) -> dict[str, int]:
    """Return the stored counts that are not zero."""
    rows = (await sql.run("SELECT * FROM episode_counts WHERE episodes <> 0")).rows
    return {row["tenant_id"]: row["episodes"] for row in rows}


async def counted(sql: SqliteSql) -> dict[str, int]:
    """Return how many episodes each tenant has."""
    rows = (await sql.run("SELECT tenant_id, COUNT(*) AS n FROM memory_episodes GROUP BY tenant_id")).rows
    return {row["tenant_id"]: row["n"] for row in rows}


async def test_the_newest_are_returned_oldest_first(sql: SqliteSql) -> None:
    await sql.batch([appended(f"run-{n}", at_ms=n, content=f"text {n}") for n in (3, 1, 5, 2, 4)])
    found = await last_episodes(sql, SDR, ALL, 3)
    assert found == [Episode(f"run-{n}.001", f"run-{n}", "main", 1, f"text {n}", n) for n in (3, 4, 5)]


async def test_of_equal_times_the_greater_id_is_newer(sql: SqliteSql) -> None:
    await sql.batch(
        [appended(run, turn, at_ms=7) for run, turn in (("b", 1), ("a", 2), ("b", 12), ("a", 10), ("b", 2))]
    )
    found = [(one.run_id, one.turn) for one in await last_episodes(sql, SDR, ALL, 4)]
    assert found == [("a", 10), ("b", 1), ("b", 2), ("b", 12)]


async def test_episodes_of_other_agents_and_tenants_are_not_returned(sql: SqliteSql) -> None:
    await sql.batch([appended("mine"), appended("other-agent", agent="sdr2"), appended("other-tenant", tenant="acme2")])
    assert [one.run_id for one in await last_episodes(sql, SDR, ALL, 10)] == ["mine"]


async def test_none_are_read_when_none_are_wanted(sql: SqliteSql) -> None:
    await sql.batch([appended("mine")])
    assert await last_episodes(sql, SDR, ALL, 0) == []


rows = st.lists(
    st.tuples(
        st.sampled_from(["r1", "r2", "r3"]),
        st.integers(1, 12),
        st.sampled_from(["acme", "rival"]),
        st.sampled_from(["sdr", "clerk"]),
        st.integers(0, 3),
    ),
    unique_by=lambda row: row[:2],
    max_size=25,
)


@settings(max_examples=40, deadline=None)
@given(rows=rows, count=st.integers(0, 12))
async def test_the_newest_episodes_are_those_of_the_scope_by_time_and_id(
    rows: list[tuple[str, int, str, str, int]], count: int
) -> None:
    with closing(migrated_d1()) as sql:
        await sql.batch([appended(r, turn, tenant=t, agent=a, at_ms=at) for r, turn, t, a, at in rows])
        mine = sorted((at, episode_id(r, turn)) for r, turn, t, a, at in rows if (t, a) == ("acme", "sdr"))
        found = [(one.created_at_ms, one.episode_id) for one in await last_episodes(sql, SDR, ALL, count)]
        assert found == (mine[-count:] if count else [])


async def test_invariant_6_an_episode_is_written_once_however_often_it_is_sent(sql: SqliteSql) -> None:
    for content in ("first", "again"):
        await sql.batch([appended("run", content=content)])
    assert [one.content for one in await last_episodes(sql, SDR, ALL, 10)] == ["first"]
    assert await counts(sql) == {"acme": 1}


def test_ids_sort_as_the_turns_do() -> None:
    ids = [episode_id("run", turn) for turn in range(1, 51)]
    assert sorted(ids) == ids
    assert len(set(ids)) == 50


@pytest.mark.parametrize("held", [MAX_PER_TENANT - 1, MAX_PER_TENANT, MAX_PER_TENANT + 1])
async def test_invariant_8_a_tenant_at_its_limit_is_refused(sql: SqliteSql, held: int) -> None:
    await sql.run("INSERT INTO episode_counts (tenant_id, episodes) VALUES ('acme', ?), ('rival', 5)", held)
    assert await last_episodes(sql, Scope("rival", "sdr"), ALL, 10) == []
    if held < MAX_PER_TENANT:
        assert await last_episodes(sql, SDR, ALL, 10) == []
    else:
        with pytest.raises(QuotaExceeded) as raised:
            await last_episodes(sql, SDR, ALL, 10)
        assert (raised.value.code, raised.value.details["limit"]) == ("episode_limit", 100_000)


async def test_the_database_and_the_code_have_the_same_limit(sql: SqliteSql) -> None:
    [trigger] = (await sql.run("SELECT sql FROM sqlite_master WHERE name = 'memory_episodes_limited'")).rows
    assert re.findall(r">= (\d+)", trigger["sql"]) == [str(MAX_PER_TENANT)]


async def refused(sql: SqliteSql) -> list[str]:
    """Return the ids of the episodes that did not fit."""
    return [row["episode_id"] for row in (await sql.run("SELECT episode_id FROM refused_episodes ORDER BY 1")).rows]


async def test_invariant_8_an_episode_over_the_limit_is_not_kept_and_stops_nothing(sql: SqliteSql) -> None:
    await sql.run("INSERT INTO episode_counts (tenant_id, episodes) VALUES ('acme', ?)", MAX_PER_TENANT - 2)
    results = await sql.batch(
        [*(appended("run", turn) for turn in (1, 2, 3, 4)), appended("theirs", tenant="rival"), appended("run", 2)]
    )
    assert len(results) == 6
    found = (await sql.run("SELECT episode_id FROM memory_episodes ORDER BY 1")).rows
    assert [row["episode_id"] for row in found] == ["run.001", "run.002", "theirs.001"]
    assert await counts(sql) == {"acme": MAX_PER_TENANT, "rival": 1}
    assert await refused(sql) == ["run.003", "run.004"]
    await sql.run("DELETE FROM memory_episodes WHERE episode_id = 'run.001'")
    await sql.batch([appended("later")])
    assert await counts(sql) == {"acme": MAX_PER_TENANT, "rival": 1}
    await sql.batch([appended("later")])
    assert await refused(sql) == ["run.003", "run.004"], "an episode that is there and is sent again is not refused"


def test_the_limits_are_those_of_the_requirements() -> None:
    assert (MAX_PER_TENANT, WARN_PER_TENANT, TEXT_KEPT_MS) == (100_000, 80_000, 90 * 24 * 3_600_000)


operations = st.lists(
    st.one_of(
        st.tuples(
            st.just("append"),
            st.lists(st.tuples(st.sampled_from("abc"), st.integers(1, 4), st.sampled_from(["acme", "rival"]))),
        ),
        st.tuples(st.just("prune"), st.integers(0, 8)),
        st.tuples(st.just("erase"), st.sampled_from(["acme", "rival"])),
    ),
    max_size=12,
)


@settings(max_examples=50, deadline=None)
@given(operations=operations)
async def test_the_stored_counts_equal_the_rows_after_any_history(
    operations: list[tuple[str, object]],
) -> None:
    expected: dict[str, tuple[str, int]] = {}  # episode: tenant, time
    with closing(migrated_d1()) as sql:
        await sql.run("INSERT INTO tenants (tenant_id, created_at_ms) VALUES ('acme', 0), ('rival', 0)")
        for time, (kind, amount) in enumerate(operations):
            match kind, amount:
                case "append", list(episodes):
                    await sql.batch([appended(run, turn, tenant=tenant, at_ms=time) for run, turn, tenant in episodes])
                    for run, turn, tenant in episodes:
                        expected.setdefault(episode_id(run, turn), (tenant, time))
                case "prune", int(horizon):
                    await prune(sql, horizon + TEXT_KEPT_MS, EPISODE_RULES)
                    expected = {name: kept for name, kept in expected.items() if kept[1] >= horizon}
                case "erase", tenant:
                    await sql.run("DELETE FROM memory_episodes WHERE tenant_id = ?", str(tenant))
                    expected = {name: kept for name, kept in expected.items() if kept[0] != tenant}
            assert await counts(sql) == await counted(sql) == _by_tenant(list(expected.values()))


def _by_tenant(episodes: Sequence[tuple[str, int]]) -> dict[str, int]:
    return dict(Counter(tenant for tenant, _ in episodes))


async def test_an_instance_gets_its_own_episodes_alone_whatever_others_did_since(sql: SqliteSql) -> None:
    def of(instance: str, number: int) -> Statement:
        run_id = f"{instance}-{number}"
        owed = AppendEpisode(episode_id(run_id, 1), "acme", "sdr", instance, run_id, 1, "text", number, None)
        return owed.SQL, owed.values()

    await sql.batch([of("ann", 1), of("ann", 2), *(of("bob", number) for number in range(3, 15)), of("ann%", 20)])
    assert [one.run_id for one in await last_episodes(sql, SDR, Turns("instance", "ann", None), 10)] == [
        "ann-1",
        "ann-2",
    ]
    assert await last_episodes(sql, SDR, Turns("instance", "Ann", None), 10) == []
    assert [one.run_id for one in await last_episodes(sql, SDR, ALL, 2)] == ["bob-14", "ann%-20"]


async def test_the_episodes_of_an_instance_are_read_through_an_index(sql: SqliteSql) -> None:
    plan = await sql.run(f"EXPLAIN QUERY PLAN {OF_INSTANCE}", "acme", "sdr", "ann", "ann", 10)
    details = [str(row["detail"]) for row in plan.rows]
    assert len(details) == 1
    assert "memory_episodes_of_instance" in details[0]


async def test_the_episodes_of_a_user_are_read_through_an_index(sql: SqliteSql) -> None:
    for user in (None, "ann"):
        plan = await sql.run(f"EXPLAIN QUERY PLAN {OF_USER}", "acme", "sdr", user, 10)
        details = [str(row["detail"]) for row in plan.rows]
        assert len(details) == 1
        assert "memory_episodes_by_user" in details[0]


@pytest.mark.parametrize(
    ("turns", "expected"),
    [
        pytest.param(Turns("agent", "a1", "ann"), ["anon", "ann-1", "ann-2"], id="the agent's, for ann"),
        pytest.param(Turns("agent", "a1", None), ["anon"], id="the agent's, for nobody"),
        pytest.param(Turns("user", "a1", "ann"), ["ann-1", "ann-2"], id="ann's"),
        pytest.param(Turns("user", "a1", None), ["anon"], id="a user's, for nobody: the instance's"),
        pytest.param(Turns("instance", "a1", "ann"), ["anon", "ann-1"], id="the instance's, for ann"),
        pytest.param(Turns("instance", "a1", "bob"), ["anon"], id="the instance's, for bob"),
        pytest.param(Turns("instance", "a1", None), ["anon"], id="the instance's, for nobody"),
    ],
)
async def test_invariant_3_no_run_reads_the_turns_of_another_user(
    sql: SqliteSql, turns: Turns, expected: list[str]
) -> None:
    def of(run_id: str, instance: str, user: str | None, number: int) -> Statement:
        owed = AppendEpisode(episode_id(run_id, 1), "acme", "sdr", instance, run_id, 1, "text", number, user)
        return owed.SQL, owed.values()

    await sql.batch(
        [
            of("anon", "a1", None, 1),
            of("ann-1", "a1", "ann", 2),
            of("ann-2", "a2", "ann", 3),
            *(of(f"bob-{number}", "b1", "bob", 4 + number) for number in range(12)),
        ]
    )
    assert [one.run_id for one in await last_episodes(sql, SDR, turns, 10)] == expected
