"""The Durable Object's shell: calls by RPC, envelopes, the identity that it claims, its alarm."""

from __future__ import annotations

import asyncio
import json
from types import SimpleNamespace
from typing import Any

import pytest

from retain.agents.instance import Instance
from retain.agents.methods import METHODS, InstanceMethod
from retain.errors import Conflict, Misconfigured, NotFound, RetainError
from retain.json_text import JsonObject
from retain.log import bound
from retain.rpc import opened
from tests.ports import raises
from tests.shell.platform.objects import Storage
from tests.shell.test_requests import logged
from tests.shell.worker import Worker, entry
from tests.support.held import Held

NAME = "sdr:acme:desk"
DESK = {"tenant_id": "acme", "agent_type": "sdr", "instance_id": "desk"}


async def call(worker: Worker, method: str, name: str = NAME, **fields: object) -> dict[str, Any]:
    """Call a method of an object as another object does; return its answer. Raises: what its envelope holds."""
    envelope = await worker.agents.call(name, method, json.dumps({**DESK, **fields}))
    assert isinstance(envelope, str)
    return dict(opened(envelope))


@pytest.mark.parametrize("method", METHODS)
async def test_every_method_of_an_instance_is_called_under_its_own_name(
    worker: Worker, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    seen: list[tuple[str, JsonObject, object]] = []

    async def act(instance: Instance, content: JsonObject) -> JsonObject:
        seen.append((instance.identity.key, content, bound("request_id")))
        return {"answered": method}

    monkeypatch.setitem(METHODS, method, InstanceMethod(act))
    assert await call(worker, method, request_id="r-1", extra=5) == {"answered": method}
    assert seen == [(NAME, {**DESK, "request_id": "r-1", "extra": 5}, "r-1")]


async def test_an_object_has_the_methods_of_an_instance_and_its_alarm_alone() -> None:
    public = {name for name in vars(entry.AgentRuntime) if not name.startswith("_")}
    assert public == {*METHODS, "alarm"}


@pytest.mark.parametrize("method", [name for name, method in METHODS.items() if method.known_only])
async def test_an_object_that_was_never_called_answers_no_question_and_writes_nothing(
    worker: Worker, method: str
) -> None:
    with pytest.raises(NotFound) as raised:
        await call(worker, method, run_id="r")
    assert raised.value.code == "no_such_instance"
    assert worker.agents.storages[NAME].rows("SELECT name FROM sqlite_master") == []


async def test_an_object_that_lost_its_storage_is_known_by_the_run_that_is_parked_in_d1(worker: Worker) -> None:
    await worker.rows(
        "INSERT INTO parked_runs"
        " (run_id, tenant_id, agent_type, instance_id, seq, due_at_ms, parked_at_ms, request, context)"
        " VALUES ('parked', 'acme', 'sdr', 'desk', 1, 0, 0, '{}', '{}')"
    )
    with pytest.raises(RetainError) as unknown:
        await call(worker, "show", run_id="another")
    with pytest.raises(RetainError) as parked:
        await call(worker, "show", run_id="parked")
    assert unknown.value.code == "no_such_instance"
    assert parked.value.code != "no_such_instance", "it is asked, though what this row holds is no run"


async def test_an_object_serves_only_the_instance_that_it_was_first(worker: Worker) -> None:
    assert (await call(worker, "erase"))["everything"] is True
    await call(worker, "cancel_call", idempotency_key="never", by="a test", reason=None)
    for restarted in (False, True):
        with pytest.raises(Exception, match="another instance"):
            await call(worker, "describe", instance_id="other")
        assert (await call(worker, "describe"))["instance_id"] == "desk"
        if not restarted:
            worker.agents.sleep()


async def test_an_object_that_forgot_everything_claims_its_name_again(worker: Worker) -> None:
    await call(worker, "cancel_call", idempotency_key="never", by="a test", reason=None)
    assert (await call(worker, "erase"))["everything"] is True
    with pytest.raises(NotFound):
        await call(worker, "describe")
    await call(worker, "cancel_call", idempotency_key="never", by="a test", reason=None)
    assert (await call(worker, "describe"))["instance_id"] == "desk"
    assert worker.agents.storages[NAME].rows("SELECT * FROM identity") == [("acme", "sdr", "desk")]


async def test_an_erasure_that_leaves_something_keeps_the_instance(worker: Worker) -> None:
    await call(worker, "cancel_call", idempotency_key="never", by="a test", reason=None)
    before = worker.agents.object(NAME)._living_as
    assert (await call(worker, "erase", term="Ann"))["everything"] is False
    assert worker.agents.object(NAME)._living_as is before


async def test_a_request_that_waited_while_its_object_was_erased_runs_when_it_is_repeated(
    worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    await call(worker, "cancel_call", idempotency_key="never", by="a test", reason=None)
    held = Held(monkeypatch, worker.agents.object(NAME)._living_as[1]._parked, "restore_by_key", after=True)
    asked: dict[str, Any] = {"input": "hello", "metadata": {}, "idempotency_key": "k"}
    run = asyncio.create_task(call(worker, "run", **asked))
    await held.begun.wait()
    assert (await call(worker, "erase"))["everything"] is True
    held.go.set()
    with raises(Conflict, code="instance_busy"):
        await run
    assert worker.agents.storages[NAME].rows("SELECT * FROM identity") == []
    assert (await call(worker, "run", **asked))["status"] == "completed"
    assert worker.agents.storages[NAME].rows("SELECT * FROM identity") == [("acme", "sdr", "desk")]
    await worker.settled()


async def test_an_instance_lives_as_long_as_its_object_is_awake(worker: Worker) -> None:
    instances = []
    for _ in range(2):
        await call(worker, "cancel_call", idempotency_key="never", by="a test", reason=None)
        instances.append(worker.agents.object(NAME)._living_as[1])
    assert instances[0] is instances[1]


@pytest.mark.parametrize(
    "error", [Conflict("busy", code="instance_busy"), ValueError("hunter2")], ids=["known", "other"]
)
async def test_an_error_of_an_instance_travels_in_the_envelope(
    worker: Worker, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], error: Exception
) -> None:
    async def act(instance: Instance, content: JsonObject) -> JsonObject:
        raise error

    monkeypatch.setitem(METHODS, "run", InstanceMethod(act))
    envelope = await worker.agents.call(NAME, "run", json.dumps({**DESK, "request_id": "r-1", "run_id": None}))
    assert isinstance(envelope, str)
    shown = json.loads(envelope)["error"]
    assert "hunter2" not in envelope
    lines = logged(capsys.readouterr().out, "unexpected error in an instance")
    if isinstance(error, Conflict):
        assert (shown["class"], shown["code"], lines) == ("Conflict", "instance_busy", [])
        return
    assert (shown["class"], shown["code"]) == ("RetainError", "internal")
    assert shown["message"] == "an unexpected error occurred; it was logged"
    [line] = lines
    assert {name: line.get(name) for name in ("request_id", "tenant_id", "agent_type", "instance_id")} == {
        "request_id": "r-1",
        **DESK,
    }
    assert "run_id" not in line
    assert line["logger"] == "retain.agent_runtime"
    assert "ValueError" in line["exception"]


async def test_every_line_that_a_call_logs_names_its_run(worker: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: dict[str, object] = {}

    async def act(instance: Instance, content: JsonObject) -> JsonObject:
        seen.update({name: bound(name) for name in ("request_id", *DESK, "run_id", "input")})
        return {}

    monkeypatch.setitem(METHODS, "show", InstanceMethod(act))
    await call(worker, "show", request_id="q", run_id="r", input="a secret")
    assert seen == {"request_id": "q", **DESK, "run_id": "r", "input": None}


async def test_the_alarm_of_an_object_that_was_never_called_does_nothing(worker: Worker) -> None:
    storage = Storage()
    await entry.AgentRuntime(SimpleNamespace(storage=storage), worker.env).alarm()
    assert storage.rows("SELECT name FROM sqlite_master") == []
    storage.connection.close()


async def test_the_alarm_does_what_is_due_and_its_lines_name_the_instance(
    worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    await worker.tenant()
    await worker.run("acme", "sdr", "Draft an e-mail to contact:7", instance_id="desk")
    assert set((await call(worker, "describe"))["working"]) == {"current_contact_id", "email_draft_v2"}
    alarm = worker.agents.storages[NAME].alarm_ms
    assert alarm == worker.clock() + 24 * 3_600_000
    assert await worker.ring() == 0
    seen: dict[str, object] = {}
    on_alarm = Instance.on_alarm

    async def noticed(instance: Instance) -> None:
        seen.update({name: bound(name) for name in DESK})
        await on_alarm(instance)

    monkeypatch.setattr(Instance, "on_alarm", noticed)
    worker.agents.sleep()
    worker.clock.set(alarm)
    assert await worker.ring() == 1
    assert seen == DESK
    assert (await call(worker, "describe"))["working"] == {}


async def test_an_alarm_that_fails_each_time_is_set_again_before_the_platform_drops_it(worker: Worker) -> None:
    await worker.tenant()
    await worker.run("acme", "sdr", "Draft an e-mail to contact:7", instance_id="desk")
    storage = worker.agents.storages[NAME]
    storage.connection.execute(
        "UPDATE schema_version SET version = 99"
    )  # as a later version leaves it before a rollback
    worker.agents.sleep()
    before = storage.alarm_ms
    for repeated in range(5):
        with raises(Misconfigured, code="newer_object"):
            await worker.agents.object(NAME).alarm(SimpleNamespace(retryCount=repeated))
    assert storage.alarm_ms == before
    await worker.agents.object(NAME).alarm(SimpleNamespace(retryCount=5))
    assert storage.alarm_ms == worker.clock() + 5 * 60_000


async def test_the_id_of_a_request_reaches_the_instance(worker: Worker) -> None:
    await worker.tenant()
    path = "/v1/agents/acme/order_triage/run"
    answer = await worker.request("POST", path, {"input": "hello", "instance_id": "one"})
    [(name, method, request)] = worker.agents.requests
    assert (name, method) == ("order_triage:acme:one", "run")
    assert json.loads(request)["request_id"] == answer.headers["x-request-id"]


async def test_an_object_that_cannot_be_reached_is_a_problem_that_may_pass(worker: Worker) -> None:
    await worker.tenant()
    worker.agents.down = True
    answer = await worker.request("POST", "/v1/agents/acme/order_triage/run", {"input": "hello"})
    assert (answer.status, answer.content["code"]) == (503, "agent_instance_unavailable")
