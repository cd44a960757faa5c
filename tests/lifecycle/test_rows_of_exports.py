"""Lines of rows and items: what an export has over HTTP is imported whole, and nothing that is not one of its lines."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from retain.errors import InvalidInput, Misconfigured
from retain.host.crypto import HostCrypto
from retain.lifecycle.export import export_page
from retain.lifecycle.importing import import_lines
from retain.lifecycle.transfer.kinds import ROW_KINDS, RowKind
from retain.namespace import Namespace
from retain.sealing.pii import Sealer
from retain.tenants.register import Tenants
from tests.lifecycle.of_users import ANN, erased
from tests.lifecycle.test_backups import contents, lines_of, planted_shop
from tests.lifecycle.tiered import items_of
from tests.lifecycle.world import World
from tests.ports import raises

RUN = "01K0000000000000000000000A"
PERSON = '{"name": "Ann", "email": "ann@shop.example"}'
OLD, NEW = (base64.b64encode(bytes([number]) * 32).decode() for number in (1, 2))


@pytest.fixture
async def world() -> AsyncIterator[World]:
    async with planted_shop() as world:
        yield world


async def pages(world: World, tenant: str = "acme") -> list[str]:
    found: list[str] = []
    cursor: str | None = None
    while True:
        page = await export_page(world.stores(), tenant, cursor)
        found.append(page.text)
        cursor = page.cursor
        if cursor is None:
            return found


def _row(kind: str, row: dict[str, Any], **more: Any) -> str:
    line = {"kind": kind, "version": 1, "tenant": "acme", "owner": None, "at_ms": 7, "row": row, **more}
    return json.dumps(line)


OUTCOME: dict[str, Any] = {
    "run_id": RUN,
    "agent_type": "clerk",
    "house": None,
    "instance_id": "main",
    "task_type": "refund",
    "workflow_id": "w",
    "score": 0.5,
    "at_ms": 7,
}


ENDED: dict[str, Any] = {
    "run_id": f"{RUN[:-1]}B",
    "agent_type": "clerk",
    "instance_id": "main",
    "parent_run_id": None,
    "status": "completed",
    "input": "{}",
    "output": None,
    "error": None,
    "model": "m",
    "steps": 0,
    "input_tokens": 0,
    "output_tokens": 0,
    "created_at_ms": 7,
    "completed_at_ms": 7,
    "user_id": None,
    "texts": "kept",
    "learning": None,
}
SPENT: dict[str, Any] = {
    "day": 0,
    "agent_type": "clerk",
    "purpose": "ingest",
    "model": "m",
    "calls": 1,
    "input_tokens": 1,
    "cached_input_tokens": 0,
    "output_tokens": 1,
}
PLACE = {"agent_type": "clerk", "instance_id": "main"}
OF_RUNS: dict[str, tuple[str, dict[str, Any]]] = {
    "message": (
        "message_id",
        {"role": "assistant", "content": "-", "at_ms": 7, "user_id": None, "recalled": 0, "attachments": None, **PLACE},
    ),
    "episode": ("episode_id", {"turn": 1, "content": "-", "created_at_ms": 7, "user_id": None, **PLACE}),
    "decision": (
        "decision_id",
        {
            **dict.fromkeys(("confidence", "tool", "user_id", "policy", "agent_version", "model")),
            "kind": "approval",
            "decision": "-",
            "decided_by": "-",
            "at_ms": 7,
            **PLACE,
        },
    ),
}
"""Kinds whose ids are made from a run's: the column, and the others."""


OF_THE_DEPLOYMENT = {"waiting_for", "number", "version", "sent_at_ms", "request_key", "lease_until_ms"}
"""Columns with what is under way, or with the place of a row."""


@pytest.mark.parametrize("kind", ROW_KINDS.values(), ids=ROW_KINDS)
async def test_a_line_has_every_column_of_its_row(world: World, kind: RowKind) -> None:
    columns = world.sql_now(f"SELECT name FROM pragma_table_info('{kind.table}')")
    assert {column["name"] for column in columns} - {*kind.columns} <= {"tenant_id", *OF_THE_DEPLOYMENT}


async def test_a_run_that_is_imported_is_of_the_version_of_its_agent_and_of_who_started_it(world: World) -> None:
    await Tenants(world.sql, world.clock).register("copy")
    for row in (ENDED, {**ENDED, "run_id": RUN, "started_by": "person:ann@shop.example", "agent_version": 3}):
        await import_lines(world.stores(), "copy", _row("run", row), items=items_of(world.stores()))
    runs = world.sql_now(
        "SELECT started_by, agent_version FROM agent_runs WHERE tenant_id = 'copy' ORDER BY agent_version"
    )
    assert [tuple(row.values()) for row in runs] == [(None, None), ("person:ann@shop.example", 3)]


async def test_what_an_export_has_is_imported_page_by_page_and_once(world: World) -> None:
    await Tenants(world.sql, world.clock).register("copy")
    for _ in range(2):
        for text in await pages(world):
            await import_lines(world.stores(), "copy", text, items=items_of(world.stores()))
    assert contents(await lines_of(world, "copy"), "copy") == contents(await lines_of(world, "acme"), "acme")


async def test_an_import_of_an_old_export_leaves_out_the_rows_and_items_of_an_erased_user(world: World) -> None:
    before = await pages(world)
    await erased(world, ANN)
    done = [await import_lines(world.stores(), "acme", text, items=items_of(world.stores())) for text in before]
    assert sum(one.erased for one in done) > 10
    # Profiles have a test of their own (test_import_of_erased): the database's clock, not the world's, dates them.
    left = [line for line in await lines_of(world, "acme") if line["kind"] != "user"]
    assert "annsecret" not in json.dumps(left)


MESSAGE = {**OF_RUNS["message"][1], "message_id": f"{RUN}.0", "run_id": RUN}
FILE = {"id": RUN, "name": "a.png", "media_type": "image/png", "bytes": 1}
EVENT = {"run_id": RUN, "seq": 1, "kind": "run_started", "turn": 1, "at_ms": 7}
CONVERSATION: dict[str, Any] = {
    **dict.fromkeys(("user_id", "title", "summary_through", "summary_since_ms")),
    "delegated": 0,
    "created_at_ms": 7,
    "last_run_at_ms": 7,
    "last_run_id": RUN,
    "status": "completed",
    "runs": 1,
    **PLACE,
}


@pytest.mark.parametrize(
    ("kind", "row", "name", "values"),
    [
        ("message", MESSAGE, "attachments", ("5", "{}", "[5]", "[{}]", json.dumps([{**FILE, "name": 5}]))),
        ("run", ENDED, "input", ("", "5", "[]", '{"episodes": 5}', '{"episodes": [{}]}')),
        ("run", ENDED, "error", ("", "5", "[]", '"x"')),
        ("event", EVENT, "data", ("", "null", "[]", "true")),
        ("conversation", CONVERSATION, "summary", ("{}", "[5]", '[{"text": "x"}]')),
    ],
)
async def test_json_that_no_reader_could_read_is_refused(
    world: World, kind: str, row: dict[str, Any], name: str, values: tuple[str, ...]
) -> None:
    for value in values:
        with pytest.raises(InvalidInput) as raised:
            await import_lines(world.stores(), "acme", _row(kind, {**row, name: value}))
        assert raised.value.details["problems"] == [f"{name} is not valid in a {kind}"]
    good = {"attachments": json.dumps([FILE]), "input": '{"episodes": []}'}.get(
        name, "[]" if name == "summary" else "{}"
    )
    assert await import_lines(world.stores(), "acme", _row(kind, {**row, name: good}))


async def test_a_row_of_another_tenant_is_not_changed(world: World) -> None:
    line = _row("outcome", {**OUTCOME, "score": 1.0}, tenant="other")
    assert (await import_lines(world.stores(), "other", line)).rows == 0
    [row] = world.sql_now("SELECT tenant_id, score FROM procedure_outcomes WHERE run_id = ?", RUN)
    assert (row["tenant_id"], row["score"]) == ("acme", 0.5)


@pytest.mark.parametrize("kind", OF_RUNS)
@pytest.mark.parametrize("run_id", [RUN, ENDED["run_id"]], ids=["the run's own id", "another run's"])
async def test_invariant_3_an_import_takes_no_id_that_a_run_of_another_tenant_will_need(
    world: World, kind: str, run_id: str
) -> None:
    """The other tenant's own rows would yield to it: they are written once, however often."""
    await import_lines(world.stores(), "other", _row("run", {**ENDED, "run_id": f"{RUN[:-1]}C"}, tenant="other"))
    column, rest = OF_RUNS[kind]
    row = {column: f"{RUN[:-1]}C.7", "run_id": run_id, **rest}
    assert (await import_lines(world.stores(), "acme", _row(kind, row))).rows == 0
    own = {column: f"{run_id}.7", "run_id": run_id, **rest}
    assert (await import_lines(world.stores(), "acme", _row(kind, own))).rows == 1


async def test_invariant_3_an_import_takes_no_outcome_of_a_run_of_another_tenant(world: World) -> None:
    await import_lines(world.stores(), "other", _row("run", ENDED, tenant="other"))
    line = _row("outcome", {**OUTCOME, "run_id": ENDED["run_id"]})
    assert (await import_lines(world.stores(), "acme", line)).rows == 0


async def test_a_row_that_names_its_user_and_time_was_erased_whatever_its_line_says(world: World) -> None:
    before = [json.loads(line) for text in await pages(world) for line in text.splitlines()]
    of_ann = [line for line in before if line["kind"] != "item" and line.get("row", {}).get("user_id") == ANN]
    await erased(world, ANN)
    now_ms = world.clock()
    forged = "\n".join(json.dumps({**line, "owner": None, "at_ms": now_ms}) for line in of_ann)
    done = await import_lines(world.stores(), "acme", forged)
    assert (done.rows, done.erased) == (0, len(of_ann))
    assert {line["kind"] for line in of_ann} >= {"message", "run", "conversation"}


def agent(number: int, version: int = 1, definition: str | None = "{}", at_ms: int = 7) -> str:
    row = {
        "agent_type": f"a{number}",
        "version": version,
        "definition": definition,
        "digest": "",
        "restored_from": None,
    }
    return _row("agent", {**row, "created_by": "person:ann", "created_at_ms": at_ms})


async def test_an_import_brings_no_version_back_that_is_older_than_the_current_one(world: World) -> None:
    now_ms = world.clock()
    own = {"tenant_id": "acme", "digest": "d", "definition": '{"description": "now"}', "created_at_ms": now_ms}
    world.plant("agent_versions", agent_type="a0", version=2, **own)
    lines = "\n".join([agent(0, 1), agent(0, 2), agent(0, 3), agent(0, 4, None), agent(1, 1), agent(1, 2)])
    assert (await import_lines(world.stores(), "acme", lines)).rows == 3
    versions = "SELECT MAX(version) AS newest, COUNT(*) AS n FROM agent_versions WHERE agent_type = 'a0'"
    assert world.sql_now(versions) == [{"newest": 2, "n": 2}]
    world.clock.advance(120_000)
    assert (await import_lines(world.stores(), "acme", agent(0, 3, at_ms=now_ms + 90_000))).rows == 1
    assert world.sql_now(versions) == [{"newest": 3, "n": 3}]


async def test_a_tenant_gets_no_more_than_100_agents_by_an_import(world: World) -> None:
    stores = world.stores()
    had = len(world.sql_now("SELECT DISTINCT agent_type FROM agent_versions WHERE tenant_id = 'acme'"))
    lines = [agent(number) for number in range(120)]
    assert (await import_lines(stores, "acme", "\n".join(lines))).rows == 100 - had
    assert (await import_lines(stores, "acme", agent(0, 2))).rows == 1
    assert (await import_lines(stores, "acme", "\n".join([agent(0, 3, None), agent(119)]))).rows == 2


@pytest.mark.parametrize(
    "line",
    [
        _row("outcome", {**OUTCOME, "extra": 1}),
        _row("outcome", {**OUTCOME, "score": "high"}),
        _row("outcome", {**OUTCOME, "score": 1.5}),
        _row("outcome", {**OUTCOME, "run_id": "r"}),
        _row("outcome", {**OUTCOME, "at_ms": -1}),
        _row("outcome", OUTCOME, at_ms=2**52),
        _row("outcome", {**OUTCOME, "at_ms": 2**52}),
        _row("run", {**ENDED, "created_at_ms": 2**52}),
        _row("run", {**ENDED, "completed_at_ms": 2**52}),
        _row("spent", {**SPENT, "day": 10**6}),
        _row("outcome", OUTCOME, owner="*"),
        _row("outcome", OUTCOME, version=2),
        _row("outcome", OUTCOME, tenant="A:B"),
        _row("chat_message", {"namespace_key": "shop:other:s", "position": 0, "message": "{}"}),
        _row("chat_message", {"namespace_key": "shop:acme:s", "position": 0, "message": "{"}),
        _row("unknown", {}),
        '{"kind": [], "version": 1, "tenant": "acme"}',
        '{"kind": {}, "version": 1, "tenant": "acme"}',
        json.dumps({"kind": "item", "version": 1, "tenant": "acme", "owner": None, "at_ms": 7, "item": {"key": "a"}}),
    ],
)
async def test_a_line_that_no_export_has_is_refused(world: World, line: str) -> None:
    with raises(InvalidInput, code="invalid_line"):
        await import_lines(world.stores(), "acme", line, items=items_of(world.stores()))


@pytest.mark.parametrize("cursor", ["rows.unknown.", "rows.run.!!", "rows.run.e30=", "rows.event.WzFd", "items. "])
async def test_a_cursor_that_no_page_had_is_refused(world: World, cursor: str) -> None:
    with raises(InvalidInput, code="invalid_cursor"):
        await export_page(world.stores(), "acme", cursor)


async def test_a_sealed_value_moves_sealed_and_needs_a_key_that_opens_it(world: World) -> None:
    place = Namespace("shop", "acme", "s-1")
    await items_of(world.stores(), Sealer(HostCrypto(), OLD))(place).put("preferences", "p", PERSON, user_id="bob")
    text = next(text for text in await pages(world) if '"sealed":true' in text)
    assert "ann@shop.example" not in next(line for line in text.splitlines() if '"sealed":true' in line)

    async def imported(sealer: Sealer) -> str | None:
        stores = world.stores_with(sealer)
        await import_lines(stores, "copy", text, items=items_of(stores, sealer))
        return await items_of(stores, sealer)(Namespace("shop", "copy", "s-1")).get("preferences", "p")

    with raises(Misconfigured, code="item_unreadable"):
        await imported(Sealer(HostCrypto(), NEW))
    assert await imported(Sealer(HostCrypto(), NEW, OLD)) == PERSON
    [row] = world.sql_now("SELECT value, key_id FROM memory_items WHERE tenant_id = 'copy' AND kind = 'preferences'")
    assert row["key_id"] is not None
    assert "ann@shop.example" not in row["value"]
