"""A run does not grow with what is stored: its trips, and the rows that it reads and writes in D1.

On a database that counts them as D1 bills them, so nothing here depends on the machine. `python -m benchmarks.growth` has
larger sizes.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from benchmarks.growth import CONVERSATION, EPISODE, RUN, TENANT, by_size

pytestmark = pytest.mark.workerd


@pytest.mark.parametrize(
    ("statements", "sizes"),
    [
        pytest.param([EPISODE], (100, 1_000), id="episodes of the agent"),
        pytest.param([EPISODE, CONVERSATION, RUN], (10, 100), id="other instances"),
        pytest.param([EPISODE, TENANT], (10, 100), id="other tenants"),
    ],
)
async def test_a_run_costs_the_same_among_ten_times_as_much(
    statements: Sequence[str], sizes: Sequence[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    # On a slow machine a run may take longer than the time after which it is written while it is under way.
    monkeypatch.setattr("retain.agents.instance.FIRST_FLUSH_S", 3600)
    fewer, more = [found.cost async for _, found in by_size(statements, sizes)]
    assert fewer.read > 0
    assert fewer.written > 0
    for before, after in ((fewer.trips, more.trips), (fewer.read, more.read), (fewer.written, more.written)):
        assert abs(after - before) <= before / 10, (fewer, more)
