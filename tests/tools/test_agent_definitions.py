from __future__ import annotations

import sys
from pathlib import Path

import pytest

from retain.agents.catalogue import AgentCatalogue
from tools.agent_definitions import compile_agents
from tools.paths import ROOT
from tools.stage import wanted_files
from tools.uploaded_imports import missing_import

GOOD = {
    "greeter.yaml": """
        type: greeter
        description: Greets.
        instructions: Greet.
        delegates: [helper]
        model: {script: greeting}
    """,
    "helper.yaml": """
        type: helper
        description: Helps.
        instructions: Help.
    """,
    "scripts/greeting.yaml": """
        name: greeting
        rules:
          - rule: always
            when: {last: user}
            reply: {text: Hello.}
    """,
}


def folder_of(tmp_path: Path, files: dict[str, str | None]) -> Path:
    """Return a folder with the good files, changed; None removes one."""
    for name, text in {**GOOD, **files}.items():
        if text is not None:
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(text)
    return tmp_path


def test_agents_and_scripts_are_compiled_with_their_defaults(tmp_path: Path) -> None:
    compiled = compile_agents(folder_of(tmp_path, {}))
    assert (list(compiled["agents"]), list(compiled["scripts"])) == (["greeter", "helper"], ["greeting"])
    assert compiled["agents"]["greeter"]["delegates"] == ["helper"]
    assert compiled["agents"]["helper"]["memory_config"]["episodes"] == 10
    assert compiled["functions"] == {}


FUNCTION = """
from retain.agents.tools.functions import tool

@tool
def count(text: str) -> int:
    \"\"\"Count the letters.\"\"\"
    return len(text)
"""


def test_functions_are_compiled_to_their_modules(tmp_path: Path) -> None:
    files: dict[str, str | None] = {
        "tools/letters.py": FUNCTION,
        "tools/_shared.py": "WORDS = 5",
        "helper.yaml": "{type: helper, description: d, instructions: i, functions: [count]}",
    }
    folder = folder_of(tmp_path, files)
    assert compile_agents(folder)["functions"] == {"count": "agents.tools.letters"}
    staged = wanted_files({}, folder)
    assert staged["agents/tools/letters.py"].decode() == FUNCTION
    assert "agents/tools/_shared.py" in staged


UPLOADED = """
from __future__ import annotations
import json
import pydantic_core.core_schema
from typing import TYPE_CHECKING
from agents.tools._shared import WORDS
from retain.agents.tools.functions import tool
if TYPE_CHECKING:
    import pytest
try:
    import nowhere
except ImportError:
    nowhere = None
def later() -> None:
    import js
"""


def test_imports_are_compared_with_what_is_uploaded() -> None:
    assert missing_import(UPLOADED) is None
    assert missing_import(f"{UPLOADED}\nclass Late:\n    from httpx import get") == (18, "httpx")


MISTAKES: dict[str, tuple[dict[str, str | None], str]] = {
    "function that does not exist": (
        {"helper.yaml": "{type: helper, description: d, instructions: i, functions: [count]}"},
        r"^helper\.yaml: names the function count",
    ),
    "function without a docstring": (
        {"tools/letters.py": FUNCTION.replace("Count the letters.", "")},
        r"^tools/letters\.py: the function count .*no docstring",
    ),
    "function named like a tool of the runtime": (
        {"tools/letters.py": FUNCTION.replace("def count", "def delegate")},
        r"^tools/letters\.py: another tool is named delegate$",
    ),
    "two functions of one name": (
        {"tools/letters.py": FUNCTION, "tools/more.py": FUNCTION},
        r"^tools/more\.py: another tool is named count$",
    ),
    "module that declares nothing": (
        {"tools/letters.py": FUNCTION.replace("@tool", "")},
        r"^tools/letters\.py: declares no function",
    ),
    "module that cannot be imported": (
        {"tools/letters.py": "import nowhere"},
        r"^tools/letters\.py, line 1: it cannot be",
    ),
    "module that imports what only this environment has": (
        {"tools/letters.py": f"import json, pytest\n{FUNCTION}"},
        r"^tools/letters\.py, line 1: it imports pytest, which is not uploaded: ",
    ),
    "a recall without a memory": (
        {"helper.yaml": "{type: helper, description: d, instructions: i, memory_config: {recall: both}}"},
        r"^helper\.yaml: recall: both needs memory_config\.long_term_enabled: true",
    ),
    "another ending": ({"other.yml": "{}"}, r"^other\.yml: its name must end with \.yaml"),
    "another ending of a script": ({"scripts/other.yml": "{}"}, r"^scripts/other\.yml: its name must end with"),
    "approval of what is not a tool": (
        {"helper.yaml": "{type: helper, description: d, instructions: i, approval: [count]}"},
        r"(?s)^helper\.yaml: .*approval names what is not a tool",
    ),
    "file of another name": (
        {"other.yaml": "{type: elsewhere, description: d, instructions: i}"},
        r"^other\.yaml: .*named after its agent, elsewhere\.yaml$",
    ),
    "delegate that does not exist": (
        {"greeter.yaml": "{type: greeter, description: d, instructions: i, delegates: [nobody]}"},
        r"^greeter\.yaml: delegates to nobody",
    ),
    "delegate of itself": (
        {"greeter.yaml": "{type: greeter, description: d, instructions: i, delegates: [greeter]}"},
        r"(?s)^greeter\.yaml: .*delegate to itself",
    ),
    "script that does not exist": (
        {"scripts/greeting.yaml": None},
        r"^greeter\.yaml: names the script greeting",
    ),
    "script of another name": (
        {"scripts/other.yaml": "{name: elsewhere, rules: [{rule: r, when: {last: user}, reply: {text: t}}]}"},
        r"^scripts/other\.yaml: .*named after its script, elsewhere\.yaml$",
    ),
    "script that no reader understands": (
        {"scripts/greeting.yaml": "{name: greeting, rules: [{rule: r, when: {weather: rain}, reply: {text: t}}]}"},
        r"^scripts/greeting\.yaml: ",
    ),
    "field that does not exist": (
        {"helper.yaml": "{type: helper, description: d, instructions: i, temperature: 1}"},
        r"(?s)^helper\.yaml: .*temperature",
    ),
    "flag for a number": (
        {"helper.yaml": "{type: helper, description: d, instructions: i, limits: {max_turns: true}}"},
        r"^helper\.yaml: limits\.max_turns: Input should be a valid integer$",
    ),
    "text for a number": (
        {"helper.yaml": "{type: helper, description: d, instructions: i, memory_config: {episodes: '5'}}"},
        r"^helper\.yaml: memory_config\.episodes: Input should be a valid integer$",
    ),
    "text for a flag": (
        {"helper.yaml": "{type: helper, description: d, instructions: i, working_memory: 'yes'}"},
        r"^helper\.yaml: working_memory: Input should be a valid boolean$",
    ),
    "field that is missing": ({"helper.yaml": "{type: helper, description: d}"}, r"(?s)^helper\.yaml: .*instructions"),
    "type outside the grammar": (
        {"helper.yaml": "{type: Helper, description: d, instructions: i}"},
        r"(?s)^helper\.yaml: .*pattern",
    ),
    "module that fails when it is imported": (
        {"tools/letters.py": FUNCTION + "\n1 / 0\n"},
        r"^tools/letters\.py, line 9: it cannot be imported: ZeroDivisionError: division by zero$",
    ),
    "module that ends the process": ({"tools/letters.py": "raise SystemExit(3)"}, r"^tools/letters\.py, line 1: "),
    "key that is there twice": (
        {"helper.yaml": "type: helper\ndescription: d\ninstructions: i\ndescription: other\n"},
        r"(?s)^helper\.yaml: the key description is there twice.*line 4",
    ),
    "key that is there twice, further in": (
        {
            "scripts/greeting.yaml": "{name: greeting, rules: [{rule: r, rule: s, when: {last: user}, reply: {text: t}}]}"
        },
        r"(?s)^scripts/greeting\.yaml: the key rule is there twice",
    ),
    "YAML that is none": ({"helper.yaml": "type: [helper"}, r"^helper\.yaml: "),
    "an empty file": ({"helper.yaml": ""}, r"^helper\.yaml: it must be a mapping with the fields of an agent"),
    "a YAML tag that would run code": (
        {"helper.yaml": "!!python/object/apply:os.getcwd []"},
        r"(?s)^helper\.yaml: .*could not determine a constructor",
    ),
}


@pytest.mark.parametrize(("files", "message"), MISTAKES.values(), ids=list(MISTAKES))
def test_a_mistake_stops_the_build_and_names_the_file(
    tmp_path: Path, files: dict[str, str | None], message: str
) -> None:
    with pytest.raises(SystemExit, match=message):
        compile_agents(folder_of(tmp_path, files))


def test_a_model_of_pydantic_can_have_postponed_annotations(tmp_path: Path) -> None:
    text = """
from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, Field

from retain.agents.tools.functions import tool


class Item(BaseModel):
    n: Annotated[int, Field(ge=1)] = 1
    parts: list[Part] = []


class Part(BaseModel):
    name: str


@tool
def mini(item: Item) -> int:
    \"\"\"Count.\"\"\"
    return item.n
"""
    before = set(sys.modules)
    assert compile_agents(folder_of(tmp_path, {"tools/mini.py": text}))["functions"] == {"mini": "agents.tools.mini"}
    assert "agents.tools.mini" not in set(sys.modules) - before


def test_what_the_worker_loads_is_in_the_order_of_the_files(tmp_path: Path) -> None:
    helper = """
        type: helper
        description: d
        instructions: i
        procedures:
          outreach: {warm: Be warm., brief: Be brief.}
          followup: {again: Ask again.}
    """
    staged = wanted_files({}, folder_of(tmp_path, {"helper.yaml": helper}))["agents.json"].decode()
    procedures = AgentCatalogue.from_json(staged).agent("helper").procedures
    assert list(procedures) == ["outreach", "followup"]
    assert list(procedures["outreach"]) == ["warm", "brief"]


@pytest.mark.parametrize("name", ["helper.yaml", "scripts/greeting.yaml"])
def test_a_file_in_another_encoding_is_named(tmp_path: Path, name: str) -> None:
    folder = folder_of(tmp_path, {})
    (folder / name).write_bytes("type: caf\xe9".encode("latin-1"))
    with pytest.raises(SystemExit, match=rf"^{name}: it is not UTF-8, at byte 9: "):
        compile_agents(folder)


UNANSWERED: dict[str, tuple[str, str, str]] = {
    "the smallest agent, with scripts": ("{}", "scripted", r"^helper\.yaml: no model answers for it"),
    "scripted by its own choice": ("{provider: scripted}", "openai", r"^helper\.yaml: no model answers for it"),
    "a provider without a model": ("{provider: openai}", "scripted", r"^helper\.yaml: model\.name is missing"),
    "another provider": ("{provider: anthropic}", "openai", r"^helper\.yaml: model\.name is missing"),
}


@pytest.mark.parametrize(("model", "provider", "message"), UNANSWERED.values(), ids=list(UNANSWERED))
def test_an_agent_that_no_model_could_answer_stops_the_build(
    tmp_path: Path, model: str, provider: str, message: str
) -> None:
    helper = f"{{type: helper, description: d, instructions: i, model: {model}}}"
    with pytest.raises(SystemExit, match=message):
        wanted_files({"vars": {"CHAT_PROVIDER": provider}}, folder_of(tmp_path, {"helper.yaml": helper}))


@pytest.mark.parametrize(
    ("model", "provider"),
    [
        ("{}", "openai"),
        ("{provider: openai}", "openai"),
        ("{provider: openai, name: gpt}", "scripted"),
        ("{script: greeting}", "scripted"),
        ("{provider: scripted, script: greeting}", "openai"),
    ],
)
def test_an_agent_that_a_model_answers_is_staged(tmp_path: Path, model: str, provider: str) -> None:
    helper = f"{{type: helper, description: d, instructions: i, model: {model}}}"
    assert wanted_files({"vars": {"CHAT_PROVIDER": provider}}, folder_of(tmp_path, {"helper.yaml": helper}))


def test_the_worker_reads_what_was_compiled() -> None:
    catalogue = AgentCatalogue.from_json(wanted_files({})["agents.json"].decode())
    for path in (ROOT / "agents").glob("*.yaml"):
        definition = catalogue.agent(path.stem)
        assert definition.type == path.stem
        if definition.model.script is not None:
            assert catalogue.script(definition.model.script)["name"] == definition.model.script
