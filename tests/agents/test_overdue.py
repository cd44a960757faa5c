"""Instances that do not answer while the scheduled work asks them for what is overdue."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from retain.admin.overdue_deliveries import ask_for_overdue_deliveries
from retain.admin.schedules.listed import ask_for_overdue_schedules
from retain.agents.calls.client import InstanceClient
from retain.agents.execution.parked import ask_for_overdue
from retain.errors import Unavailable
from retain.host.clock import ManualClock
from retain.limits.deadlines import INSTANCE_MS

NAMES = ("run_id", "schedule_id", "webhook_id", "message_id", "agent_type", "instance_id", "tenant_id")
ROW = {**dict.fromkeys(NAMES, "01M8K0000000000000000000AA"), "agent_type": "sdr", "tenant_id": "acme"}
SCHEDULE_MS = 15 * 60_000
"""How long the platform lets scheduled work last."""


@pytest.mark.parametrize("hang", [True, False])
@pytest.mark.parametrize("ask", [ask_for_overdue, ask_for_overdue_schedules, ask_for_overdue_deliveries])
async def test_instances_that_hang_take_no_more_than_their_part_of_the_time(
    monkeypatch: pytest.MonkeyPatch, ask: Callable[..., Any], hang: bool
) -> None:
    clock = ManualClock(0)

    async def called(*_: object) -> None:
        if hang:
            clock.advance(INSTANCE_MS)
            raise Unavailable("the instance did not answer in time")

    async def overdue(*_: object) -> SimpleNamespace:
        return SimpleNamespace(rows=[ROW] * 50)

    for method in ("show", "change_schedule", "redeliver"):
        monkeypatch.setattr(InstanceClient, method, called)
    counts = await ask(SimpleNamespace(run=overdue), None, clock)
    assert counts == ({"asked": 0, "failed": 50} if hang else {"asked": 50, "failed": 0})
    assert 3 * clock() < SCHEDULE_MS, "there are three such steps"
