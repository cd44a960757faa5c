"""`python -m tools.mutants [WIRE…]`: cut every wire, and say which cut no test noticed."""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import TypeAlias

from tools.mutants.mutation import Mutant
from tools.mutants.report import table, unexplained
from tools.mutants.results import Results
from tools.mutants.session import Judged, judged, mutants_of
from tools.mutants.wires import Wire, Wires, read_wires
from tools.paths import CACHE, ROOT

RESULTS = CACHE / "mutants"
"""Where the results of each wire are kept."""
Judge: TypeAlias = Callable[[Wire, Sequence[Mutant]], Iterator[Judged]]


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


def outcomes(
    wire: Wire, some: Sequence[Mutant], kept: Results, judge: Judge = judged, *, resumed: bool
) -> Generator[Judged, None, None]:
    """Yield the outcome of each of the mutants, and keep and print it as soon as it is judged.

    resumed: mutants that were killed before, and are the same, are not judged again; survivors are, as a test may be new.
    """
    before = {one.mutant: one for one in kept.read() if one.outcome == "killed"} if resumed else {}
    known = [before[mutant] for mutant in some if mutant in before]
    kept.replace(known)
    yield from known
    left = [mutant for mutant in some if mutant not in before]
    for number, result in enumerate(judge(wire, left), len(known) + 1):
        kept.add(result)
        place = f"{result.mutant.file}:{result.mutant.line} {result.mutant.operator}"
        print(f"{wire.name} {number}/{len(some)} {result.outcome}: {place} ({result.seconds:.1f} s)", flush=True)
        if result.outcome == "survived":
            print(f"  - {result.before}\n  + {result.after}", flush=True)
        yield result


def main(arguments: Sequence[str] | None = None) -> int:
    """Judge the mutants of the named wires; return 1 when one survived that is not explained."""
    parser = argparse.ArgumentParser(prog="mutants", description="Cut every wire, and say which cut no test noticed.")
    parser.add_argument("wires", nargs="*", metavar="WIRE", help="default: all of wires.toml")
    parser.add_argument("--sample", type=int, help="judge about so many mutants, of all wires together")
    parser.add_argument("--seed", type=int, default=1, help="of the sample")
    parser.add_argument("--by-hand", action="store_true", help="judge the mutants that were made by hand alone")
    parser.add_argument("--resume", action="store_true", help="judge what the last run of the wire did not kill")
    options = parser.parse_args(arguments)
    wires = read_wires()
    results: list[Judged] = []
    for wire in wires.chosen(options.wires):
        kept = Results(RESULTS / f"{wire.name}.jsonl")
        results += outcomes(wire, chosen(wires, wire, options), kept, resumed=options.resume)
    print(table(results, wires))
    left = unexplained(results, wires)
    for one in left:
        print(f"not explained: {one.mutant.file}:{one.mutant.line} {one.before} => {one.after}")
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main())
