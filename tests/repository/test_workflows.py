"""The files that a forge reads: workflows call existing make targets, and test every Python that the package supports."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from tools.paths import ROOT, project_files

GITHUB = ROOT / ".github"
WORKFLOWS = sorted((GITHUB / "workflows").glob("*.yml"))
PYTHONS_UP_TO = 14
"""The newest minor version of Python 3 that is tested: the one that runs in Workers."""

_TARGET = re.compile(r"^([a-z][a-z-]*):.*## ", re.MULTILINE)
_PINNED = re.compile(r"[\w-]+/[\w./-]+@v\d+(\.\d+)*")


def steps_of(workflow: Path) -> list[dict[str, Any]]:
    """Return the steps of all jobs of a workflow."""
    jobs = yaml.safe_load(workflow.read_text())["jobs"]
    return [step for job in jobs.values() for step in job["steps"]]


def make_targets() -> set[str]:
    """Return the targets that `make help` lists."""
    return set(_TARGET.findall((ROOT / "Makefile").read_text()))


def commands_of(workflow: Path) -> list[str]:
    """Return the lines that a workflow runs."""
    return [line.strip() for step in steps_of(workflow) if "run" in step for line in step["run"].splitlines()]


def test_there_is_a_workflow_for_every_change() -> None:
    text = (GITHUB / "workflows" / "ci.yml").read_text()
    # YAML 1.1 reads the key `on` as true.
    assert {"push", "pull_request"} <= yaml.safe_load(text)[True].keys()


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.name)
def test_every_command_of_a_workflow_is_a_make_target_that_exists(workflow: Path) -> None:
    commands = commands_of(workflow)
    assert commands
    for command in commands:
        make, *words = command.split()
        assert make == "make", command
        assert {word for word in words if "=" not in word} <= make_targets(), command


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.name)
def test_every_action_is_pinned_to_a_version_and_no_token_may_write_by_default(workflow: Path) -> None:
    used = [step["uses"] for step in steps_of(workflow) if "uses" in step]
    assert [action for action in used if not _PINNED.fullmatch(action)] == []
    assert yaml.safe_load(workflow.read_text())["permissions"] == {"contents": "read"}


def test_the_workflow_runs_what_the_local_gate_runs() -> None:
    gate = set(re.findall(r"^make ([a-z-]+)$", (ROOT / ".ci" / "run").read_text(), re.MULTILINE))
    run = {target for command in commands_of(GITHUB / "workflows" / "ci.yml") for target in command.split()[1:]}
    # `make test` is split, so that the two halves run at the same time.
    expected = (gate - {"test"}) | ({"test-host", "test-workerd"} if "test" in gate else set())
    assert expected <= run


def test_the_matrix_holds_every_python_from_the_oldest_supported_to_the_one_of_workers() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    oldest = re.fullmatch(r">=3\.(\d+)", project["requires-python"])
    assert oldest is not None
    jobs = yaml.safe_load((GITHUB / "workflows" / "ci.yml").read_text())["jobs"]
    matrix = jobs["host"]["strategy"]["matrix"]["python"]
    assert matrix == [f"3.{minor}" for minor in range(int(oldest[1]), PYTHONS_UP_TO + 1)]


def test_every_forge_file_is_valid_yaml_and_forms_have_what_github_asks_for() -> None:
    files = [path for path in project_files() if GITHUB in path.parents and path.suffix == ".yml"]
    assert len(files) >= 4
    for path in files:
        content = yaml.safe_load(path.read_text())
        if path.parent.name == "ISSUE_TEMPLATE" and path.name != "config.yml":
            assert {"name", "description", "body"} <= content.keys(), path.name
            fields = [field["id"] for field in content["body"] if field["type"] != "markdown"]
            assert fields, path.name
            assert len(fields) == len(set(fields)), path.name


def test_dependabot_watches_every_kind_of_dependency() -> None:
    updates = yaml.safe_load((GITHUB / "dependabot.yml").read_text())["updates"]
    assert {update["package-ecosystem"] for update in updates} == {"github-actions", "npm", "pip"}
