"""Compile `agents/*.yaml`, `agents/tools/*.py` and `agents/scripts/*.yaml` to the JSON that is staged.

Anything invalid is refused. To check function tools, their modules are imported on the host, so a function must import
what only the platform has (`js`, `workers`) when it is called.
"""

from __future__ import annotations

import importlib.util
import inspect
import sys
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from tools.paths import ROOT

sys.path.insert(0, str(ROOT / "workers"))

from retain.agents.definitions import BUILT_IN, AgentDefinition
from retain.agents.tools.functions import FunctionTool, is_tool
from retain.errors import InvalidInput, RetainError
from retain.models.scripted.schema import check_script


def compile_agents(folder: Path) -> dict[str, Any]:
    """Return {"agents": {type: definition}, "scripts": {name: script}, "functions": {name: module}}.

    Raises: SystemExit naming the file and what is wrong with it, which may also be that it is not named after its agent
        or script, or that it names a delegate, a function or a script that does not exist.
    """
    agents: dict[str, Any] = {}
    for path in sorted(folder.glob("*.yaml")):
        try:
            definition = AgentDefinition.model_validate(yaml.safe_load(path.read_text()))
        except (ValidationError, yaml.YAMLError) as error:
            raise SystemExit(f"{path.name}: {error}") from error
        if definition.type != path.stem:
            raise SystemExit(f"{path.name}: the file must be named after its agent, {definition.type}.yaml")
        agents[definition.type] = definition.model_dump(mode="json")
    scripts: dict[str, Any] = {}
    for path in sorted((folder / "scripts").glob("*.yaml")):
        try:
            script = check_script(yaml.safe_load(path.read_text()))
        except (InvalidInput, yaml.YAMLError) as error:
            raise SystemExit(f"scripts/{path.name}: {error}") from error
        if script["name"] != path.stem:
            raise SystemExit(f"scripts/{path.name}: the file must be named after its script, {script['name']}.yaml")
        scripts[path.stem] = script
    functions = compile_functions(folder)
    for name, agent in agents.items():
        for function in agent["functions"]:
            if function not in functions:
                raise SystemExit(f"{name}.yaml: names the function {function}, which no file of tools/ declares")
        for delegate in agent["delegates"]:
            if delegate not in agents:
                raise SystemExit(f"{name}.yaml: delegates to {delegate}, which does not exist")
        script_name = agent["model"]["script"]
        if script_name is not None and script_name not in scripts:
            raise SystemExit(f"{name}.yaml: names the script {script_name}, which does not exist")
    return {"agents": agents, "scripts": scripts, "functions": functions}


def compile_functions(folder: Path) -> dict[str, str]:
    """Return the module of each function tool, by name: `agents.tools.<file>`, where it is staged.

    Raises: SystemExit naming the file when it cannot be imported or declares no tool, or when a tool's signature cannot
        be described or its name is taken.
    """
    functions: dict[str, str] = {}
    for path in sorted((folder / "tools").glob("*.py")):
        place = f"tools/{path.name}"
        if not path.stem.isidentifier():
            raise SystemExit(f"{place}: the file's name must be a valid module name")
        declared = _declared(path, place)
        if not declared and not path.stem.startswith("_"):
            raise SystemExit(
                f"{place}: declares no function with @tool; the name of a module without tools must begin with _"
            )
        for name, function in declared.items():
            try:
                _ = FunctionTool(function).spec
            except RetainError as error:
                raise SystemExit(f"{place}: {error.message}") from error
            if name in functions or name in BUILT_IN:
                raise SystemExit(f"{place}: another tool is named {name}")
            functions[name] = f"agents.tools.{path.stem}"
    return functions


def _declared(path: Path, place: str) -> dict[str, Any]:
    """Return the tools that the module itself declares, by name."""
    name = f"agents.tools.{path.stem}"
    specification = importlib.util.spec_from_file_location(name, path)
    if specification is None or specification.loader is None:
        raise SystemExit(f"{place}: it cannot be imported")
    module = importlib.util.module_from_spec(specification)
    try:
        specification.loader.exec_module(module)
    except (ImportError, SyntaxError, NameError, TypeError, ValueError, AttributeError) as error:
        raise SystemExit(f"{place}: it cannot be imported: {type(error).__name__}: {error}") from error
    return {
        function.__name__: function
        for _, function in inspect.getmembers(module, is_tool)
        if function.__module__ == name
    }
