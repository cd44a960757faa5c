"""Migrations over every database: in order, stopped by the first failure, continued by the next run."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from tools.migrate import main


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """A configuration with three databases."""
    path = tmp_path / "wrangler.json"
    path.write_text(json.dumps({"d1_databases": [{"binding": name} for name in ("DB", "DB_1", "DB_2")]}))
    return path


class Wrangler:
    """Notes what it is asked, and fails for these databases."""

    def __init__(self, *failing: str) -> None:
        self.failing = failing
        self.asked: list[tuple[str, str]] = []
        self.where: set[str] = set()

    def __call__(self, command: Sequence[str]) -> int:
        assert command[1:3] == ["d1", "migrations"]
        self.asked.append((command[3], command[4]))
        self.where |= {*command[5:]} & {"--remote", "--local"}
        return int(command[4] in self.failing)


def test_each_database_gets_its_migrations_in_order(config: Path) -> None:
    wrangler = Wrangler()
    assert main(["--config", str(config)], wrangler) == 0
    assert wrangler.asked == [("apply", "DB"), ("apply", "DB_1"), ("apply", "DB_2")]
    assert wrangler.where == {"--remote"}


def test_the_first_failure_ends_the_run_and_names_what_is_left(
    config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wrangler = Wrangler("DB_1")
    assert main(["--config", str(config), "--local"], wrangler) == 1
    assert wrangler.asked == [("apply", "DB"), ("apply", "DB_1")]
    assert wrangler.where == {"--local"}
    assert "not done for DB_1, DB_2" in capsys.readouterr().err


def test_the_status_of_each_database_is_shown_even_if_one_is_not_reached(config: Path) -> None:
    wrangler = Wrangler("DB")
    assert main(["--config", str(config), "--status"], wrangler) == 1
    assert wrangler.asked == [("list", "DB"), ("list", "DB_1"), ("list", "DB_2")]
