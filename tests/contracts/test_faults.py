"""CM4 when the store fails or the process dies: a conversation is the old one or the new one, never a mixture."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retain.contracts.backends.chat_kv import KvChatMemory
from retain.contracts.backends.chat_object import ObjectChatMemory
from retain.contracts.backends.chat_sql import SqlChatMemory
from retain.contracts.chat import ChatMemory
from retain.contracts.opaque import MAX_PIECE_BYTES
from retain.errors import InvalidInput, LimitExceeded, Unavailable
from retain.host.clock import ManualClock
from retain.host.kv import SqliteKv
from retain.host.object_sql import SqliteObjectSql
from retain.host.sql import SqliteSql
from retain.limits.storage import MAX_KV_VALUE_BYTES
from retain.models.chat import ChatMessage, ToolCall
from tests.contracts.backends import CHATS, ChatOf, namespace
from tests.support.databases import migrated_d1

PLACE = namespace("session")
OLD = [ChatMessage("user", f"old {n}") for n in range(4)]
NEW = [ChatMessage("user", f"new {n} {'x' * 700_000}") for n in range(6)]
"""Large enough to take several statements."""


class FailingObjectSql:
    """An object's SQLite that fails at the n-th statement."""

    def __init__(self, inner: SqliteObjectSql, nth: int) -> None:
        self.inner = inner
        self.left = nth

    def run(self, sql: str, *values: Any) -> Any:
        self.left -= 1
        if self.left == 0:
            raise Unavailable("planned")
        return self.inner.run(sql, *values)

    def script(self, statements: Sequence[str]) -> None:
        self.inner.script(statements)

    def atomically(self, work: Callable[[], None]) -> None:
        self.inner.atomically(work)


async def test_an_object_that_fails_at_any_statement_keeps_the_old_conversation() -> None:
    sql = SqliteObjectSql.open()
    memory = ObjectChatMemory(sql, PLACE)
    await memory.save(OLD)
    for nth in range(1, 50):
        failing = FailingObjectSql(sql, nth)
        try:
            await ObjectChatMemory(failing, PLACE).save(NEW)
        except Unavailable:
            assert await memory.load() == OLD, f"at statement {nth}"
            continue
        break
    assert nth > 3
    assert await memory.load() == NEW


async def test_a_save_that_the_database_refuses_halfway_keeps_the_old_conversation() -> None:
    sql = migrated_d1()
    memory = SqlChatMemory(sql, PLACE)
    await memory.save(OLD)
    await sql.run(
        "CREATE TRIGGER refuse BEFORE INSERT ON chat_messages WHEN new.position = 5 BEGIN SELECT RAISE(ABORT, 'no'); END"
    )
    with pytest.raises(Exception, match="constraint"):
        await memory.save(NEW)
    assert await memory.load() == OLD


_KILLED = """
import asyncio, os, sqlite3, sys
from retain.host.sql import SqliteSql
from retain.contracts.backends.chat_sql import SqlChatMemory
from tests.contracts.test_faults import NEW, PLACE

sql = SqliteSql.open(sys.argv[1])
connection = vars(sql)["_connection"]
left = int(sys.argv[2])

def count(statement):
    global left
    left -= 1
    if left == 0:
        os.kill(os.getpid(), 9)

connection.set_trace_callback(count)
asyncio.run(SqlChatMemory(sql, PLACE).save(NEW))
connection.set_trace_callback(None)
print("saved")
"""


async def test_a_process_that_is_killed_in_the_middle_of_a_save_leaves_the_old_conversation(
    tmp_path: Path,
) -> None:
    path = tmp_path / "memory.sqlite"
    migrated_file = SqliteSql.open(path)
    migrated_file.migrate(Path("migrations"))
    await SqlChatMemory(migrated_file, PLACE).save(OLD)
    migrated_file.close()
    killed = 0
    for nth in (2, 4, 10_000):
        done = subprocess.run(
            [sys.executable, "-c", _KILLED, str(path), str(nth)],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True,
            text=True,
            check=False,
        )
        sql = SqliteSql.open(path)
        found = await SqlChatMemory(sql, PLACE).load()
        sql.close()
        if done.stdout.strip() == "saved":
            assert found == NEW
            break
        assert done.returncode == -9, done.stderr
        killed += 1
        assert found == OLD, f"killed at statement {nth}"
    assert killed == 2
    assert found == NEW


@pytest.mark.parametrize("backend", CHATS)
async def test_sessions_and_tenants_are_kept_separate(backend: str) -> None:
    memory_of: ChatOf = CHATS[backend]()
    here, there, elsewhere = (
        memory_of(place) for place in (namespace("a"), namespace("b"), namespace("a", tenant="other"))
    )
    for memory, content in ((here, "here"), (there, "there"), (elsewhere, "elsewhere")):
        await memory.save([ChatMessage("user", content)])
    await here.save([])
    assert [[m.content for m in await memory.load()] for memory in (here, there, elsewhere)] == [
        [],
        ["there"],
        ["elsewhere"],
    ]


async def test_a_save_writes_only_the_rows_that_differ() -> None:
    sql = migrated_d1()
    memory = SqlChatMemory(sql, PLACE)
    await memory.save(OLD)
    before = (await sql.run("SELECT total_changes() AS n")).rows[0]["n"]
    await memory.save([*OLD, ChatMessage("assistant", "one more")])
    message, entry = 1, 1  # what is written, and its entry in the mutation log
    assert (await sql.run("SELECT total_changes() AS n")).rows[0]["n"] == before + message + entry


LARGE = "x" * (MAX_PIECE_BYTES + 1)


@pytest.mark.parametrize(
    ("backend", "messages", "code"),
    [
        ("d1", [ChatMessage("user", LARGE)], "chat_message_too_large"),
        ("durable-object", [ChatMessage("user", LARGE)], "chat_message_too_large"),
        ("d1", [ChatMessage("user", "x" * 890_000)] * 20, "chat_session_too_large"),
        ("kv", [ChatMessage("user", "x" * 5_000_000)] * 6, "chat_session_too_large"),
    ],
    ids=["a message for D1", "a message for an object", "a conversation for D1", "a conversation for KV"],
)
async def test_what_is_too_large_is_refused_and_loses_nothing(
    backend: str, messages: list[ChatMessage], code: str
) -> None:
    memory: ChatMemory = CHATS[backend]()(PLACE)
    await memory.save(OLD)
    with pytest.raises(LimitExceeded) as refused:
        await memory.save(messages)
    assert refused.value.code == code
    assert await memory.load() == OLD


async def test_a_conversation_that_just_fits_into_kv_is_kept() -> None:
    memory = KvChatMemory(SqliteKv.open(ManualClock()), PLACE)
    around = len('[{"role":"user","content":""}]')
    await memory.save([ChatMessage("user", "x" * (MAX_KV_VALUE_BYTES - around))])
    assert len(await memory.load()) == 1


async def test_what_only_failures_have_is_stored_of_failures_alone() -> None:
    kv = SqliteKv.open(ManualClock())
    memory = KvChatMemory(kv, PLACE)
    bad = ToolCall("1", "ship", {}, "the arguments are not a JSON object: {")
    talk = [
        ChatMessage("assistant", "", (ToolCall("0", "ship", {}), bad)),
        ChatMessage("tool", "ok", (), "0"),
        ChatMessage("tool", "no", (), "1", failed=True),
    ]
    await memory.save(talk)
    assert await memory.load() == talk
    await memory.save(talk[1:2])
    [key] = (await kv.list("")).keys
    assert await kv.get(key) == '[{"role":"tool","content":"ok","tool_call_id":"0"}]'


async def test_a_conversation_in_kv_expires() -> None:
    clock = ManualClock()
    memory = KvChatMemory(SqliteKv.open(clock), PLACE, ttl_s=60)
    await memory.save(OLD)
    clock.advance(60_000)
    assert await memory.load() == []


@pytest.mark.parametrize("backend", CHATS)
@pytest.mark.parametrize(
    "message",
    [
        ChatMessage("user", 17),  # type: ignore[arg-type]
        ChatMessage("user", "a lone \ud800"),
        ChatMessage("user", "text", tool_calls=[]),  # type: ignore[arg-type]
    ],
    ids=["number", "surrogate", "list"],
)
async def test_a_message_that_would_not_be_loaded_equal_is_refused(backend: str, message: ChatMessage) -> None:
    memory = CHATS[backend]()(PLACE)
    await memory.save(OLD)
    with pytest.raises(InvalidInput) as refused:
        await memory.save([message])
    assert refused.value.code in ("invalid_chat_message", "unsupported_value")
    assert await memory.load() == OLD


_messages = st.lists(st.builds(ChatMessage, st.sampled_from(["user", "system"]), st.text(max_size=20)), max_size=8)


@settings(max_examples=40, deadline=None)
@given(st.lists(_messages, min_size=1, max_size=5))
async def test_what_is_loaded_is_what_was_saved_last(saves: list[list[ChatMessage]]) -> None:
    for make in CHATS.values():
        memory = make()(PLACE)
        for messages in saves:
            await memory.save(messages)
            assert await memory.load() == messages
