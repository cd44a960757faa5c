"""`retain shards` against the administrator's handlers: databases are listed, a tenant is moved, shown and brought back."""

from __future__ import annotations

import pytest

from retain.cli.moving import shards as command
from retain.tenants.register import Tenants
from tests.cli.connected import connected
from tests.lifecycle.moving.deployment import living

URL = "http://retain.example"


def test_a_tenant_is_moved_shown_and_the_databases_listed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("retain.lifecycle.moving.mover.KEPT_MS", 0)
    monkeypatch.setattr(command, "PAUSE_S", 0.0)
    monkeypatch.setattr(command, "_LONG_PAUSE_S", 0.0)
    with living(2) as deployment:
        connect = connected(
            tenants=Tenants(deployment.databases["DB"], lambda: 1),
            shards=deployment.shards,
            mover=lambda: deployment.mover,
        )

        def run(*arguments: str) -> list[str]:
            assert command.main([*arguments, "--url", URL], connect) == 0
            return capsys.readouterr().out.splitlines()

        assert [line.split(",")[0] for line in run("list")] == ["DB: 1 tenants", "DB_1: 1 tenants"]
        assert run("show", "default") == ["DB"]
        moved = run("move", "default", "DB_1")
        assert moved[-1].split(": ")[1].startswith("completed, remove")
        assert [line.split(",")[0] for line in run("list")] == ["DB: 0 tenants", "DB_1: 1 tenants"]
        assert command.main(["move", "default", "DB_7", "--url", URL], connect) != 0


def test_a_deployment_with_one_database_is_shown_as_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["list", "--url", URL], connected(shards=None)) == 0
    assert capsys.readouterr().out == "the deployment has one database\n"
