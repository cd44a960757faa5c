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
from retain.namespace import Namespace
from retain.sealing.pii import Sealer
from retain.tenants.register import Tenants
from tests.lifecycle.of_users import ANN, erased, fill, shop
from tests.lifecycle.test_backups import contents, lines_of, plant_the_rest
from tests.lifecycle.tiered import items_of
from tests.lifecycle.world import World
from tests.ports import raises

RUN = "01K0000000000000000000000A"
PERSON = '{"name": "Ann", "email": "ann@shop.example"}'
OLD, NEW = (base64.b64encode(bytes([number]) * 32).decode() for number in (1, 2))


@pytest.fixture
async def world() -> AsyncIterator[World]:
    world = shop()
    try:
        await fill(world, ANN)
        plant_the_rest(world)
        yield world
    finally:
        world.close()


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


async def test_a_row_of_another_tenant_is_not_changed(world: World) -> None:
    line = _row("outcome", {**OUTCOME, "score": 1.0}, tenant="other")
    assert (await import_lines(world.stores(), "other", line)).rows == 0
    [row] = world.sql_now("SELECT tenant_id, score FROM procedure_outcomes WHERE run_id = ?", RUN)
    assert (row["tenant_id"], row["score"]) == ("acme", 0.5)


@pytest.mark.parametrize(
    "line",
    [
        _row("outcome", {**OUTCOME, "extra": 1}),
        _row("outcome", {**OUTCOME, "score": "high"}),
        _row("outcome", {**OUTCOME, "run_id": "r"}),
        _row("outcome", {**OUTCOME, "at_ms": -1}),
        _row("outcome", OUTCOME, at_ms=2**52),
        _row("outcome", OUTCOME, owner="*"),
        _row("outcome", OUTCOME, version=2),
        _row("outcome", OUTCOME, tenant="A:B"),
        _row("chat_message", {"namespace_key": "shop:other:s", "position": 0, "message": "{}"}),
        _row("chat_message", {"namespace_key": "shop:acme:s", "position": 0, "message": "{"}),
        _row("unknown", {}),
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
