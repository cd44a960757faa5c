"""Pages, docstrings, comments, messages and names keep to the word list of CONTRIBUTING.md."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.markdown import page
from tests.docs.word_list import NAMES, PHRASES
from tests.docs.words import offences
from tools.paths import ROOT, project_files

WRITTEN = {".js", ".md", ".py", ".sql", ".toml", ".yaml"}
"""Suffixes of the files that people write."""


def test_no_file_contains_a_listed_word() -> None:
    assert [str(offence) for offence in offences(project_files())] == []


def test_words_are_spelt_right() -> None:
    texts = [path for path in project_files() if path.suffix in WRITTEN and "lock" not in path.name]
    command = [sys.executable, "-m", "codespell_lib", *(f"./{path.relative_to(ROOT).as_posix()}" for path in texts)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("", "")


def test_contributing_lists_each_phrase_with_its_replacement() -> None:
    rows = {tuple(row) for row in page("CONTRIBUTING.md").rows()}
    assert {(phrase.instead, phrase.write) for phrase in PHRASES} <= rows
    assert {(f"`{word}`", better) for word, better in NAMES.items()} <= rows


FORBIDDEN = [
    pytest.param("page.md", "A run goes\non.", 1, "goes on", id="a page, across the end of a line"),
    pytest.param("page.md", "One.\n\nThere `x` stands in D1.", 3, "stands in", id="a page, after a code span"),
    pytest.param("module.py", '"""Begin anew."""\n', 1, "anew", id="a docstring"),
    pytest.param("module.py", "x = 1  # is no number\n", 1, "is no", id="a comment"),
    pytest.param("module.py", 'raise ValueError(f"{1} is no number")\n', 1, "is no", id="a message"),
    pytest.param("module.py", "def test_a_run_goes_on() -> None: ...\n", 1, "goes on", id="the name of a test"),
    pytest.param("module.py", "\n\ndef there_is() -> None: ...\n", 3, "there_is", id="a function's name"),
    pytest.param("module.py", "for told in (): ...\n", 1, "told", id="a variable's name"),
    pytest.param("module.py", "def f(*, said_at: int) -> None: ...\n", 1, "said", id="part of a parameter's name"),
    pytest.param("schema.sql", "SELECT 1; -- one row a tenant\n", 1, "one row a tenant", id="a comment in SQL"),
    pytest.param("worker.js", "f('//'); // looks after it\n", 1, "looks after", id="a comment in JavaScript"),
]


@pytest.mark.parametrize(("name", "text", "line", "excerpt"), FORBIDDEN)
def test_a_listed_word_is_found(name: str, text: str, line: int, excerpt: str, in_the_project: Path) -> None:
    (in_the_project / name).write_text(text)
    [offence] = offences([in_the_project / name])
    assert (offence.line, excerpt in offence.excerpt) == (line, True)


ALLOWED = [
    pytest.param("page.md", "It is behind Cloudflare Access and is no longer open.", id="what the list excepts"),
    pytest.param(
        "page.md", "```sh\necho anew\n```\nSee [it](anew.md) and `anew`.", id="code, and the target of a link"
    ),
    pytest.param("module.py", 'text = "told anew"\n', id="a text that is data"),
    pytest.param("worker.js", "f('// anew')\n", id="a text of JavaScript"),
    pytest.param("data.json", '{"told": "anew"}', id="another kind of file"),
]


@pytest.mark.parametrize(("name", "text"), ALLOWED)
def test_everything_else_is_left_alone(name: str, text: str, in_the_project: Path) -> None:
    (in_the_project / name).write_text(text)
    assert offences([in_the_project / name]) == []


@pytest.fixture
def in_the_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that counts as the project's root."""
    monkeypatch.setattr("tests.docs.words.ROOT", tmp_path)
    return tmp_path
