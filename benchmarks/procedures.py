"""Simulate the regret of choosing between workflows: Thompson sampling against uniform and greedy choice.

    python -m benchmarks.procedures [--rounds 4000] [--seeds 40]

Each world has five workflows whose success rates are drawn uniformly; a choice's regret is the best workflow's rate
less the chosen one's. Everything is seeded: the figures are the same in every run.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from itertools import pairwise
from random import Random
from statistics import fmean

from rich.console import Console
from rich.table import Table

from retain.memory.procedures.posterior import Posterior, choose

WORKFLOWS = 5
Rule = Callable[[Mapping[str, Posterior], Random], str]


def uniformly(posteriors: Mapping[str, Posterior], random: Random) -> str:
    """Choose a workflow uniformly at random."""
    return random.choice(sorted(posteriors))


def greedily(posteriors: Mapping[str, Posterior], random: Random) -> str:  # noqa: ARG001
    """Choose the workflow with the highest expected rate, ties by id."""
    return max(sorted(posteriors), key=lambda name: posteriors[name].mean)


RULES: Mapping[str, Rule] = {"Thompson sampling": choose, "greedy": greedily, "uniform": uniformly}


def regrets(rule: Rule, rounds: int, seed: int) -> list[float]:
    """Return the cumulative regret after each round in the world of this seed."""
    world, random = Random(f"world {seed}"), Random(f"choices {seed}")
    rates = {f"workflow_{number}": world.random() for number in range(WORKFLOWS)}
    posteriors = dict.fromkeys(rates, Posterior())
    best, total, course = max(rates.values()), 0.0, []
    for _ in range(rounds):
        chosen = rule(posteriors, random)
        posteriors[chosen] = posteriors[chosen].after(float(random.random() < rates[chosen]))
        total += best - rates[chosen]
        course.append(total)
    return course


def mean_regrets(rule: Rule, rounds: int, seeds: int) -> list[float]:
    """Return the cumulative regret after each round, averaged over worlds."""
    return [fmean(course) for course in zip(*(regrets(rule, rounds, seed) for seed in range(seeds)), strict=True)]


def main() -> None:
    """Print the table."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rounds", type=int, default=4000)
    options.add_argument("--seeds", type=int, default=40)
    asked = options.parse_args()
    marks = [asked.rounds // 16, asked.rounds // 4, asked.rounds]
    table = Table(title=f"Mean regret in {asked.seeds} worlds of {WORKFLOWS} workflows")
    for heading in (
        "choice",
        *(f"after {mark:,}" for mark in marks),
        *(f"{b // a} times the rounds" for a, b in pairwise(marks)),
    ):
        table.add_column(heading)
    for name, rule in RULES.items():
        course = mean_regrets(rule, asked.rounds, asked.seeds)
        at = [course[mark - 1] for mark in marks]
        growth = [f"x {later / sooner:.1f}" for sooner, later in pairwise(at)]
        table.add_row(name, *(f"{regret:.1f}" for regret in at), *growth)
    Console().print(table)


if __name__ == "__main__":
    main()
