"""Origins of keys: how one is written, how long what was read is used, and what preflights cost."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from retain.application_keys.keys import ApplicationKeys
from retain.application_keys.origins import MAX_CHARACTERS, CallingPage, check_origin, check_origins
from retain.application_keys.preflights import FRESH_MS, MAX_READ, Preflights
from retain.errors import Forbidden, InvalidInput, NotFound
from retain.host.clock import ManualClock
from retain.host.sql import SqliteSql
from retain.ports import Sql, SqlResult, SqlValue, Statement
from tests.application_keys.test_keys import Later
from tests.ports import raises
from tests.support.databases import migrated_d1

SHOP, DESK = "https://shop.example", "https://desk.example:8443"


class SqlOfPreflights:
    """Counts what is read."""

    def __init__(self, sql: Sql) -> None:
        self._sql = sql
        self.reads = 0

    async def run(self, sql: str, *values: SqlValue) -> SqlResult:
        """See the port."""
        self.reads += 1
        return await self._sql.run(sql, *values)

    async def batch(self, statements: Sequence[Statement]) -> list[SqlResult]:
        """See the port."""
        return await self._sql.batch(statements)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(1_700_000_000_000)


@pytest.fixture
def sql() -> SqliteSql:
    return migrated_d1()


@pytest.fixture
def keys(sql: SqliteSql, clock: ManualClock) -> ApplicationKeys:
    return ApplicationKeys(sql, clock, Later())


@pytest.fixture
def preflights(sql: SqliteSql, clock: ManualClock) -> Preflights:
    return Preflights(sql, clock)


async def allowed(preflights: Preflights, origin: str) -> bool:
    """Return whether a preflight of the origin is answered with it."""
    page = CallingPage()
    page.arrive(origin)
    try:
        await preflights.answer(page, origin)
    except Forbidden as refused:
        assert refused.code == "origin_not_allowed"
        assert page.headers == {"vary": "origin"}
        return False
    assert page.headers["access-control-allow-origin"] == origin
    assert "access-control-allow-credentials" not in page.headers
    return True


@pytest.mark.parametrize(
    "origin",
    [
        SHOP,
        DESK,
        "https://xn--bcher-kva.example",
        "https://a",
        "https://192.0.2.7",
        "http://localhost:5173",
        "http://127.0.0.1",
        "http://[::1]:8080",
    ],
)
def test_an_origin_is_written_as_browsers_write_it(origin: str) -> None:
    assert check_origins([origin, origin]) == (origin,)


@pytest.mark.parametrize(
    "origin",
    [
        "*",
        "null",
        "",
        "https://*",
        "https://*.shop.example",
        "https://Shop.example",
        "https://shop.example/",
        "https://shop.example/page",
        "https://shop.example:443",
        "http://localhost:80",
        "https://shop.example:0",
        "https://shop.example:123456",
        "http://shop.example",
        "http://localhost.shop.example",
        "https://ann@shop.example",
        "https://bücher.example",
        "https://shop.example\n",
        "https://-shop.example",
        "https://shop..example",
        "shop.example",
        "javascript://shop.example",
        "https://" + "a" * (MAX_CHARACTERS + 1 - len("https://")),
    ],
)
def test_what_is_not_an_origin_is_refused(origin: str) -> None:
    with raises(InvalidInput, code="invalid_origin"):
        check_origins([SHOP, origin])


def test_the_longest_origin_is_accepted() -> None:
    origin = "https://" + "a" * (MAX_CHARACTERS - len("https://"))
    assert check_origins([origin]) == (origin,)


@pytest.mark.parametrize(
    ("origin", "crosses"),
    [(None, False), ("https://retain.example", False), ("http://retain.example", False), (SHOP, True)],
)
def test_a_program_and_a_page_of_the_same_host_need_no_origin(origin: str | None, crosses: bool) -> None:
    assert check_origin(origin, "retain.example", [SHOP]) is crosses


@pytest.mark.parametrize("origin", ["null", "*", "https://evil.example", "https://retain.example:8443", f"{SHOP}."])
@pytest.mark.parametrize("has", [[], [SHOP]])
def test_a_page_of_an_origin_that_the_key_lacks_is_refused(origin: str, has: Sequence[str]) -> None:
    with raises(Forbidden, code="origin_not_allowed"):
        check_origin(origin, "retain.example", has)


async def test_a_preflight_is_answered_if_any_valid_key_has_the_origin(
    keys: ApplicationKeys, preflights: Preflights, clock: ManualClock
) -> None:
    assert not await allowed(preflights, SHOP)
    key, _ = await keys.create("acme", "shop", ["runs"], by="ada", origins=[SHOP])
    await keys.create("other", "desk", ["runs"], by="ada", origins=[DESK, SHOP], expires_at_ms=clock() + 2 * FRESH_MS)
    assert not await allowed(preflights, SHOP)  # it was read a moment ago
    clock.advance(FRESH_MS)
    assert [await allowed(preflights, origin) for origin in (SHOP, DESK, "https://evil.example", "null")] == [
        True,
        True,
        False,
        False,
    ]
    await keys.revoke("acme", key.key_id)
    clock.advance(FRESH_MS)
    assert not await allowed(preflights, SHOP)
    assert not await allowed(preflights, DESK)


async def test_preflights_read_the_database_once_in_ten_seconds(clock: ManualClock, sql: SqliteSql) -> None:
    counted = SqlOfPreflights(sql)
    preflights = Preflights(counted, clock)
    for number in range(100):
        await allowed(preflights, f"https://evil{number}.example")
    assert counted.reads == 1
    clock.advance(FRESH_MS - 1)
    await allowed(preflights, SHOP)
    assert counted.reads == 1
    clock.advance(1)
    await allowed(preflights, SHOP)
    assert counted.reads == 2


async def test_where_more_keys_have_origins_than_are_read_any_page_may_ask(
    sql: SqliteSql, preflights: Preflights, clock: ManualClock
) -> None:
    made = """
    INSERT INTO application_keys (key_id, tenant_id, name, scopes, hash, created_by, created_at_ms, origins)
    SELECT 'k' || i, 't' || i, 'n', '[]', 'h' || i, 'ada', 1, '["https://s' || i || '.example"]'
    FROM (WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i <= ?) SELECT i FROM n) WHERE i > ?
    """
    await sql.run(made, MAX_READ - 1, 0)
    assert await allowed(preflights, f"https://s{MAX_READ}.example")
    assert not await allowed(preflights, SHOP)
    await sql.run(made, MAX_READ, MAX_READ)
    clock.advance(FRESH_MS)
    assert await allowed(preflights, SHOP)


async def test_the_origins_are_read_from_an_index_alone(sql: SqliteSql) -> None:
    from retain.application_keys import preflights

    plan = (await sql.run(f"EXPLAIN QUERY PLAN {preflights._READ}", 1, 1)).rows
    used = [str(row["detail"]) for row in plan if "application_keys" in str(row["detail"])]
    assert len(used) == 2
    assert all("USING COVERING INDEX application_keys_with_origins" in detail for detail in used), used


async def test_a_key_s_name_and_origins_change_and_its_successor_has_them(
    keys: ApplicationKeys, sql: SqliteSql
) -> None:
    key, _ = await keys.create("acme", "shop", ["runs"], by="ada", origins=[SHOP])
    assert (await keys.change("acme", key.key_id, origins=[DESK])).origins == (DESK,)
    assert (await keys.change("acme", key.key_id, name="desk")).origins == (DESK,)
    _, successor, _ = await keys.rotate("acme", key.key_id, by="ada", grace_ms=0)
    assert (successor.name, successor.origins) == ("desk", (DESK,))
    assert (await keys.change("acme", successor.key_id, origins=[])).origins == ()
    with raises(NotFound, code="no_such_key"):
        await keys.change("other", key.key_id, origins=[SHOP])
    await keys.revoke("acme", key.key_id)
    with raises(NotFound, code="no_such_key"):
        await keys.change("acme", key.key_id, origins=[SHOP])
    kinds = (await sql.run("SELECT kind FROM mutation_log WHERE kind = 'key_changed'")).rows
    assert len(kinds) == 3
