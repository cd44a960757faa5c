"""Completion of command lines: what the parsers have, in each shell."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from retain.application_keys.scope import KEY_SCOPES
from retain.cli.command import SUBCOMMANDS, main
from retain.cli.completion.shells import bash, every_word, fish, zsh
from retain.cli.completion.words import words_of
from tools.paths import ROOT


def test_every_subcommand_has_its_words_and_options() -> None:
    every = every_word()
    assert list(every.words) == [subcommand.name for subcommand in SUBCOMMANDS]
    for subcommand in SUBCOMMANDS:
        following = every.after[subcommand.name]
        assert "--help" in following.options, subcommand.name
        assert following.words.keys() == following.after.keys()
    keys = every.after["keys"]
    assert {"create", "list", "rotate", "revoke", "change", "signing-key"} == keys.words.keys()
    assert tuple(keys.after["create"].options["--scope"]) == KEY_SCOPES
    assert {"key", "tool", "credential", "list"} <= every.after["gateway"].words.keys()
    assert "create" in every.after["gateway"].after["key"].words


def test_a_module_that_is_not_installed_completes_nothing() -> None:
    assert words_of("tools.no_such_module").options == {}


def _completed(line: str) -> set[str]:
    """Return what bash offers at the end of a line."""
    script = f"""{bash(every_word())}
COMP_LINE={line!r}; read -ra COMP_WORDS <<< "$COMP_LINE"
[[ $COMP_LINE == *" " ]] && COMP_WORDS+=("")
COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); _retain; printf '%s\\n' "${{COMPREPLY[@]}}"
"""
    done = subprocess.run(["bash", "-uc", script], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("retain ru", {"runs"}),
        ("retain keys r", {"rotate", "revoke"}),
        ("retain gateway key c", {"create"}),
        ("retain keys create --sc", {"--scope"}),
        ("retain keys create --name shop --ur", {"--url"}),
        ("retain runs list --st", {"--status"}),
        ("retain recall hats --us", {"--user"}),
        ("retain nonsense ", set()),
    ],
)
def test_bash_completes_words_and_options(line: str, expected: set[str]) -> None:
    assert _completed(line) == expected


@pytest.mark.parametrize(("shell", "script"), [("bash", bash), ("zsh", zsh), ("fish", fish)])
def test_each_shell_reads_its_script(shell: str, script: object, tmp_path: Path) -> None:
    text = script(every_word())  # type: ignore[operator]
    for subcommand in SUBCOMMANDS:
        assert subcommand.name in text
    program = shutil.which(shell)
    if program is not None:  # not every machine has every shell
        file = tmp_path / "completion"
        file.write_text(text)
        subprocess.run([program, "-n", str(file)], check=True)


def test_the_command_prints_the_script(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", "bash"]) == 0
    assert capsys.readouterr().out == bash(every_word())


def test_the_parsers_work_as_before_afterwards() -> None:
    every_word()
    command = [sys.executable, "-m", "retain.cli", "completion", "tcsh"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "invalid choice: 'tcsh'" in done.stderr
    with pytest.raises(SystemExit):
        main(["keys", "--help"])
