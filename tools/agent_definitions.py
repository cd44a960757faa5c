"""Compile `agents/*.yaml`, `agents/tools/*.py` and `agents/scripts/*.yaml` to the JSON that is staged.

Anything invalid is refused. To check function tools, their modules are imported on the host, so a function must import
what only the platform has (`js`, `workers`) when it is called.
"""

from __future__ import annotations

import importlib.util
import inspect
import sys
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import yaml
from pydantic import ValidationError

from tools.paths import ROOT, text_of
from tools.uploaded_imports import missing_import

sys.path.insert(0, str(ROOT / "workers"))

from retain.admin.definitions.checking import memory_problems, model_problems, reference_problems
from retain.agents.definitions import BUILT_IN, AgentDefinition, ModelConfig
from retain.agents.tools.functions import FunctionTool, is_tool
from retain.cli.yaml_text import read_yaml
from retain.errors import InvalidInput, RetainError
from retain.models.scripted.schema import check_script
from retain.routing.bodies import problems_of


def compile_agents(folder: Path) -> dict[str, Any]:
    """Return {"agents": {type: definition}, "scripts": {name: script}, "functions": {name: module}}.

    Raises: SystemExit naming the file and what is wrong with it, which may also be that it is not named after its agent
        or script, or that it names a delegate, a function or a script that does not exist.
    """
    for path in sorted([*folder.glob("*.yml"), *(folder / "scripts").glob("*.yml")]):
        raise SystemExit(f"{path.relative_to(folder)}: its name must end with .yaml, or it is not read")
    agents: dict[str, Any] = {}
    for path in sorted(folder.glob("*.yaml")):
        definition = _definition(path)
        if definition.type != path.stem:
            raise SystemExit(f"{path.name}: the file must be named after its agent, {definition.type}.yaml")
        agents[definition.type] = definition.model_dump(mode="json")
    scripts: dict[str, Any] = {}
    for path in sorted((folder / "scripts").glob("*.yaml")):
        try:
            script = check_script(read_yaml(text_of(path, f"scripts/{path.name}")))
        except (InvalidInput, yaml.YAMLError) as error:
            raise SystemExit(f"scripts/{path.name}: {error}") from error
        if script["name"] != path.stem:
            raise SystemExit(f"scripts/{path.name}: the file must be named after its script, {script['name']}.yaml")
        scripts[path.stem] = script
    functions = compile_functions(folder)
    for name, agent in agents.items():
        definition = AgentDefinition.model_validate(agent)
        problems = reference_problems(definition, functions=functions, scripts=scripts, delegates=agents)
        for problem in memory_problems(definition) + problems:
            raise SystemExit(f"{name}.yaml: {problem.message}")
    return {"agents": agents, "scripts": scripts, "functions": functions}


def _definition(path: Path) -> AgentDefinition:
    try:
        content = read_yaml(text_of(path, path.name))
        if not isinstance(content, dict):
            raise SystemExit(f"{path.name}: it must be a mapping with the fields of an agent: type, description, …")
        return AgentDefinition.model_validate(content)
    except ValidationError as error:
        problems = [problem.removeprefix("body: ").replace("Value error, ", "") for problem in problems_of(error)]
        raise SystemExit(f"{path.name}: {'; '.join(problems)}") from error
    except yaml.YAMLError as error:
        raise SystemExit(f"{path.name}: {error}") from error


def check_models(agents: Mapping[str, Any], provider: str) -> None:
    """Refuse an agent for which no model could answer. provider: the deployment's.

    Raises: SystemExit naming the file, and what is missing.
    """
    for name, agent in agents.items():
        for problem in model_problems(ModelConfig.model_validate(agent["model"]), provider):
            raise SystemExit(f"{name}.yaml: {problem.message}")


def compile_functions(folder: Path) -> dict[str, str]:
    """Return the module of each function tool, by name: `agents.tools.<file>`, where it is staged.

    Raises: SystemExit naming the file when it cannot be imported, here or by the Worker, or declares no tool, or when a
        tool's signature cannot be described or its name is taken.
    """
    functions: dict[str, str] = {}
    for path in sorted((folder / "tools").glob("*.py")):
        place = f"tools/{path.name}"
        if not path.stem.isidentifier():
            raise SystemExit(f"{place}: the file's name must be a valid module name")
        with _imported(path, place) as module:
            _check_imports(path, place)
            declared = _declared(module)
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


def _check_imports(path: Path, place: str) -> None:
    missing = missing_import(path.read_bytes())
    if missing is not None:
        line, name = missing
        raise SystemExit(
            f"{place}, line {line}: it imports {name}, which is not uploaded: add its package to `dependencies` in"
            " pyproject.toml, then run `make lock` and `make setup`"
        )


@contextmanager
def _imported(path: Path, place: str) -> Iterator[ModuleType]:
    """Import the file as the module that it is when staged, and forget it afterwards.

    Until then it is in `sys.modules`, where pydantic looks up the names in postponed annotations.
    Raises: SystemExit naming the file, the line and the error, whatever the module raises.
    """
    name = f"agents.tools.{path.stem}"
    specification = importlib.util.spec_from_file_location(name, path)
    if specification is None or specification.loader is None:
        raise SystemExit(f"{place}: it cannot be imported")
    module = importlib.util.module_from_spec(specification)
    earlier = sys.modules.get(name)
    sys.modules[name] = module
    try:
        try:
            specification.loader.exec_module(module)
        except (Exception, SystemExit) as error:
            lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
            line = f", line {lines[-1]}" if lines else ""
            raise SystemExit(f"{place}{line}: it cannot be imported: {type(error).__name__}: {error}") from error
        yield module
    finally:
        del sys.modules[name]
        if earlier is not None:
            sys.modules[name] = earlier


def _declared(module: ModuleType) -> dict[str, Any]:
    """Return the tools that the module itself declares, by name."""
    return {
        function.__name__: function
        for _, function in inspect.getmembers(module, is_tool)
        if function.__module__ == module.__name__
    }
