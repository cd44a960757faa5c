"""Schedules through the whole Worker: created over HTTP, listed in pages, paused, deleted, and erased with their user."""

from __future__ import annotations

from typing import Any

import pytest

from tests.shell.worker import Worker

SCHEDULES = "/v1/tenants/acme/schedules"
DAILY = {"agent_type": "sdr", "instance_id": "desk", "input": "Who answered?", "cron": "30 8 * * MON-FRI"}


@pytest.fixture
async def acme(worker: Worker) -> Worker:
    await worker.tenant("acme")
    return worker


async def created(worker: Worker, **more: object) -> dict[str, Any]:
    answer = await worker.request("POST", SCHEDULES, {**DAILY, **more})
    assert answer.status == 201, answer.body
    return dict(answer.content)


async def listed(worker: Worker, query: str = "") -> list[str]:
    """Return the inputs of the schedules that are listed."""
    answer = await worker.request("GET", f"{SCHEDULES}{query}")
    assert answer.status == 200, answer.body
    return [one["input"] for one in answer.content["schedules"]]


async def test_a_schedule_is_created_shown_paused_resumed_and_deleted(acme: Worker) -> None:
    made = await created(acme, metadata={"why": "report"}, timezone="Europe/Zurich")
    assert made == {
        **made,
        **DAILY,
        "state": "active",
        "timezone": "Europe/Zurich",
        "at_ms": None,
        "user_id": None,
        "metadata": {"why": "report"},
        "last_run_id": None,
        "last_error": None,
    }
    path = f"{SCHEDULES}/{made['schedule_id']}"
    assert (await acme.request("GET", path)).content == made
    paused = (await acme.request("PATCH", path, {"state": "paused"})).content
    assert (paused["state"], paused["next_at_ms"]) == ("paused", None)
    assert (await acme.request("GET", path)).content == paused
    assert (await acme.request("PATCH", path, {"state": "active"})).content == made
    assert (await acme.request("DELETE", path)).status == 204
    for method, body in (("GET", None), ("PATCH", {"state": "paused"}), ("DELETE", None)):
        gone = await acme.request(method, path, body)
        assert (gone.status, gone.content["code"]) == (404, "no_such_schedule")
    assert await acme.rows("SELECT 1 FROM schedules") == []


async def test_the_zone_of_a_schedule_is_its_own_else_its_users_else_utc(acme: Worker) -> None:
    ann = {"id": "ann", "timezone": "Asia/Tokyo"}
    assert (await created(acme, instance_id=None))["timezone"] == "UTC"
    assert (await created(acme, user=ann))["timezone"] == "Asia/Tokyo"
    assert (await created(acme, user=ann, timezone="Europe/Zurich"))["timezone"] == "Europe/Zurich"


async def test_schedules_are_listed_in_pages_by_instance_user_and_state(acme: Worker) -> None:
    await created(acme, input="first")
    second = await created(acme, input="second", instance_id="other", user={"id": "ann"})
    await created(acme, input="third")
    await acme.request("PATCH", f"{SCHEDULES}/{second['schedule_id']}", {"state": "paused"})
    assert await listed(acme) == ["third", "second", "first"]
    assert await listed(acme, "?agent_type=sdr&instance_id=desk") == ["third", "first"]
    assert await listed(acme, "?user_id=ann") == ["second"]
    assert await listed(acme, "?state=paused") == ["second"]
    assert await listed(acme, "?state=active") == ["third", "first"]
    assert await listed(acme, "?user_id=ann&state=active") == []
    page = (await acme.request("GET", f"{SCHEDULES}?limit=2")).content
    assert await listed(acme, f"?limit=2&cursor={page['cursor']}") == ["first"]
    for query, code in (
        ("instance_id=desk", "invalid_query"),
        ("state=open", "invalid_query"),
        ("cursor=x", "invalid_cursor"),
    ):
        refused = await acme.request("GET", f"{SCHEDULES}?{query}")
        assert (refused.status, refused.content["code"]) == (400, code)


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"cron": "61 8 * * *"}, 400, "invalid_cron"),
        ({"timezone": "Europe/Atlantis"}, 400, "unknown_time_zone"),
        ({"cron": None, "at_ms": 1}, 400, "invalid_at_ms"),
        ({"cron": None}, 400, "invalid_body"),
        ({"at_ms": 4_000_000_000_000}, 400, "invalid_body"),
        ({"cron": None, "at_ms": 4_000_000_000_000, "timezone": "UTC"}, 400, "invalid_body"),
        ({"agent_type": "nobody"}, 404, "unknown_agent"),
        ({"input": "x" * 300_000}, 413, "input_too_large"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_what_cannot_be_a_schedule_is_refused(
    acme: Worker, body: dict[str, object], status: int, code: str
) -> None:
    wanted = {name: value for name, value in {**DAILY, **body}.items() if value is not None}
    refused = await acme.request("POST", SCHEDULES, wanted)
    assert (refused.status, refused.content["code"]) == (status, code)
    assert await acme.rows("SELECT 1 FROM schedules") == []


async def test_a_repeated_request_gets_the_same_schedule(acme: Worker) -> None:
    wanted = {name: value for name, value in DAILY.items() if name != "instance_id"}
    answers = [
        (await acme.request("POST", SCHEDULES, wanted, headers={"idempotency-key": "once"})).content for _ in range(2)
    ]
    assert answers[0] == answers[1]
    assert len(await listed(acme)) == 1


async def test_the_erasure_of_a_user_removes_their_schedules_and_no_others(acme: Worker) -> None:
    await created(acme, input="hers", user={"id": "ann"})
    await created(acme, input="everybody's", instance_id="other")
    answer = await acme.request("DELETE", "/admin/tenants/acme/users/ann")
    assert (answer.status, answer.content["receipt"]["completed_at_ms"] is None) == (200, False), answer.body
    assert await listed(acme) == ["everybody's"]


async def test_the_erasure_of_a_mention_removes_the_schedules_that_have_it(acme: Worker) -> None:
    await created(acme, input="Has Wilhelmina answered?")
    await created(acme, input="Who else?")
    answer = await acme.request("POST", "/v1/tenants/acme/erase", {"subject": "Wilhelmina", "match": "mention"})
    assert answer.status in (200, 202), answer.body
    assert await listed(acme) == ["Who else?"]


async def test_the_deletion_of_a_conversation_removes_the_schedules_of_its_instance(acme: Worker) -> None:
    await created(acme)
    await acme.run("acme", "sdr", "Contact contact:7 responded positively.", instance_id="desk")
    assert (await acme.request("DELETE", "/v1/agents/acme/sdr/instances/desk")).status in (200, 204)
    assert await listed(acme) == []
