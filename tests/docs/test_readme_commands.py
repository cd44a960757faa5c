"""The commands that the README has a reader type work as written."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
import yaml

from tests.docs.markdown import page
from tests.docs.shell import commands
from tests.e2e.waiting import eventually
from tools.agent_definitions import check_models, compile_agents
from tools.local_server import LocalServer

_README = page("README.md")
_HERE = "127.0.0.1:8787"
_CURLS = [command for command in commands(_README) if command.startswith("curl ")]


@dataclass(frozen=True)
class Answered:
    """A command of the README and its answer. url: as in the README."""

    command: str
    url: str
    status: int
    answer: Any


def _address(command: str) -> str:
    return next(word.strip("'\"") for word in command.split() if word.strip("'\"").startswith(("http://", "https://")))


def _pasted(command: str, server: LocalServer) -> Answered:
    """Run the command as a reader's shell would, against this server, and have curl name the status after the answer."""
    here = command.replace(_HERE, urlsplit(server.base_url).netloc)
    report = "curl --noproxy '*' --max-time 60 -w '\\n%{http_code}' "
    done = subprocess.run(
        ["bash", "-c", here.replace("curl ", report, 1)], capture_output=True, text=True, check=True, timeout=90
    )
    body, _, status = done.stdout.rpartition("\n")
    return Answered(command, _address(command), int(status), json.loads(body))


@pytest.fixture(scope="module")
def answers(server: LocalServer) -> list[Answered]:
    """Every curl command of the README, run in order, as a later one builds on an earlier one."""
    return [_pasted(command, server) for command in _CURLS]


def _answer_of(answers: list[Answered], path: str) -> Any:
    [found] = [each.answer for each in answers if urlsplit(each.url).path.endswith(path)]
    return found


def test_the_readme_has_commands_for_the_server_that_it_starts() -> None:
    assert len(_CURLS) >= 5
    assert {urlsplit(_address(command)).netloc for command in _CURLS} == {_HERE}


@pytest.mark.workerd
@pytest.mark.parametrize("number", range(len(_CURLS)), ids=[urlsplit(_address(each)).path for each in _CURLS])
def test_every_curl_command_is_answered_without_an_error(answers: list[Answered], number: int) -> None:
    answered = answers[number]
    assert answered.status in (200, 201), answered
    assert answered.answer
    assert not {"code", "error"} & answered.answer.keys(), answered


@pytest.mark.workerd
def test_the_readmes_run_completes_and_is_listed(answers: list[Answered], api: httpx.Client) -> None:
    run = _answer_of(answers, "/run")
    assert run["status"] == "completed"
    assert "sara@example.com" in run["output"]
    listed = eventually(
        lambda: {each["run_id"] for each in api.get("/admin/agents/default/runs").json()["runs"]},
        lambda ids: run["run_id"] in ids,
    )
    assert run["run_id"] in listed


@pytest.mark.workerd
def test_the_readmes_recall_finds_what_its_seed_stored_and_explains_it(answers: list[Answered]) -> None:
    [seeded] = _answer_of(answers, "/seed-memory")["ids"]
    found = {memory["id"]: memory for memory in _answer_of(answers, "/recall")["memories"]}
    assert seeded in found
    assert found[seeded]["components"]


def test_the_readmes_agent_is_a_valid_definition(tmp_path: Path) -> None:
    [example] = _README.blocks("yaml")
    first = example.splitlines()[0]
    assert first.startswith("# agents/"), "the example names its file"
    (tmp_path / first.removeprefix("# agents/")).write_text(example)
    compiled = compile_agents(tmp_path)
    assert list(compiled["agents"]) == [yaml.safe_load(example)["type"]]
    for provider in ("scripted", "openai"):  # of a local server, and of a deployment
        check_models(compiled["agents"], provider)
