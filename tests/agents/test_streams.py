"""Runs as streams: what is sent, in which order, and that whoever reconnects misses nothing."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retain.agents.calls.answers import RunStreamEvent
from retain.agents.calls.client import InstanceClient
from retain.agents.calls.fields import Fields
from retain.agents.calls.report import RunStanding
from retain.agents.catalogue import AgentCatalogue
from retain.agents.execution import event_stream as stream_module
from retain.agents.execution.event_stream import event_stream, last_event_id, nothing_follows
from retain.agents.execution.stream import CLOSING, KEEP_ALIVE, shown
from retain.agents.identity import instance_of
from retain.agents.runs.events import KINDS, RunCompleted, RunFailed, ToolAnswered
from retain.errors import Conflict, InvalidInput, NotFound, Unavailable, UpstreamFailed
from retain.models.chat import ChatReply, ChatRequest, OnText
from retain.ports import AgentInstances
from tests.agents.stepped_chat import SteppedChat, calls, says
from tests.agents.test_run_state import EVENTS
from tests.support.faults import Fault
from tests.support.instances import Deployment, LocalInstances

Deploy = Callable[..., Deployment]
Agents = Callable[..., AgentCatalogue]
NAME = "clerk:acme:main"


def client(instances: AgentInstances) -> InstanceClient:
    return InstanceClient(instances, instance_of("acme", "clerk", "main"))


class WritingChat(SteppedChat):
    """Writes an answer in pieces, each when the test lets it."""

    def __init__(self, *pieces: str) -> None:
        super().__init__()
        self._pieces = pieces
        self.let = asyncio.Semaphore(0)
        self.written = 0

    async def complete(self, request: ChatRequest, on_text: OnText | None = None) -> ChatReply:
        """Write."""
        self.requests.append(request)
        assert on_text is not None
        self.written = 0
        for piece in self._pieces:
            await self.let.acquire()
            await on_text(piece)
            self.written += 1
        return says("".join(self._pieces))


async def start(deployment: Deployment, text: str = "hello", **more: Any) -> dict[str, Any]:
    return await deployment.ask("clerk", "start", input=text, metadata={}, stream=True, **more)


def parsed(text: str) -> RunStreamEvent:
    fields = dict(line.split(": ", 1) for line in text.strip().splitlines())
    return RunStreamEvent(fields["event"], json.loads(fields["data"]), int(fields["id"]) if "id" in fields else None)


def stream_of(deployment: Deployment, run_id: str, after: int = -1) -> AsyncIterator[str]:
    pieces = event_stream(client(LocalInstances(deployment)), run_id, after).stream
    assert pieces is not None
    return pieces


async def read(deployment: Deployment, run_id: str, after: int = -1) -> list[RunStreamEvent]:
    """Return the whole stream."""
    pieces = [piece async for piece in stream_of(deployment, run_id, after)]
    assert pieces[0] == "retry: 1000\n\n"
    return [parsed(piece) for piece in pieces[1:] if piece != KEEP_ALIVE]


def durable(events: list[RunStreamEvent]) -> list[RunStreamEvent]:
    return [event for event in events if event.name != "text.delta"]


async def test_a_run_is_streamed_from_its_beginning_to_its_result(deploy: Deploy, agents: Agents) -> None:
    memory = calls(("store_memory", {"content": "Ann likes tea."}), ("recall_memory", {"query": "tea"}), text="Well.")
    clerk = {"memory_config": {"long_term_enabled": True}}
    deployment = deploy(agents(clerk=clerk), chat=SteppedChat(memory, says("done")))
    started = await start(deployment)
    assert started["status"] == "running"
    events = await read(deployment, started["run_id"])
    assert [event.name for event in durable(events)] == [
        "run.started",
        "text.completed",
        "tool.called",
        "memory.stored",
        "tool.answered",
        "tool.called",
        "memory.recalled",
        "tool.answered",
        "text.completed",
        "run.completed",
    ]
    assert events[-1].data == await deployment.ask("clerk", "show", run_id=started["run_id"])
    ids = [event.id for event in events if event.id is not None]
    assert ids == sorted(set(ids))
    await deployment.settled()


async def test_whoever_reconnects_after_any_event_reads_exactly_the_rest(deploy: Deploy, agents: Agents) -> None:
    memory = calls(("store_memory", {"content": "Ann likes tea."}), ("recall_memory", {"query": "tea"}))
    clerk = {"memory_config": {"long_term_enabled": True}}
    deployment = deploy(agents(clerk=clerk), chat=SteppedChat(memory, says("done")))
    run_id = (await start(deployment))["run_id"]
    all_events = durable(await read(deployment, run_id))
    await deployment.evict()  # what is only in the object's memory does not count
    assert await read(deployment, run_id) == all_events
    for place, event in enumerate(all_events):
        if event.id is not None:
            assert await read(deployment, run_id, event.id) == all_events[place + 1 :]
    last = all_events[-1].id
    assert last is not None
    assert await nothing_follows(client(LocalInstances(deployment)), run_id, last)
    assert not await nothing_follows(client(LocalInstances(deployment)), run_id, last - 1)


async def test_text_is_sent_as_it_is_written_and_whole_when_it_is_complete(deploy: Deploy, agents: Agents) -> None:
    chat = WritingChat("Good ", "morn", "ing.")
    deployment = deploy(agents(clerk={}), chat=chat)
    stream = stream_of(deployment, (await start(deployment))["run_id"])
    assert await anext(stream) == "retry: 1000\n\n"
    assert parsed(await anext(stream)).name == "run.started"
    for offset, text in ((0, "Good "), (5, "morn"), (9, "ing.")):
        chat.let.release()
        assert parsed(await anext(stream)).data == {"turn": 1, "offset": offset, "text": text}
    rest = [parsed(piece) async for piece in stream]
    assert [event.name for event in rest] == ["text.completed", "run.completed"]
    assert rest[0].data == {"turn": 1, "text": "Good morning.", "finish_reason": "stop"}


async def test_a_reader_who_joins_in_the_middle_reads_what_is_written_so_far(deploy: Deploy, agents: Agents) -> None:
    chat = WritingChat("Good ", "morn", "ing.")
    deployment = deploy(agents(clerk={}), chat=chat)
    run_id = (await start(deployment))["run_id"]
    chat.let.release()
    chat.let.release()
    while chat.written < 2:
        await asyncio.sleep(0)
    stream = stream_of(deployment, run_id)
    assert [parsed(piece).name for piece in [await anext(stream) for _ in range(3)][1:]] == [
        "run.started",
        "text.delta",
    ]
    chat.let.release()
    assert parsed(await anext(stream)).data == {"turn": 1, "offset": 9, "text": "ing."}
    assert [parsed(piece).name async for piece in stream] == ["text.completed", "run.completed"]


async def test_a_reader_who_has_the_whole_answer_is_not_sent_it_again(deploy: Deploy, agents: Agents) -> None:
    deployment = deploy(agents(clerk={}), chat=SteppedChat(says("done")))
    run_id = (await start(deployment))["run_id"]
    events = await read(deployment, run_id)
    [whole] = [event for event in events if event.name == "text.completed"]
    assert whole.id is not None
    assert [event.name for event in await read(deployment, run_id, whole.id)] == ["run.completed"]
    assert [event.name for event in await read(deployment, run_id, whole.id - 1)][:1] == ["text.delta"]


async def test_cancelling_ends_the_writing(deploy: Deploy, agents: Agents) -> None:
    chat = WritingChat("Good ", "morn", "ing.")
    deployment = deploy(agents(clerk={}), chat=chat)
    run_id = (await start(deployment))["run_id"]
    chat.let.release()
    while chat.written < 1:
        await asyncio.sleep(0)
    wish = asyncio.create_task(deployment.ask("clerk", "cancel", run_id=run_id, by="ann", reason=None))
    while not deployment.local(NAME, "SELECT 1 FROM run_log WHERE kind = 'cancel_requested'"):
        await asyncio.sleep(0)
    chat.let.release()
    assert (await wish)["status"] == "cancelled"
    assert chat.written == 1
    await deployment.settled()


async def test_a_stream_that_nobody_reads_does_not_hold_up_the_run(deploy: Deploy, agents: Agents) -> None:
    deployment = deploy(agents(clerk={}), chat=SteppedChat(says("done")))
    run_id = (await start(deployment))["run_id"]
    stream = stream_of(deployment, run_id)
    await anext(stream)
    await deployment.settled()
    assert (await deployment.ask("clerk", "show", run_id=run_id))["output"] == "done"


async def test_starting_with_an_equal_key_returns_the_same_run_and_another_run_is_refused_as_busy(
    deploy: Deploy, agents: Agents
) -> None:
    chat = WritingChat("hi")
    deployment = deploy(agents(clerk={}), chat=chat)
    first = await start(deployment, idempotency_key="k")
    assert await start(deployment, idempotency_key="k") == first
    with pytest.raises(Conflict) as busy:
        await start(deployment, text="other")
    assert busy.value.code == "instance_busy"
    chat.let.release()
    await deployment.settled()
    assert (await start(deployment, idempotency_key="k"))["status"] == "completed"


async def test_a_run_that_cannot_be_opened_is_refused_before_a_stream_begins(deploy: Deploy, agents: Agents) -> None:
    deployment = deploy(agents(clerk={"limits": {"context_tokens": 2000}}), chat=SteppedChat())
    with pytest.raises(InvalidInput) as refused:
        await start(deployment, text="x" * 9000)
    assert refused.value.code == "input_too_large"
    again = await start(deployment, text="x")
    await deployment.settled()
    assert (await deployment.ask("clerk", "show", run_id=again["run_id"]))["status"] == "completed"


async def test_a_failed_run_ends_its_stream(deploy: Deploy, agents: Agents) -> None:
    deployment = deploy(agents(clerk={}), chat=SteppedChat(UpstreamFailed("gone", code="model_refused")))
    events = await read(deployment, (await start(deployment))["run_id"])
    assert (events[-1].name, Fields(events[-1].data).object("error").text("code")) == ("run.failed", "model_refused")


@pytest.mark.parametrize("failures", [1, stream_module.MAX_FAILURES - 1, stream_module.MAX_FAILURES])
async def test_a_stream_outlives_an_instance_that_cannot_be_reached_for_a_moment(
    deploy: Deploy, agents: Agents, failures: int
) -> None:
    deployment = deploy(agents(clerk={}), chat=SteppedChat(says("done")))
    run_id = (await start(deployment))["run_id"]
    instances = deployment.ports(NAME).instances
    for _ in range(failures):
        deployment.faults.plan(Fault(Unavailable("gone"), point="instances.call"))
    stream = event_stream(client(instances), run_id, -1).stream
    assert stream is not None
    if failures == stream_module.MAX_FAILURES:
        with pytest.raises(Unavailable):
            [piece async for piece in stream]
    else:
        assert parsed([piece async for piece in stream][-1]).name == "run.completed"


async def test_a_quiet_stream_keeps_its_connection_alive_and_ends_after_a_while(
    deploy: Deploy, agents: Agents, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream_module, "WAIT_S", 0)
    chat = WritingChat("hi")
    deployment = deploy(agents(clerk={}), chat=chat)
    pieces = [piece async for piece in stream_of(deployment, (await start(deployment))["run_id"])]
    assert pieces[-stream_module.MAX_QUIET :] == [KEEP_ALIVE] * stream_module.MAX_QUIET
    chat.let.release()
    await deployment.settled()


async def test_an_unknown_run_is_not_found(deploy: Deploy, agents: Agents) -> None:
    deployment = deploy(agents(clerk={}), chat=SteppedChat())
    await deployment.run("clerk", "hello")
    with pytest.raises(NotFound) as unknown:
        await nothing_follows(client(LocalInstances(deployment)), "01HZZZZZZZZZZZZZZZZZZZZZZZ", -1)
    assert unknown.value.code == "no_such_run"
    await deployment.settled()


@pytest.mark.parametrize(("text", "id_"), [(None, -1), ("", -1), ("0", 0), ("17", 17)])
def test_the_last_event_s_id_is_read_from_header_or_query(text: str | None, id_: int) -> None:
    headers = {} if text is None else {"last-event-id": text}
    assert last_event_id(headers) == id_
    assert last_event_id({}, text) == id_


@pytest.mark.parametrize("text", ["x", "-1", "1.5", "1e3", "9" * 10, "٣"])
def test_an_invalid_id_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        last_event_id({"last-event-id": text})
    assert refused.value.code == "invalid_last_event_id"


@given(event=st.one_of([made for kind, made in EVENTS.items() if kind is not ToolAnswered]), seq=st.integers(1, 999))
def test_an_event_is_sent_as_messages_of_which_only_the_last_has_the_id(event: Any, seq: int) -> None:
    sent = shown(seq, event, RunStanding("r1", "main", "running"))
    assert [one.id for one in sent] == [None] * (len(sent) - 1) + [seq] * bool(sent)
    for one in sent:
        text = one.text()
        assert text.endswith("\n\n")
        assert text.count("\n") == 2 + 1 + (one.id is not None)
        assert parsed(text) == one
        assert (one.name in CLOSING) is isinstance(event, RunCompleted | RunFailed | KINDS["run_cancelled"])
