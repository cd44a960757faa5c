"""`retain new`: what it writes is valid, answers without a key, and never replaces a file."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from retain.cli.command import main
from retain.cli.project import Project
from retain.cli.starter import starter_files
from retain.models.chat import ChatMessage, ChatRequest
from retain.models.scripted.chat import ScriptedChat
from tools.agent_definitions import compile_agents


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """An empty project around the working directory."""
    (tmp_path / "tools").mkdir()
    (tmp_path / "agents").mkdir()
    for mark in ("wrangler.toml", "tools/stage.py"):
        (tmp_path / mark).touch()
    monkeypatch.chdir(tmp_path / "agents")
    return Project(tmp_path)


def _content(project: Project) -> dict[str, str]:
    return {p.relative_to(project.root).as_posix(): p.read_text() for p in project.agents.rglob("*") if p.is_file()}


def test_the_starter_is_valid_and_complete(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["new", "night_porter"]) == 0
    assert _content(project) == starter_files("night_porter")
    printed = capsys.readouterr().out
    assert "pytest -q agents/tests/test_night_porter.py " in printed
    assert "/v1/agents/default/night_porter/run" in printed
    compiled = compile_agents(project.agents)
    assert list(compiled["agents"]) == list(compiled["scripts"]) == ["night_porter"]
    assert "AGENT" not in "".join(_content(project).values())
    compile(starter_files("night_porter")["agents/tests/test_night_porter.py"], "test", "exec")


@pytest.mark.parametrize("path", sorted(starter_files("night_porter")))
def test_no_file_is_replaced_and_then_none_is_written(
    project: Project, path: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (project.root / path).parent.mkdir(parents=True, exist_ok=True)
    (project.root / path).write_text("mine")
    assert main(["new", "night_porter"]) == 1
    assert path in capsys.readouterr().err
    assert _content(project) == {path: "mine"}


@pytest.mark.parametrize("name", ["Night Porter", "../porter", "a" * 33, ""])
def test_a_name_that_no_agent_can_have_is_refused(
    project: Project, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["new", name]) == 1
    assert "invalid_agent_type" in capsys.readouterr().err
    assert _content(project) == {}


RESULTS = {
    "kept": ("Remember: the key is blue.", '{"id": "01X"}', "store_memory", {"content": "the key is blue."}, "Noted."),
    "known": (
        "Where is the key?",
        '{"memories": [{"content": "the key is blue."}]}',
        "recall_memory",
        {"query": "Where is the key?"},
        "I know this: the key is blue.",
    ),
    "unknown": (
        "Where is the key?",
        '{"memories": []}',
        "recall_memory",
        {"query": "Where is the key?"},
        "I do not know anything about that.",
    ),
    "failed": (
        "remember: me",
        '{"error": {"code": "unavailable", "message": "no database"}}',
        "store_memory",
        {"content": "me"},
        "That did not work: no database",
    ),
}


@pytest.mark.parametrize(("question", "result", "tool", "arguments", "answer"), RESULTS.values(), ids=RESULTS)
async def test_the_starters_script_answers_by_what_its_tools_answered(
    question: str, result: str, tool: str, arguments: dict[str, str], answer: str
) -> None:
    script = yaml.safe_load(starter_files("porter")["agents/scripts/porter.yaml"])
    model, talk = ScriptedChat(script), [ChatMessage("user", question)]
    first = await model.complete(ChatRequest(talk))
    [call] = first.tool_calls
    assert (call.name, call.arguments) == (tool, arguments)
    talk += [ChatMessage("assistant", "", first.tool_calls), ChatMessage("tool", result, (), call.id)]
    assert (await model.complete(ChatRequest(talk))).content == answer
