"""Files that a run passes on to a delegate, and files that an agent no longer takes."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.agents.attached import PICTURE, VIEWER, FileDesk, inline, shown, viewers
from tests.agents.stepped_chat import SteppedChat, calls, says
from tests.agents.test_attachments import files_in
from tests.support.files import PDF
from tests.support.instances import Deployment

Deploy = Callable[..., Deployment]
BOSS = {**VIEWER, "type": "boss", "delegates": ["viewer", "clerk"]}
CLERK = {"type": "clerk", "description": "Reads text.", "instructions": "Do it."}


def desk_of(deploy: Deploy, boss: SteppedChat, **delegates: SteppedChat) -> FileDesk:
    """Return a desk with an agent that delegates, one that takes every file, and one that takes text alone."""
    return FileDesk(deploy(viewers(BOSS, CLERK), chat={"boss": boss, **delegates}))


def handed(agent: str, *files: Any) -> tuple[str, dict[str, Any]]:
    return "delegate", {"agent": agent, "input": "Look", "files": list(files)}


async def test_a_delegate_reads_the_files_that_are_named_and_they_stay_the_caller_s(deploy: Deploy) -> None:
    boss, viewer = SteppedChat(calls(handed("viewer", "a.png")), says("done")), SteppedChat(says("a picture"))
    desk = desk_of(deploy, boss, viewer=viewer)
    bill = await desk.uploaded(PDF, "application/pdf", name="bill.pdf")
    answer = await desk.run("What is it?", bill, inline(), agent="boss")
    assert answer["output"] == "done"
    [request] = viewer.requests
    assert (shown(request.messages[-1]), files_in(request)) == (("Look", ["a.png"]), {"a.png": PICTURE})
    await desk.deployment.settled()
    uses = await desk.deployment.rows("SELECT DISTINCT run_id FROM attachment_uses")
    assert [row["run_id"] for row in uses] == [answer["run_id"]]
    await desk.send("DELETE", "boss/instances/main")
    assert await desk.deployment.rows("SELECT * FROM attachments") == []
    assert (await desk.deployment.objects_store.list("attachments/")).keys == []


async def test_a_file_of_an_earlier_message_is_passed_on_as_long_as_the_caller_reads_it(deploy: Deploy) -> None:
    boss = SteppedChat(says("What of it?"), calls(handed("viewer", "a.png")), says("done"))
    viewer = SteppedChat(says("a picture"))
    desk = desk_of(deploy, boss, viewer=viewer)
    await desk.run("Look", inline(), agent="boss")
    await desk.deployment.settled()
    await desk.run("Ask the viewer", agent="boss")
    assert [files_in(request) for request in viewer.requests] == [{"a.png": PICTURE}]


async def test_a_delegate_that_takes_no_pictures_reads_that_there_is_one(deploy: Deploy) -> None:
    boss = SteppedChat(calls(handed("clerk", "a.png", "list.csv")), says("done"))
    clerk = SteppedChat(says("a list"))
    desk = desk_of(deploy, boss, clerk=clerk)
    await desk.run("Look", inline(), inline(b"tea", "text/csv", "list.csv"), agent="boss")
    [request] = clerk.requests
    line = f"Look\n[file a.png (image/png, {len(PICTURE)} bytes): not shown here]"
    assert (shown(request.messages[-1]), files_in(request)) == ((line, ["list.csv"]), {"list.csv": b"tea"})


@pytest.mark.parametrize("files", [["b.png"], "a.png", [1], [["a.png"]], {"a.png": 1}])
async def test_a_file_that_the_caller_does_not_read_is_refused_as_data(deploy: Deploy, files: Any) -> None:
    boss, viewer = (
        SteppedChat(calls(("delegate", {**handed("viewer")[1], "files": files})), says("done")),
        SteppedChat(),
    )
    desk = desk_of(deploy, boss, viewer=viewer)
    await desk.uploaded(name="b.png")
    assert (await desk.run("Look", inline(), agent="boss"))["status"] == "completed"
    [answer] = [message for message in boss.requests[-1].messages if message.role == "tool"]
    assert json.loads(answer.content)["error"]["code"] == "invalid_arguments"
    assert viewer.requests == []


async def test_agents_that_read_text_alone_are_offered_files_only_where_there_are_some(deploy: Deploy) -> None:
    plain = {**CLERK, "type": "plain", "delegates": ["clerk"]}
    chat = SteppedChat()
    desk = FileDesk(deploy(viewers(plain, CLERK), chat=chat))
    await desk.run("Look", agent="plain")
    await desk.run("Look", inline(b"tea", "text/csv", "list.csv"), agent="plain", instance="other")
    specs = [next(tool for tool in request.tools if tool.name == "delegate") for request in chat.requests]
    assert ['"files"' in json.dumps(dict(spec.parameters)) for spec in specs] == [False, True]


async def test_a_conversation_continues_when_its_agent_no_longer_takes_its_files(deploy: Deploy) -> None:
    chat = SteppedChat()
    desk = FileDesk(deploy(viewers(), chat=chat))
    await desk.run("Look", inline(), inline(b"tea", "text/csv", "list.csv"))
    await desk.deployment.settled()
    desk.deployment.catalogue = viewers({**VIEWER, "model": {"accepts": ["text"]}})
    await desk.deployment.evict()
    await desk.run("And now?")
    asked = [shown(message) for message in chat.requests[-1].messages if message.role == "user"]
    line = f"Look\n[file a.png (image/png, {len(PICTURE)} bytes): not shown here]"
    assert asked == [(line, ["list.csv"]), ("And now?", [])]
