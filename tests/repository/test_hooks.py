"""The hooks of pre-commit call commands that exist, on what `make check` checks."""

from __future__ import annotations

import shlex
import subprocess
from typing import Any

import pytest
import yaml

from tools.paths import ROOT


def hooks() -> list[dict[str, Any]]:
    """Return the hooks of the project's own repository."""
    (repository,) = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]
    assert repository["repo"] == "local"
    found: list[dict[str, Any]] = repository["hooks"]
    return found


@pytest.mark.parametrize("hook", hooks(), ids=lambda hook: hook["id"])
def test_the_command_of_a_hook_exists_and_knows_its_options(hook: dict[str, Any]) -> None:
    command = [*shlex.split(hook["entry"]), "--help"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for option in (word for word in command[:-1] if word.startswith("--")):
        assert option in done.stdout


def test_the_hooks_are_the_checks_of_make_check() -> None:
    recipe = (ROOT / "Makefile").read_text().partition("\ncheck:")[2].partition("\n\n")[0]
    for tool in ("ruff format", "ruff check", "mypy", "lint-imports"):
        assert tool in recipe
        assert any(tool in hook["entry"] for hook in hooks())
