"""A run that dies at each of its points in turn and recovers: nothing is lost, nothing happens twice.

Invariant 4 (a crash between two stores loses nothing and shows nothing half-done) and 6 (retries create no duplicates).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, closing, suppress
from dataclasses import dataclass
from typing import Any

import pytest

from retain.errors import RetainError, Unavailable
from tests.agents.remembered import check_d1_agrees, remembered
from tests.agents.shipping import shipping_deployment
from tests.support.faults import Crash, Fault
from tests.support.instances import Deployment

HISTORY = [
    "Refund approved for ann@shop.example: order AB-1001, a broken lamp.",
    "Refund approved for ann@shop.example: order AB-1002, it came late.",
    "Refund approved for bob@mail.example: order CD-2001, wrong colour.",
]
MAIL = "From ann@shop.example: I want a refund of order AB-1003."

Point = tuple[str, str]
"""The object whose call it is, and the call."""


@pytest.fixture(autouse=True)
def _one_flush(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run writes to D1 when it ends, however slow the machine is: each run of a scenario makes the same calls."""
    monkeypatch.setattr("retain.agents.instance.FIRST_FLUSH_S", 3600)


@dataclass(frozen=True)
class Scenario:
    """A deployment, and the one request that it gets."""

    deploy: Callable[[], Awaitable[Deployment]]
    request: Callable[[Deployment], Awaitable[dict[str, Any]]]


async def deploy_triage(*, turns: bool = True) -> Deployment:
    deployment = Deployment(turns=turns)
    await deployment.seed("refund_decision", HISTORY)
    return deployment


async def deploy_triage_without_turns() -> Deployment:
    return await deploy_triage(turns=False)


async def deploy_shipping() -> Deployment:
    return shipping_deployment()


TRIAGE = Scenario(deploy_triage, lambda deployment: deployment.run("order_triage", MAIL, key="mail-1"))
SHIPPING = Scenario(deploy_shipping, lambda deployment: deployment.run("shipping", "Ship AB-1003.", key="order-1"))


@dataclass(frozen=True)
class Undisturbed:
    """How a scenario ends when nothing goes wrong.

    trace: every call. points: number and name of those where dying makes a difference.
    """

    output: str
    memory: dict[str, Any]
    trace: list[Point]
    points: list[tuple[int, Point]]


async def undisturbed(scenario: Scenario) -> Undisturbed:
    with closing(await scenario.deploy()) as deployment:
        result = await scenario.request(deployment)
        await deployment.settled()
        trace = list(deployment.faults.trace)
        await deployment.recover()
        await check_d1_agrees(deployment)
        return Undisturbed(result["output"], await remembered(deployment), trace, different(trace))


def different(trace: list[Point]) -> list[tuple[int, Point]]:
    """Return the points at which dying makes a difference: of an object's writes in a row all are lost, or none."""
    following = [*trace[1:], ("", "")]
    pairs = enumerate(zip(trace, following, strict=True), start=1)
    return [
        (number, point) for number, (point, then) in pairs if _writer(point) is None or _writer(point) != _writer(then)
    ]


def _writer(point: Point) -> str | None:
    """Return the object whose own storage is called, None for a call of something else."""
    owner, call = point
    return owner if call.startswith("local.") else None


@asynccontextmanager
async def after(fault: Fault, scenario: Scenario, *, alone: bool = False) -> AsyncIterator[Deployment]:
    """Yield a deployment whose request met the fault. alone: only the object that met it died."""
    with closing(await scenario.deploy()) as deployment:
        deployment.faults.alone = alone
        deployment.faults.plan(fault)
        with suppress(Crash, RetainError):
            await scenario.request(deployment)
        await deployment.settled()
        assert not deployment.faults.pending, f"{fault} was never met"
        yield deployment
        await deployment.settled()


async def by_alarm(deployment: Deployment) -> None:
    """Recover as if nobody asked again."""
    await deployment.recover()
    for name in deployment.objects():
        assert deployment.local(name, "SELECT 1 FROM turn_state WHERE status = 'running'") == []


@pytest.mark.parametrize(
    ("alone", "recovery"),
    [
        pytest.param(False, by_alarm, id="the process dies, nobody asks again"),
        pytest.param(False, Deployment.restart, id="the process dies, the request is retried"),
        pytest.param(True, by_alarm, id="one object dies"),
    ],
)
async def test_invariant_4_a_crash_at_any_point_of_a_triage_changes_nothing_in_the_end(
    alone: bool, recovery: Callable[[Deployment], Awaitable[None]]
) -> None:
    expected = await undisturbed(TRIAGE)
    for number, point in expected.points:
        async with after(Fault(Crash(), number), TRIAGE, alone=alone) as deployment:
            await recovery(deployment)
            assert (await TRIAGE.request(deployment))["output"] == expected.output, point
            await deployment.recover()
            assert await remembered(deployment) == expected.memory, point
            await check_d1_agrees(deployment)


async def test_a_host_that_commits_each_statement_loses_nothing_that_a_retry_does_not_repair() -> None:
    scenario = Scenario(deploy_triage_without_turns, TRIAGE.request)
    expected = await undisturbed(scenario)
    writes = [(n, point) for n, point in enumerate(expected.trace, start=1) if _writer(point)]
    assert len(writes) > 60
    for number, point in writes[::2]:
        async with after(Fault(Crash(), number), scenario) as deployment:
            await deployment.restart()
            assert (await scenario.request(deployment))["output"] == expected.output, point
            await deployment.recover()
            assert await remembered(deployment) == expected.memory, point
            await check_d1_agrees(deployment)


@pytest.mark.parametrize("recovery", [by_alarm, Deployment.restart], ids=["nobody asks again", "a retry"])
async def test_a_crash_at_any_point_never_repeats_a_call_that_must_not_be(
    recovery: Callable[[Deployment], Awaitable[None]],
) -> None:
    expected = await undisturbed(SHIPPING)
    outputs: list[str] = []
    for number, point in expected.points:
        async with after(Fault(Crash(), number), SHIPPING) as deployment:
            await recovery(deployment)
            outputs.append((await SHIPPING.request(deployment))["output"])
            await deployment.recover()
            await check_d1_agrees(deployment)
            labels = deployment.upstreams["create_label"].asked
            assert len(labels) <= 1, point
            assert len({key for _, key in deployment.upstreams["track_parcel"].asked}) == 1, point
            if outputs[-1] == expected.output:
                assert (len(labels), await remembered(deployment)) == (1, expected.memory), point
            else:
                assert outputs[-1] == "It is not known whether the label was made.", point
            working = (await deployment.describe("shipping"))["working"]
            assert working == {"order": "AB-1003"}, point
    assert set(outputs) == {expected.output, "It is not known whether the label was made."}


@pytest.mark.parametrize("scenario", [TRIAGE, SHIPPING], ids=["triage", "shipping"])
async def test_invariant_4_a_failure_of_any_call_leaves_nothing_half_done(scenario: Scenario) -> None:
    expected = await undisturbed(scenario)
    outside = [(n, p) for n, p in expected.points if not p[1].startswith(("local.", "alarm.", "answer"))]
    for number, point in outside:
        async with after(Fault(Unavailable("it failed"), number), scenario) as deployment:
            await by_alarm(deployment)
            await scenario.request(deployment)
            await deployment.recover()
            await check_d1_agrees(deployment)
            memory = await remembered(deployment)
            assert len(memory["runs"]) == len({run[0] for run in memory["runs"]}), point
            assert len(memory["records"]) == len(set(memory["records"])), point
            # A vector index that failed is owed the vectors, and the schedule writes them.
            assert memory["vectors"] == len(memory["records"]) - (point[1] == "index.upsert"), point
            assert all(len(upstream.asked) <= 1 for upstream in deployment.upstreams.values()), point


async def test_a_crash_while_recovering_from_a_crash_changes_nothing_in_the_end() -> None:
    expected = await undisturbed(TRIAGE)
    middle = expected.points[len(expected.points) // 2][0]
    second = 1
    while True:
        async with after(Fault(Crash(), middle), TRIAGE) as deployment:
            await deployment.restart()
            deployment.faults.plan(Fault(Crash(), second))
            deployment.clock.advance(60_000)
            with suppress(Crash):
                await deployment.fire_alarms()
            met = not deployment.faults.pending
            await deployment.recover()
            assert (await TRIAGE.request(deployment))["output"] == expected.output, second
            await deployment.recover()
            assert await remembered(deployment) == expected.memory, second
            await check_d1_agrees(deployment)
        if not met:
            break
        second += 5
    assert second > 50
