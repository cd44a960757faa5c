"""Compile `agents/*.yaml` and `agents/scripts/*.yaml` to the JSON that is staged, refusing what is not valid."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from tools.paths import ROOT

sys.path.insert(0, str(ROOT / "workers"))

from retain.agents.definitions import AgentDefinition
from retain.errors import InvalidInput
from retain.models.script_schema import check_script


def compile_agents(folder: Path) -> dict[str, Any]:
    """Return {"agents": {type: definition}, "scripts": {name: script}}.

    Raises: SystemExit naming the file and what is wrong with it; also for a file not named after its agent or script,
        a delegate that does not exist, and a script that does not exist.
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
    for name, agent in agents.items():
        for delegate in agent["delegates"]:
            if delegate not in agents:
                raise SystemExit(f"{name}.yaml: delegates to {delegate}, which does not exist")
        script_name = agent["model"]["script"]
        if script_name is not None and script_name not in scripts:
            raise SystemExit(f"{name}.yaml: names the script {script_name}, which does not exist")
    return {"agents": agents, "scripts": scripts}
