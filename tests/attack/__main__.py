"""Attack from the command line: `python -m tests.attack --attempts 200000 --seed 1`."""

from __future__ import annotations

import argparse
import asyncio
import math
import secrets
import time
from collections.abc import Sequence

import pytest

from tests.attack.planted import PLANTS
from tests.attack.trial import attack, least_valid


def main(arguments: Sequence[str] | None = None) -> int:
    """Attack, print the summary, and return 1 when there is a finding."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.attack", description="Try to cross from one tenant to another."
    )
    parser.add_argument("--attempts", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=None, help="default: a new one, which is printed")
    parser.add_argument("--minutes", type=float, default=math.inf, help="begin no further round after this time")
    parser.add_argument("--plant", choices=sorted(PLANTS), help="plant a fault first, to see whether it is found")
    options = parser.parse_args(arguments)
    seed = options.seed if options.seed is not None else secrets.randbelow(1_000_000)
    with pytest.MonkeyPatch.context() as patch:
        if options.plant is not None:
            PLANTS[options.plant](patch)
        deadline = time.monotonic() + options.minutes * 60
        stops = options.plant is not None
        summary = asyncio.run(attack(options.attempts, seed, stop_at_first=stops, deadline=deadline))
    print(summary)
    for route in least_valid(summary):
        print(f"  few valid: {route}")
    return 1 if summary.findings else 0


if __name__ == "__main__":
    raise SystemExit(main())
