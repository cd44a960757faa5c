"""A reader of a page, who does what it says in a checkout of their own: writes its files and types its commands."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.docs.markdown import Page
from tests.docs.shell import commands_in, make_environment
from tools.paths import CACHE, ROOT, project_files

_FILE = re.compile(r"(?:#|//|<!--) (\S+?)(, at its end)?(?: -->)?\n")
_ANSWERS = ("json", "text")
_PATIENCE_S = 120


@dataclass(frozen=True)
class File:
    """A file that the page shows. appended: it is added to the end of an existing file."""

    path: str
    content: str
    appended: bool


@dataclass(frozen=True)
class Command:
    """A command of the page. shown: what it answers, in that language; None when the page does not say."""

    text: str
    shown: str | None = None
    language: str = "text"


@dataclass(frozen=True)
class Browsed:
    """A line of the page that says what is done, or seen, in a browser."""

    line: str


Step = File | Command | Browsed


def steps(page: Page) -> list[Step]:
    """Return what the page has its reader do, in order. The answer that follows a block is its last command's."""
    found: list[Step] = []
    for language, body in page.fences():
        if language == "sh":
            found += [Command(text) for text in commands_in(body)]
        elif language == "browser":
            found += map(Browsed, body.splitlines())
        elif language in _ANSWERS:
            last = found.pop()
            assert isinstance(last, Command), f"{page.name}: nothing is typed before this answer: {body}"
            assert last.shown is None, f"{page.name}: there are two answers to {last.text}"
            found.append(Command(last.text, body, language))
        else:
            named = _FILE.match(body)
            assert named is not None, f"{page.name}: a block does not name its file: {body}"
            found.append(File(named[1], body[named.end() :], named[2] is not None))
    return found


def checkout(folder: Path) -> Path:
    """Make a copy of the project in which a reader may write, with what `make setup` installed, and return it."""
    for path in project_files():
        name = path.relative_to(ROOT)
        if name.parts[0] not in ("tests", "benchmarks", "docs"):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(path, folder / name)
    for installed in (".venv", "node_modules"):
        (folder / installed).symlink_to(ROOT / installed)
    shutil.copytree(ROOT / "python_modules", folder / "python_modules")
    (folder / CACHE.name).mkdir()
    if (CACHE / "pyodide").exists():
        (folder / CACHE.name / "pyodide").symlink_to(CACHE / "pyodide")
    return folder


class Terminal:
    """A shell that stays, so that a command finds the variables of those before it. curl in it asks no proxy.

    status: the exit status of the last command.
    """

    def __init__(self, folder: Path) -> None:
        """Open it in this folder."""
        self.status = 0
        (folder / CACHE.name / ".curlrc").write_text(f'noproxy = "*"\nmax-time = {_PATIENCE_S}\n')
        self._process = subprocess.Popen(
            ["bash", "--noprofile", "--norc"],
            cwd=folder,
            env={**make_environment(), "CURL_HOME": str(folder / CACHE.name)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def type(self, command: str) -> str:
        """Run the command and return what it prints. Raises: AssertionError when it does not end."""
        end = f"--- {os.urandom(8).hex()}"
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{{ {command}\n}} </dev/null\nprintf '\\n%s %s\\n' '{end}' $?\n")
        self._process.stdin.flush()
        too_long = threading.Timer(_PATIENCE_S, self._kill)
        too_long.start()
        printed: list[str] = []
        try:
            for line in self._process.stdout:
                if line.startswith(end):
                    self.status = int(line.removeprefix(end))
                    return "".join(printed).removesuffix("\n")
                printed.append(line)
        finally:
            too_long.cancel()
        raise AssertionError(f"the shell ended in {command}: {''.join(printed)}")

    def close(self) -> None:
        """End the shell and what it runs."""
        self._kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            pipe.close()

    def _kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)


@contextlib.contextmanager
def foreground(command: str, folder: Path, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run a command that serves, in a terminal of its own, until the block ends. log: what it prints."""
    with log.open("wb") as sink:
        process = subprocess.Popen(
            ["bash", "-c", f"exec {command}"],
            cwd=folder,
            env=make_environment(),
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        yield process
    finally:
        for sent in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, sent)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout=20)
