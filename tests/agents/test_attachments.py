"""Files of runs on the host: what the model is sent, now and in later runs, and what is refused before a run begins."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from retain.agents.calls.asked_files import MAX_INLINE_BYTES
from retain.agents.calls.asked_files import MAX_NAME as MAX_BODY_NAME
from retain.agents.versions.tenant_agents import FRESH_MS
from retain.application_keys.tokens import BoundUser
from retain.attachments.attachment import MAX_ATTACHED, MAX_BYTES, MAX_SENT_BYTES
from retain.attachments.media_types import MAX_NAME
from retain.errors import InvalidInput, LimitExceeded, NotFound, RetainError, Unavailable
from retain.models.chat import ChatRequest
from retain.ports import Row
from tests.agents.attached import PICTURE, VIEWER, FileDesk, inline, shown, viewers
from tests.agents.stepped_chat import SteppedChat, says
from tests.agents.test_tenant_agents import define
from tests.support.faults import Crash, Fault
from tests.support.files import PDF, png
from tests.support.instances import Deployment

Deploy = Callable[..., Deployment]


@pytest.fixture
def chat() -> SteppedChat:
    """The model."""
    return SteppedChat()


@pytest.fixture
def desk(deploy: Deploy, chat: SteppedChat) -> FileDesk:
    """A desk whose agent takes files."""
    return FileDesk(deploy(viewers(), chat=chat))


def files_in(request: ChatRequest) -> dict[str, bytes]:
    """Return the contents that a model is sent, by the files' names."""
    return {
        file.name: request.contents[file.id]
        for message in request.messages
        for file in message.attachments
        if file.id in request.contents
    }


async def test_the_model_is_sent_what_was_uploaded_and_what_the_request_brings(
    desk: FileDesk, chat: SteppedChat
) -> None:
    bill = await desk.uploaded(PDF, "application/pdf", name="bill.pdf")
    await desk.run("What did I pay?", bill, inline(PICTURE, None, "a.png"), inline(b"tea, 3", "text/csv", "list.csv"))
    [request] = chat.requests
    assert shown(request.messages[-1]) == ("What did I pay?", ["bill.pdf", "a.png", "list.csv"])
    assert files_in(request) == {"bill.pdf": PDF, "a.png": PICTURE, "list.csv": b"tea, 3"}


async def test_d1_and_the_instance_keep_references_and_no_content(desk: FileDesk) -> None:
    content = png(padding=3_000)
    picture = await desk.uploaded(content, name="receipt.png")
    answer = await desk.run("What is it?", picture)
    await desk.deployment.settled()
    kept = picture.attached.to_json()
    [row] = await desk.deployment.rows("SELECT input FROM agent_runs")
    assert json.loads(row["input"])["attachments"] == [kept]
    page = json.loads((await desk.send("GET", "viewer/instances/main/messages")).body)
    assert [one["attachments"] for one in page["messages"]] == [[kept], []]
    uses = await desk.deployment.rows("SELECT run_id, attachment_id FROM attachment_uses")
    assert [tuple(row.values()) for row in uses] == [(answer["run_id"], picture.id)]
    [state] = desk.deployment.storages["viewer:acme:main"].run("SELECT context, request FROM turn_state").rows
    assert len(state["context"]) + len(state["request"]) < 2_000


async def test_later_runs_send_the_newest_files_again_and_name_the_others(desk: FileDesk, chat: SteppedChat) -> None:
    for number in range(3):
        picture = await desk.uploaded(png(seed=number), name=f"{number}.png")
        await desk.run(f"Picture {number}", picture)
        await desk.deployment.settled()
        desk.deployment.clock.advance(1000)
    await desk.run("Which was first?")
    asked = [shown(message) for message in chat.requests[-1].messages if message.role == "user"]
    size = len(png(seed=0))
    assert asked == [
        (f"Picture 0\n[file 0.png (image/png, {size} bytes): not shown here]", []),
        ("Picture 1", ["1.png"]),
        ("Picture 2", ["2.png"]),
        ("Which was first?", []),
    ]
    assert files_in(chat.requests[-1]) == {"1.png": png(seed=1), "2.png": png(seed=2)}


async def test_a_file_that_was_deleted_is_not_sent_and_its_run_continues(desk: FileDesk, chat: SteppedChat) -> None:
    picture = await desk.uploaded(name="gone.png")
    await desk.run("Look", picture)
    await desk.deployment.settled()
    await desk.send("DELETE", f"attachments/{picture.id}")
    assert (await desk.run("And now?"))["status"] == "completed"
    assert files_in(chat.requests[-1]) == {}
    assert (await desk.deployment.objects_store.list("attachments/")).keys == []


async def test_the_same_file_in_a_repeated_request_is_the_same_run_and_one_object(desk: FileDesk) -> None:
    first = await desk.run("Look", inline(), key="once")
    again = await desk.run("Look", inline(), key="once")
    assert first["run_id"] == again["run_id"]
    assert len((await desk.deployment.objects_store.list("attachments/acme/")).keys) == 1
    with pytest.raises(RetainError) as other:
        await desk.run("Look", inline(png(seed=9)), key="once")
    assert other.value.code == "idempotency_key_reused"


@pytest.mark.parametrize("gone", ["the file", "the agent's sense"])
async def test_a_repeated_request_is_the_same_run_though_its_file_is_no_longer_taken(
    deploy: Deploy, chat: SteppedChat, gone: str
) -> None:
    desk = FileDesk(deploy(chat=chat))
    await define(desk.deployment, "Look.", "reader", model={"script": "support", "accepts": ["image"]})
    picture = await desk.uploaded()
    first = await desk.run("Look", picture, agent="reader", key="once")
    if gone == "the file":
        await desk.send("DELETE", f"attachments/{picture.id}")
    else:
        await define(desk.deployment, "Look.", "reader", model={"script": "support", "accepts": []})
        desk.deployment.clock.advance(FRESH_MS + 1)
    refusal = "no_such_attachment" if gone == "the file" else "attachments_not_accepted"
    assert await desk.run("Look", picture, agent="reader", key="once") == first
    for instance, text, key, code in (
        ("main", "Look", "another", refusal),
        ("never", "Look", "once", refusal),
        ("main", "Listen", "once", "idempotency_key_reused"),
    ):
        with pytest.raises(RetainError) as refused:
            await desk.run(text, picture, agent="reader", key=key, instance=instance)
        assert refused.value.code == code
    assert len(chat.requests) == 1
    assert desk.deployment.local("reader:acme:never", "SELECT name FROM sqlite_master") == []


async def test_a_retry_and_a_fork_read_the_files_again(desk: FileDesk, chat: SteppedChat) -> None:
    chat._replies += [InvalidInput("no eyes", code="invalid_input")]
    picture = await desk.uploaded()
    failed = await desk.run("Look", picture)
    assert failed["status"] == "failed"
    await desk.send("POST", f"viewer/instances/main/runs/{failed['run_id']}/retry")
    await desk.deployment.settled()
    assert [files_in(request) for request in chat.requests] == [{picture.name: PICTURE}] * 2
    assert len(await desk.deployment.rows("SELECT run_id FROM attachment_uses")) == 2


async def test_a_fork_names_the_files_that_its_agent_no_longer_takes(deploy: Deploy, chat: SteppedChat) -> None:
    desk = FileDesk(deploy(chat=chat))
    named: dict[str, Any] = {"name": "tea.txt", "media_type": "text/plain"}
    tea = await desk.uploaded(b"tea", **named)
    for accepts in (["text", "image"], ["image"]):
        await define(desk.deployment, "Read.", "reader", model={"script": "support", "accepts": accepts})
        if "text" in accepts:
            run = await desk.run("Look", tea, await desk.uploaded(), agent="reader")
            await desk.deployment.settled()
    await desk.send("POST", f"reader/instances/main/runs/{run['run_id']}/fork", {"turns": 0})
    await desk.deployment.settled()
    before, after = chat.requests
    assert set(files_in(before).values()) == {b"tea", PICTURE}
    assert set(files_in(after).values()) == {PICTURE}
    assert after.messages[-1].content == f"Look\n{tea.attached.line}"


async def test_a_run_waits_while_the_object_store_is_away_and_then_reads_the_file(deploy: Deploy) -> None:
    chat = SteppedChat(says("a picture"))
    desk = FileDesk(deploy(viewers(), chat=chat))
    picture = await desk.uploaded()
    desk.deployment.faults.plan(Fault(Unavailable("away", code="r2_unavailable"), point="objects.get"))
    waiting = await desk.run("Look", picture)
    assert (waiting["status"], waiting["waiting_for"]["code"]) == ("waiting", "r2_unavailable")
    assert chat.requests == []
    desk.deployment.clock.advance(60_000)
    await desk.deployment.fire_alarms()
    await desk.deployment.settled()
    assert [files_in(request) for request in chat.requests] == [{picture.name: PICTURE}]


@pytest.mark.parametrize("point", ["objects.get", "objects.get done", "chat.complete", "chat.complete done"])
async def test_a_run_that_a_crash_interrupted_is_sent_its_file_again(deploy: Deploy, point: str) -> None:
    chat = SteppedChat()
    desk = FileDesk(deploy(viewers(), chat=chat))
    picture = await desk.uploaded()
    desk.deployment.faults.plan(Fault(Crash(), point=point))
    with pytest.raises(Crash):
        await desk.run("Look", picture)
    await desk.deployment.recover()
    page = json.loads((await desk.send("GET", "viewer/instances/main/messages")).body)
    assert [one["role"] for one in page["messages"]] == ["user", "assistant"]
    assert files_in(chat.requests[-1]) == {picture.name: PICTURE}


NAMES = ("nobody", "ann", "bob")


@pytest.mark.parametrize("owner", NAMES)
@pytest.mark.parametrize("reader", NAMES)
@pytest.mark.parametrize("by_token", [False, True], ids=["key", "token"])
async def test_a_run_reaches_its_user_s_files_and_those_of_everyone(
    desk: FileDesk, owner: str, reader: str, by_token: bool
) -> None:
    picture = await desk.uploaded(user=None if owner == "nobody" else owner)
    more: dict[str, Any] = {} if reader == "nobody" else {"user": {"id": reader}}
    if by_token:
        desk.bound = BoundUser("carol" if reader == "nobody" else reader)
        more = {}
    reached = owner == reader != "nobody" if by_token else owner in ("nobody", reader)
    if reached:
        assert (await desk.run("Look", picture, **more))["status"] == "completed"
        return
    with pytest.raises(NotFound) as refused:
        await desk.run("Look", picture, **more)
    assert refused.value.code == "no_such_attachment"


async def test_a_user_s_token_sees_lists_reads_and_deletes_its_own_alone(desk: FileDesk) -> None:
    mine, other, all_ = [await desk.uploaded(user=user) for user in ("ann", "bob", None)]
    desk.bound = BoundUser("ann")
    listed = json.loads((await desk.send("GET", "attachments")).body)["attachments"]
    assert [one["id"] for one in listed] == [mine.id]
    assert (await desk.send("GET", f"attachments/{mine.id}/content")).headers["content-type"] == "image/png"
    for hidden in (other, all_):
        for method, path in (("GET", ""), ("GET", "/content"), ("DELETE", "")):
            with pytest.raises(NotFound):
                await desk.send(method, f"attachments/{hidden.id}{path}")
    await desk.send("DELETE", f"attachments/{mine.id}")
    desk.bound = None
    assert len(json.loads((await desk.send("GET", "attachments")).body)["attachments"]) == 2
    assert len(json.loads((await desk.send("GET", "attachments", user="bob")).body)["attachments"]) == 1


async def test_a_list_has_pages_the_newest_first(desk: FileDesk) -> None:
    made = [(await desk.uploaded(png(seed=number))).id for number in range(5)]
    found: list[str] = []
    cursor: dict[str, Any] = {}
    while True:
        page = json.loads((await desk.send("GET", "attachments", limit="2", **cursor)).body)
        found += [one["id"] for one in page["attachments"]]
        if page["cursor"] is None:
            break
        cursor = {"cursor": page["cursor"]}
    assert found == sorted(made, reverse=True)
    with pytest.raises(InvalidInput) as bad:
        await desk.send("GET", "attachments", cursor="x")
    assert bad.value.code == "invalid_cursor"


@pytest.mark.parametrize(
    ("files", "code"),
    [
        pytest.param([{"id": "01M86RM6QQZPJA2ZDPKPNQ6432"}], "no_such_attachment", id="unknown"),
        pytest.param([{"id": "../../other/1"}], "invalid_id", id="a path as id"),
        pytest.param([{"data": "%%%", "media_type": "image/png"}], "invalid_attachment", id="not base64"),
        pytest.param(
            [inline(b"GIF89a too small", "image/png")], "media_type_mismatch", id="another type than declared"
        ),
        pytest.param([inline(b"<svg/>", "image/svg+xml")], "unsupported_media_type", id="SVG as an image"),
        pytest.param([inline(b"MZ\x90", "application/x-msdownload")], "unsupported_media_type", id="a program"),
        pytest.param([inline(b"nobody knows", None)], "unsupported_media_type", id="text without a type"),
        pytest.param([inline(b"\xff\xfe", "text/plain")], "media_type_mismatch", id="text that is not UTF-8"),
        pytest.param([inline(b"", "text/plain")], "empty_content", id="empty"),
        pytest.param([inline(name="../a.png")], "invalid_attachment_name", id="a path as name"),
        pytest.param([inline(name="a\u202egnp.exe")], "invalid_attachment_name", id="a name that is shown backwards"),
        pytest.param([{"id": "01M86RM6QQZPJA2ZDPKPNQ6432", "data": "YQ=="}], "invalid_body", id="both"),
        pytest.param([{}], "invalid_body", id="neither"),
        pytest.param([inline(png(seed=n)) for n in range(MAX_ATTACHED + 1)], "too_many_attachments", id="too many"),
        pytest.param([inline(png(padding=MAX_INLINE_BYTES))], "attachment_too_large", id="too large for a body"),
    ],
)
async def test_a_bad_file_is_refused_before_anything_is_stored(
    desk: FileDesk, chat: SteppedChat, files: list[dict[str, Any]], code: str
) -> None:
    with pytest.raises(RetainError) as refused:
        await desk.run("Look", *files)
    assert refused.value.code == code
    await _nothing_is_left(desk, chat)


@pytest.mark.parametrize(
    ("accepts", "file", "taken"),
    [
        (["text"], inline(), False),
        (["text"], inline(b"tea", "text/plain", "a.txt"), True),
        (["image"], inline(PDF, "application/pdf", "a.pdf"), False),
        ([], inline(b"tea", "text/plain", "a.txt"), False),
        (["pdf"], inline(PDF, None, None), True),
    ],
)
async def test_an_agent_is_sent_only_what_it_accepts(
    deploy: Deploy, chat: SteppedChat, accepts: list[str], file: dict[str, Any], taken: bool
) -> None:
    other = {"type": "other", "description": "Other.", "instructions": "Do it.", "model": {"accepts": accepts}}
    desk = FileDesk(deploy(viewers(other), chat=chat))
    if taken:
        assert (await desk.run("Look", file, agent="other"))["status"] == "completed"
        return
    with pytest.raises(InvalidInput) as refused:
        await desk.run("Look", file, agent="other")
    assert (refused.value.code, refused.value.details["accepts"]) == ("attachments_not_accepted", accepts)
    await _nothing_is_left(desk, chat)


async def test_files_that_do_not_fit_the_context_or_a_request_are_refused(deploy: Deploy, chat: SteppedChat) -> None:
    small = {"type": "small", "description": "Small.", "instructions": "Do it.", "model": {"accepts": ["image"]}}
    desk = FileDesk(deploy(viewers({**small, "limits": {"context_tokens": 2_000}}), chat=chat))
    with pytest.raises(LimitExceeded) as full:
        await desk.run("Look", inline(), agent="small")
    assert full.value.code == "input_too_large"
    large = [await desk.uploaded(png(seed=n, padding=MAX_BYTES - 2_000)) for n in range(2)]
    with pytest.raises(LimitExceeded) as together:
        await desk.run("Look", *large)
    assert together.value.code == "attachment_too_large"
    assert chat.requests == []


async def _nothing_is_left(desk: FileDesk, chat: SteppedChat) -> None:
    async def rows(table: str) -> list[Row]:
        return await desk.deployment.rows(f"SELECT * FROM {table}")

    assert chat.requests == []
    assert [await rows(table) for table in ("attachments", "attachment_uses", "agent_runs")] == [[], [], []]
    assert (await desk.deployment.objects_store.list("attachments/")).keys == []


def _named(length: int) -> dict[str, Any]:
    return inline(name="n" * length)


def _of_size(size: int) -> list[dict[str, Any]]:
    return [inline(b"a" * size, "text/plain", "a.txt")]


@pytest.mark.parametrize(
    ("files", "code"),
    [
        pytest.param([inline(png(seed=n)) for n in range(MAX_ATTACHED)], None, id="as many files as a message has"),
        pytest.param([inline(png(seed=n)) for n in range(MAX_ATTACHED + 1)], "too_many_attachments", id="one more"),
        pytest.param(_of_size(MAX_INLINE_BYTES), None, id="as much as a body has"),
        pytest.param(_of_size(MAX_INLINE_BYTES + 1), "attachment_too_large", id="one byte more"),
        pytest.param([_named(MAX_NAME)], None, id="the longest name"),
        pytest.param([_named(MAX_NAME + 1)], "invalid_attachment_name", id="a longer name"),
        pytest.param([_named(MAX_BODY_NAME)], "invalid_attachment_name", id="the longest name that is read"),
        pytest.param([_named(MAX_BODY_NAME + 1)], "invalid_body", id="one that is not read"),
        pytest.param([MAX_BYTES], None, id="the largest file"),
        pytest.param([MAX_BYTES + 1], "attachment_too_large", id="a larger file"),
        pytest.param([MAX_BYTES, MAX_SENT_BYTES - MAX_BYTES], None, id="as much as a request to a model has"),
        pytest.param([MAX_BYTES, MAX_SENT_BYTES - MAX_BYTES + 1], "attachment_too_large", id="a byte more than that"),
    ],
)
async def test_what_a_limit_allows_is_taken_and_more_is_refused(
    deploy: Deploy, chat: SteppedChat, files: list[Any], code: str | None
) -> None:
    wide = {**VIEWER, "type": "wide", "limits": {"context_tokens": 1_000_000}, "model": {"accepts": ["image", "pdf"]}}
    texts = {**wide, "type": "texts", "model": {"accepts": ["image", "text"]}}
    desk = FileDesk(deploy(viewers(wide, texts), chat=chat))
    try:
        named = [
            await desk.uploaded(PDF + b" " * (size - len(PDF)), "application/pdf") if isinstance(size, int) else size
            for size in files
        ]
        agent = "wide" if isinstance(files[0], int) else "texts"
        assert (await desk.run("Look", *named, agent=agent))["status"] == "completed"
        assert code is None
    except RetainError as error:
        assert error.code == code
        assert chat.requests == []


async def test_ag_ui_s_images_and_documents_are_files_of_the_run(desk: FileDesk, chat: SteppedChat) -> None:
    bill = await desk.uploaded(PDF, "application/pdf", name="bill.pdf")
    data = inline()["data"]
    content = [
        {"type": "text", "text": "What is it?"},
        {"type": "image", "source": {"type": "data", "value": data, "mimeType": "image/png"}},
        {"type": "document", "source": {"type": "file", "value": bill.id}},
        {"type": "binary", "mimeType": "text/plain", "data": "dGVh", "filename": "list.txt"},
    ]
    body = {"threadId": "desk", "runId": "r1", "messages": [{"id": "1", "role": "user", "content": content}]}
    answer = await desk.send("POST", "viewer/ag-ui", body)
    assert answer.stream is not None
    assert "RUN_FINISHED" in "".join([piece async for piece in answer.stream])
    assert shown(chat.requests[-1].messages[-1]) == ("What is it?", ["file.png", "bill.pdf", "list.txt"])
    assert files_in(chat.requests[-1]) == {"file.png": PICTURE, "bill.pdf": PDF, "list.txt": b"tea"}
    for part in ({"type": "audio", "source": {"type": "data", "value": "YQ=="}}, {"type": "image"}):
        with pytest.raises(InvalidInput) as refused:
            await desk.send("POST", "viewer/ag-ui", {**body, "runId": "r2", "messages": [_message(part)]})
        assert refused.value.code == "unsupported_content"


def _message(part: dict[str, Any]) -> dict[str, Any]:
    return {"id": "1", "role": "user", "content": [part]}
