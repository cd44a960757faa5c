"""The regret of Thompson sampling grows more slowly than that of a uniform or a greedy choice."""

from __future__ import annotations

from benchmarks.procedures import RULES, mean_regrets

ROUNDS, WORLDS = 1600, 20


def test_regret_grows_more_slowly_than_uniform_and_greedy() -> None:
    growth = {}
    for name, rule in RULES.items():
        course = mean_regrets(rule, ROUNDS, WORLDS)
        growth[name] = course[-1] / course[ROUNDS // 4 - 1]
    assert growth["Thompson sampling"] < 2 < growth["greedy"] < growth["uniform"]
