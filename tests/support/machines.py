"""State machines that run bounded in the ordinary suite, and for hours by `make soak`.

    pytestmark = pytest.mark.soak

    class Counting(CountedMachine): ...

    TestCounting = Counting.TestCase
    TestCounting.settings = bounded(examples=20, steps=15)

Importing this module registers the Hypothesis profiles `retain`, of the ordinary suite, and `soak`.
"""

from __future__ import annotations

from collections import Counter

from hypothesis import HealthCheck, settings
from hypothesis.stateful import RuleBasedStateMachine, invariant

SUITE = "retain"
SOAK = "soak"
SOAK_EXAMPLES = 40
SOAK_STEPS = 60

steps_of: Counter[str] = Counter()
"""How many steps each machine has made in this process, by its name; steps of shrinking included."""

# On a loaded machine one example takes longer than another: that says nothing about the code. The suite tries the same
# examples each time, so that what fails was changed; a soak tries others.
settings.register_profile(SUITE, deadline=None, derandomize=True, database=None)
settings.register_profile(
    SOAK,
    deadline=None,
    database=None,
    max_examples=SOAK_EXAMPLES,
    stateful_step_count=SOAK_STEPS,
    print_blob=True,
    report_multiple_bugs=False,
    suppress_health_check=list(HealthCheck),
)


class CountedMachine(RuleBasedStateMachine):
    """A state machine whose steps are counted, for the report of a soak."""

    @invariant()
    def step_is_counted(self) -> None:
        """Count a step."""
        steps_of[type(self).__name__] += 1


def soaking() -> bool:
    """Return whether the profile `soak` is loaded."""
    return settings.get_current_profile_name() == SOAK


def bounded(*, examples: int, steps: int) -> settings:
    """Return a machine's settings: at most so many examples of so many steps, or the profile `soak` while it is loaded."""
    if soaking():
        return settings.get_profile(SOAK)
    return settings(
        max_examples=examples,
        stateful_step_count=steps,
        deadline=None,
        derandomize=True,
        database=None,
        report_multiple_bugs=False,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
    )
