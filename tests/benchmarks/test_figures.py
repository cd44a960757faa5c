"""The figures of benchmarks: ratios are taken within a round, and a disturbance of a round changes none."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.harness.figures import Block, Series, Spread, figures_of, spread_of
from benchmarks.harness.plot import bars, lines
from benchmarks.harness.report import Comparison, Report
from benchmarks.proxy.__main__ import times_javascript
from benchmarks.proxy.setting import DIRECT, JAVASCRIPT, RETAIN


def block(*times_ms: float) -> Block:
    return Block(times_ms, sum(times_ms), {"server": 2.0 * len(times_ms)}, {"server": 5_000_000}, {"server": 4096})


def series(name: str, *medians: float) -> Series:
    return Series(name, 1, [block(median) for median in medians])


@given(
    st.lists(st.floats(0.1, 10), min_size=1, max_size=30),
    st.floats(1.1, 9),
)
def test_a_disturbance_of_a_whole_round_leaves_its_ratio_unchanged(disturbances: list[float], ratio: float) -> None:
    slow = series("slow", *(ratio * each for each in disturbances))
    quick = series("quick", *disturbances)
    found = slow.paired(quick)
    assert found.lower == pytest.approx(ratio)
    assert found.median == pytest.approx(ratio)
    assert found.upper == pytest.approx(ratio)


def test_what_is_added_is_compared_after_the_direct_call_is_taken_away() -> None:
    rounds = {DIRECT: series(DIRECT, 1, 2), JAVASCRIPT: series(JAVASCRIPT, 2, 4), RETAIN: series(RETAIN, 4, 8)}
    assert times_javascript(rounds, RETAIN, JAVASCRIPT, "median_ms") == Spread(3, 3, 3)


def test_figures_are_those_of_one_operation() -> None:
    figures = figures_of(Series("one", 4, [block(1, 2, 3), block(2, 3, 40)]))
    assert (figures.operations, figures.median_ms, figures.p95_ms) == (6, 2.5, 40)
    assert figures.cpu_ms == {"server": 2.0}
    assert figures.written_bytes == {"server": pytest.approx(2 * 4096 / 6)}
    assert figures.resident_mb == {"server": 5.0}
    assert figures.block_ms == Spread(2.5, 2.25, 2.75)


def test_a_single_value_is_its_own_quartiles() -> None:
    assert spread_of([4.0]) == Spread(4.0, 4.0, 4.0)


def test_a_report_says_which_aims_are_reached() -> None:
    report = Report("example", [figures_of(series("one", 1, 2))])
    report.comparisons += [
        Comparison("one against two", 1, Spread(1.4, 1.3, 1.5), aim=1.5),
        Comparison("one adds", 8, Spread(1.6, 1.3, 1.9), "ms", aim=1.2),
    ]
    shown = str(report)
    assert "| one against two | 1 | 1.40 (1.30 to 1.50) times | at most 1.5, reached |" in shown
    assert "| one adds | 8 | 1.60 (1.30 to 1.90) ms | at most 1.2, not reached |" in shown
    assert report.value()["comparisons"]


def test_plots_are_documents_that_name_what_they_show() -> None:
    shown = bars("What is added", "ms", {"1 at once": {"a & b": Spread(1, 0.5, 2), "c": Spread(2, 2, 2)}})
    drawn = lines("Search", "records", "ms", {"a": [(1000, 1.5), (10_000, 12)], "b": [(1000, 3.0)]})
    for plot in (shown, drawn):
        assert plot.startswith("<svg ")
        assert plot.endswith("</svg>\n")
    assert "a &amp; b" in shown
    assert "10,000" in drawn
