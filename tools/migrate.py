"""Apply the migrations to every database of a deployment, one after the other, and show which each of them lacks.

    python -m tools.migrate --status
    python -m tools.migrate
    python -m tools.migrate --local --persist-to STATE --config wrangler.local.json

It is `wrangler d1 migrations` for each database of the configuration. wrangler notes each migration in its database when it
has been applied, so a run that stopped is continued by the next one. The first failure ends the run: the databases after it
keep their schema, with which the Worker that is deployed still serves them (docs/shards.md).
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from tools.local_server import databases
from tools.offline_runtime import environment
from tools.paths import NODE_BIN, PRODUCTION_CONFIG, ROOT

Run = Callable[[Sequence[str]], int]
"""Runs a command in the foreground, and returns its exit status."""


def migrate_each(names: Sequence[str], verb: str, where: Sequence[str], run: Run) -> list[str]:
    """Run wrangler's command for each database; return those that it was not run for, or failed for.

    verb: `apply`, which the first failure ends, or `list`, which it does not. where: which deployment.
    """
    left = list(names)
    failed: list[str] = []
    while left:
        name = left.pop(0)
        print(f"{name}:", flush=True)
        if run([str(NODE_BIN / "wrangler"), "d1", "migrations", verb, name, *where]) == 0:
            continue
        failed.append(name)
        if verb == "apply":
            return failed + left
    return failed


def main(arguments: Sequence[str] | None = None, run: Run | None = None) -> int:
    """Apply or list the migrations; return 1 if a database is left without them, or was not reached."""
    parser = argparse.ArgumentParser(prog="python -m tools.migrate", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--status", action="store_true", help="list what each database lacks, and apply nothing")
    parser.add_argument("--config", type=Path, default=PRODUCTION_CONFIG)
    parser.add_argument("--local", action="store_true", help="the databases on this machine, not those at Cloudflare")
    parser.add_argument("--persist-to", type=Path, help="where the local databases are")
    options = parser.parse_args(sys.argv[1:] if arguments is None else arguments)
    where = ["--local" if options.local else "--remote", "--config", str(options.config)]
    if options.persist_to is not None:
        where += ["--persist-to", str(options.persist_to)]
    names = databases(options.config)
    left = migrate_each(names, "list" if options.status else "apply", where, run or _in_foreground)
    if left:
        print(f"not done for {', '.join(left)}: run this command again", file=sys.stderr)
    return int(bool(left))


def _in_foreground(command: Sequence[str]) -> int:
    return subprocess.run(command, cwd=ROOT, env=environment(), check=False).returncode


if __name__ == "__main__":
    raise SystemExit(main())
