"""Grants on a real database: what they allow, how long a revoked one may still work, and what history has of them."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from retain.errors import NotFound
from retain.host.clock import ManualClock
from retain.ports import Sql, SqlResult, SqlValue, Statement
from retain.roles.grants import FRESH_MS, GrantedAuthority, Grants
from retain.roles.role import EVERY_TENANT, ROLES, OwnerOfAll, Role, includes, strongest
from tests.ports import raises
from tests.support.databases import migrated_d1

ADA = ("email:ada@example.com", "domain:example.com", "group:ops")


class CountedSql:
    """`Sql` that counts its calls."""

    def __init__(self, sql: Sql) -> None:
        self.calls = 0
        self._sql = sql

    async def run(self, sql: str, *values: SqlValue) -> SqlResult:
        self.calls += 1
        return await self._sql.run(sql, *values)

    async def batch(self, statements: Sequence[Statement]) -> list[SqlResult]:
        self.calls += 1
        return await self._sql.batch(statements)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(1_700_000_000_000)


@pytest.fixture
def sql() -> CountedSql:
    return CountedSql(migrated_d1())


@pytest.fixture
def grants(sql: CountedSql, clock: ManualClock) -> Grants:
    return Grants(sql, clock)


def test_each_role_includes_the_weaker_ones() -> None:
    assert ROLES == ("viewer", "operator", "owner")
    for held in ROLES:
        for needed in ROLES:
            assert includes(held, needed) is (ROLES.index(held) >= ROLES.index(needed))
        assert not includes(None, held)
    assert strongest(["viewer", "owner", "operator"]) == "owner"
    assert strongest([]) is None


async def test_nobody_holds_a_role_until_one_is_granted(grants: Grants) -> None:
    assert await grants.role_of(ADA, "acme") is None
    assert await grants.tenants_of(ADA, "viewer") == []
    assert await grants.role_of((), "acme") is None


async def test_the_strongest_of_all_subjects_counts(grants: Grants) -> None:
    await grants.grant("acme", "domain:example.com", "viewer", "root@example.com")
    await grants.grant("acme", "group:ops", "operator", "root@example.com")
    await grants.grant("acme", "email:bob@example.com", "owner", "root@example.com")
    assert await grants.role_of(ADA, "acme") == "operator"
    assert await grants.role_of(ADA, "other") is None
    assert await grants.role_of(ADA, EVERY_TENANT) is None


async def test_a_role_for_every_tenant_is_one_for_each(grants: Grants) -> None:
    await grants.grant(EVERY_TENANT, "group:ops", "viewer", "root@example.com")
    await grants.grant("acme", "group:ops", "owner", "root@example.com")
    assert await grants.role_of(ADA, "other") == "viewer"
    assert await grants.role_of(ADA, "acme") == "owner"
    assert await grants.role_of(ADA, EVERY_TENANT) == "viewer"
    assert await grants.tenants_of(ADA, "viewer") is None
    assert await grants.tenants_of(ADA, "operator") == ["acme"]


async def test_a_grant_replaces_the_one_before_and_is_idempotent(grants: Grants, clock: ManualClock) -> None:
    first = await grants.grant("acme", "group:ops", "viewer", "ann@example.com")
    clock.advance(10)
    assert await grants.grant("acme", "group:ops", "viewer", "bob@example.com") == first
    changed = await grants.grant("acme", "group:ops", "owner", "bob@example.com")
    assert (changed.role, changed.granted_by, changed.granted_at_ms) == ("owner", "bob@example.com", clock())
    assert [grant.role for grant in (await grants.page("acme", after=None, limit=10)).grants] == ["owner"]


async def test_a_revoked_role_is_gone_at_once_here_and_elsewhere_after_a_minute(
    sql: CountedSql, clock: ManualClock, grants: Grants
) -> None:
    elsewhere = Grants(sql, clock)
    await grants.grant("acme", "group:ops", "owner", "root@example.com")
    assert (await grants.role_of(ADA, "acme"), await elsewhere.role_of(ADA, "acme")) == ("owner", "owner")
    await grants.revoke("acme", "group:ops")
    assert await grants.role_of(ADA, "acme") is None
    clock.advance(FRESH_MS - 1)
    assert await elsewhere.role_of(ADA, "acme") == "owner"
    clock.advance(1)
    assert await elsewhere.role_of(ADA, "acme") is None
    with raises(NotFound, code="no_such_grant"):
        await grants.revoke("acme", "group:ops")


async def test_a_role_is_read_once_a_minute_and_a_refused_caller_each_time(sql: CountedSql, grants: Grants) -> None:
    await grants.grant("acme", "group:ops", "owner", "root@example.com")
    before = sql.calls
    for _ in range(5):
        await grants.role_of(ADA, "acme")
    assert sql.calls == before + 1
    for _ in range(3):
        await grants.role_of(ADA, "other")
    assert sql.calls == before + 4


async def test_what_is_remembered_is_bounded(grants: Grants) -> None:
    await grants.grant(EVERY_TENANT, "group:ops", "viewer", "root@example.com")
    for number in range(1_500):
        await grants.role_of(ADA, f"t{number}")
    assert len(grants._known) <= 1_000


async def test_pages_list_each_grant_once(grants: Grants) -> None:
    for number in range(5):
        await grants.grant("acme", f"group:g{number}", "viewer", "root@example.com")
    await grants.grant("other", "group:g9", "viewer", "root@example.com")
    first = await grants.page("acme", after=None, limit=2)
    second = await grants.page("acme", after=first.cursor, limit=3)
    assert [grant.subject for grant in (*first.grants, *second.grants)] == [f"group:g{n}" for n in range(5)]
    assert second.cursor is None


@pytest.mark.parametrize(
    ("owners", "expected"),
    [((), None), (("group:ops",), "owner"), (("group:dev",), None)],
    ids=["none", "its", "other"],
)
async def test_the_setting_names_owners_of_every_tenant(
    grants: Grants, owners: tuple[str, ...], expected: Role | None
) -> None:
    authority = GrantedAuthority(grants, ADA, owners)
    assert await authority.role("acme") == await authority.role(EVERY_TENANT) == expected
    assert await authority.tenants("owner") == (None if expected else [])


async def test_the_owner_of_all_is_one() -> None:
    assert (await OwnerOfAll().role("acme"), await OwnerOfAll().tenants("owner")) == ("owner", None)


async def test_history_has_who_holds_a_role_since_when(sql: CountedSql, grants: Grants) -> None:
    await grants.grant("acme", "group:ops", "viewer", "root@example.com")
    await grants.grant("acme", "group:ops", "owner", "root@example.com")
    await grants.revoke("acme", "group:ops")
    rows = (await sql.run("SELECT kind, detail FROM mutation_log WHERE tenant_id = 'acme' ORDER BY number")).rows
    assert [(row["kind"], row["detail"]) for row in rows] == [
        ("role_granted", "viewer"),
        ("role_granted", "owner"),
        ("role_revoked", "owner"),
    ]
