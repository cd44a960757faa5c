"""AG-UI on the host: which events a run is, what a client's input means, and what a client that reconnects reads."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retain.agents.calls.answers import News, RunStreamEvent
from retain.agents.calls.client import InstanceClient
from retain.agents.calls.report import RunStanding
from retain.agents.calls.requests import ReadPosition
from retain.agents.calls.run_request import RunReference
from retain.agents.catalogue import AgentCatalogue
from retain.agents.context import AgentsContext
from retain.agents.conversations.deletion import delete_conversation
from retain.agents.execution import event_stream
from retain.agents.execution.stream import KEEP_ALIVE, shown
from retain.agents.front_ends.ag_ui_events import AgUiEncoding, AgUiRun
from retain.agents.front_ends.ag_ui_input import MAX_NAME
from retain.agents.identity import instance_of
from retain.agents.routes import ROUTER
from retain.agents.runs.events import ApprovalAnswered, ApprovalRequested, RunCancelled, RunCompleted, RunFailed
from retain.application_keys.tokens import BoundUser
from retain.errors import Conflict, Forbidden, InvalidInput, NotFound, RetainError, Unavailable
from retain.http import Request, Response
from retain.json_text import JsonObject
from retain.roles.role import OwnerOfAll
from tests.agents.front_ends.ag_ui_stream import check_order, parsed, text_of
from tests.agents.stepped_chat import SteppedChat, calls, says
from tests.agents.test_routes import context_of
from tests.agents.test_run_state import EVENTS
from tests.agents.test_streams import WritingChat
from tests.support.faults import Fault
from tests.support.instances import Deployment, LocalInstances, Upstream

Deploy = Callable[..., Deployment]
Agents = Callable[..., AgentCatalogue]
CLERK = {"tools": ["pay"], "approval": ["pay"]}
PAY = ("pay", {"order": "AB-1"})
IMAGE_ELSEWHERE = {"type": "image", "source": {"type": "url", "value": "https://a.example/a.png"}}
USER = {"id": "m1", "role": "user", "content": "hello"}
RUN = {"input": "hello", "instance_id": "desk", "stream": True}


def wanted(**more: Any) -> dict[str, Any]:
    asked = {"threadId": "desk", "runId": "r1", "messages": [USER], "tools": [], "context": [], "state": {}}
    return {**asked, "forwardedProps": {}, **more}


async def posted(
    context: AgentsContext,
    body: Any,
    *,
    headers: dict[str, str] | None = None,
    bound: BoundUser | None = None,
    path: str = "/v1/agents/acme/clerk/ag-ui",
) -> Response:
    request = Request("POST", path, {}, headers or {}, json.dumps(body), "host", "request-1", bound=bound)
    return await ROUTER.handle(context, replace(request, authority=OwnerOfAll()))


async def read(answer: Response) -> list[tuple[int | None, dict[str, Any]]]:
    assert answer.stream is not None
    return parsed("".join([piece async for piece in answer.stream]))


async def sent(context: AgentsContext, body: Any, **more: Any) -> list[dict[str, Any]]:
    """Post and return the events, which are in a valid order."""
    events = [event for _, event in await read(await posted(context, body, **more))]
    check_order(events)
    return events


def kinds(events: list[dict[str, Any]]) -> list[str]:
    return [event["type"] for event in events]


async def test_a_run_is_sent_as_the_events_of_the_protocol(deploy: Deploy, agents: Agents) -> None:
    chat = SteppedChat(calls(PAY, text="I pay."), says("Paid."))
    deployment = deploy(agents(clerk={"tools": ["pay"]}), upstreams=[Upstream("pay", idempotent=True)], chat=chat)
    events = await sent(await context_of(deployment), wanted())
    call = ["TOOL_CALL_START", "TOOL_CALL_ARGS", "TOOL_CALL_END", "TOOL_CALL_RESULT"]
    message = ["TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END"]
    first = ["STEP_STARTED", *message, *call, "STEP_FINISHED"]
    assert kinds(events) == ["RUN_STARTED", "CUSTOM", *first, "STEP_STARTED", *message, "STEP_FINISHED", "RUN_FINISHED"]
    assert (events[0]["threadId"], events[0]["runId"], events[0]["protocolVersion"]) == ("desk", "r1", "1.0")
    assert text_of(events) == ["I pay.", "Paid."]
    started = next(event for event in events if event["type"] == "TOOL_CALL_START")
    assert started["parentMessageId"] == events[3]["messageId"]
    assert json.loads(next(event for event in events if event["type"] == "TOOL_CALL_ARGS")["delta"]) == PAY[1]
    assert events[-1]["outcome"] == {"type": "success"}
    assert events[-1]["result"]["output"] == "Paid."
    assert events[-1]["usage"] == [{"inputTokens": 6, "outputTokens": 4, "totalTokens": 10, "cachedInputTokens": 0}]
    retain = events[0]["metadata"]["retain"]
    assert retain["run_id"] == events[-1]["result"]["run_id"]
    assert retain["instance_id"] == "desk"


async def test_only_what_the_user_said_last_is_asked_for_and_the_thread_knows_the_rest(
    deploy: Deploy, agents: Agents
) -> None:
    chat = SteppedChat(says("Hi Ann."), says("Ann."))
    deployment = deploy(agents(clerk={}), chat=chat)
    context = await context_of(deployment)
    await sent(context, wanted(messages=[{"id": "1", "role": "user", "content": "I am Ann."}]))
    await deployment.settled()
    whole = [
        {"id": "1", "role": "user", "content": "I am Ann."},
        {"id": "2", "role": "assistant", "content": "Hi Ann."},
        {"id": "3", "role": "user", "content": [{"type": "text", "text": "Who am I?"}]},
    ]
    await sent(context, wanted(runId="r2", messages=whole))
    read_messages = [(message.role, message.content) for message in chat.requests[1].messages[1:]]
    assert read_messages == [("user", "I am Ann."), ("assistant", "Hi Ann."), ("user", "Who am I?")]


async def test_a_repeated_request_is_the_same_run_and_another_thread_another_one(
    deploy: Deploy, agents: Agents
) -> None:
    chat = SteppedChat(says("one"), says("two"))
    context = await context_of(deploy(agents(clerk={}), chat=chat))
    first = await sent(context, wanted())
    assert text_of(first) == text_of(await sent(context, wanted())) == ["one"]
    assert text_of(await sent(context, wanted(threadId="phone"))) == ["two"]
    assert len(chat.requests) == 2


async def test_a_question_ends_the_run_and_its_answer_begins_the_next(deploy: Deploy, agents: Agents) -> None:
    pay = Upstream("pay", idempotent=False)
    chat = SteppedChat(calls(PAY, text="I pay."), says("Paid."))
    deployment = deploy(agents(clerk=CLERK), upstreams=[pay], chat=chat)
    context = await context_of(deployment)
    asked = await sent(context, wanted())
    assert asked[-1]["type"] == "RUN_FINISHED"
    [interrupt] = asked[-1]["outcome"]["interrupts"]
    announced = next(event for event in asked if event["type"] == "TOOL_CALL_START")
    assert interrupt["toolCallId"] == announced["toolCallId"]
    assert interrupt["reason"] == "tool_call"
    assert interrupt["expiresAt"].endswith("Z")
    assert asked == await sent(context, wanted()), "whoever reconnects meanwhile reads the question again"
    resume = [{"interruptId": interrupt["id"], "status": "resolved", "payload": {"approved": True}}]
    events = await sent(context, wanted(runId="r2", resume=resume))
    assert kinds(events)[:4] == ["RUN_STARTED", "STEP_STARTED", "CUSTOM", "TOOL_CALL_RESULT"]
    assert (events[0]["runId"], events[3]["toolCallId"]) == ("r2", announced["toolCallId"])
    assert "TOOL_CALL_START" not in kinds(events)
    assert text_of(events) == ["Paid."]
    assert len(pay.asked) == 1
    assert await sent(context, wanted(runId="r2", resume=resume)) == events, "the same answer again changes nothing"
    assert (await posted(context, wanted(runId="r2", resume=resume), headers={"last-event-id": "99"})).status == 204
    whole = await sent(context, wanted())
    assert kinds(whole).count("TOOL_CALL_START") == 1
    assert text_of(whole) == ["I pay.", "Paid."]


@pytest.mark.parametrize(
    ("status", "payload", "reason"),
    [
        pytest.param("resolved", {"approved": False, "reason": "too dear"}, "too dear", id="rejected"),
        pytest.param("cancelled", None, "the question was dismissed", id="dismissed"),
    ],
)
async def test_a_call_that_is_not_approved_is_not_made(
    deploy: Deploy, agents: Agents, status: str, payload: Any, reason: str
) -> None:
    pay = Upstream("pay", idempotent=False)
    chat = SteppedChat(calls(PAY), says("Very well."))
    context = await context_of(deploy(agents(clerk=CLERK), upstreams=[pay], chat=chat))
    [interrupt] = (await sent(context, wanted()))[-1]["outcome"]["interrupts"]
    resume = [{"interruptId": interrupt["id"], "status": status, "payload": payload}]
    events = await sent(context, wanted(runId="r2", resume=resume))
    result = next(event for event in events if event["type"] == "TOOL_CALL_RESULT")
    assert result["metadata"] == {"retain": {"failed": True}}
    assert reason in result["content"]
    assert pay.asked == []


async def test_what_a_delegate_asks_interrupts_its_caller_s_run_and_is_answered_in_its_thread(
    deploy: Deploy, agents: Agents, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_stream, "WAIT_S", 0)
    monkeypatch.setattr(event_stream, "MAX_QUIET", 1_000)
    pay = Upstream("pay", idempotent=False)
    chat = {
        "boss": SteppedChat(calls(("delegate", {"agent": "clerk", "input": "pay"})), says("Both are paid.")),
        "clerk": SteppedChat(calls(PAY), calls(("pay", {"order": "AB-2"})), says("Paid.")),
    }
    deployment = deploy(agents(boss={"delegates": ["clerk"]}, clerk=CLERK), chat=chat, upstreams=[pay])
    context = await context_of(deployment)
    path = "/v1/agents/acme/boss/ag-ui"
    events = await sent(context, wanted(), path=path)
    delegated = next(event for event in events if event["type"] == "TOOL_CALL_START")
    for number, order in enumerate(("AB-1", "AB-2"), start=2):
        [interrupt] = events[-1]["outcome"]["interrupts"]
        asked = interrupt["metadata"]["retain"]
        assert (interrupt["toolCallId"], interrupt["message"]) == (
            delegated["toolCallId"],
            "May pay by clerk be called?",
        )
        assert (asked["agent_type"], asked["tool"], asked["arguments"]) == ("clerk", "pay", {"order": order})
        read_again = [event for _, event in await read(await posted(context, wanted(), path=path))]
        assert read_again[-1] == events[-1] | {"runId": "r1"}, "whoever reconnects meanwhile reads the question again"
        answer = {"interruptId": interrupt["id"], "status": "resolved", "payload": {"approved": True}}
        events = await sent(context, wanted(runId=f"r{number}", resume=[answer]), path=path)
        assert "TOOL_CALL_START" not in kinds(events)
        await deployment.settled()
    assert (text_of(events), events[-1]["outcome"]) == (["Both are paid."], {"type": "success"})
    assert [arguments["order"] for arguments, _ in pay.asked] == ["AB-1", "AB-2"]
    again = await sent(context, wanted(runId="r3", resume=[answer]), path=path)
    assert text_of(again) == ["Both are paid."], "the same answer again changes nothing"
    elsewhere = {**answer, "interruptId": answer["interruptId"].replace(asked["run_id"], "0" * 26)}
    for resume, thread in (([elsewhere], "desk"), ([answer], "phone")):
        with pytest.raises(NotFound):
            await posted(context, wanted(runId="r4", threadId=thread, resume=resume), path=path)


async def test_a_user_s_token_reaches_their_own_threads_and_answers_no_approval(deploy: Deploy, agents: Agents) -> None:
    pay = Upstream("pay", idempotent=False)
    deployment = deploy(agents(clerk=CLERK), upstreams=[pay], chat=SteppedChat(calls(PAY)))
    context = await context_of(deployment)
    ann = BoundUser("ann")
    events = await sent(context, wanted(), bound=ann)
    assert events[0]["threadId"] == "desk"
    assert events[0]["metadata"]["retain"]["instance_id"] == ann.instance("desk")
    [interrupt] = events[-1]["outcome"]["interrupts"]
    resume = [{"interruptId": interrupt["id"], "status": "resolved", "payload": {"approved": True}}]
    with pytest.raises(Forbidden) as refused:
        await posted(context, wanted(runId="r2", resume=resume), bound=ann)
    assert refused.value.code == "token_not_allowed"
    other = {"retain": {"user": {"id": "bob"}}}
    with pytest.raises(Forbidden):
        await posted(context, wanted(forwardedProps=other), bound=ann)
    with pytest.raises(Forbidden):
        await posted(context, wanted(), bound=BoundUser("ann", "sdr"))
    assert pay.asked == []


async def test_wishes_of_the_application_reach_the_run(deploy: Deploy, agents: Agents) -> None:
    chat = SteppedChat(says('{"total": 3}'))
    deployment = deploy(agents(clerk={}), chat=chat)
    context = await context_of(deployment)
    schema = {"type": "object", "properties": {"total": {"type": "integer"}}, "required": ["total"]}
    wishes = {"user": {"id": "ann", "name": "Ann"}, "metadata": {"page": "cart"}, "output_schema": schema}
    events = await sent(
        context, wanted(forwardedProps={"retain": wishes, "other": 1}, tools=[{"name": "x"}], state={"a": 1})
    )
    assert events[-1]["outcome"] == {"type": "success"}
    assert events[0]["metadata"]["retain"]["ignored"] == ["tools", "state"]
    await deployment.settled()
    [row] = await deployment.rows("SELECT input, user_id FROM agent_runs")
    assert (json.loads(row["input"])["metadata"], row["user_id"]) == ({"page": "cart"}, "ann")


@pytest.mark.parametrize(
    ("change", "kind", "code"),
    [
        pytest.param({"messages": []}, InvalidInput, "no_user_message", id="no message"),
        pytest.param(
            {"messages": [USER, {"id": "2", "role": "assistant", "content": "hi"}]},
            InvalidInput,
            "no_user_message",
            id="nothing after the answer",
        ),
        pytest.param(
            {"messages": [{"id": "1", "role": "user", "content": [IMAGE_ELSEWHERE]}]},
            InvalidInput,
            "unsupported_content",
            id="an image",
        ),
        pytest.param({"messages": [{"id": "1", "role": "king"}]}, InvalidInput, "invalid_body", id="a role"),
        pytest.param({"threadId": "a thread"}, InvalidInput, "invalid_instance_id", id="a thread with a space"),
        pytest.param({"threadId": "acme:clerk"}, InvalidInput, "invalid_instance_id", id="a delimiter"),
        pytest.param({"runId": ""}, InvalidInput, "invalid_body", id="no run"),
        pytest.param({"runId": "r" * (MAX_NAME + 1)}, InvalidInput, "invalid_body", id="a long run"),
        pytest.param({"forwardedProps": {"retain": {"tenant": "b"}}}, InvalidInput, "invalid_body", id="a wish"),
        pytest.param(
            {"forwardedProps": {"retain": {"user": {"id": "a b"}}}}, InvalidInput, "invalid_user", id="a user"
        ),
        pytest.param(
            {"resume": [{"interruptId": "x", "status": "resolved"}]}, InvalidInput, "invalid_body", id="no question"
        ),
        pytest.param(
            {"resume": [{"interruptId": f"{'0' * 26}:1.0", "status": "resolved", "payload": {}}]},
            InvalidInput,
            "invalid_body",
            id="no decision",
        ),
        pytest.param(
            {"resume": [{"interruptId": f"{'0' * 26}:1.0", "status": "cancelled"}] * 2},
            InvalidInput,
            "invalid_body",
            id="two answers",
        ),
        pytest.param(
            {"resume": [{"interruptId": f"{'0' * 26}:1.0", "status": "cancelled"}]},
            NotFound,
            "no_such_instance",
            id="the question of no run",
        ),
    ],
)
async def test_what_cannot_be_done_is_refused_before_the_stream(
    deploy: Deploy, agents: Agents, change: dict[str, Any], kind: type[RetainError], code: str
) -> None:
    context = await context_of(deploy(agents(clerk={}), chat=SteppedChat()))
    with pytest.raises(kind) as refused:
        await posted(context, wanted(**change))
    assert refused.value.code == code


async def test_a_busy_thread_and_a_run_id_for_something_else_are_conflicts(deploy: Deploy, agents: Agents) -> None:
    chat = SteppedChat(hold=True)
    deployment = deploy(agents(clerk={}), chat=chat)
    context = await context_of(deployment)
    await posted(context, wanted())
    for body, code in (
        (wanted(runId="r2"), "instance_busy"),
        (wanted(messages=[{**USER, "content": "else"}]), "idempotency_key_reused"),
    ):
        with pytest.raises(Conflict) as refused:
            await posted(context, body)
        assert refused.value.code == code
    chat.let_go()
    await deployment.settled()


async def test_a_queued_run_begins_in_its_stream(deploy: Deploy, agents: Agents) -> None:
    chat = SteppedChat(says("one"), says("two"), hold=True)
    deployment = deploy(agents(clerk={"limits": {"busy": "queue"}}), chat=chat)
    context = await context_of(deployment)
    await posted(context, wanted())
    queued = await posted(context, wanted(runId="r2"))
    chat.let_go()
    events = [event for _, event in await read(queued)]
    check_order(events)
    assert text_of(events) == ["two"]


async def test_a_run_that_is_cancelled_in_the_queue_has_a_beginning_and_an_end(deploy: Deploy, agents: Agents) -> None:
    chat = SteppedChat(hold=True)
    deployment = deploy(agents(clerk={"limits": {"busy": "queue"}}), chat=chat)
    context = await context_of(deployment)
    await posted(context, wanted())
    queued = await posted(context, wanted(runId="r2"))
    [row] = (await deployment.describe("clerk", instance="desk"))["queue"]
    await deployment.ask("clerk", "cancel", instance="desk", run_id=row["run_id"], by="person:ann", reason=None)
    events = [event for _, event in await read(queued)]
    check_order(events)
    assert kinds(events) == ["RUN_STARTED", "CUSTOM", "RUN_FINISHED"]
    assert events[-1]["outcome"] == {"type": "cancelled"}
    chat.let_go()
    await deployment.settled()


@pytest.mark.parametrize(
    ("body", "path", "last"),
    [
        pytest.param(wanted(), "clerk/ag-ui", '"type":"RUN_ERROR","code":"no_such_', id="AG-UI"),
        pytest.param(RUN, "clerk/run", ": still here", id="events"),
    ],
)
async def test_a_stream_whose_run_is_removed_ends_and_does_not_break(
    deploy: Deploy, agents: Agents, monkeypatch: pytest.MonkeyPatch, body: Any, path: str, last: str
) -> None:
    monkeypatch.setattr(event_stream, "WAIT_S", 0)
    monkeypatch.setattr(event_stream, "MAX_QUIET", 1_000)
    deployment = deploy(agents(clerk={}), chat=SteppedChat(Unavailable("away", code="model_unavailable")))
    answer = await posted(await context_of(deployment), body, path=f"/v1/agents/acme/{path}")
    assert answer.stream is not None
    pieces = [piece async for piece in removing(answer.stream, deployment)]
    assert last in pieces[-1]


async def removing(stream: AsyncIterator[str], deployment: Deployment) -> AsyncIterator[str]:
    """Yield the pieces of a stream, and delete the conversation after the first quiet one."""
    quiet = False
    async for piece in stream:
        yield piece
        if piece == KEEP_ALIVE and not quiet:
            quiet = True
            client = InstanceClient(LocalInstances(deployment), instance_of("acme", "clerk", "desk"))
            await delete_conversation(deployment.sql, client)


async def test_a_failed_run_ends_with_its_code(deploy: Deploy, agents: Agents) -> None:
    deployment = deploy(
        agents(clerk={"limits": {"max_turns": 1}, "working_memory": True}),
        chat=SteppedChat(calls(("get_working_memory", {"key": "a"})), calls(("get_working_memory", {"key": "b"}))),
    )
    events = await sent(await context_of(deployment), wanted())
    assert events[-1]["type"] == "RUN_ERROR"
    assert events[-1]["code"] == "turn_limit"
    assert events[-1]["usage"][0]["totalTokens"] == 5


async def test_text_is_sent_as_it_is_written(deploy: Deploy, agents: Agents) -> None:
    chat = WritingChat("Good ", "morn", "ing.")
    deployment = deploy(agents(clerk={}), chat=chat)
    answer = await posted(await context_of(deployment), wanted())
    assert answer.stream is not None
    pieces = aiter(answer.stream)
    seen: list[dict[str, Any]] = []

    async def until(kind: str) -> dict[str, Any]:
        while not seen or seen[-1]["type"] != kind:
            seen.extend(event for _, event in parsed(await anext(pieces)))
        return seen.pop()

    for text in ("Good ", "morn", "ing."):
        chat.let.release()
        assert (await until("TEXT_MESSAGE_CONTENT"))["delta"] == text
    await until("RUN_FINISHED")


async def test_whoever_reconnects_after_any_event_reads_exactly_the_rest(deploy: Deploy, agents: Agents) -> None:
    memory = calls(("store_memory", {"content": "Ann likes tea."}), ("recall_memory", {"query": "tea"}), text="Well.")
    clerk = {"memory_config": {"long_term_enabled": True}}
    deployment = deploy(agents(clerk=clerk), chat=SteppedChat(memory, says("done")))
    context = await context_of(deployment)
    await sent(context, wanted())
    await deployment.evict()
    whole = await read(await posted(context, wanted()))
    for place, (event_id, _) in enumerate(whole):
        if event_id is not None and place + 1 < len(whole):
            rest = await read(await posted(context, wanted(), headers={"last-event-id": str(event_id)}))
            assert rest == whole[place + 1 :]
    last = whole[-1][0]
    assert last is not None
    for event_id in (last, last + 1):
        nothing = await posted(context, wanted(), headers={"last-event-id": str(event_id)})
        assert (nothing.status, nothing.stream) == (204, None)


async def test_the_existing_streams_are_encoded_for_whoever_accepts_it(deploy: Deploy, agents: Agents) -> None:
    deployment = deploy(agents(clerk={}), chat=SteppedChat(says("hi")))
    context = await context_of(deployment)
    accept = {"accept": "application/json, text/event-stream; profile=ag-ui"}
    body = {"input": "hello", "instance_id": "desk", "stream": True}
    path = "/v1/agents/acme/clerk/run"
    answer = await posted(context, body, headers={**accept, "idempotency-key": "k"}, path=path)
    events = [event for _, event in await read(answer)]
    check_order(events)
    assert text_of(events) == ["hi"]
    run_id = events[0]["runId"]
    followed = Request(
        "GET", f"/v1/agents/acme/clerk/instances/desk/runs/{run_id}/events", {}, accept, "", "host", "request-1"
    )
    again = await ROUTER.handle(context, followed)
    assert again.headers["content-type"].endswith("profile=ag-ui")
    assert [event for _, event in await read(again)] == events
    plain = await posted(context, body, headers={"accept": "text/event-stream", "idempotency-key": "k"}, path=path)
    assert plain.headers["content-type"] == "text/event-stream; charset=utf-8"


async def test_a_stream_that_is_given_up_says_so(
    deploy: Deploy, agents: Agents, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_stream, "WAIT_S", 0)
    monkeypatch.setattr(event_stream, "MAX_QUIET", 2)
    chat = SteppedChat(hold=True)
    deployment = deploy(agents(clerk={}), chat=chat)
    context = await context_of(deployment)
    events = [event for _, event in await read(await posted(context, wanted()))]
    assert kinds(events)[-1] == "RUN_ERROR"
    assert events[-1]["code"] == "run_continues"
    chat.let_go()
    await deployment.settled()


async def test_an_instance_that_stays_away_ends_the_stream_with_an_error(deploy: Deploy, agents: Agents) -> None:
    deployment = deploy(agents(clerk={}), chat=SteppedChat())
    context = await context_of(deployment)
    await sent(context, wanted())
    away = replace(context, instances=deployment.ports("clerk:acme:desk").instances)
    answer = await posted(away, wanted())
    for _ in range(event_stream.MAX_FAILURES):
        deployment.faults.plan(Fault(Unavailable("gone"), point="instances.call"))
    assert kinds([event for _, event in await read(answer)]) == ["RUN_STARTED", "RUN_ERROR"]
    await deployment.settled()


ASKED = ApprovalRequested(1, 0, "pay", {"order": "AB-1"}, 1_790_000_000_000)
ANSWERED = ApprovalAnswered(1, 0, approved=True, by="person:ann")
CLOSING = (RunCompleted, RunFailed, RunCancelled)


def news(events: list[tuple[int, Any]], status: str) -> News:
    standing = RunStanding("0" * 26, "desk", "running")
    found = [one for seq, event in events for one in shown(seq, event, standing)]
    return News(tuple(found), ReadPosition(), status)


@given(st.lists(st.one_of(*(EVENTS[kind] for kind in EVENTS if kind not in CLOSING)), max_size=12))
def test_every_log_is_encoded_as_valid_events(log: list[Any]) -> None:
    encoding = AgUiEncoding(AgUiRun("desk", "r1"), RunReference("0" * 26, "clerk", "desk"))
    encoded = list(encoding.encode(news(list(enumerate(log, start=1)), "running")))
    for event in encoded:
        parsed(event.text())


@pytest.mark.parametrize(
    ("log", "is_asked"),
    [
        pytest.param([ASKED], True, id="asked"),
        pytest.param([ASKED, ANSWERED], False, id="answered, and waiting for something else"),
        pytest.param([ASKED, ANSWERED, replace(ASKED, index=1)], True, id="asked again"),
    ],
)
def test_only_a_question_that_is_open_interrupts(log: list[Any], is_asked: bool) -> None:
    encoding = AgUiEncoding(AgUiRun("desk", "r1"), RunReference("0" * 26, "clerk", "desk"))
    encoded = [event.content for event in encoding.encode(news(list(enumerate(log, start=1)), "waiting"))]
    assert (encoded[-1]["type"] == "RUN_FINISHED") is is_asked
    assert encoding.ended is is_asked
    not_waiting = AgUiEncoding(AgUiRun("desk", "r1"), RunReference("0" * 26, "clerk", "desk"))
    assert all(one.content["type"] != "RUN_FINISHED" for one in not_waiting.encode(news([(1, ASKED)], "running")))
    if is_asked:
        outcome: Any = encoded[-1]["outcome"]
        assert outcome["interrupts"][0]["id"] == f"{'0' * 26}:1.{log[-1].index}"


def test_a_message_ends_where_its_answer_is_dropped_and_the_next_one_is_another() -> None:
    encoding = AgUiEncoding(AgUiRun("desk", "r1"), RunReference("0" * 26, "clerk", "desk"))
    dropped: JsonObject = {"turn": 1, "code": "stream_interrupted", "message": "it broke off"}
    happened = (
        RunStreamEvent("text.delta", {"turn": 1, "offset": 0, "text": "Good"}),
        RunStreamEvent("answer.dropped", dropped, 1),
        RunStreamEvent("text.delta", {"turn": 1, "offset": 0, "text": "Good day"}),
        RunStreamEvent("text.completed", {"turn": 1, "text": "Good day."}, 2),
    )
    encoded = [dict(one.content) for one in encoding.encode(News(happened, ReadPosition(), "running"))]
    message = ["TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END"]
    again = ["TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END"]
    assert kinds(encoded) == ["STEP_STARTED", *message, "CUSTOM", *again]
    assert text_of(encoded) == ["Good", "Good day."]


@given(st.lists(st.tuples(st.integers(1, 2), st.text("ab", max_size=3), st.booleans()), max_size=8))
def test_what_was_written_of_an_answer_is_in_its_message_and_no_text_is_lost(
    written: list[tuple[int, str, bool]],
) -> None:
    """Deltas may begin again, be cut, or differ from the answer that is logged in the end."""
    encoding = AgUiEncoding(AgUiRun("desk", "r1"), RunReference("0" * 26, "clerk", "desk"))
    events: list[RunStreamEvent] = []
    last: dict[int, str] = {}
    for number, (turn, text, is_whole) in enumerate(sorted(written, key=lambda one: one[0]), start=1):
        so_far = last.get(turn, "")
        if is_whole:
            events.append(RunStreamEvent("text.completed", {"turn": turn, "text": text}, number))
            last[turn] = text
        else:
            offset = len(so_far)
            events.append(RunStreamEvent("text.delta", {"turn": turn, "offset": offset, "text": text}))
            last[turn] = so_far + text
    encoded = [dict(event.content) for event in encoding.encode(News(tuple(events), ReadPosition(), "running"))]
    texts = text_of(encoded)
    assert {text for text in last.values() if text} <= set(texts)
