"""Kill workerd at every fault point: `python -m tests.kills [--minutes 60] [--seed 1] [scenario …]`."""

from __future__ import annotations

import argparse
import secrets
import tempfile
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from tests.kills.scenarios import SCENARIOS
from tests.kills.served import killable
from tests.kills.table import Table
from tests.kills.walk import Walk
from tools.local_server import migrate
from tools.paths import PRODUCTION_CONFIG


def walked(minutes: float, seed: int, names: Sequence[str]) -> Table:
    """Walk through the faults of some scenarios for so long."""
    deadline = time.monotonic() + minutes * 60
    with tempfile.TemporaryDirectory() as folder:
        migrate(Path(folder), PRODUCTION_CONFIG)
        with killable(Path(folder)) as served:
            return Walk(served, seed, progress=partial(print, flush=True)).until(deadline, names)


def main(arguments: Sequence[str] | None = None) -> int:
    """Walk, print the table, and return 1 when something was lost, doubled or stuck."""
    parser = argparse.ArgumentParser(prog="python -m tests.kills")
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--seed", type=int, help="the order of the faults; a new one is printed")
    parser.add_argument("scenarios", nargs="*", default=list(SCENARIOS), metavar="scenario", help=", ".join(SCENARIOS))
    wanted = parser.parse_args(arguments)
    unknown = set(wanted.scenarios) - set(SCENARIOS)
    if unknown:
        parser.error(f"no such scenario: {', '.join(sorted(unknown))}")
    seed = secrets.randbelow(10**6) if wanted.seed is None else wanted.seed
    table = walked(wanted.minutes, seed, wanted.scenarios)
    print(table)
    return 1 if table.wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
