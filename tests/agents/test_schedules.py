"""Schedules of an instance: runs that begin by its alarm, once for each time, whatever is lost meanwhile."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from contextlib import closing, suppress
from typing import Any

import pytest

from retain.admin.schedules.listed import LATE_MS, ask_for_overdue_schedules
from retain.agents.catalogue import AgentCatalogue
from retain.agents.execution.executor import Execution
from retain.agents.identity import instance_of
from retain.agents.queueing.schedules import ENDED_KEPT_MS, MAX_SCHEDULES, RETRIED_MS, RETRY_MS
from retain.agents.tools.schedule_wakeup import MAX_WAKEUP_INPUT_BYTES
from retain.errors import Conflict, InvalidInput, NotFound, QuotaExceeded, RetainError, Unavailable
from retain.models.chat import ChatReply, ChatRequest, OnText
from retain.tenants.quotas import set_numbers
from tests.agents.conftest import agent
from tests.agents.queues import LIMITS, NAME, asked, busy
from tests.agents.remembered import check_d1_agrees
from tests.agents.stepped_chat import SteppedChat, calls, says
from tests.agents.test_crash_points import different
from tests.support.faults import Crash, Fault
from tests.support.instances import HOUR_MS, Deployment, LocalInstances, Upstream, catalogue

Deploy = Callable[..., Deployment]
Agents = Callable[..., AgentCatalogue]
DAY_MS = 24 * HOUR_MS
CLERK = instance_of("acme", "clerk", "main")
MINUTE_MS = 60_000
HOURLY = {"cron": "0 * * * *", "timezone": "UTC"}


@pytest.fixture
def chat() -> SteppedChat:
    """A model that answers "done"."""
    return SteppedChat()


@pytest.fixture
def desk(deploy: Deploy, agents: Agents, chat: SteppedChat) -> Deployment:
    """A deployment with a clerk whose instances queue three runs at most, at 22:13:20 UTC."""
    return deploy(agents(clerk={"limits": LIMITS}), chat=chat)


async def scheduled(desk: Deployment, text: str = "look", *, key: str | None = None, **when: Any) -> dict[str, Any]:
    """Create a schedule of the clerk. when: `cron`, `timezone`, `at_ms`, and fields of the request."""
    timing = {name: when.pop(name, None) for name in ("cron", "timezone", "at_ms")}
    request = {"input": text, "metadata": {}, "idempotency_key": key, "by": "key:1", **when}
    return await desk.ask("clerk", "schedule", request=request, **timing)


async def changed(desk: Deployment, schedule_id: str, state: str | None = None) -> dict[str, Any]:
    return await desk.ask("clerk", "change_schedule", schedule_id=schedule_id, state=state)


async def until(desk: Deployment, at_ms: int) -> None:
    """Fire the alarms until a time, each when it is due."""
    while (next_ms := await desk.next_alarm_ms()) is not None and next_ms <= at_ms:
        desk.clock.set(max(next_ms, desk.clock()))
        await desk.fire_alarms()
    desk.clock.set(at_ms)


async def runs(desk: Deployment) -> list[dict[str, Any]]:
    sql = (
        "SELECT run_id, status, input ->> '$.input' AS asked, created_at_ms, started_by FROM agent_runs ORDER BY run_id"
    )
    return [dict(row) for row in await desk.rows(sql)]


async def stored(desk: Deployment, schedule_id: str) -> dict[str, Any]:
    """Return a schedule's row in D1, which the object agrees with."""
    [row] = await desk.rows("SELECT * FROM schedules WHERE schedule_id = ?", schedule_id)
    for own in desk.local(NAME, f"SELECT * FROM schedules WHERE schedule_id = '{schedule_id}'"):
        assert {name: row[name] for name in own if name != "idempotency_key"} == {
            name: value for name, value in own.items() if name != "idempotency_key"
        }
    return dict(row)


async def test_a_cron_schedule_begins_a_run_at_each_of_its_times(desk: Deployment, chat: SteppedChat) -> None:
    made = await scheduled(desk, "count the orders", **HOURLY)
    first_ms = made["next_at_ms"]
    assert (made["state"], first_ms % HOUR_MS, 0 < first_ms - desk.clock() < HOUR_MS) == ("active", 0, True)
    assert (await stored(desk, made["schedule_id"]))["next_at_ms"] == first_ms
    await until(desk, first_ms + 2 * HOUR_MS + 1)
    ran = await runs(desk)
    assert [(run["asked"], run["status"], run["created_at_ms"], run["started_by"]) for run in ran] == [
        ("count the orders", "completed", first_ms + hours * HOUR_MS, "key:1") for hours in range(3)
    ]
    row = await stored(desk, made["schedule_id"])
    assert (row["last_run_id"], row["last_at_ms"], row["next_at_ms"], row["last_error"]) == (
        ran[-1]["run_id"],
        first_ms + 2 * HOUR_MS,
        first_ms + 3 * HOUR_MS,
        None,
    )
    assert asked(chat) == ["count the orders"] * 3
    await check_d1_agrees(desk)


async def test_a_schedule_for_one_time_begins_one_run_and_ends(desk: Deployment) -> None:
    at_ms = desk.clock() + 90_000
    made = await scheduled(desk, at_ms=at_ms)
    await until(desk, at_ms - 1)
    assert await runs(desk) == []
    await until(desk, at_ms + ENDED_KEPT_MS - 1)
    [run] = await runs(desk)
    row = await stored(desk, made["schedule_id"])
    assert (row["state"], row["last_run_id"], row["next_at_ms"]) == ("ended", run["run_id"], None)
    await until(desk, at_ms + ENDED_KEPT_MS)
    assert desk.local(NAME, "SELECT 1 FROM schedules") == await desk.rows("SELECT 1 FROM schedules") == []


async def test_times_that_were_missed_begin_one_run(desk: Deployment) -> None:
    made = await scheduled(desk, **HOURLY)
    desk.clock.set(made["next_at_ms"] + 5 * HOUR_MS + MINUTE_MS)
    await desk.fire_alarms()
    assert len(await runs(desk)) == 1
    row = await stored(desk, made["schedule_id"])
    assert (row["last_at_ms"], row["next_at_ms"]) == (made["next_at_ms"], made["next_at_ms"] + 6 * HOUR_MS)


async def test_a_paused_schedule_begins_nothing_and_a_resumed_one_begins_with_its_next_time(desk: Deployment) -> None:
    made = await scheduled(desk, **HOURLY)
    paused = await changed(desk, made["schedule_id"], "paused")
    assert (paused["state"], paused["next_at_ms"]) == ("paused", None)
    assert await changed(desk, made["schedule_id"], "paused") == paused
    await until(desk, made["next_at_ms"] + 2 * HOUR_MS + 1)
    assert await runs(desk) == []
    resumed = await changed(desk, made["schedule_id"], "active")
    assert (resumed["state"], resumed["next_at_ms"]) == ("active", made["next_at_ms"] + 3 * HOUR_MS)
    await until(desk, resumed["next_at_ms"])
    assert len(await runs(desk)) == 1


async def test_a_schedule_whose_one_time_passed_while_it_was_paused_cannot_be_resumed(desk: Deployment) -> None:
    made = await scheduled(desk, at_ms=desk.clock() + MINUTE_MS)
    await changed(desk, made["schedule_id"], "paused")
    desk.clock.advance(MINUTE_MS)
    with pytest.raises(Conflict) as refused:
        await changed(desk, made["schedule_id"], "active")
    assert refused.value.code == "schedule_ended"
    other = await scheduled(desk, at_ms=desk.clock() + MINUTE_MS)
    await until(desk, desk.clock() + 2 * MINUTE_MS)
    with pytest.raises(Conflict):
        await changed(desk, other["schedule_id"], "paused")


async def test_a_deleted_schedule_begins_nothing_and_is_gone(desk: Deployment) -> None:
    made = await scheduled(desk, **HOURLY)
    for _ in range(2):
        await desk.ask("clerk", "delete_schedule", schedule_id=made["schedule_id"])
    assert await desk.rows("SELECT 1 FROM schedules") == []
    await until(desk, made["next_at_ms"] + DAY_MS)
    assert await runs(desk) == []
    with pytest.raises(NotFound):
        await changed(desk, made["schedule_id"], "paused")


async def test_a_schedule_that_is_deleted_while_its_run_is_refused_fails_no_alarm(
    desk: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, other = await scheduled(desk, **HOURLY), await scheduled(desk, "another", **HOURLY)

    async def refuse(*_: Any) -> None:
        monkeypatch.undo()
        await desk.ask("clerk", "delete_schedule", schedule_id=made["schedule_id"])
        raise QuotaExceeded("the tokens are spent", code="token_quota")

    monkeypatch.setattr(Execution, "admit", refuse)
    await until(desk, made["next_at_ms"])
    assert [run["asked"] for run in await runs(desk)] == ["another"]
    [row] = await desk.rows("SELECT schedule_id FROM schedules")
    assert row["schedule_id"] == other["schedule_id"]


async def test_a_repeated_request_gets_the_same_schedule_and_another_one_with_its_key_is_refused(
    desk: Deployment,
) -> None:
    made = await scheduled(desk, key="k", **HOURLY)
    assert await scheduled(desk, key="k", **HOURLY) == made
    for other in ({"text": "else", **HOURLY}, {"cron": "1 * * * *", "timezone": "UTC"}):
        with pytest.raises(Conflict) as refused:
            await scheduled(desk, key="k", **other)
        assert refused.value.code == "idempotency_key_reused"
    once = await scheduled(desk, key="once", at_ms=desk.clock() + MINUTE_MS)
    at_ms = once["at_ms"]
    await until(desk, at_ms + ENDED_KEPT_MS - 1)
    assert (await scheduled(desk, key="once", at_ms=at_ms))["schedule_id"] == once["schedule_id"]


async def test_an_instance_has_a_bounded_number_of_schedules_that_have_not_ended(desk: Deployment) -> None:
    made = [await scheduled(desk, at_ms=desk.clock() + MINUTE_MS) for _ in range(MAX_SCHEDULES - 1)]
    last = await scheduled(desk, **HOURLY)
    await changed(desk, last["schedule_id"], "paused")
    with pytest.raises(QuotaExceeded) as refused:
        await scheduled(desk, **HOURLY)
    assert refused.value.code == "too_many_schedules"
    await desk.ask("clerk", "delete_schedule", schedule_id=made[0]["schedule_id"])
    await scheduled(desk, **HOURLY)


@pytest.mark.parametrize(
    ("asked_for", "code"),
    [
        ({"cron": "61 * * * *", "timezone": "UTC"}, "invalid_cron"),
        ({"cron": "0 * * * *", "timezone": "Europe/Atlantis"}, "unknown_time_zone"),
        ({"at_ms": 1}, "invalid_at_ms"),
        ({"user": {"id": "ann", "timezone": "Mars/Base"}, **HOURLY}, "unknown_time_zone"),
    ],
)
async def test_what_can_never_run_is_refused_at_once(desk: Deployment, asked_for: dict[str, Any], code: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        await scheduled(desk, **asked_for)
    assert refused.value.code == code
    assert desk.local(NAME, "SELECT 1 FROM schedules") == []


async def test_a_schedule_acts_for_the_user_of_its_instance_alone(desk: Deployment) -> None:
    await desk.run("clerk", "hello", user={"id": "ann"})
    with pytest.raises(Conflict) as refused:
        await scheduled(desk, user={"id": "ben"}, **HOURLY)
    assert refused.value.code == "wrong_user"
    assert (await scheduled(desk, user={"id": "ann"}, **HOURLY))["user_id"] == "ann"


async def test_a_run_that_is_due_while_another_is_under_way_begins_after_it_whatever_the_agent_says_of_callers(
    deploy: Deploy, agents: Agents
) -> None:
    chat = SteppedChat(hold=True)
    desk = deploy(agents(clerk={}), chat=chat)  # refuses callers while it is busy
    made = await scheduled(desk, at_ms=desk.clock() + MINUTE_MS)
    async with busy(desk, chat):
        desk.clock.set(made["at_ms"])
        await desk.living(NAME, CLERK).on_alarm()
        assert asked(chat) == ["first"]
    assert asked(chat) == ["first", "look"]


async def test_a_run_that_finds_the_queue_full_is_tried_again_each_minute(deploy: Deploy, agents: Agents) -> None:
    chat = SteppedChat(hold=True)
    desk = deploy(agents(clerk={"limits": {**LIMITS, "max_queued_runs": 1, "queue_minutes": 90}}), chat=chat)
    made = await scheduled(desk, at_ms=desk.clock() + MINUTE_MS)
    async with busy(desk, chat):
        await desk.run("clerk", "second")
        desk.clock.set(made["at_ms"])
        await desk.living(NAME, CLERK).on_alarm()
        [row] = desk.local(NAME, "SELECT * FROM schedules")
        assert (row["last_error"], row["next_at_ms"], row["due_at_ms"]) == (
            "queue_full",
            made["at_ms"],
            made["at_ms"] + RETRY_MS,
        )
    await until(desk, made["at_ms"] + RETRY_MS)
    assert asked(chat) == ["first", "second", "look"]
    row = await stored(desk, made["schedule_id"])
    assert (row["state"], row["last_error"]) == ("ended", None)


async def test_a_run_that_can_never_begin_is_noted_and_the_schedule_stays(desk: Deployment) -> None:
    made = await scheduled(desk, **HOURLY)
    once = await scheduled(desk, at_ms=made["next_at_ms"])
    await set_numbers(desk.sql, "acme", {"runs_a_day": 0})
    await until(desk, made["next_at_ms"] + 1)
    assert await runs(desk) == []
    row = await stored(desk, made["schedule_id"])
    assert (row["state"], row["last_error"], row["next_at_ms"]) == ("active", "run_quota", made["next_at_ms"] + HOUR_MS)
    row = await stored(desk, once["schedule_id"])
    assert (row["state"], row["last_error"], row["last_run_id"]) == ("ended", "run_quota", None)


async def test_a_schedule_keeps_no_working_state_alive(desk: Deployment) -> None:
    await desk.run("clerk", "hello")
    await scheduled(desk, at_ms=desk.clock() + 300 * DAY_MS)
    await desk.settled()
    assert await desk.next_alarm_ms() == desk.clock() + DAY_MS


class Caller:
    """A model that calls a tool with what it is asked, and then says so."""

    name = "caller"

    def __init__(self, tool: str, argument: str, **more: object) -> None:
        self._tool = tool
        self._argument = argument
        self._more = more

    async def complete(self, request: ChatRequest, on_text: OnText | None = None) -> ChatReply:
        """Answer."""
        last = request.messages[-1]
        asked = {self._argument: last.content, **self._more}
        return says("done") if last.role == "tool" else calls((self._tool, asked))


def deployed() -> tuple[Deployment, Upstream]:
    pay = Upstream("pay", idempotent=True)
    return Deployment(
        catalogue(agent("clerk", tools=["pay"], limits={"queue_minutes": 600, "run_minutes": 600})),
        upstreams=[pay],
        chat=lambda _: Caller("pay", "order"),
    ), pay


async def lived(desk: Deployment) -> None:
    """Create a schedule for each of the next two hours, pause it, resume it, and let both hours come."""
    made = await scheduled(desk, "A-1", key="k", **HOURLY)
    await changed(desk, made["schedule_id"], "paused")
    await changed(desk, made["schedule_id"], "active")
    await desk.settled()
    for _ in range(2):
        desk.clock.set(desk.clock() + HOUR_MS - desk.clock() % HOUR_MS)
        await desk.fire_alarms()


async def undisturbed() -> list[int]:
    desk, pay = deployed()
    with closing(desk):
        await lived(desk)
        assert len(pay.asked) == 2
        return [number for number, _ in different(list(desk.faults.trace))]


async def test_invariant_4_a_crash_at_any_point_begins_each_time_once() -> None:
    numbers = await undisturbed()
    assert len(numbers) > 30
    for number in numbers:
        desk, pay = deployed()
        with closing(desk):
            begun_ms = desk.clock()
            desk.faults.plan(Fault(Crash(), number))
            with suppress(Crash, RetainError):
                await lived(desk)
            await desk.restart()
            made = await scheduled(desk, "A-1", key="k", **HOURLY)
            await changed(desk, made["schedule_id"], "active")
            end_ms = begun_ms + 3 * HOUR_MS - begun_ms % HOUR_MS + MINUTE_MS
            while (next_ms := await desk.next_alarm_ms()) is not None and next_ms <= end_ms:
                desk.clock.set(max(next_ms, desk.clock()))
                await desk.fire_alarms()
            keys = [row["idempotency_key"] for row in desk.local(NAME, "SELECT idempotency_key FROM turn_state")]
            planned = [int(key.rpartition(":")[2]) for key in keys]
            assert sorted(planned) == sorted(set(planned))
            assert {at_ms % HOUR_MS for at_ms in planned} <= {0}
            row = await stored(desk, made["schedule_id"])
            assert (row["last_at_ms"], row["next_at_ms"]) == (max(planned), end_ms - MINUTE_MS + HOUR_MS)
            assert len({key for _, key in pay.asked}) == len(planned) in (2, 3)
            assert {run["status"] for run in await runs(desk)} == {"completed"}
            await check_d1_agrees(desk)


async def test_invariant_5_a_schedule_survives_the_loss_of_the_storage_of_its_object(desk: Deployment) -> None:
    made = await scheduled(desk, **HOURLY)
    await desk.lose(NAME)
    paused = await changed(desk, made["schedule_id"], "paused")
    assert (paused["schedule_id"], paused["state"]) == (made["schedule_id"], "paused")
    assert (await stored(desk, made["schedule_id"]))["state"] == "paused"


async def test_a_repeated_request_gets_the_schedule_that_the_object_has_lost(desk: Deployment) -> None:
    made = await scheduled(desk, key="k", **HOURLY)
    await desk.lose(NAME)
    await scheduled(desk, "another", **HOURLY)
    found = await asyncio.gather(*(scheduled(desk, key="k", **HOURLY) for _ in range(2)))
    assert [one["schedule_id"] for one in found] == [made["schedule_id"]] * 2
    await desk.lose(NAME)
    with pytest.raises(Conflict) as refused:
        await scheduled(desk, "something else", key="k", **HOURLY)
    assert refused.value.code == "idempotency_key_reused"
    await desk.lose(NAME)
    desk.faults.plan(Fault(Unavailable("away", code="d1_unavailable"), point="sql.run"))
    with pytest.raises(Unavailable):
        await scheduled(desk, key="k", **HOURLY)
    await desk.ask("clerk", "delete_schedule", schedule_id=made["schedule_id"])
    assert (await scheduled(desk, key="k", **HOURLY))["schedule_id"] != made["schedule_id"]


async def test_two_equal_requests_at_once_are_one_schedule(desk: Deployment) -> None:
    found = await asyncio.gather(*(scheduled(desk, key="k", **HOURLY) for _ in range(3)))
    assert len({one["schedule_id"] for one in found}) == 1
    assert len(await desk.rows("SELECT 1 FROM schedules")) == 1


async def test_two_schedules_that_have_one_key_since_a_loss_are_both_rebuilt(desk: Deployment) -> None:
    made = [await scheduled(desk, text, key=text, **HOURLY) for text in ("first", "second")]
    await desk.rows("UPDATE schedules SET request = json_set(request, '$.idempotency_key', 'k')")
    await desk.lose(NAME)
    for one in made:
        await changed(desk, one["schedule_id"])
    assert len(desk.local(NAME, "SELECT 1 FROM schedules")) == 2
    await until(desk, made[0]["next_at_ms"])
    assert [run["asked"] for run in await runs(desk)] == ["first", "second"]
    times = "SELECT schedule_id, next_at_ms FROM schedules ORDER BY schedule_id"
    expected = [{"schedule_id": one["schedule_id"], "next_at_ms": one["next_at_ms"] + HOUR_MS} for one in made]
    assert desk.local(NAME, times) == await desk.rows(times) == expected
    assert (await scheduled(desk, "first", key="k", **HOURLY))["schedule_id"] == made[0]["schedule_id"]


async def test_a_schedule_of_another_tenant_is_not_rebuilt_where_instances_and_keys_have_the_same_names(
    desk: Deployment,
) -> None:
    theirs = (await scheduled(desk, key="k", **HOURLY))["schedule_id"]
    await desk.lose(NAME)
    request = {"input": "look", "metadata": {}, "idempotency_key": "k"}
    made = await desk.ask("clerk", "schedule", tenant="other", request=request, at_ms=None, **HOURLY)
    assert made["schedule_id"] != theirs
    with pytest.raises(NotFound):
        await desk.ask("clerk", "change_schedule", tenant="other", schedule_id=theirs, state="paused")
    [mine] = desk.local("clerk:other:main", "SELECT schedule_id FROM schedules")
    assert mine["schedule_id"] == made["schedule_id"]
    assert (await changed(desk, theirs))["state"] == "active"


async def test_the_daily_work_finds_a_schedule_whose_object_has_lost_its_storage(desk: Deployment) -> None:
    made = await scheduled(desk, **HOURLY)
    await desk.lose(NAME)
    for late_ms, found in ((0, 0), (LATE_MS, 0), (LATE_MS + 1, 1)):
        desk.clock.set(made["next_at_ms"] + late_ms)
        counts = await ask_for_overdue_schedules(desk.sql, LocalInstances(desk), desk.clock)
        assert counts == {"asked": found, "failed": 0}
    await until(desk, desk.clock() + MINUTE_MS)
    [run] = await runs(desk)
    assert (run["asked"], run["status"]) == ("look", "completed")
    assert (await stored(desk, made["schedule_id"]))["last_at_ms"] == made["next_at_ms"]


async def test_schedules_that_their_instance_does_not_take_back_come_after_all_others(
    desk: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("retain.admin.schedules.listed.OVERDUE_AT_ONCE", 1)
    await scheduled(desk, user={"id": "ann"}, **HOURLY)
    request = {"input": "look", "metadata": {}, "by": "key:1"}
    made = await desk.ask("clerk", "schedule", instance="other", request=request, **HOURLY)
    for name in (NAME, NAME.replace("main", "other")):
        await desk.lose(name)
    await desk.run("clerk", "hello", user={"id": "bob"})  # it serves another user by now
    desk.clock.set(made["next_at_ms"] + LATE_MS + 1)
    for counts in ({"asked": 0, "failed": 1}, {"asked": 1, "failed": 0}):
        assert await ask_for_overdue_schedules(desk.sql, LocalInstances(desk), desk.clock) == counts
        desk.clock.advance(24 * HOUR_MS)


async def test_what_a_run_owes_is_in_d1_before_the_next_time_is_so_that_a_lost_object_begins_none_twice(
    desk: Deployment,
) -> None:
    made = await scheduled(desk, at_ms=desk.clock() + MINUTE_MS)
    desk.clock.set(made["at_ms"])
    await desk.fire_alarms()
    await desk.lose(NAME)
    assert (await changed(desk, made["schedule_id"]))["state"] == "ended"
    await until(desk, made["at_ms"] + ENDED_KEPT_MS)
    assert len(await runs(desk)) == 1
    assert await desk.rows("SELECT 1 FROM schedules") == []


async def test_a_schedule_is_not_rebuilt_while_its_deletion_is_owed(desk: Deployment) -> None:
    made = await scheduled(desk, **HOURLY)
    desk.faults.plan(Fault(Unavailable("away", code="d1_unavailable"), point="sql.batch"))
    await desk.ask("clerk", "delete_schedule", schedule_id=made["schedule_id"])
    with pytest.raises((Unavailable, NotFound)):
        await changed(desk, made["schedule_id"])
    await desk.recover()
    assert await desk.rows("SELECT 1 FROM schedules") == []


async def test_a_run_that_d1_keeps_from_beginning_is_given_up_after_an_hour(desk: Deployment) -> None:
    made = await scheduled(desk, **HOURLY)
    desk.clock.set(made["next_at_ms"] + RETRIED_MS - 1)
    desk.faults.plan(Fault(Unavailable("away", code="d1_unavailable"), point="sql.run"))
    await desk.fire_alarms()
    [row] = desk.local(NAME, "SELECT * FROM schedules")
    assert (row["last_error"], row["next_at_ms"]) == ("d1_unavailable", made["next_at_ms"])


def waking(*arguments: dict[str, Any]) -> SteppedChat:
    """Return a model that calls `schedule_wakeup` with each of these arguments, and then says "done"."""
    return SteppedChat(*(calls(("schedule_wakeup", given)) for given in arguments))


async def test_an_agent_wakes_itself_once_for_its_own_user(deploy: Deploy, agents: Agents) -> None:
    chat = waking({"input": "Has Ben answered?", "in_minutes": 30})
    desk = deploy(agents(clerk={"wakeups": True}), chat=chat)
    ann = {"id": "ann", "timezone": "Asia/Tokyo"}
    assert (await desk.run("clerk", "Remind me", user=ann))["output"] == "done"
    [row] = await desk.rows("SELECT * FROM schedules")
    assert (row["user_id"], row["at_ms"], row["state"]) == ("ann", desk.clock() + 30 * MINUTE_MS, "active")
    assert chat.requests[-1].messages[-1].content == json.dumps(
        {"schedule_id": row["schedule_id"], "at": "2023-11-14T22:43:20+00:00"}
    )
    await until(desk, row["at_ms"])
    assert [(run["asked"], run["status"], run["started_by"]) for run in await runs(desk)] == [
        ("Remind me", "completed", None),
        ("Has Ben answered?", "completed", "agent:clerk"),
    ]


@pytest.mark.parametrize(
    ("at", "at_ms"),
    [
        ("2023-11-15T09:00", 1_700_006_400_000),
        ("2023-11-15T09:00+01:00", 1_700_035_200_000),
        ("2023-11-15T09:00:00Z", 1_700_038_800_000),
    ],
)
async def test_a_time_is_in_the_users_zone_unless_it_has_an_offset(
    deploy: Deploy, agents: Agents, at: str, at_ms: int
) -> None:
    desk = deploy(agents(clerk={"wakeups": True}), chat=waking({"input": "now", "at": at}))
    await desk.run("clerk", "Remind me", user={"id": "ann", "timezone": "Asia/Tokyo"})
    assert [row["at_ms"] for row in await desk.rows("SELECT at_ms FROM schedules")] == [at_ms]


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({"input": "x"}, "invalid_arguments"),
        ({"input": "x", "in_minutes": 1, "at": "2023-11-15T09:00"}, "invalid_arguments"),
        ({"input": "x", "in_minutes": 0}, "invalid_arguments"),
        ({"input": "x", "in_minutes": True}, "invalid_arguments"),
        ({"input": "x", "in_minutes": 10**7}, "invalid_at_ms"),
        ({"input": "x", "at": "tomorrow"}, "invalid_arguments"),
        ({"input": "x", "at": "0001-01-01T00:00"}, "invalid_at_ms"),
        ({"input": "x", "at": "2023-11-14T09:00"}, "invalid_at_ms"),
        ({"input": "x" * (MAX_WAKEUP_INPUT_BYTES + 1), "in_minutes": 1}, "invalid_arguments"),
        ({"input": "x", "in_minutes": 1, "user": "ben"}, "invalid_arguments"),
        ({"input": "x", "in_minutes": 1, "instance_id": "other"}, "invalid_arguments"),
    ],
)
async def test_a_wake_up_that_cannot_be_is_an_error_that_the_model_reads(
    deploy: Deploy, agents: Agents, arguments: dict[str, Any], code: str
) -> None:
    chat = waking(arguments)
    desk = deploy(agents(clerk={"wakeups": True}), chat=chat)
    assert (await desk.run("clerk", "Remind me"))["status"] == "completed"
    assert json.loads(chat.requests[-1].messages[-1].content)["error"]["code"] == code
    assert await desk.rows("SELECT 1 FROM schedules") == []


async def test_the_longest_input_wakes(deploy: Deploy, agents: Agents) -> None:
    chat = waking({"input": "x" * MAX_WAKEUP_INPUT_BYTES, "in_minutes": 1})
    desk = deploy(agents(clerk={"wakeups": True}), chat=chat)
    await desk.run("clerk", "Remind me")
    assert len(await desk.rows("SELECT 1 FROM schedules")) == 1


async def test_an_agent_without_wakeups_has_no_such_tool(desk: Deployment, chat: SteppedChat) -> None:
    await desk.run("clerk", "hello")
    assert "schedule_wakeup" not in {tool.name for tool in chat.requests[0].tools}


async def test_a_crash_at_any_point_of_a_wake_up_creates_one_schedule(deploy: Deploy, agents: Agents) -> None:
    points = 0
    while True:
        points += 1
        desk = deploy(agents(clerk={"wakeups": True}), chat=Caller("schedule_wakeup", "input", in_minutes=30))
        desk.faults.plan(Fault(Crash(), points, owner=NAME))
        with suppress(Crash):
            await desk.run("clerk", "Remind me", key="k")
        if desk.faults.pending:
            assert points > 30
            return
        await desk.restart()
        with suppress(RetainError):
            await desk.run("clerk", "Remind me", key="k")
        await until(desk, desk.clock() + 10 * MINUTE_MS)
        assert len(await desk.rows("SELECT 1 FROM schedules")) == 1, points


async def test_nothing_is_learned_from_what_a_schedule_asks(deploy: Deploy, agents: Agents) -> None:
    memory = {"long_term_enabled": True, "learn": "rules"}
    desk = deploy(agents(clerk={"memory_config": memory, "limits": LIMITS}), chat=SteppedChat())
    made = await scheduled(desk, "I live in Lyon.", user={"id": "ann"}, at_ms=desk.clock() + MINUTE_MS)
    await until(desk, made["at_ms"] + MINUTE_MS)
    assert len(await runs(desk)) == 1
    assert await desk.rows("SELECT 1 FROM memory_records") == []
    await desk.run("clerk", "I live in Lyon.", user={"id": "ann"})
    await desk.settled()
    assert len(await desk.rows("SELECT 1 FROM memory_records")) == 1
