"""Rates: one below, at and above a limit; whose requests count together; what a refused caller reads."""

from __future__ import annotations

import tomllib

import pytest

from retain.errors import RateLimited
from retain.host.clock import ManualClock
from retain.host.rates import CountedRates
from retain.http import problem
from retain.limits.rates import PERIOD_S, Rates
from tests.ports import raises
from tools.local_config import local_config
from tools.paths import ROOT


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(PERIOD_S * 1000 * 1000)


async def test_a_key_has_its_limit_in_each_period_and_no_other_key_uses_it(clock: ManualClock) -> None:
    rates = CountedRates(3, PERIOD_S, clock)
    assert [await rates.allow("a") for _ in range(5)] == [True, True, True, False, False]
    assert await rates.allow("b")
    clock.advance(PERIOD_S * 1000 - 1)
    assert not await rates.allow("a")
    clock.advance(1)
    assert [await rates.allow("a") for _ in range(4)] == [True, True, True, False]


async def test_callers_and_tenants_are_counted_apart(clock: ManualClock) -> None:
    rates = Rates(CountedRates(2, PERIOD_S, clock), CountedRates(3, PERIOD_S, clock))
    for _ in range(2):
        await rates.check_caller("person:ada")
    with raises(RateLimited, code="rate_limited"):
        await rates.check_caller("person:ada")
    await rates.check_caller("person:bob")
    for _ in range(3):
        await rates.check_tenant("acme")
    with raises(RateLimited, code="rate_limited"):
        await rates.check_tenant("acme")
    await rates.check_tenant("other")


async def test_without_a_limiter_nothing_is_refused() -> None:
    for _ in range(10_000):
        await Rates().check_caller("person:ada")
        await Rates().check_tenant("acme")


async def test_a_refused_caller_reads_when_to_try_again(clock: ManualClock) -> None:
    with pytest.raises(RateLimited) as refused:
        await Rates(CountedRates(0, PERIOD_S, clock)).check_caller("key:0a1b")
    answer = problem(refused.value, "request-1")
    assert (answer.status, answer.headers["retry-after"]) == (429, "60")
    assert "0a1b" not in str(answer.body)


def test_the_period_is_that_of_both_bindings_and_local_development_has_none() -> None:
    production = tomllib.loads((ROOT / "wrangler.toml").read_text())
    bindings = {limit["name"]: limit for limit in production["ratelimits"]}
    assert set(bindings) == {"CALLER_RATE", "TENANT_RATE"}
    assert {limit["simple"]["period"] for limit in bindings.values()} == {PERIOD_S}
    assert len({limit["namespace_id"] for limit in bindings.values()}) == 2
    assert bindings["CALLER_RATE"]["simple"]["limit"] == 600
    assert bindings["TENANT_RATE"]["simple"]["limit"] == 3000
    assert "ratelimits" not in local_config(production)
