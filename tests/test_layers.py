"""The direction of imports: the contracts in pyproject.toml hold, and each of them can break."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
WORKERS = ROOT / "workers"
CONFIG = ROOT / "pyproject.toml"
CONTRACTS = [contract["name"] for contract in tomllib.loads(CONFIG.read_text())["tool"]["importlinter"]["contracts"]]
VIOLATIONS = {
    "retain/outbox.py": "from retain.agents.runs.journal import Journal",
    "retain/agents/execution/loop.py": "from retain.admin.resources.runs import list_runs",
    "retain/gateway/upstream.py": "from pydantic import BaseModel",
    "retain/models/embedders/batches.py": "import sqlite3",
    "retain/http.py": "import js",
    "retain/agents/runs/run_state.py": "import time",
    "retain/agents/runs/events.py": "from retain.agents.instance import Instance",
}
"""Modules of the library, and an import that each must not have."""


def verdicts(workers: Path) -> dict[str, bool]:
    """Return for each contract whether the library in this folder keeps it."""
    lint = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run(
        [lint, "--no-logo", "--no-cache", "--config", CONFIG],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(workers), "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
    )
    found = re.findall(r"^(.+) (KEPT|BROKEN)\s*$", done.stdout, re.MULTILINE)
    assert len(found) == len(CONTRACTS), done.stdout + done.stderr
    return {name: verdict == "KEPT" for name, verdict in found}


def test_invariant_1_the_library_keeps_the_direction_of_imports() -> None:
    assert verdicts(WORKERS) == dict.fromkeys(CONTRACTS, True)


def test_every_contract_breaks_when_an_import_goes_the_wrong_way(tmp_path: Path) -> None:
    shutil.copytree(WORKERS / "retain", tmp_path / "retain", ignore=shutil.ignore_patterns("__pycache__"))
    for module, statement in VIOLATIONS.items():
        path = tmp_path / module
        path.write_text(f"{path.read_text()}\n{statement}\n")
    assert verdicts(tmp_path) == dict.fromkeys(CONTRACTS, False)


def test_agents_that_import_the_evaluation_break_the_way_of_a_request(tmp_path: Path) -> None:
    shutil.copytree(WORKERS / "retain", tmp_path / "retain", ignore=shutil.ignore_patterns("__pycache__"))
    path = tmp_path / "retain" / "agents" / "tools" / "stubbed.py"
    path.write_text(f"{path.read_text()}\nfrom retain.evaluation.stubs import CaseStubs\n")
    [way] = [name for name in CONTRACTS if name.startswith("the way of a request")]
    assert verdicts(tmp_path)[way] is False


def imported(path: Path) -> set[str]:
    """Return the modules that a file imports anywhere, except under TYPE_CHECKING."""
    tree = ast.parse(path.read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            node.body = [ast.Pass()]
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name} imports relatively"
            module = node.module or ""
            found |= {f"{module}.{name.name}" if module == "retain" else module for name in node.names}
    return found


PLATFORM = {"js", "pyodide", "workers"}
AREAS = sorted(path.relative_to(ROOT).as_posix() for path in (WORKERS / "assembly").glob("*.py"))
SHELL = {
    "workers/bindings.py": {"assembly", "durable_objects", "entry", "retain.admin", "retain.agents", "retain.gateway"},
    **{path: {"adapters", "durable_objects", "entry", *PLATFORM} for path in AREAS},
    "workers/assembly/gateway.py": {
        *("adapters", "durable_objects", "entry", *PLATFORM),
        *("retain.admin", "retain.agents", "retain.memory", "retain.models"),
    },
    "workers/assembly/root.py": {"durable_objects", "entry", "retain.models", "retain.memory", *PLATFORM},
    "durable_objects/agent_runtime.py": {"bindings", "entry", "js", "pyodide", "retain.admin", "retain.gateway"},
    "workers/entry.py": {"js", "pyodide"},
}
"""The modules around the library, and what each must not know."""


@pytest.mark.parametrize(("path", "unknown"), SHELL.items(), ids=SHELL)
def test_the_shell_goes_from_the_entry_to_the_bindings(path: str, unknown: set[str]) -> None:
    modules = imported(ROOT / path)
    assert modules or path.endswith("__init__.py"), "nothing was read"
    assert {module for module in modules for name in unknown if f"{module}.".startswith(f"{name}.")} == set()


def test_only_the_shell_knows_the_platform() -> None:
    knowing = {
        str(path.relative_to(ROOT))
        for folder in ("workers", "durable_objects")
        for path in (ROOT / folder).rglob("*.py")
        if PLATFORM & {module.split(".")[0] for module in imported(path)}
    }
    shell = {path for path in knowing if not path.startswith("workers/adapters/")}
    assert shell == {
        "workers/bindings.py",
        "workers/entry.py",
        "durable_objects/agent_runtime.py",
        "durable_objects/tenant_writer.py",
    }


QUIET = """
import importlib, os, pathlib, random, secrets, socket, sys, time, uuid
import asyncio, fastjsonschema, httpx, jwt, pydantic, sqlite3, ulid, cryptography.hazmat.primitives.asymmetric.rsa
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

class First(pydantic.BaseModel):  # the first model of a process makes pydantic look for its plugins
    pass

names = sorted(
    ".".join(path.relative_to("workers").with_suffix("").parts)
    for path in pathlib.Path("workers/retain").rglob("*.py")
    if path.name != "__init__.py"
)
done = []

def audited(event, arguments):
    opened = str(arguments[0]) if event == "open" and arguments else ""
    reading_code = opened.endswith((".py", ".pyc")) or ".pyc." in opened
    if (event == "open" and not reading_code) or event.startswith(("socket.", "sqlite3.", "subprocess.", "os.system")):
        done.append((importing, event, opened))

def noted(what):
    def call(*arguments, **named):
        done.append((importing, what))
        raise RuntimeError(what)
    return call

importing = ""
sys.addaudithook(audited)
os.urandom = noted("os.urandom")
random.random = random.getrandbits = random.seed = noted("random")
secrets.token_bytes = secrets.token_hex = uuid.uuid4 = noted("secrets")
time.sleep = noted("time.sleep")
for importing in names:
    importlib.import_module(importing)
print(len(names), done)
"""


def test_what_verifies_tokens_of_access_is_loaded_by_the_first_token() -> None:
    code = "import sys, retain.admin.access; sys.exit('jwt' in sys.modules)"
    environment = {**os.environ, "PYTHONPATH": str(WORKERS)}
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=environment, check=False).returncode == 0


def test_invariant_9_importing_the_library_reads_nothing_asks_nobody_and_draws_no_random_number() -> None:
    environment = {**os.environ, "PYTHONPATH": str(WORKERS)}
    done = subprocess.run(  # -B: what is compiled here is not written, which would be seen as an opened file
        [sys.executable, "-B", "-c", QUIET], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    modules = len([path for path in (WORKERS / "retain").rglob("*.py") if path.name != "__init__.py"])
    assert done.stdout.strip() == f"{modules} []", done.stdout + done.stderr
