"""The command `retain`: its subcommands explain themselves, need a project only where they say so, and are documented."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import retain
from retain.cli.command import SUBCOMMANDS, main
from retain.cli.project import surrounding_project
from tests.docs.markdown import pages
from tools.paths import ROOT

_NAMES = [subcommand.name for subcommand in SUBCOMMANDS]
_OF_THE_PROJECT = [subcommand.name for subcommand in SUBCOMMANDS if subcommand.module.startswith("tools.")]
_NAMED = re.compile(r"(?:^|(?<!from)[\s/])retain ([a-z][a-z-]*)(?=\s|$)", re.MULTILINE)

QUICK = """
import sys
from retain.cli.command import main
try:
    main(["--help"])
except SystemExit:
    pass
heavy = {"asyncio", "cryptography", "httpx", "pydantic", "rich", "yaml"}
print(sorted(heavy & sys.modules.keys()), file=sys.stderr)
"""


@pytest.mark.parametrize("name", _NAMES)
def test_every_subcommand_explains_itself(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([name, "--help"])
    assert ended.value.code == 0
    assert capsys.readouterr().out.startswith(f"usage: retain {name} ")


def test_the_help_lists_every_subcommand(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--help"])
    assert ended.value.code == 0
    assert re.findall(r"^    ([a-z][a-z-]+)", capsys.readouterr().out, re.MULTILINE) == _NAMES


def test_the_help_imports_no_subcommand_and_nothing_that_takes_time() -> None:
    done = subprocess.run(
        [sys.executable, "-c", QUICK], cwd=ROOT / "workers", capture_output=True, text=True, check=True
    )
    assert "usage: retain" in done.stdout
    assert done.stderr.strip() == "[]"


def test_the_version_is_the_librarys(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out.strip() == f"retain {retain.__version__}"


@pytest.mark.parametrize("arguments", [[], ["no-such-subcommand"]], ids=["none", "unknown"])
def test_a_missing_or_unknown_subcommand_is_refused(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert "usage: retain" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [*([name] for name in _OF_THE_PROJECT), ["gateway", "list", "--tenant", "acme"], ["lifecycle-rules"]],
    ids=" ".join,
)
def test_what_needs_a_project_says_so_outside_of_one(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(arguments) != 0
    assert "run this inside a Retain project" in capsys.readouterr().err


def test_an_evaluation_without_a_server_needs_a_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    dataset = tmp_path / "mine.yaml"
    dataset.write_text("target: {agent: sdr}\n")
    assert main(["eval", str(dataset)]) == 1
    assert "run this inside a Retain project" in capsys.readouterr().err


def test_a_package_that_is_missing_is_named_with_the_extra_that_has_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "rich.console", None)
    monkeypatch.delitem(sys.modules, "retain.cli.evaluate", raising=False)
    assert main(["eval", "all"]) == 1
    assert "pip install '.[cli]'" in capsys.readouterr().err


def test_a_project_is_found_from_any_folder_in_it(tmp_path: Path) -> None:
    found = surrounding_project(ROOT / "docs" / "decisions")
    assert found is not None
    assert found.root == ROOT
    (tmp_path / "wrangler.toml").touch()
    assert surrounding_project(tmp_path) is None, "any Worker has a wrangler.toml"


def test_the_documentation_shows_every_subcommand_and_none_that_does_not_exist() -> None:
    named = {name for page in pages() for code in page.code() for name in _NAMED.findall(code)}
    assert named == set(_NAMES)
