"""`python -m tools.mutants [WIRE…]`: cut every wire, and say which cut no test noticed."""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict

from tools.mutants.mutation import Mutant
from tools.mutants.report import table, unexplained
from tools.mutants.session import Judged, judged, mutants_of
from tools.mutants.wires import Wire, Wires, read_wires
from tools.paths import CACHE, ROOT

RESULTS = CACHE / "mutants"
"""Where the results of each wire are written, as JSON."""


def cuts_of(wires: Wires, wire: Wire) -> list[Mutant]:
    """Return the wire's mutants that were made by hand. Raises: ValueError for one that no longer fits its file."""
    return [
        Mutant(cut.file, f"by hand: {cut.name}", 0, cut.applied((ROOT / cut.file).read_text()))
        for cut in wires.cuts
        if cut.wire == wire.name
    ]


def chosen(wires: Wires, wire: Wire, options: argparse.Namespace) -> list[Mutant]:
    """Return the mutants to judge: all, those made by hand, or a sample that the seed draws, besides those made by hand."""
    by_hand = cuts_of(wires, wire)
    if options.by_hand:
        return by_hand
    some = mutants_of(wire)
    if options.sample is not None:
        count = max(1, options.sample // len(wires.wires))
        some = random.Random(f"{options.seed} {wire.name}").sample(some, min(count, len(some)))  # noqa: S311
    return [*by_hand, *some]


def shown(results: Iterator[Judged], count: int) -> Iterator[Judged]:
    """Yield the results, and print each survivor and how far they have got."""
    started = time.monotonic()
    for number, result in enumerate(results, 1):
        if result.outcome == "survived":
            place = f"{result.mutant.file}:{result.mutant.line} {result.mutant.operator}"
            print(f"survived: {place}\n  - {result.before}\n  + {result.after}", flush=True)
        if sys.stderr.isatty():
            print(f"\r{result.wire}: {number} of {count}, {time.monotonic() - started:.0f} s", end="", file=sys.stderr)
        yield result


def main(arguments: Sequence[str] | None = None) -> int:
    """Judge the mutants of the named wires; return 1 when one survived that is not explained."""
    parser = argparse.ArgumentParser(prog="mutants", description="Cut every wire, and say which cut no test noticed.")
    parser.add_argument("wires", nargs="*", metavar="WIRE", help="default: all of wires.toml")
    parser.add_argument("--sample", type=int, help="judge about so many mutants, of all wires together")
    parser.add_argument("--seed", type=int, default=1, help="of the sample")
    parser.add_argument("--by-hand", action="store_true", help="judge the mutants that were made by hand alone")
    options = parser.parse_args(arguments)
    wires = read_wires()
    results: list[Judged] = []
    RESULTS.mkdir(parents=True, exist_ok=True)
    for wire in wires.chosen(options.wires):
        some = chosen(wires, wire, options)
        found = list(shown(judged(wire, some), len(some)))
        results += found
        (RESULTS / f"{wire.name}.json").write_text(json.dumps([asdict(one) for one in found], indent=1))
    print(table(results, wires))
    left = unexplained(results, wires)
    for one in left:
        print(f"not explained: {one.mutant.file}:{one.mutant.line} {one.before} => {one.after}")
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main())
