"""Keys of applications on a real database: what they allow, how long a revoked one may work, what history has of them."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Coroutine
from typing import Any

import pytest

from retain.application_keys.keys import (
    FRESH_MS,
    MAX_CHARACTERS,
    MAX_KEYS,
    PREFIX,
    USED_EVERY_MS,
    ApplicationKeys,
    presented_key,
)
from retain.application_keys.scope import OwnTenant
from retain.errors import Conflict, NotFound, QuotaExceeded, Unauthenticated
from retain.host.clock import ManualClock
from retain.host.sql import SqliteSql
from tests.ports import raises
from tests.support.databases import migrated_d1

MINUTE_MS = 60_000


class Later:
    """Keeps what a request need not wait for until it is done."""

    def __init__(self) -> None:
        self.work: list[Coroutine[Any, Any, None]] = []

    def __call__(self, work: Coroutine[Any, Any, None]) -> None:
        self.work.append(work)

    async def done(self) -> int:
        """Do the work; return how much there was."""
        work, self.work = self.work, []
        await asyncio.gather(*work)
        return len(work)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(1_700_000_000_000)


@pytest.fixture
def sql() -> SqliteSql:
    return migrated_d1()


@pytest.fixture
def later() -> Later:
    return Later()


@pytest.fixture
def keys(sql: SqliteSql, clock: ManualClock, later: Later) -> ApplicationKeys:
    return ApplicationKeys(sql, clock, later)


async def test_a_key_is_accepted_and_only_its_hash_is_stored(
    keys: ApplicationKeys, sql: SqliteSql, later: Later
) -> None:
    made, text = await keys.create("acme", "shop", ["runs", "memory:read", "runs"], by="ada@example.com")
    assert re.fullmatch(r"retainapp_acme_[A-Za-z0-9_-]{43}", text)
    assert len(text) <= MAX_CHARACTERS
    assert (made.tenant_id, made.name, made.scopes, made.created_by) == (
        "acme",
        "shop",
        ("memory:read", "runs"),
        "ada@example.com",
    )
    assert (await keys.authenticate(text)).key_id == made.key_id
    await later.done()
    rows = (await sql.run("SELECT * FROM application_keys")).rows
    assert len(rows) == 1
    assert text[len("retainapp_acme_") :] not in str(rows)
    assert not {"key", "hash", "tenant_id"} & made.to_json().keys()


async def test_the_longest_tenant_s_key_is_accepted(keys: ApplicationKeys, later: Later) -> None:
    tenant = "t" * 63
    _, text = await keys.create(tenant, "shop", ["runs"], by="ada")
    assert (await keys.authenticate(text)).tenant_id == tenant
    await later.done()


@pytest.mark.parametrize(
    "text",
    [PREFIX, f"{PREFIX}acme_{'x' * 43}", "", "é" * 20, PREFIX + "x" * MAX_CHARACTERS, "retain_acme_" + "x" * 43],
    ids=["the prefix", "unknown", "nothing", "not ASCII", "too long", "of the gateway"],
)
async def test_what_is_not_a_key_is_refused(keys: ApplicationKeys, text: str) -> None:
    await keys.create("acme", "shop", ["runs"], by="ada")
    with raises(Unauthenticated, code="invalid_api_key"):
        await keys.authenticate(text)


async def test_a_key_with_another_case_or_ending_is_another_key(keys: ApplicationKeys) -> None:
    _, text = await keys.create("acme", "shop", ["runs"], by="ada")
    for other in (text.swapcase(), text[:-1], f"{text}A", text.replace("acme", "acmf")):
        with raises(Unauthenticated, code="invalid_api_key"):
            await keys.authenticate(other)


async def test_a_key_expires_at_its_time(keys: ApplicationKeys, clock: ManualClock, later: Later) -> None:
    _, text = await keys.create("acme", "shop", ["runs"], by="ada", expires_at_ms=clock() + MINUTE_MS)
    clock.advance(MINUTE_MS - 1)
    await keys.authenticate(text)
    clock.advance(1)  # it was read less than ten seconds ago
    with raises(Unauthenticated, code="invalid_api_key"):
        await keys.authenticate(text)
    await later.done()


async def test_a_revoked_key_is_refused_at_once_here_and_elsewhere_after_ten_seconds(
    keys: ApplicationKeys, sql: SqliteSql, clock: ManualClock, later: Later
) -> None:
    elsewhere = ApplicationKeys(sql, clock, later)
    made, text = await keys.create("acme", "shop", ["runs"], by="ada")
    for one in (keys, elsewhere):
        await one.authenticate(text)
        await one.require(made.key_id)
    revoked = await keys.revoke("acme", made.key_id)
    assert revoked.revoked_at_ms == clock()
    with raises(Unauthenticated, code="invalid_api_key"):
        await keys.authenticate(text)
    with raises(Unauthenticated, code="invalid_api_key"):
        await keys.require(made.key_id)
    clock.advance(FRESH_MS - 1)
    await elsewhere.authenticate(text)
    clock.advance(1)
    with raises(Unauthenticated, code="invalid_api_key"):
        await elsewhere.authenticate(text)
    assert await keys.revoke("acme", made.key_id) == await keys.revoke("acme", made.key_id)
    assert (await keys.revoke("acme", made.key_id)).revoked_at_ms == revoked.revoked_at_ms
    await later.done()


async def test_a_change_of_a_key_that_was_just_used_counts_at_once(keys: ApplicationKeys, later: Later) -> None:
    made, text = await keys.create("acme", "shop", ["runs"], by="ada", origins=["https://shop.example"])
    await keys.authenticate(text)
    await keys.change("acme", made.key_id, origins=["https://other.example"])
    assert (await keys.authenticate(text)).origins == ("https://other.example",)
    await keys.rotate("acme", made.key_id, by="ada", grace_ms=0)
    with raises(Unauthenticated, code="invalid_api_key"):
        await keys.authenticate(text)
    await later.done()


async def test_another_tenant_s_key_does_not_exist(keys: ApplicationKeys, later: Later) -> None:
    made, text = await keys.create("acme", "shop", ["admin"], by="ada")
    with raises(NotFound, code="no_such_key"):
        await keys.revoke("other", made.key_id)
    with raises(NotFound, code="no_such_key"):
        await keys.rotate("other", made.key_id, by="eve", grace_ms=0)
    assert (await keys.page("other", after=None, limit=10)).keys == []
    await keys.authenticate(text)
    await later.done()


async def test_a_rotated_key_is_accepted_until_its_grace_period_ends(
    keys: ApplicationKeys, clock: ManualClock, later: Later
) -> None:
    made, text = await keys.create("acme", "shop", ["runs"], by="ada", expires_at_ms=clock() + 100 * MINUTE_MS)
    clock.advance(MINUTE_MS)
    old, new, new_text = await keys.rotate("acme", made.key_id, by="bob", grace_ms=MINUTE_MS)
    assert (old.key_id, old.expires_at_ms) == (made.key_id, clock() + MINUTE_MS)
    assert (new.name, new.scopes, new.created_by) == ("shop", ("runs",), "bob")
    assert new.expires_at_ms == clock() + 100 * MINUTE_MS
    assert new.key_id != old.key_id
    assert new_text != text
    await keys.authenticate(text)
    clock.advance(MINUTE_MS)
    with raises(Unauthenticated, code="invalid_api_key"):
        await keys.authenticate(text)
    await keys.authenticate(new_text)
    with raises(NotFound, code="no_such_key"):
        await keys.rotate("acme", made.key_id, by="bob", grace_ms=0)
    await later.done()


@pytest.mark.parametrize("lives_ms", [None, 1000 * MINUTE_MS])
async def test_a_rotation_that_is_repeated_after_its_answer_was_lost_makes_a_key_that_lives_as_long(
    keys: ApplicationKeys, clock: ManualClock, later: Later, lives_ms: int | None
) -> None:
    ends_ms = None if lives_ms is None else clock() + lives_ms
    made, _ = await keys.create("acme", "shop", ["runs"], by="ada", expires_at_ms=ends_ms)
    for _ in range(3):
        clock.advance(MINUTE_MS)
        old, new, _ = await keys.rotate("acme", made.key_id, by="bob", grace_ms=60 * MINUTE_MS)
        assert new.expires_at_ms == (None if lives_ms is None else clock() + lives_ms)
    assert old.expires_at_ms == made.created_at_ms + 61 * MINUTE_MS, "the first grace period"
    await later.done()


async def test_a_grace_period_does_not_lengthen_the_life_of_a_key(
    keys: ApplicationKeys, clock: ManualClock, later: Later
) -> None:
    made, _ = await keys.create("acme", "shop", ["runs"], by="ada", expires_at_ms=clock() + MINUTE_MS)
    old, _, _ = await keys.rotate("acme", made.key_id, by="bob", grace_ms=10 * MINUTE_MS)
    assert old.expires_at_ms == made.expires_at_ms
    await later.done()


async def test_the_last_use_is_written_once_a_minute(keys: ApplicationKeys, clock: ManualClock, later: Later) -> None:
    _, text = await keys.create("acme", "shop", ["runs"], by="ada")
    assert (await keys.page("acme", after=None, limit=1)).keys[0].last_used_at_ms is None
    for _ in range(5):
        await keys.authenticate(text)
    assert await later.done() == 1
    assert (await keys.page("acme", after=None, limit=1)).keys[0].last_used_at_ms == clock()
    clock.advance(USED_EVERY_MS - 1)
    await keys.authenticate(text)
    assert await later.done() == 0
    clock.advance(1)
    await keys.authenticate(text)
    assert await later.done() == 1


async def test_a_tenant_has_a_hundred_valid_keys_and_pages_list_each_once(
    keys: ApplicationKeys, clock: ManualClock
) -> None:
    made = [await keys.create("acme", f"k{number}", ["runs"], by="ada") for number in range(MAX_KEYS)]
    await keys.create("other", "shop", ["runs"], by="ada")
    with raises(QuotaExceeded, code="too_many_keys"):
        await keys.create("acme", "one more", ["runs"], by="ada")
    await keys.revoke("acme", made[3][0].key_id)
    await keys.create("acme", "instead", ["runs"], by="ada", expires_at_ms=clock() + 1)
    clock.advance(1)
    await keys.create("acme", "again", ["runs"], by="ada")
    listed: list[str] = []
    cursor = None
    while True:
        page = await keys.page("acme", after=cursor, limit=40)
        listed += [key.name for key in page.keys]
        if (cursor := page.cursor) is None:
            break
    assert listed == ["again", "instead", *(f"k{number}" for number in reversed(range(MAX_KEYS)))]


async def test_what_an_isolate_remembers_of_keys_is_bounded(keys: ApplicationKeys, later: Later) -> None:
    for number in range(1_100):
        _, text = await keys.create(f"t{number}", "shop", ["runs"], by="ada")
        await keys.authenticate(text)
        await later.done()
    assert len(keys._known) <= 1_000


async def test_history_has_what_happened_to_a_key(keys: ApplicationKeys, sql: SqliteSql) -> None:
    made, _ = await keys.create("acme", "shop", ["runs"], by="ada")
    await keys.rotate("acme", made.key_id, by="ada", grace_ms=0)
    await keys.revoke("acme", made.key_id)
    rows = (await sql.run("SELECT kind FROM mutation_log WHERE tenant_id = 'acme' ORDER BY number")).rows
    assert [row["kind"] for row in rows] == ["key_created", "key_created", "key_limited", "key_revoked"]


async def test_an_erased_tenant_gets_no_key(keys: ApplicationKeys, sql: SqliteSql) -> None:
    await sql.run("INSERT INTO erased_tenants (tenant_id, last_run_id, closed) VALUES ('acme', '', 1)")
    with raises(Conflict):
        await keys.create("acme", "shop", ["runs"], by="ada")


async def test_the_bearer_owns_the_key_s_tenant_alone() -> None:
    authority = OwnTenant("acme")
    assert [await authority.role(tenant) for tenant in ("acme", "other", "*")] == ["owner", None, None]
    assert await authority.tenants("viewer") == ["acme"]


@pytest.mark.parametrize(
    ("header", "found"),
    [
        ("Bearer retainapp_acme_x", "retainapp_acme_x"),
        ("bearer  retainapp_acme_x ", "retainapp_acme_x"),
        ("Basic retainapp_acme_x", None),
        ("Bearer retain_acme_x", None),
        ("Bearer", None),
    ],
)
def test_a_key_is_presented_as_a_bearer_token(header: str, found: str | None) -> None:
    assert presented_key({"authorization": header}) == found
    assert presented_key({}) is None
