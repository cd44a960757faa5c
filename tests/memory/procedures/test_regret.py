"""The regret of Thompson sampling grows slower than that of choosing uniformly or greedily."""

from __future__ import annotations

from benchmarks.procedures import RULES, mean_regrets

ROUNDS, WORLDS = 1600, 20


def test_regret_grows_slower_than_uniform_and_than_greedy() -> None:
    growth = {}
    for name, rule in RULES.items():
        course = mean_regrets(rule, ROUNDS, WORLDS)
        growth[name] = course[-1] / course[ROUNDS // 4 - 1]
    assert growth["Thompson sampling"] < 2 < growth["greedy"] < growth["uniform"]
