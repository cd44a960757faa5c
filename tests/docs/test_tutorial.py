"""Whoever does what docs/tutorial.md says sees what it shows, from the starter to the upload.

The model's server on loopback replaces the provider's: it answers tool calls by the tutorial's own script, in the
provider's wire format.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest
import yaml

from retain.models.scripted.schema import check_script
from tests.docs.markdown import page
from tests.docs.reader import Command, File, Step, steps
from tests.docs.reading import SERVE, Reading, reading_in
from tests.docs.shown import shows
from tests.e2e.waiting import eventually
from tests.support.model_server import ModelServer

_TUTORIAL = page("docs/tutorial.md")
_STEPS = steps(_TUTORIAL)
_FILES: dict[str, str] = {}
for _step in _STEPS:
    if isinstance(_step, File):
        _FILES[_step.path] = (_FILES.get(_step.path, "") if _step.appended else "") + _step.content
_MODEL = yaml.safe_load(_FILES["agents/repair_desk.yaml"])["model"]
_SCRIPT = check_script(yaml.safe_load(_FILES["agents/scripts/repair_desk.yaml"]))
_UPLOAD = "make deploy-dry-run"
_START_S = 120


@pytest.fixture
def provider() -> Iterator[ModelServer]:
    """The server that speaks the provider's format, by the model's name in the tutorial."""
    with ModelServer(scripts={str(_MODEL["name"]): _SCRIPT}) as server:
        yield server


@pytest.fixture
def reading(tmp_path: Path, provider: ModelServer, migrated_state: Callable[[], Path]) -> Iterator[Reading]:
    """Whoever reads the tutorial, with a provider of their own."""
    replaced = {"https://api.openai.com/v1": provider.base_url, "sk-…": provider.api_key}
    with reading_in(tmp_path / "retain", migrated_state(), replaced) as reader:
        yield reader


def _do(step: Step, reading: Reading, provider: ModelServer) -> None:
    match step:
        case File():
            reading.write(step)
            if "provider: openai" in step.content:
                _until_it_is_asked(provider, reading.url)
        case Command(text):
            if text == _UPLOAD:
                reading.serving.close()  # as the page says: Ctrl-C
            reading.run(step)


def _until_it_is_asked(provider: ModelServer, url: str) -> None:
    """Return when the server has taken the new definition: in another tenant, a run asks the provider."""

    def ask() -> int:
        with contextlib.suppress(httpx.HTTPError), httpx.Client(timeout=60, trust_env=False) as client:
            client.put(f"{url}/admin/tenants/ready")
            client.post(f"{url}/v1/agents/ready/repair_desk/run", json={"input": "hello"})
        return len(provider.received)

    eventually(ask, lambda asked: asked > 0, within_s=_START_S)


@pytest.mark.workerd
@pytest.mark.timeout(420)
def test_whoever_follows_the_tutorial_sees_what_it_shows(reading: Reading, provider: ModelServer) -> None:
    for step in _STEPS:
        _do(step, reading, provider)
    asked = [request.body for request in provider.received]
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
    assert typed.count(SERVE) == 1
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
