"""Whoever does what docs/tutorial.md says sees what it shows, from the starter to the upload.

The model's server on loopback replaces the provider's: it answers tool calls by the tutorial's own script, in the
provider's wire format.
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import pytest
import yaml

from retain.models.scripted.schema import check_script
from tests.docs.markdown import page
from tests.docs.reader import Command, File, Terminal, checkout, foreground, steps
from tests.docs.shown import shows
from tests.e2e.waiting import eventually
from tests.support.model_server import ModelServer
from tools.local_server import free_port

_TUTORIAL = page("docs/tutorial.md")
_STEPS = steps(_TUTORIAL)
_FILES: dict[str, str] = {}
for _step in _STEPS:
    if isinstance(_step, File):
        _FILES[_step.path] = (_FILES.get(_step.path, "") if _step.appended else "") + _step.content
_MODEL = yaml.safe_load(_FILES["agents/repair_desk.yaml"])["model"]
_SCRIPT = check_script(yaml.safe_load(_FILES["agents/scripts/repair_desk.yaml"]))
_SERVE = "make dev"
_UPLOAD = "make deploy-dry-run"
_START_S = 120


@pytest.fixture
def provider() -> Iterator[ModelServer]:
    """The server that speaks the provider's format, by the model's name in the tutorial."""
    with ModelServer(scripts={str(_MODEL["name"]): _SCRIPT}) as server:
        yield server


@dataclass
class Reading:
    """A reader who goes through the page in a checkout of their own, with a port and a provider of their own."""

    folder: Path
    provider: ModelServer
    terminal: Terminal
    serving: contextlib.ExitStack
    port: int = field(default_factory=free_port)

    def do(self, step: File | Command) -> None:
        """Do one step, and see that it answers what the page shows. Raises: AssertionError."""
        match step:
            case File(path, content, appended):
                self._write(path, content, "a" if appended else "w")
                if "provider: openai" in content:
                    self._until_the_provider_is_asked()
            case Command(text) if text == _SERVE:
                self._serve()
            case Command(text, shown) if shown is not None and _only_looks(text):
                # The database has what an instance did a moment after the instance's answer.
                eventually(lambda: self.terminal.type(self._mine(text)), lambda printed: _shown(step, printed))
            case Command(text):
                if text == _UPLOAD:
                    self.serving.close()  # as the page says: Ctrl-C
                printed = self.terminal.type(self._mine(text))
                assert _shown(step, printed), f"$ {text}\n{printed}\nis not\n{step.shown}"

    def _mine(self, text: str) -> str:
        """Return the page's text with this reader's addresses and key."""
        text = text.replace("http://127.0.0.1:8787", self._url)
        return text.replace("https://api.openai.com/v1", self.provider.base_url).replace("sk-…", self.provider.api_key)

    @property
    def _url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def _write(self, path: str, content: str, mode: str) -> None:
        (self.folder / path).parent.mkdir(parents=True, exist_ok=True)
        with (self.folder / path).open(mode) as file:
            file.write(self._mine(content))

    def _serve(self) -> None:
        log = self.folder / ".cache" / "dev.log"
        process = self.serving.enter_context(foreground(f"{_SERVE} PORT={self.port}", self.folder, log))
        up = eventually(self._healthy, lambda up: up or process.poll() is not None, within_s=_START_S)
        assert up, log.read_text()

    def _healthy(self) -> bool:
        with contextlib.suppress(httpx.HTTPError):
            return httpx.get(f"{self._url}/healthz", timeout=10, trust_env=False).status_code == 200
        return False

    def _until_the_provider_is_asked(self) -> None:
        """Return when the server has taken the new definition: in another tenant, a run asks the provider."""

        def ask() -> int:
            with contextlib.suppress(httpx.HTTPError), httpx.Client(timeout=60, trust_env=False) as client:
                client.put(f"{self._url}/admin/tenants/ready")
                client.post(f"{self._url}/v1/agents/ready/repair_desk/run", json={"input": "hello"})
            return len(self.provider.received)

        eventually(ask, lambda asked: asked > 0, within_s=_START_S)


@pytest.fixture
def reading(tmp_path: Path, provider: ModelServer, migrated_state: Callable[[], Path]) -> Iterator[Reading]:
    """The reader. No request reaches a real model from their checkout.

    Its local database has the migrations already, which `make dev` applies, but not in the time of a copy.
    """
    folder = checkout(tmp_path / "retain")
    shutil.copytree(migrated_state(), folder / ".wrangler" / "state")
    (folder / ".dev.vars").write_text("ALLOW_MODEL_REQUESTS=false\n")
    with contextlib.closing(Terminal(folder)) as terminal, contextlib.ExitStack() as serving:
        yield Reading(folder, provider, terminal, serving)


def _only_looks(command: str) -> bool:
    return command.startswith("curl ") and " -X " not in command and " -d " not in command


def _shown(step: Command, printed: str) -> bool:
    """Return whether the page shows this answer truthfully; an answer that it does not show passes."""
    return step.shown is None or shows(step.shown, printed, step.language)


@pytest.mark.workerd
@pytest.mark.timeout(420)
def test_whoever_follows_the_tutorial_sees_what_it_shows(reading: Reading) -> None:
    for step in _STEPS:
        reading.do(step)
    asked = [request.body for request in reading.provider.received]
    assert {tool["function"]["name"] for tool in asked[-1]["tools"]} == {
        "visit_by",
        "book_contractor",
        "recall_memory",
        "store_memory",
    }
    assert asked[-1]["messages"][-1]["content"] == "Monday, 2026-11-23", "the model read what the tool answered"


def test_the_tutorial_begins_with_a_starter_and_ends_with_the_upload() -> None:
    typed = [step.text for step in _STEPS if isinstance(step, Command)]
    assert not any("find:" in content or "count:" in content for content in _FILES.values()), "it needs no patterns"
    assert typed[1] == ".venv/bin/retain new repair_desk"
    assert typed[-1] == _UPLOAD
    assert typed.count(_SERVE) == 1
    assert set(_FILES) == {
        "agents/repair_desk.yaml",
        "agents/tools/repairs.py",
        "agents/scripts/repair_desk.yaml",
        "agents/tests/test_repair_desk.py",
        ".dev.vars",
    }


@pytest.mark.parametrize(
    ("shown", "answer", "language", "true"),
    [
        ('{"a": 1}', '{"a": 1, "b": 2}', "json", True),
        ('{"a": 1}', '{"a": 2}', "json", False),
        ('{"a": 1}', '{"a": true}', "json", False),
        ('{"a": "01…"}', '{"a": "01XYZ"}', "json", True),
        ('{"a": "01…"}', '{"a": "02XYZ"}', "json", False),
        ('{"a": [{"b": 1}]}', '{"a": [{"b": 1}, {"b": 1}]}', "json", False),
        ('{"a": []}', '{"a": [1]}', "json", False),
        ('{"a": {"b": 1}}', '{"a": null}', "json", False),
        ('{"a": 1}', "no JSON", "json", False),
        ("one\nthree", "one\ntwo\nthree", "text", True),
        ("three\none", "one\ntwo\nthree", "text", False),
        ("t…e", "one\ntwo\nthree", "text", True),
        ("four", "one\ntwo\nthree", "text", False),
    ],
)
def test_an_answer_is_compared_with_what_is_shown(shown: str, answer: str, language: str, true: bool) -> None:
    assert shows(shown, answer, language) is true
