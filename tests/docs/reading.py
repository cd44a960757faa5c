"""A reader who goes through a page that has them serve, in a checkout, with ports of their own."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from tests.docs.reader import Command, File, Terminal, checkout, foreground
from tests.docs.shown import shows
from tests.e2e.waiting import eventually
from tools.local_server import free_port

_HERE = "http://127.0.0.1:8787"
_START_S = 120
SERVE = "make dev"


@dataclass
class Reading:
    """The reader. replaced: what the page names, with what this reader has instead."""

    folder: Path
    terminal: Terminal
    serving: contextlib.ExitStack
    replaced: Mapping[str, str]
    port: int = field(default_factory=free_port)

    @property
    def url(self) -> str:
        """Where this reader's `make dev` serves."""
        return f"http://127.0.0.1:{self.port}"

    def mine(self, text: str) -> str:
        """Return the page's text with this reader's addresses and keys."""
        for theirs, mine in {_HERE: self.url, **self.replaced}.items():
            text = text.replace(theirs, mine)
        return text

    def write(self, file: File) -> None:
        """Write a file of the page, or append to it."""
        path = self.folder / file.path
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a" if file.appended else "w") as opened:
            opened.write(self.mine(file.content))

    def run(self, command: Command) -> None:
        """Type a command, and see that it answers what the page shows. Raises: AssertionError."""
        if command.text == SERVE:
            self._serve()
        elif command.shown is not None and _only_looks(command.text):
            # The database has what an instance did a moment after the instance's answer.
            eventually(lambda: self.terminal.type(self.mine(command.text)), lambda printed: _shown(command, printed))
        else:
            printed = self.terminal.type(self.mine(command.text))
            assert _shown(command, printed), f"$ {command.text}\n{printed}\nis not\n{command.shown}"
            assert command.shown is not None or self.terminal.status == 0, f"$ {command.text}\n{printed}"

    def _serve(self) -> None:
        log = self.folder / ".cache" / "dev.log"
        process = self.serving.enter_context(foreground(f"{SERVE} PORT={self.port}", self.folder, log))
        up = eventually(self._healthy, lambda up: up or process.poll() is not None, within_s=_START_S)
        assert up, log.read_text()

    def _healthy(self) -> bool:
        with contextlib.suppress(httpx.HTTPError):
            return httpx.get(f"{self.url}/healthz", timeout=10, trust_env=False).status_code == 200
        return False


@contextlib.contextmanager
def reading_in(folder: Path, state: Path, replaced: Mapping[str, str]) -> Iterator[Reading]:
    """Yield a reader with a checkout in this folder, from which no request reaches a real model.

    state: of a local database that has the migrations already, which `make dev` applies, but not in the time of a copy.
    """
    checkout(folder)
    shutil.copytree(state, folder / ".wrangler" / "state")
    (folder / ".dev.vars").write_text("ALLOW_MODEL_REQUESTS=false\n")
    with contextlib.closing(Terminal(folder)) as terminal, contextlib.ExitStack() as serving:
        yield Reading(folder, terminal, serving, replaced)


def _only_looks(command: str) -> bool:
    return command.startswith("curl ") and " -X " not in command and " -d " not in command


def _shown(command: Command, printed: str) -> bool:
    """Return whether the page shows this answer truthfully; an answer that it does not show passes."""
    return command.shown is None or shows(command.shown, printed, command.language)
