"""The backend that docs/backends.md shows is the example's file, is short, and passes the suite."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys

import pytest

from retain.testing import ChatMemorySuite, EmbedderSuite, VectorMemorySuite
from tests.contracts.broken import BROKEN_CHATS, BROKEN_EMBEDDERS, BROKEN_VECTORS
from tests.docs.markdown import page, spans
from tests.docs.shell import commands
from tools.paths import ROOT

_BACKENDS = page("docs/backends.md")
_CONTRACTS = page("docs/contracts.md")
_FILES = ("examples/file_chat_memory.py", "examples/test_file_chat_memory.py")


@pytest.mark.parametrize("name", _FILES)
def test_the_page_shows_the_examples_files_as_they_are(name: str) -> None:
    assert (ROOT / name).read_text() in _BACKENDS.blocks("python")


def test_the_backend_has_fewer_than_sixty_lines() -> None:
    assert len((ROOT / _FILES[0]).read_text().splitlines()) < 60


def test_the_pages_command_runs_every_test_of_the_suite_against_it() -> None:
    [command] = commands(_BACKENDS)
    variable, _, *arguments = shlex.split(command)
    environment = {**os.environ, **dict([variable.split("=", 1)])}
    done = subprocess.run(
        [sys.executable, *arguments, "-v"], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    passed = re.findall(r"::(test_\w+) PASSED", done.stdout)
    assert sorted(passed) == sorted(ChatMemorySuite.names()), done.stdout + done.stderr


def test_the_page_of_the_contracts_names_each_invariant_with_its_test() -> None:
    listed = [
        (row[0], spans(row[2])) for row in _CONTRACTS.rows() if len(row) == 4 and re.fullmatch(r"[CVE]M?\d", row[0])
    ]
    numbered = [
        name
        for suite in (ChatMemorySuite, VectorMemorySuite, EmbedderSuite)
        for name in suite.names()
        if name.split("_")[1][-1].isdigit()
    ]
    assert len(numbered) == 17
    assert listed == [(name.split("_")[1].upper(), [name]) for name in numbered]


def test_the_page_counts_the_broken_backends() -> None:
    broken = len((*BROKEN_CHATS, *BROKEN_VECTORS, *BROKEN_EMBEDDERS))
    assert f"{broken} broken backends" in _CONTRACTS.text
