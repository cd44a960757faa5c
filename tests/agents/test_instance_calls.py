"""What an instance answers to the calls that start, repeat and erase runs, each alone."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from retain.errors import Conflict, Unavailable
from tests.agents.stepped_chat import SteppedChat, calls, says
from tests.ports import raises
from tests.support.instances import Deployment

Deploy = Callable[..., Deployment]
DESK = "sdr:acme:main"
ANN = {"id": "ann"}


async def test_starting_answers_at_once_and_with_an_equal_key_answers_of_the_same_run(deploy: Deploy) -> None:
    chat = SteppedChat(says("done"), hold=True)
    deployment = deploy(chat=chat)
    request: dict[str, Any] = {"input": "hello", "metadata": {}, "idempotency_key": "k"}
    first = await deployment.ask("sdr", "start", **request)
    assert first == {"run_id": first["run_id"], "instance_id": "main", "status": "running"}
    assert await deployment.ask("sdr", "start", **request) == first
    with raises(Conflict, code="instance_busy"):
        await deployment.ask("sdr", "start", **(request | {"idempotency_key": "another"}))
    chat.let_go()
    await deployment.settled()
    assert (await deployment.ask("sdr", "start", **request))["output"] == "done"
    assert len(chat.requests) == 1


async def test_a_repeated_call_waits_for_the_run_under_way_and_reports_its_result(deploy: Deploy) -> None:
    chat = SteppedChat(says("done"), hold=True)
    deployment = deploy(chat=chat)
    first = asyncio.create_task(deployment.run("sdr", "hello", key="k"))
    await chat.asked.wait()
    again = asyncio.create_task(deployment.run("sdr", "hello", key="k"))
    for _ in range(10):
        await asyncio.sleep(0)
    assert not again.done()
    chat.let_go()
    assert (await again)["output"] == "done"
    assert await first == await again
    await deployment.settled()


async def test_an_instance_is_not_erased_while_a_run_is_under_way(deploy: Deploy) -> None:
    chat = SteppedChat(says("done"), hold=True)
    deployment = deploy(chat=chat)
    run = asyncio.create_task(deployment.run("sdr", "hello"))
    await chat.asked.wait()
    for term in (None, "AB-1"):
        with raises(Conflict, code="instance_busy"):
            await deployment.ask("sdr", "erase", term=term)
    chat.let_go()
    assert (await run)["output"] == "done"
    await deployment.settled()


async def test_erasing_everything_leaves_nothing_not_even_who_it_was(deploy: Deploy) -> None:
    chat = SteppedChat(calls(("set_working_memory", {"key": "k", "value": 1})), says("bye"))
    deployment = deploy(chat=chat)
    await deployment.run("sdr", "hello")
    await deployment.settled()
    noted = await deployment.rows("SELECT * FROM kv_audit")
    assert await deployment.ask("sdr", "erase") == {"everything": True}
    await deployment.settled()
    for table in ("identity", "turn_state", "run_log", "working_memory", "outbox"):
        assert deployment.local(DESK, f"SELECT 1 FROM {table}") == [], table
    assert await deployment.rows("SELECT * FROM kv_audit") == noted, "an erasure is noted on its receipt alone"
    assert (await deployment.run("sdr", "hello again"))["status"] == "completed"
    await deployment.settled()


async def test_erasing_a_user_erases_everything_of_the_instance_that_serves_them_and_nothing_of_another(
    deploy: Deploy,
) -> None:
    deployment = deploy(chat=SteppedChat())
    await deployment.run("sdr", "hello", user=ANN)
    await deployment.settled()
    assert await deployment.ask("sdr", "erase", user_id="ben") == {"everything": False}
    assert len(deployment.local(DESK, "SELECT 1 FROM turn_state")) == 1
    assert await deployment.ask("sdr", "erase", user_id="ann") == {"everything": True}
    assert deployment.local(DESK, "SELECT 1 FROM turn_state") == []
    await deployment.settled()


async def test_a_term_is_erased_only_after_d1_has_what_is_owed(deploy: Deploy) -> None:
    chat = SteppedChat(says("done"), hold=True)
    deployment = deploy(chat=chat)
    run = asyncio.create_task(deployment.run("sdr", "about AB-1"))
    await chat.asked.wait()
    deployment.faults.down.add("sql")
    chat.let_go()
    await run
    await deployment.settled()
    with raises(Unavailable, code="outbox_waits"):
        await deployment.ask("sdr", "erase", term="AB-1")
    assert len(deployment.local(DESK, "SELECT 1 FROM turn_state")) == 1
    deployment.faults.down.clear()
    assert await deployment.ask("sdr", "erase", term="AB-1") == {"everything": False}
    assert deployment.local(DESK, "SELECT 1 FROM turn_state") == []
    await deployment.settled()
    await deployment.run("sdr", "next")
    await deployment.settled()
    assert len(deployment.local(DESK, "SELECT 1 FROM turn_state")) == 1


async def test_after_an_erasure_changes_in_kv_are_noted_again(deploy: Deploy) -> None:
    noted = calls(("set_working_memory", {"key": "k", "value": 1}))
    deployment = deploy(chat=SteppedChat(says("hello"), noted, says("bye")))
    await deployment.run("sdr", "hello")
    await deployment.ask("sdr", "erase", term="AB-1")
    await deployment.run("sdr", "note it")
    await deployment.settled()
    assert len(await deployment.rows("SELECT * FROM kv_audit")) == 1
