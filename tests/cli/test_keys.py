"""`retain keys` against the administrator's handlers: what it prints, and what the deployment holds after it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest

from retain.application_keys.keys import ApplicationKeys
from retain.cli.keys import main
from retain.errors import Unauthenticated
from retain.host.clock import ManualClock
from retain.host.sql import SqliteSql
from retain.tenants.register import Tenants
from tests.cli.connected import connected
from tests.support.databases import migrated_d1

URL = "http://retain.example"
NOW_MS = 1_700_000_000_000


class Deployment:
    """The keys of a deployment with one tenant."""

    def __init__(self, sql: SqliteSql) -> None:
        self._clock = ManualClock(NOW_MS)
        self._sql = sql
        self.keys = ApplicationKeys(sql, self._clock, self._later)

    def _later(self, work: Coroutine[Any, Any, None]) -> None:
        work.close()

    @property
    def connect(self) -> Callable[[str], httpx.Client]:
        return connected(tenants=Tenants(self._sql, self._clock), keys=self.keys, clock=self._clock)

    def accepts(self, text: str) -> bool:
        try:
            return asyncio.run(self.keys.authenticate(text)).tenant_id == "acme"
        except Unauthenticated:
            return False


@pytest.fixture
def deployment() -> Iterator[Deployment]:
    with closing(migrated_d1()) as database:
        asyncio.run(Tenants(database, lambda: 1).register("acme"))
        yield Deployment(database)


Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(deployment: Deployment, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a command; return its exit status, and what it prints and tells."""

    def command(*arguments: str, tenant: str = "acme") -> tuple[int, str, str]:
        status = main([*arguments, "--url", URL, "--tenant", tenant], deployment.connect)
        printed = capsys.readouterr()
        return status, printed.out, printed.err

    return command


def test_a_key_is_created_listed_rotated_and_revoked(deployment: Deployment, run: Run) -> None:
    status, first, reported = run(
        "create", "--name", "shop", "--scope", "runs", "--scope", "memory:read", "--days", "1"
    )
    assert status == 0
    assert deployment.accepts(first.strip())
    assert "shop: memory:read, runs, expires 2023-11-15 22:13 UTC; it is shown only now" in reported
    key_id = run("list")[1].split()[0]
    status, second, reported = run("rotate", key_id, "--grace-minutes", "0")
    assert status == 0
    assert deployment.accepts(second.strip())
    assert not deployment.accepts(first.strip())
    assert f"{key_id} shop: memory:read, runs, expires 2023-11-14 22:13 UTC" in reported
    successor = run("list")[1].split()[0]
    status, revoked, _ = run("revoke", successor)
    assert (status, revoked.strip().endswith("revoked 2023-11-14 22:13 UTC")) == (0, True)
    assert not deployment.accepts(second.strip())


def test_a_list_goes_over_every_page(deployment: Deployment, run: Run) -> None:
    for number in range(70):
        asyncio.run(deployment.keys.create("acme", f"k{number}", ["runs"], by="ada"))
    assert [line.split()[1] for line in run("list")[1].splitlines()] == [f"k{n}:" for n in reversed(range(70))]


@pytest.mark.parametrize(
    ("arguments", "tenant", "code", "exits"),
    [
        pytest.param(["revoke", "01ARZ3NDEKTSV4RRFFQ69G5FAV"], "acme", "no_such_key", 4, id="an unknown key"),
        pytest.param(["rotate", "x"], "acme", "invalid_id", 2, id="what is no id"),
        pytest.param(["create", "--name", "", "--scope", "runs"], "acme", "invalid_body", 1, id="no name"),
        pytest.param(["list"], "rival", "unknown_tenant", 4, id="a tenant that does not exist"),
    ],
)
def test_what_is_refused_is_reported(run: Run, arguments: list[str], tenant: str, code: str, exits: int) -> None:
    status, printed, reported = run(*arguments, tenant=tenant)
    assert (status, printed) == (exits, "")
    assert reported.rstrip().endswith(f"({code})")
    assert "{" not in reported


def test_each_command_prints_one_object_for_each_key_as_json(deployment: Deployment, run: Run) -> None:
    _, printed, reported = run("create", "--name", "shop", "--scope", "runs", "--json")
    made = json.loads(printed)
    assert (deployment.accepts(made["key"]), reported) == (True, "")
    replaced = json.loads(run("rotate", made["key_id"], "--json")[1])
    assert deployment.accepts(replaced["key"])
    listed = [json.loads(line) for line in run("list", "--json")[1].splitlines()]
    assert [one["key_id"] for one in listed] == [replaced["key_id"], made["key_id"]]
    revoked = json.loads(run("revoke", made["key_id"], "--json")[1])
    assert (revoked["key_id"], revoked["revoked_at_ms"]) == (made["key_id"], NOW_MS)


def test_a_name_that_was_given_before_they_were_checked_cannot_change_the_terminal(
    deployment: Deployment, run: Run
) -> None:
    asyncio.run(deployment.keys.create("acme", "a\x1b[2Jb", ["runs"], by="anybody"))
    assert run("list")[1].split()[1] == "a\\x1b[2Jb:"


@pytest.mark.parametrize("name", ["a\x1b[2Jb", "two\nlines", " ", "\u202eback"])
def test_a_name_that_a_list_could_not_show_is_refused(deployment: Deployment, run: Run, name: str) -> None:
    status, printed, reported = run("create", "--name", name, "--scope", "runs")
    assert (status, printed) == (1, "")
    assert reported.rstrip().endswith("(invalid_body)")
    assert run("list")[1] == ""


def test_a_scope_that_does_not_exist_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["create", "--name", "shop", "--scope", "all", "--url", URL, "--tenant", "acme"])
    assert ended.value.code == 2
    assert "'memory:read'" in capsys.readouterr().err


def test_the_origins_of_a_key_are_given_replaced_and_taken_away(run: Run) -> None:
    shop = ("--origin", "https://shop.example")
    _, _, reported = run("create", "--name", "shop", "--scope", "runs", *shop, "--origin", "http://localhost:5173")
    assert "shop: runs, http://localhost:5173, https://shop.example" in reported
    key_id = run("list")[1].split()[0]
    assert (
        run("change", key_id, "--origin", "https://desk.example")[1]
        .strip()
        .endswith("shop: runs, https://desk.example")
    )
    assert run("change", key_id, "--name", "desk")[1].strip().endswith("desk: runs, https://desk.example")
    assert run("change", key_id, "--no-origins")[1].strip().endswith("desk: runs")
    status, _, reported = run("change", key_id, "--origin", "*")
    assert (status, "invalid_origin" in reported) == (1, True)


def test_a_profile_names_the_deployment_the_tenant_and_a_key(
    deployment: Deployment, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "retain" / "profiles.toml"
    file.parent.mkdir()
    file.write_text('[profiles.shop]\nurl = "https://retain.example"\ntenant = "acme"\nkey = "retainapp_acme_secret"\n')
    file.chmod(0o600)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    seen: list[httpx.Request] = []

    def connect(url: str) -> httpx.Client:
        def answer(request: httpx.Request) -> httpx.Response:
            seen.append(request)
            return httpx.Response(200, json={"keys": [], "cursor": None})

        assert url == "https://retain.example"
        return httpx.Client(base_url=url, transport=httpx.MockTransport(answer))

    assert main(["list", "--profile", "shop"], connect) == 0
    assert (seen[0].url.path, seen[0].headers["authorization"]) == (
        "/v1/tenants/acme/keys",
        "Bearer retainapp_acme_secret",
    )
    monkeypatch.setenv("RETAIN_KEY", "retainapp_acme_other")
    assert main(["list", "--url", URL, "--tenant", "acme"], deployment.connect) == 0
    for arguments in (
        ["list", "--url", URL],
        ["list", "--url", "ftp://x", "--tenant", "acme"],
        ["list", "--profile", "no"],
    ):
        assert main(arguments, connect) == 2
    assert len(seen) == 1
    assert "usage" in capsys.readouterr().err
