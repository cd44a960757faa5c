"""`retain roles` against the administrator's handlers: what it prints, and what the deployment holds after it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import closing

import httpx
import pytest

from retain.cli.roles import main
from retain.host.sql import SqliteSql
from retain.roles.grants import Grants
from retain.tenants.register import Tenants
from tests.cli.connected import connected
from tests.support.databases import migrated_d1

URL = "http://retain.example"


@pytest.fixture
def sql() -> Iterator[SqliteSql]:
    with closing(migrated_d1()) as database:
        asyncio.run(Tenants(database, lambda: 1).register("acme"))
        yield database


def _connected(sql: SqliteSql) -> Callable[[str], httpx.Client]:
    return connected(tenants=Tenants(sql, lambda: 1), grants=Grants(sql, lambda: 1))


def _held(sql: SqliteSql) -> list[tuple[str, ...]]:
    rows = asyncio.run(sql.run("SELECT tenant_id, subject, role, granted_by FROM role_grants ORDER BY 1, 2")).rows
    return [tuple(row.values()) for row in rows]


def test_roles_are_granted_listed_and_revoked(sql: SqliteSql, capsys: pytest.CaptureFixture[str]) -> None:
    def run(*arguments: str, tenant: str = "acme") -> list[str]:
        assert main([*arguments, "--url", URL, "--tenant", tenant], _connected(sql)) == 0
        return capsys.readouterr().out.splitlines()

    assert run("list") == []
    assert run("grant", "email:Bob@Example.com", "viewer") == ["email:bob@example.com viewer, granted by ada"]
    assert run("grant", "email:bob@example.com", "operator") == ["email:bob@example.com operator, granted by ada"]
    assert run("grant", "claim:team=a/b %?", "owner", tenant="*") == ["claim:team=a/b %? owner, granted by ada"]
    assert _held(sql) == [
        ("*", "claim:team=a/b %?", "owner", "ada"),
        ("acme", "email:bob@example.com", "operator", "ada"),
    ]
    assert run("list", tenant="*") == ["claim:team=a/b %? owner, granted by ada"]
    assert run("revoke", "email:bob@example.com") == ["email:bob@example.com has no role there now"]
    assert run("revoke", "email:bob@example.com") == ["email:bob@example.com holds no role there"]
    run("revoke", "claim:team=a/b %?", tenant="*")
    assert _held(sql) == []


def test_a_list_goes_over_every_page(sql: SqliteSql, capsys: pytest.CaptureFixture[str]) -> None:
    for number in range(120):
        asyncio.run(Grants(sql, lambda: 1).grant("acme", f"group:{number:03}", "viewer", "ada"))
    assert main(["list", "--url", URL, "--tenant", "acme"], _connected(sql)) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == [f"group:{n:03}" for n in range(120)]


@pytest.mark.parametrize(
    ("arguments", "tenant", "code"),
    [
        pytest.param(["grant", "bob", "viewer"], "acme", "invalid_role_subject", id="what is not a subject"),
        pytest.param(["revoke", "bob"], "acme", "invalid_role_subject", id="nor to be revoked"),
        pytest.param(["list"], "Acme", "invalid_tenant", id="what is not a tenant"),
        pytest.param(["list"], "rival", "unknown_tenant", id="a tenant that does not exist"),
    ],
)
def test_what_is_refused_is_reported(
    sql: SqliteSql, capsys: pytest.CaptureFixture[str], arguments: list[str], tenant: str, code: str
) -> None:
    assert main([*arguments, "--url", URL, "--tenant", tenant], _connected(sql)) == 1
    assert code in capsys.readouterr().err
    assert _held(sql) == []


def test_a_role_that_does_not_exist_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["grant", "group:ops", "admin", "--url", URL, "--tenant", "acme"])
    assert ended.value.code == 2
    assert "'owner'" in capsys.readouterr().err
