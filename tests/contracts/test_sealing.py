"""Conversations in KV are sealed at rest, as PII of items is; without a key, those with PII are refused."""

from __future__ import annotations

import base64
import json

import pytest

from retain.contracts.backends.chat_kv import MAX_SEALED_BYTES, KvChatMemory
from retain.errors import LimitExceeded, Misconfigured
from retain.host.clock import ManualClock
from retain.host.crypto import HostCrypto
from retain.host.kv import SqliteKv
from retain.models.chat import ChatMessage, ToolCall
from retain.sealing.pii import Sealer
from tests.contracts.backends import KEY, namespace

PLACE = namespace("session")
STORED_UNDER = f"chat_memory:acme:{PLACE}"
SEALER = Sealer(HostCrypto(), KEY)
ASKED = ChatMessage("user", "Write to ann@shop.example.")
CALLED = ChatMessage("assistant", "", tool_calls=(ToolCall("1", "find", {"by": [{"userEmail": "ann@shop.example"}]}),))
FOUND = ChatMessage("tool", json.dumps({"phone": "555 0199"}), tool_call_id="1")


@pytest.fixture
def kv() -> SqliteKv:
    return SqliteKv.open(ManualClock())


async def test_a_sealed_conversation_is_loaded_unchanged_and_nothing_of_it_is_readable_in_kv(kv: SqliteKv) -> None:
    memory = KvChatMemory(kv, PLACE, sealer=SEALER)
    await memory.save([ASKED, CALLED, FOUND])
    stored = await kv.get(STORED_UNDER) or ""
    assert set(json.loads(stored)) == {"v", "kid", "data"}
    assert not any(text in stored for text in ("ann@", "555", "user", "find"))
    assert await memory.load() == [ASKED, CALLED, FOUND]


async def test_a_conversation_that_was_saved_unsealed_is_loaded_and_sealed_by_the_next_save(kv: SqliteKv) -> None:
    await KvChatMemory(kv, PLACE).save([ASKED])
    memory = KvChatMemory(kv, PLACE, sealer=SEALER)
    assert await memory.load() == [ASKED]
    await memory.save(await memory.load())
    assert "ann" not in (await kv.get(STORED_UNDER) or "")
    assert await memory.load() == [ASKED]


@pytest.mark.parametrize("messages", [[ASKED, CALLED], [FOUND]], ids=["in a call's arguments", "in a tool's answer"])
async def test_without_a_sealer_a_conversation_with_pii_is_refused_and_the_old_one_stays(
    kv: SqliteKv, messages: list[ChatMessage]
) -> None:
    memory = KvChatMemory(kv, PLACE)
    await memory.save([ASKED])
    with pytest.raises(Misconfigured) as refused:
        await memory.save(messages)
    assert refused.value.code == "memory_key_missing"
    assert await memory.load() == [ASKED]


async def test_a_sealed_conversation_opens_with_its_key_and_under_its_name_alone(kv: SqliteKv) -> None:
    await KvChatMemory(kv, PLACE, sealer=SEALER).save([ASKED])
    other = Sealer(HostCrypto(), base64.b64encode(b"o" * 32).decode(), previous=KEY)
    assert await KvChatMemory(kv, PLACE, sealer=other).load() == [ASKED], "while the key is renewed"
    elsewhere = namespace("elsewhere")
    await kv.put(f"chat_memory:acme:{elsewhere}", await kv.get(STORED_UNDER) or "")
    stranger = Sealer(HostCrypto(), base64.b64encode(b"s" * 32).decode())
    for place, sealer in ((PLACE, None), (PLACE, stranger), (elsewhere, SEALER)):
        with pytest.raises(Misconfigured) as refused:
            await KvChatMemory(kv, place, sealer=sealer).load()
        assert refused.value.code == "item_unreadable"


async def test_the_largest_sealed_conversation_fits_into_a_value_of_kv(kv: SqliteKv) -> None:
    memory = KvChatMemory(kv, PLACE, sealer=SEALER)
    around = len('[{"role":"user","content":""}]')
    await memory.save([ChatMessage("user", "x" * (MAX_SEALED_BYTES - around))])
    with pytest.raises(LimitExceeded) as refused:
        await memory.save([ChatMessage("user", "x" * (MAX_SEALED_BYTES - around + 1))])
    assert refused.value.code in ("chat_session_too_large", "chat_message_too_large")
