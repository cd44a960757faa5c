"""Stage the Worker: put what wrangler uploads, and nothing else, into `.build/`, and public files into `.build-public/`.

Run by wrangler itself, as the custom build of wrangler.toml, before `dev` and `deploy` and again on each change. The
folder `workers/` becomes the module root; agent definitions are validated and written as one JSON file, and their
function tools are included as modules; the local embedding table only when the configuration needs it. Each module
has its bytecode next to it, and one file has what modules would compile as they are imported.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from retain.admin.catching_up import CATCH_UP
from retain.admin.maintenance import BRIEF
from retain.cli.project import variables_of
from retain.models.embedders.static import table_file
from tools.agent_definitions import check_models, compile_agents
from tools.bytecode import with_bytecode
from tools.paths import BUILD, DEVELOPMENT_VARIABLES, PRODUCTION_CONFIG, ROOT, text_of
from tools.public_files import folder_of, public_files
from tools.recorded_imports import with_recorded

EMBEDDING_TABLES = ROOT / "models"
_NOT_UPLOADED = (
    "retain/cli/",
    "retain/host/",
    "retain/testing/",
    # Backends for programs that embed Retain: all of contracts/ except its protocols and `contracts/stored/`.
    "retain/contracts/backends/",
    "retain/contracts/documents.py",
    "retain/contracts/messages.py",
    "retain/contracts/opaque.py",
    "retain/items/rekeying/layers.py",
    # For tools on the host, which provision keys and tools, check scripts and replay runs.
    "retain/agents/runs/replay.py",
    "retain/gateway/provisioning.py",
    "retain/models/scripted/schema.py",
)
"""Modules and folders of the library that the Worker does not import."""
_BINDINGS = ("KV", "DB", "COLD", "VECTORIZE", "AGENT_RUNTIME", "TENANT_WRITER")
_CRONS = (BRIEF, CATCH_UP)
"""The schedules of the daily brief and of the work of every five minutes; pruning is also a part of the brief."""


def read_config(path: Path) -> dict[str, Any]:
    """Return a wrangler configuration, TOML or JSON. Raises: SystemExit when it is neither."""
    text = text_of(path, path.name)
    try:
        parsed: dict[str, Any] = json.loads(text) if path.suffix == ".json" else tomllib.loads(text)
    except ValueError as error:
        raise SystemExit(f"{path.name}: {error}") from error
    return parsed


def local_variables(path: Path) -> dict[str, str]:
    """Return what `.dev.vars` sets instead of the configuration's variables; nothing if there is no such file.

    Raises: SystemExit when it is not UTF-8.
    """
    return variables_of(text_of(path, path.name)) if path.exists() else {}


def wanted_files(config: dict[str, Any], agents: Path = ROOT / "agents", sources: Path = ROOT) -> dict[str, bytes]:
    """Return what `.build/` must contain: path relative to it, and content.

    agents: the folder of definitions. sources: the folder with the code of the Worker and of its objects.
    """
    files: dict[str, bytes] = {}
    for folder, prefix in ((sources / "workers", ""), (sources / "durable_objects", "durable_objects/")):
        for path in sorted([*folder.rglob("*.py"), *folder.rglob("*.mjs")]):
            relative = path.relative_to(folder).as_posix()
            if not relative.startswith(_NOT_UPLOADED):
                files[prefix + relative] = path.read_bytes()
    for path in sorted((agents / "tools").glob("*.py")):
        files[f"agents/tools/{path.name}"] = path.read_bytes()
    compiled = compile_agents(agents)
    if provider := config.get("vars", {}).get("CHAT_PROVIDER"):
        check_models(compiled["agents"], provider)
    # In the files' own order: the first task type of `procedures` is the default.
    files["agents.json"] = json.dumps(compiled, indent=1).encode()
    if config.get("vars", {}).get("EMBEDDING_PROVIDER") == "static":
        table = EMBEDDING_TABLES / table_file(config["vars"]["EMBEDDING_MODEL"])
        if not table.exists():
            raise SystemExit(f"there is no embedding table {table.name} in models/; correct EMBEDDING_MODEL")
        files[table.name] = table.read_bytes()
    return files


def stage(config: dict[str, Any], target: Path, *, sources_only: bool = False) -> int:
    """Make `target` contain what the configuration needs; return how many files changed.

    sources_only: without bytecode. With it every module is compiled for production, and for a local server those that
    `make setup` has compiled are used: an isolate compiles what has changed since.
    """
    environment = config.get("vars", {}).get("RETAIN_ENVIRONMENT")
    if environment == "production" and "python_workers_development" in config.get("compatibility_flags", []):
        raise SystemExit("a production configuration must not carry the flag python_workers_development")
    if lacks := _lacking(config):
        raise SystemExit(
            f"the configuration lacks {', '.join(lacks)}: copy what is missing from Retain's own wrangler.toml"
            " (docs/deployment.md, A configuration of your own)"
        )
    files = wanted_files(config)
    if not sources_only:
        files = with_compiled(files, compiled=environment == "production")
    return mirror(files, target) + mirror(public_files(), folder_of(target))


def _lacking(config: dict[str, Any]) -> list[str]:
    """Return what the Worker needs and neither the configuration nor one of its environments has, in words."""
    parts = [config, *config.get("env", {}).values()]
    lists = [listed for part in parts for listed in part.values() if isinstance(listed, list)]
    bound = {entry.get("binding") for listed in lists for entry in listed if isinstance(entry, dict)}
    bound |= {one["name"] for part in parts for one in part.get("durable_objects", {}).get("bindings", ())}
    crons = {cron for part in parts for cron in part.get("triggers", {}).get("crons", ())}
    lacks = [f"the binding {name}" for name in _BINDINGS if name not in bound]
    lacks += [f"the schedule {cron}" for cron in _CRONS if cron not in crons]
    if not any(rule["type"] == "ESModule" for part in parts for rule in part.get("rules", ())):
        lacks.append("the rule that uploads adapters/exchange.mjs")
    return lacks


def with_compiled(files: Mapping[str, bytes], *, compiled: bool) -> dict[str, bytes]:
    """Return a Worker's files with the bytecode of its modules, and with what these compile when they are imported.

    compiled: whether what is not kept of it is compiled, or left to the isolate. Raises: SystemExit when that fails.
    """
    return with_recorded(with_bytecode(files, compiled=compiled), compiled=compiled)


def mirror(wanted: dict[str, bytes], target: Path) -> int:
    """Make the folder contain exactly these files; return how many changed."""
    changed = 0
    for path in [p for p in target.rglob("*") if p.is_file()] if target.exists() else []:
        if path.relative_to(target).as_posix() not in wanted:
            path.unlink()
            changed += 1
    for name, content in wanted.items():
        path = target / name
        if path.exists() and path.read_bytes() == content:
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        changed += 1
    for folder in sorted((p for p in target.rglob("*") if p.is_dir()), reverse=True):
        if not any(folder.iterdir()):
            shutil.rmtree(folder)
    return changed


def main(arguments: Sequence[str] | None = None) -> int:
    """Stage for the configuration that the arguments name; return the exit status. Raises: SystemExit."""
    parser = argparse.ArgumentParser(prog="retain stage", description="Put what wrangler uploads into .build/.")
    parser.add_argument("--config", type=Path, default=PRODUCTION_CONFIG, help="default: wrangler.toml")
    parser.add_argument("--target", type=Path, default=BUILD, help="default: .build/")
    parser.add_argument(
        "--sources-only", action="store_true", help="without bytecode, for the free plan (docs/limits.md)"
    )
    options = parser.parse_args(arguments)
    config = read_config(options.config)
    if config.get("vars", {}).get("RETAIN_ENVIRONMENT") == "development":
        config["vars"] = {**config["vars"], **local_variables(DEVELOPMENT_VARIABLES)}
    changed = stage(config, options.target, sources_only=options.sources_only)
    print(f"staged for {options.config.name}: {changed} files changed", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
