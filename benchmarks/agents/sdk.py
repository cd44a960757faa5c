"""The agent on Cloudflare's Agents SDK, bundled for workerd. npm installs it from a lock of its own."""

from __future__ import annotations

import subprocess
from pathlib import Path

from benchmarks.harness.services import Service, d1, kv, objects, text, worker
from tools.paths import CACHE, NODE_BIN

HERE = Path(__file__).parent
FOLDER = CACHE / "bench-agents-sdk"
TABLES = (
    "CREATE TABLE clerk_runs (run_id TEXT PRIMARY KEY, instance TEXT, input TEXT, output TEXT, at_ms INTEGER)",
    "CREATE TABLE clerk_events (run_id TEXT, seq INTEGER, kind TEXT, data TEXT, at_ms INTEGER, PRIMARY KEY (run_id, seq))",
    "CREATE TABLE clerk_episodes (run_id TEXT PRIMARY KEY, instance TEXT, content TEXT, at_ms INTEGER)",
    "CREATE INDEX clerk_episodes_newest ON clerk_episodes (instance, at_ms)",
)
"""What it writes to D1 where others are to read it."""
_PLATFORM = ("cloudflare:workers", "cloudflare:sockets", "node:*", "path")


def bundled() -> bytes:
    """Return the module. The first call installs the packages. Raises: CalledProcessError."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    names = ("package.json", "package-lock.json", "clerk.ts", "no_email.ts")
    changed = [name for name in names if not _same(FOLDER / name, HERE / name)]
    for name in names:
        (FOLDER / name).write_bytes((HERE / name).read_bytes())
    output = FOLDER / "clerk.js"
    if not (FOLDER / "node_modules").exists() or {"package.json", "package-lock.json"} & set(changed):
        install = ["npm", "ci", "--no-audit", "--no-fund", "--loglevel=error", "--legacy-peer-deps", "--ignore-scripts"]
        subprocess.run(install, cwd=FOLDER, check=True)
    if changed or not output.exists():
        external = [f"--external:{name}" for name in _PLATFORM] + ["--alias:cloudflare:email=./no_email.ts"]
        options = ["--bundle", "--format=esm", "--platform=browser", "--target=es2024", f"--outfile={output}"]
        conditions = "--conditions=workerd,worker,browser"
        command = [str(NODE_BIN / "esbuild"), "clerk.ts", *options, conditions, *external, "--log-level=error"]
        subprocess.run(command, cwd=FOLDER, check=True)
    return output.read_bytes()


def _same(one: Path, other: Path) -> bool:
    return one.exists() and one.read_bytes() == other.read_bytes()


def sdk_worker(name: str, *, shared: bool, database: str) -> Service:
    """Return the Worker. shared: whether others can read its runs, in D1, and its working values, in KV."""
    bindings = [objects("Clerk", "Clerk"), kv("KV"), d1("DB", database), text("SHARED", "true" if shared else "false")]
    return worker(name, {"clerk.js": bundled()}, bindings=bindings, stored=("Clerk",))
