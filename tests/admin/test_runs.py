"""Runs as the administrator reads them: paged, newest first, and never another tenant's."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import closing
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retain.admin.resources.runs import list_events, list_runs, show_run
from retain.admin.run_list import SCANNED, STATUSES, WantedRuns
from retain.errors import InvalidInput, NotFound
from retain.host.sql import SqliteSql
from tests.support.databases import migrated_d1
from tests.support.planned import Planned

RUN = "01HZZZZZZZZZZZZZZZZZZZZZZ"
"""A run's id without its last character."""


@pytest.fixture
async def sql() -> AsyncIterator[SqliteSql]:
    with closing(migrated_d1()) as database:
        yield database


async def add_run(
    sql: SqliteSql,
    run_id: str,
    at_ms: int,
    *,
    tenant: str = "acme",
    agent: str = "sdr",
    parent: str | None = None,
    error: str | None = None,
    read: Sequence[str] = (),
    by: str | None = None,
    user: str | None = None,
) -> None:
    """Write the row of a run. read: the ids of the episodes in its context. by: who started it. user: for whom."""
    await sql.run(
        "INSERT INTO agent_runs (run_id, tenant_id, agent_type, instance_id, parent_run_id, status, texts, input, output,"
        " error, model, steps, input_tokens, output_tokens, created_at_ms, completed_at_ms, started_by, user_id)"
        " VALUES (?, ?, ?, 'main', ?, ?, 'kept', ?, ?, ?, 'scripted', 3, 20, 4, ?, ?, ?, ?)",
        run_id,
        tenant,
        agent,
        parent,
        "completed" if error is None else "failed",
        json.dumps({"input": "hello", "metadata": {}, "episodes": [{"episode_id": one} for one in read]}),
        "bye" if error is None else None,
        error,
        at_ms,
        at_ms + 5,
        by,
        user,
    )


EPISODE = (
    "INSERT INTO memory_episodes (episode_id, tenant_id, agent_type, instance_id, run_id, turn, content, created_at_ms)"
    " VALUES (?, ?, 'sdr', 'main', ?, ?, 'text', 60)"
)


async def add_event(sql: SqliteSql, run_id: str, seq: int, *, tenant: str = "acme") -> None:
    data = json.dumps({"turn": 1, "n": seq})
    await sql.run(
        "INSERT INTO run_events VALUES (?, ?, ?, 'model_asked', 1, ?, ?)", run_id, seq, tenant, data, 100 + seq
    )


async def all_pages(page: Callable[[str | None], Awaitable[dict[str, Any]]], what: str, size: int) -> list[Any]:
    """Follow the cursors to the end; every page but the last is full."""
    found: list[Any] = []
    cursor: str | None = None
    for _ in range(50):
        answer = await page(cursor)
        found += answer[what]
        cursor = answer["cursor"]
        assert len(answer[what]) == size if cursor else len(answer[what]) <= size
        if cursor is None:
            return found
    raise AssertionError("the pages never end")


runs = st.dictionaries(
    st.sampled_from([RUN + last for last in "0123456789ABCDEF"]),
    st.tuples(st.integers(1, 4), st.sampled_from(["acme", "rival"]), st.sampled_from(["sdr", "clerk"])),
    max_size=16,
)


@settings(max_examples=40, deadline=None)
@given(runs=runs, size=st.integers(1, 5), agent=st.none() | st.sampled_from(["sdr", "clerk"]))
async def test_the_pages_together_are_the_tenant_s_runs_newest_first(
    runs: dict[str, tuple[int, str, str]], size: int, agent: str | None
) -> None:
    with closing(migrated_d1()) as sql:
        for run_id, (at_ms, tenant, agent_type) in runs.items():
            await add_run(sql, run_id, at_ms, tenant=tenant, agent=agent_type)
        found = await all_pages(
            lambda cursor: list_runs(sql, "acme", WantedRuns(agent_type=agent), limit=size, cursor=cursor), "runs", size
        )
        wanted = [(at, r) for r, (at, tenant, a) in runs.items() if tenant == "acme" and agent in (None, a)]
        assert [(run["created_at_ms"], run["run_id"]) for run in found] == sorted(wanted, reverse=True)


async def test_a_listed_run_says_what_it_was_and_cost(sql: SqliteSql) -> None:
    await add_run(sql, RUN + "0", 50, parent=RUN + "9", by="agent:boss", user="ann")
    assert (await list_runs(sql, "acme", WantedRuns(), limit=10, cursor=None))["runs"] == [
        {
            "run_id": RUN + "0",
            "tenant_id": "acme",
            "agent_type": "sdr",
            "agent_version": None,
            "instance_id": "main",
            "parent_run_id": RUN + "9",
            "user_id": "ann",
            "by": "agent:boss",
            "status": "completed",
            "model": "scripted",
            "steps": 3,
            "input_tokens": 20,
            "cached_input_tokens": 0,
            "output_tokens": 4,
            "waiting_for": None,
            "created_at_ms": 50,
            "completed_at_ms": 55,
        }
    ]


async def test_runs_are_listed_by_who_started_them_and_for_whom(sql: SqliteSql) -> None:
    await add_run(sql, RUN + "0", 50, by="person:ann", user="eve")
    await add_run(sql, RUN + "1", 51, by="person:ann")
    await add_run(sql, RUN + "2", 52, by="person:ben", user="eve")
    await add_run(sql, RUN + "3", 53)
    await add_run(sql, RUN + "4", 54, by="person:ann", user="eve", tenant="rival")

    async def listed(**wanted: Any) -> list[str]:
        page = await all_pages(
            lambda cursor: list_runs(sql, "acme", WantedRuns(**wanted), limit=1, cursor=cursor), "runs", 1
        )
        return [run["run_id"].removeprefix(RUN) for run in page]

    assert await listed(by="person:ann") == ["1", "0"]
    assert await listed(user_id="eve") == ["2", "0"]
    assert await listed(by="person:ann", user_id="eve") == ["0"]
    assert await listed(by="person") == []


@pytest.mark.parametrize(
    ("wanted", "index"),
    [({"by": "person:ann"}, "agent_runs_by_starter"), ({"user_id": "eve"}, "agent_runs_by_user")],
)
async def test_a_page_of_somebody_s_runs_is_read_from_an_index_in_order(wanted: dict[str, Any], index: str) -> None:
    with closing(migrated_d1()) as sql:
        planned = Planned(sql)
        await list_runs(planned, "acme", WantedRuns(**wanted), limit=10, cursor=f"5.{RUN}0")
    assert len(planned.steps) == 1
    assert f"USING INDEX {index} " in planned.steps[0]


async def test_a_run_is_shown_with_its_input_its_episodes_and_its_delegations(sql: SqliteSql) -> None:
    await add_run(sql, RUN + "0", 50)
    await add_run(sql, RUN + "2", 52, parent=RUN + "0", agent="clerk")
    await add_run(sql, RUN + "1", 51, parent=RUN + "0", error='{"code": "turn_limit", "message": "no"}')
    await add_run(sql, RUN + "3", 53, parent=RUN + "1")
    await add_run(sql, RUN + "4", 54, parent=RUN + "0", tenant="rival")
    for turn, run in ((2, "0"), (1, "0"), (1, "1")):
        await sql.run(
            EPISODE,
            f"{RUN}{run}.{turn:03d}",
            "acme",
            RUN + run,
            turn,
        )
    shown = await show_run(sql, "acme", RUN + "0")
    assert shown["input"] == {"input": "hello", "metadata": {}, "episodes": []}
    assert (shown["output"], shown["error"]) == ("bye", None)
    assert shown["episodes"] == [
        {"episode_id": f"{RUN}0.{turn:03d}", "turn": turn, "content": "text", "created_at_ms": 60} for turn in (1, 2)
    ]
    assert shown["delegated"] == [
        {"run_id": RUN + "1", "agent_type": "sdr", "status": "failed"},
        {"run_id": RUN + "2", "agent_type": "clerk", "status": "completed"},
    ]
    assert (await show_run(sql, "acme", RUN + "1"))["error"] == {"code": "turn_limit", "message": "no"}


async def test_the_episodes_in_a_run_s_context_are_shown_while_they_are_there(sql: SqliteSql) -> None:
    ids = [f"{RUN}1.{turn:03d}" for turn in (1, 2)]
    await add_run(sql, RUN + "5", 50, read=[*ids, f"{RUN}9.001"])
    for turn, episode_id in enumerate(ids, start=1):
        await sql.run(EPISODE, episode_id, "acme", RUN + "1", turn)
    await sql.run(EPISODE, f"{RUN}9.001", "rival", RUN + "9", 1)
    shown = [
        {"episode_id": one, "run_id": RUN + "1", "turn": turn, "content": "text", "created_at_ms": 60, "gone": False}
        for turn, one in enumerate(ids, start=1)
    ]
    theirs = {"episode_id": f"{RUN}9.001", "gone": True}
    assert (await show_run(sql, "acme", RUN + "5"))["input"]["episodes"] == [*shown, theirs]
    await sql.run("DELETE FROM memory_episodes WHERE episode_id = ?", ids[0])
    read = (await show_run(sql, "acme", RUN + "5"))["input"]["episodes"]
    assert read == [{"episode_id": ids[0], "gone": True}, shown[1], theirs]


@settings(max_examples=20, deadline=None)
@given(events=st.sets(st.integers(1, 30), max_size=20), size=st.integers(1, 6))
async def test_the_pages_of_a_timeline_are_its_events_in_order(events: set[int], size: int) -> None:
    with closing(migrated_d1()) as sql:
        await add_run(sql, RUN + "0", 50)
        for seq in events:
            await add_event(sql, RUN + "0", seq)
            await add_event(sql, RUN + "1", seq)
        found = await all_pages(
            lambda cursor: list_events(sql, "acme", RUN + "0", limit=size, cursor=cursor), "events", size
        )
        assert found == [
            {"seq": n, "turn": 1, "kind": "model_asked", "data": {"turn": 1, "n": n}, "at_ms": 100 + n}
            for n in sorted(events)
        ]


async def test_another_tenant_s_run_does_not_exist(sql: SqliteSql) -> None:
    await add_run(sql, RUN + "0", 50, tenant="rival")
    await add_event(sql, RUN + "0", 1, tenant="rival")
    for run_id in (RUN + "0", RUN + "1"):
        with pytest.raises(NotFound) as shown:
            await show_run(sql, "acme", run_id)
        with pytest.raises(NotFound) as listed:
            await list_events(sql, "acme", run_id, limit=10, cursor=None)
        assert (shown.value.code, listed.value.code) == ("no_such_run", "no_such_run")
    assert (await show_run(sql, "rival", RUN + "0"))["run_id"] == RUN + "0"


@pytest.mark.parametrize("run_id", ["", "x", RUN, RUN + "00", RUN.lower() + "0", RUN + "%", "' OR 1=1 --"])
async def test_what_cannot_be_a_run_id_is_refused(sql: SqliteSql, run_id: str) -> None:
    with pytest.raises(InvalidInput) as raised:
        await show_run(sql, "acme", run_id)
    assert raised.value.code == "invalid_id"


@pytest.mark.parametrize(
    "cursor",
    ["", "x", "5", f"5.{RUN}", f"-5.{RUN}0", f"5.{RUN}0 ", f"9999999999999999.{RUN}0", f"\u0665.{RUN}0", "9" * 5000],
    ids=["empty", "letters", "no id", "short id", "negative", "space", "too large", "other digits", "very long"],
)
async def test_a_cursor_that_is_not_ours_is_refused(sql: SqliteSql, cursor: str) -> None:
    with pytest.raises(InvalidInput) as raised:
        await list_runs(sql, "acme", WantedRuns(), limit=10, cursor=cursor)
    assert raised.value.code == "invalid_cursor"


@pytest.mark.parametrize(
    "cursor",
    ["", "x", "-1", "1.5", " 1", "\u0661", "\u00b2", "9" * 16, "9" * 5000],
    ids=["empty", "letters", "negative", "fraction", "space", "other digits", "superscript", "too large", "very long"],
)
async def test_a_timeline_s_cursor_that_is_not_ours_is_refused(sql: SqliteSql, cursor: str) -> None:
    await add_run(sql, RUN + "0", 50)
    with pytest.raises(InvalidInput) as raised:
        await list_events(sql, "acme", RUN + "0", limit=10, cursor=cursor)
    assert raised.value.code == "invalid_cursor"


async def test_queued_runs_are_listed_with_their_positions_and_not_as_waiting(sql: SqliteSql) -> None:
    for number in range(4):
        await add_run(sql, f"{RUN}{number}", 50 + number)
    queued = "UPDATE agent_runs SET status = 'waiting', waiting_for = '{\"kind\": \"queue\"}', completed_at_ms = NULL"
    await sql.run(f"{queued} WHERE run_id > ?", RUN + "0")
    await sql.run("UPDATE agent_runs SET instance_id = 'other' WHERE run_id = ?", RUN + "2")
    listed = await list_runs(sql, "acme", WantedRuns(status="queued"), limit=10, cursor=None)
    assert [
        (run["run_id"][-1], run["status"], run["queue_position"], run["waiting_for"]) for run in listed["runs"]
    ] == [
        ("3", "queued", 2, None),
        ("2", "queued", 1, None),
        ("1", "queued", 1, None),
    ]
    assert (await list_runs(sql, "acme", WantedRuns(status="waiting"), limit=10, cursor=None))["runs"] == []
    everything = await list_runs(sql, "acme", WantedRuns(), limit=10, cursor=None)
    assert [run.get("queue_position") for run in everything["runs"]] == [2, 1, 1, None]
    shown = await show_run(sql, "acme", RUN + "3")
    assert (shown["status"], shown["queue_position"], shown["waiting_for"]) == ("queued", 2, None)


async def test_runs_are_listed_by_status_and_a_waiting_one_says_for_what(sql: SqliteSql) -> None:
    await add_run(sql, RUN + "0", 50)
    await add_run(sql, RUN + "1", 51, error='{"code": "x", "message": "y"}')
    await add_run(sql, RUN + "2", 52)
    asked = {"kind": "approval", "call": "1.0"}
    waiting = "UPDATE agent_runs SET status = 'waiting', waiting_for = ? WHERE run_id = ?"
    await sql.run(waiting, json.dumps(asked), RUN + "2")
    listed = {
        status: (await list_runs(sql, "acme", WantedRuns(status=status), limit=10, cursor=None))["runs"]
        for status in STATUSES
    }
    assert {status: [run["run_id"][-1] for run in runs] for status, runs in listed.items()} == {
        "queued": [],
        "running": [],
        "waiting": ["2"],
        "completed": ["0"],
        "failed": ["1"],
        "cancelled": [],
    }
    assert listed["waiting"][0]["waiting_for"] == (await show_run(sql, "acme", RUN + "2"))["waiting_for"] == asked
    for status in ("done", "waiting' OR 1 = 1 --", ""):
        with pytest.raises(InvalidInput) as refused:
            await list_runs(sql, "acme", WantedRuns(status=status), limit=10, cursor=None)
        assert refused.value.code == "invalid_status"


@settings(max_examples=60, deadline=None)
@given(
    runs=st.dictionaries(
        st.sampled_from([RUN + last for last in "0123456789ABCDEF"]),
        st.tuples(
            st.integers(1, 4), st.sampled_from(["sdr", "clerk"]), st.sampled_from(["ann", None]), st.sampled_from("ab")
        ),
        max_size=16,
    ),
    wanted=st.fixed_dictionaries(
        {},
        optional={
            "agent_type": st.just("sdr"),
            "user_id": st.just("ann"),
            "by": st.just("person:a"),
            "status": st.sampled_from(["completed", "waiting", "failed"]),
            "since_ms": st.integers(1, 4),
            "until_ms": st.integers(2, 5),
            "text": st.sampled_from(["HELLO", "b", "%"]),
        },
    ),
    of_instance=st.booleans(),
    size=st.integers(1, 5),
    scanned=st.integers(1, 20),
)
async def test_every_combination_of_conditions_lists_the_runs_that_meet_them_newest_first(
    runs: dict[str, tuple[int, str, str | None, str]],
    wanted: dict[str, Any],
    of_instance: bool,
    size: int,
    scanned: int,
) -> None:
    if of_instance:
        wanted = {**wanted, "agent_type": "sdr", "instance_id": "main"}
    with closing(migrated_d1()) as sql, pytest.MonkeyPatch.context() as patch:
        patch.setattr("retain.admin.run_list.SCANNED", scanned)
        for run_id, (at_ms, agent, user, starter) in runs.items():
            await add_run(sql, run_id, at_ms, agent=agent, user=user, by=f"person:{starter}")
            await sql.run("UPDATE agent_runs SET output = ? WHERE run_id = ?", f"by {starter}", run_id)
        found: list[str] = []
        cursor: str | None = None
        while True:
            page = await list_runs(sql, "acme", WantedRuns(**wanted), limit=size, cursor=cursor)
            assert len(page["runs"]) <= size
            found += [run["run_id"] for run in page["runs"]]
            if (cursor := page["cursor"]) is None:
                break
    expected = [
        run_id
        for run_id, (at_ms, agent, user, starter) in runs.items()
        if (not of_instance or agent == "sdr")
        and agent in (wanted.get("agent_type"), agent if "agent_type" not in wanted else None)
        and user in (wanted.get("user_id"), user if "user_id" not in wanted else "nobody")
        and wanted.get("by") in (None, f"person:{starter}")
        and wanted.get("status") in (None, "completed")
        and wanted.get("since_ms", 0) <= at_ms < wanted.get("until_ms", 9)
        and wanted.get("text", "hello").lower() in f"hello by {starter}"
    ]
    by_time = sorted(expected, key=lambda run_id: (runs[run_id][0], run_id), reverse=True)
    assert found == (sorted(expected, reverse=True) if of_instance else by_time)


async def test_a_search_tries_a_bounded_number_of_runs_for_a_page(sql: SqliteSql) -> None:
    add = (
        "INSERT INTO agent_runs (run_id, tenant_id, agent_type, instance_id, status, input, model, created_at_ms) SELECT"
        " printf('%s%04d', ?, i), 'acme', 'sdr', 'main', 'completed', '{\"input\": \"' || (CASE WHEN i IN (1, 700) THEN"
        " 'Refund, bitte' ELSE 'hello' END) || '\", \"metadata\": {\"note\": \"refund\"}}', 'm', i FROM"
        " (WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1200) SELECT i FROM n)"
    )
    await sql.run(add, RUN[:22])
    pages = []
    cursor: str | None = None
    while True:
        page = await list_runs(sql, "acme", WantedRuns(text="reFUND"), limit=10, cursor=cursor)
        pages.append([run["created_at_ms"] for run in page["runs"]])
        if (cursor := page["cursor"]) is None:
            break
    assert pages == [[], [700], [1]]
    assert SCANNED == 500


async def test_an_instance_is_named_with_its_agent() -> None:
    with pytest.raises(InvalidInput) as raised:
        WantedRuns(instance_id="main")
    assert raised.value.code == "invalid_query"
