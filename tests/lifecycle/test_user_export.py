"""A user's export has all that is kept of the user and nothing of anybody else; profiles survive a tenant's export."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import closing
from typing import Any

import pytest

from retain.errors import InvalidInput
from retain.lifecycle.export import export_page
from retain.lifecycle.importing import import_lines
from retain.lifecycle.user_export import export_user_page
from retain.lifecycle.verification import verify_page
from retain.memory.records.record import NewRecord, RecordSource
from tests.lifecycle.of_users import ANN, BOB, DOORS, canary, fill, shop
from tests.lifecycle.tiered import items_of
from tests.lifecycle.world import World
from tests.ports import raises

PERSON = RecordSource("person")


@pytest.fixture
async def world() -> AsyncIterator[World]:
    with closing(shop()) as world:
        await world.sql.run("INSERT INTO tenants (tenant_id, created_at_ms) VALUES ('acme', 0), ('copy', 0)")
        for user in (ANN, BOB):
            await fill(world, user)
        await world.settled()
        yield world


async def exported(world: World, user: str) -> list[dict[str, Any]]:
    lines: list[dict[str, Any]] = []
    cursor: str | None = None
    while True:
        page = await export_user_page(world.stores(), "acme", user, cursor)
        read = [json.loads(line) for line in page.lines]
        assert (read[-1]["kind"], read[-1]["cursor"]) == ("page", page.cursor)
        lines += read[:-1]
        cursor = page.cursor
        if cursor is None:
            return lines


async def test_a_user_s_export_has_all_that_is_kept_of_the_user_and_nothing_of_anybody_else(world: World) -> None:
    lines = await exported(world, ANN)
    text = json.dumps(lines)
    # A conversation that is being ingested is not yet a memory.
    assert [door for door in DOORS if canary(ANN, door) not in text] == ["arrived", "ingested"]
    assert canary(BOB, "") not in text
    assert BOB not in text
    kinds = [line["kind"] for line in lines]
    assert {kind: kinds.count(kind) for kind in kinds} == {
        "scope": 9,
        "record": 5,
        "user": 1,
        "conversation": 2,
        "message": 6,
        "run": 3,
        "episode": kinds.count("episode"),
        "item": 5,
    }
    [profile] = [line["user"] for line in lines if line["kind"] == "user"]
    assert (profile["id"], profile["name"]) == (ANN, canary(ANN, "said"))
    assert {line["item"]["value"] for line in lines if line["kind"] == "item"} == {canary(ANN, "item")}
    assert {line["item"]["tier"] for line in lines if line["kind"] == "item"} == {"hot", "warm", "cold"}


async def test_what_can_be_imported_of_a_user_s_export_is_the_user_elsewhere(world: World) -> None:
    lines = [line for line in await exported(world, ANN) if line["kind"] in ("scope", "record", "user")]
    done = await import_lines(world.stores(), "copy", "\n".join(map(json.dumps, lines)))
    assert (done.scopes, done.users, done.created) == (9, 1, 5)
    [user] = world.sql_now("SELECT user_id, name FROM users WHERE tenant_id = 'copy'")
    assert user == {"user_id": ANN, "name": canary(ANN, "said")}
    report = await verify_page(world.stores(), "copy", None, repair=False)
    assert not report.drift


async def test_profiles_survive_a_tenant_s_export_and_a_known_profile_is_only_completed(world: World) -> None:
    pages: list[str] = []
    cursor: str | None = None
    while True:
        page = await export_page(world.stores(), "acme", cursor)
        pages.append(page.text)
        cursor = page.cursor
        if cursor is None:
            break
    for page_text in (*pages, *pages):
        await import_lines(world.stores(), "copy", page_text, items=items_of(world.stores()))
    columns = "user_id, name, locale, timezone, created_at_ms, last_run_at_ms"
    first, second = (
        world.sql_now(f"SELECT {columns} FROM users WHERE tenant_id = ? ORDER BY user_id", tenant)
        for tenant in ("acme", "copy")
    )
    assert first == second
    assert {row["user_id"] for row in second} == {ANN, BOB}
    line = {"id": ANN, "name": "Other", "locale": "fr", "timezone": None, "created_at_ms": 5, "last_run_at_ms": 6}
    await import_lines(world.stores(), "copy", _line(line))
    [row] = world.sql_now("SELECT name, locale, created_at_ms FROM users WHERE tenant_id = 'copy' AND user_id = ?", ANN)
    assert (row["name"], row["locale"], row["created_at_ms"]) == (canary(ANN, "said"), "fr", 5)
    [place] = world.sql_now("SELECT COUNT(*) AS n FROM scopes WHERE tenant_id = 'copy' AND user_id IS NOT NULL")
    assert (
        place["n"]
        == world.sql_now("SELECT COUNT(*) AS n FROM scopes WHERE tenant_id = 'acme' AND user_id > ''")[0]["n"]
    )


@pytest.mark.parametrize(
    "line",
    [
        {"kind": "run", "version": 1, "tenant": "acme", "run": {}},
        {"kind": "user", "version": 2, "tenant": "acme", "user": {}},
        {"kind": "user", "version": 1, "tenant": "acme", "user": {"id": "*"}},
    ],
    ids=["an unknown kind", "an unknown version", "a bad user"],
)
async def test_a_line_of_an_unknown_kind_or_version_is_refused(world: World, line: dict[str, Any]) -> None:
    with raises(InvalidInput, code="invalid_line"):
        await import_lines(world.stores(), "copy", json.dumps(line))


async def test_a_cursor_of_a_user_s_export_shows_nothing_of_another_user(world: World) -> None:
    cursor: str | None = None
    seen: list[str] = []
    while True:
        page = await export_user_page(world.stores(), "acme", ANN, cursor)
        seen.append((await export_user_page(world.stores(), "acme", "carl", cursor)).text)
        cursor = page.cursor
        if cursor is None:
            break
    assert len(seen) > 5
    assert not any(canary(user, "") in text for user in (ANN, BOB) for text in seen)
    for bad in ("nothing", "runs", "records.x", "users.*", f"items.{'x' * 5000}"):
        with raises(InvalidInput, code="invalid_cursor"):
            await export_user_page(world.stores(), "acme", ANN, bad)


async def test_more_users_than_a_page_has_are_exported_each_once(world: World) -> None:
    memory = [world.memory("copy", user_id=f"user-{number:03}") for number in range(3)]
    for one in memory:
        await one.store(NewRecord("Likes tea."), PERSON)
    for number in range(230):
        await world.sql.run(
            "INSERT OR IGNORE INTO users (tenant_id, user_id, created_at_ms, last_run_at_ms, last_run_id)"
            " VALUES ('copy', ?, 1, 0, '')",
            f"user-{number:03}",
        )
    found: list[str] = []
    cursor: str | None = None
    while True:
        page = await export_page(world.stores(), "copy", cursor)
        found += [line["user"]["id"] for line in map(json.loads, page.lines) if line["kind"] == "user"]
        cursor = page.cursor
        if cursor is None:
            break
    assert found == [f"user-{number:03}" for number in range(230)]


def _line(user: dict[str, Any]) -> str:
    return json.dumps({"kind": "user", "version": 1, "tenant": "copy", "user": user})


_KEYS = {
    "conversation_messages": ("message_id",),
    "agent_runs": ("run_id",),
    "memory_episodes": ("episode_id",),
    "memory_records": ("id", "content_hash"),
    "memory_events": ("event_id", "record_id"),
}
"""The columns that are unique in the tables of which a tenant has most rows, `number` besides."""


async def test_a_user_s_export_reads_what_is_the_user_s_however_much_others_have(world: World) -> None:
    """Each of its pages read all messages, runs and episodes of the tenant, and each phase all records or events."""
    before = await world.steps_of(lambda: exported(world, ANN))
    for table, keys in _KEYS.items():
        columns = [column["name"] for column in world.sql_now(f"SELECT name FROM pragma_table_info('{table}')")]
        copied = {**dict.fromkeys(keys, "'X' || n.value"), "number": "NULL"}
        world.sql_now(
            "WITH RECURSIVE n (value) AS (SELECT 1 UNION ALL SELECT value + 1 FROM n WHERE value < 1000),"
            f" one AS (SELECT * FROM {table} t WHERE instr(json_array({', '.join(columns)}), 'bob') > 0 LIMIT 1)"
            f" INSERT INTO {table} SELECT {', '.join(copied.get(name, name) for name in columns)} FROM one, n"
        )
    assert await world.steps_of(lambda: exported(world, ANN)) < before * 2
