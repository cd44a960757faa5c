from __future__ import annotations

from pathlib import Path

import pytest

from retain.agents.catalogue import AgentCatalogue
from tools.agent_definitions import compile_agents
from tools.paths import ROOT
from tools.stage import wanted_files

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
    "module that cannot be imported": ({"tools/letters.py": "import nowhere"}, r"^tools/letters\.py: it cannot be"),
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
    "field that is missing": ({"helper.yaml": "{type: helper, description: d}"}, r"(?s)^helper\.yaml: .*instructions"),
    "type outside the grammar": (
        {"helper.yaml": "{type: Helper, description: d, instructions: i}"},
        r"(?s)^helper\.yaml: .*pattern",
    ),
    "YAML that is none": ({"helper.yaml": "type: [helper"}, r"^helper\.yaml: "),
    "an empty file": ({"helper.yaml": ""}, r"^helper\.yaml: "),
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


def test_the_worker_reads_what_was_compiled() -> None:
    catalogue = AgentCatalogue.from_json(wanted_files({})["agents.json"].decode())
    for path in (ROOT / "agents").glob("*.yaml"):
        definition = catalogue.agent(path.stem)
        assert definition.type == path.stem
        if definition.model.script is not None:
            assert catalogue.script(definition.model.script)["name"] == definition.model.script
