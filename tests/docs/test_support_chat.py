"""Whoever does what docs/support-chat.md says has a chat in a browser that remembers, asks the team, and forgets."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.docs.markdown import page
from tests.docs.reader import Browsed, Command, File, steps
from tests.docs.reading import SERVE, Reading, reading_in
from tests.e2e.waiting import eventually
from tests.support.browser import browsing
from tools.local_server import free_port

_STEPS = steps(page("docs/support-chat.md"))
_APPLICATION = "node server.js"


@pytest.fixture
def port() -> int:
    """Where the application serves."""
    return free_port()


@pytest.fixture
def reading(tmp_path: Path, port: int, migrated_state: Callable[[], Path]) -> Iterator[Reading]:
    """Whoever reads the guide."""
    replaced = {"http://localhost:3000": f"http://localhost:{port}"}
    with reading_in(tmp_path / "retain", migrated_state(), replaced) as reader:
        yield reader


def _serve_the_application(reading: Reading, port: int) -> None:
    """Type the command as in a terminal of its own, and return when it serves."""
    log = reading.folder / "served.log"
    log.touch()
    reading.terminal.type(f"PORT={port} {_APPLICATION} > {log} 2>&1 &")
    eventually(log.read_text, lambda printed: f"http://localhost:{port}" in printed)


@pytest.mark.workerd
@pytest.mark.timeout(420)
def test_whoever_follows_the_guide_has_a_chat_that_remembers(reading: Reading, port: int) -> None:
    with browsing() as browser:
        for step in _STEPS:
            match step:
                case File():
                    reading.write(step)
                case Command(text) if text == _APPLICATION:
                    _serve_the_application(reading, port)
                case Command():
                    reading.run(step)
                case Browsed(line):
                    browser.do(reading.mine(line))
        assert browser.errors == []


def test_the_guide_says_what_is_seen_in_the_browser() -> None:
    typed = [step.text for step in _STEPS if isinstance(step, Command)]
    assert typed.count(SERVE) == typed.count(_APPLICATION) == 1
    done = [step.line.split()[0] for step in _STEPS if isinstance(step, Browsed)]
    assert done[-1] == "see"
    assert set(done) == {"open", "return", "fill", "press", "see"}
