"""A deployment with data to erase in every store."""

from __future__ import annotations

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

from retain.contracts.backends.chat_kv import KvChatMemory
from retain.contracts.backends.chat_sql import SqlChatMemory
from retain.contracts.backends.vector_indexed import IndexedVectorMemory
from retain.contracts.backends.vector_sql import SqlVectorMemory
from retain.contracts.vectors import VectorDocument
from retain.gateway.credentials import credential_name
from retain.gateway.provisioning import new_api_key
from retain.gateway.tool_config import tool_name_in_kv
from retain.lifecycle.erasure.eraser import Erasure, Outcome
from retain.memory.records.record import NewRecord, Utterance
from retain.models.chat import ChatMessage, ToolCall
from retain.namespace import Namespace
from tests.lifecycle.world import PERSON, Snapshot, World, living

ANN = "ann@shop.example"
MAIL = f"From {ANN}: I want a refund of order AB-1003."
HISTORY = ("world_history", "mutation_log")
"""What stays of a tenant after its erasure: no content, and no names."""


@cache
def filled() -> Snapshot:
    """Return a tenant with data in every store, and a neighbour with the same data."""

    async def made() -> Snapshot:
        with living() as world:
            for tenant in ("acme", "neighbour"):
                await fill(world, tenant)
            await world.rest()
            return world.snapshot()

    with ThreadPoolExecutor(1) as thread:  # with its own event loop, wherever the first test runs
        return thread.submit(asyncio.run, made()).result()


async def fill(world: World, tenant: str) -> None:
    """Store data of a tenant in every store."""
    await world.sql.run("INSERT OR IGNORE INTO tenants (tenant_id, created_at_ms) VALUES (?, 0)", tenant)
    await world.seed("refund_decision", [f"Refund approved for {ANN}: order AB-1001."], tenant=tenant)
    await world.store(f"{ANN} likes tea.", tenant=tenant, subject=ANN, predicate="likes", object="tea")
    await world.store(f"{ANN} likes coffee.", tenant=tenant, subject=ANN, predicate="likes", object="coffee")
    mistaken = await world.store("Lives in Rome.", tenant=tenant, subject=ANN)
    await world.memory(tenant).edit(mistaken, {"subject": "bob"}, PERSON)
    gone = await world.store(f"{ANN} has a dog.", tenant=tenant, subject=ANN)
    await world.memory(tenant).delete(gone, PERSON)
    await world.store("Bob knows someone.", tenant=tenant, metadata={"friends": [{ANN: "close"}]})
    await world.store("A lamp.", tenant=tenant, utterance=Utterance("chat-1", 0, "Ann <ANN@Shop.example>"))
    await world.store("Bob likes joann@shop.example.com.", tenant=tenant, subject="bob")
    await world.store_all([NewRecord(f"Fact {n} about nobody. " + "More. " * 300) for n in range(3)], tenant=tenant)
    await world.run("order_triage", MAIL, tenant=tenant)
    await world.run("order_triage", "From bob@mail.example: where is order CD-2001?", tenant=tenant, instance="bob")
    await world.settled()
    await world.kv.put(f"agent_working:{tenant}:main:last_mail", json.dumps(MAIL), ttl_s=3600)
    await world.kv.put(f"agent_working:{tenant}:main:count", "17", ttl_s=3600)
    for key in (tool_name_in_kv(tenant, "ship"), credential_name(tenant, "ship")):
        await world.kv.put(key, "{}")
    await new_api_key(tenant, ["*"], now_ms=world.clock()).entry.write(world.kv)
    await world.objects_store.put(f"tenants/{tenant}/mails/1", MAIL.encode())
    await world.objects_store.put(f"tenants/{tenant}/mails/2", b"nothing")
    await remember(world, tenant)
    place = {"tenant_id": tenant, "scope_id": "tenant", "job_id": f"job-{tenant}"}
    with_ann = f"chat with {ANN}"
    world.plant("ingest_jobs", **place, conversation=with_ann, state="running")
    for number, (conversation, content) in enumerate([(with_ann, "Hi."), ("chat-2", MAIL), ("chat-2", "Bye.")]):
        message = {"conversation": conversation, "position": number, "speaker": "Bob", "content": content}
        world.plant("ingest_messages", **place, **message, message_index=number, state="received")
        world.plant("ingest_uploads", tenant_id=tenant, upload_id=f"up-{tenant}", message_index=number, content=content)
    world.plant(
        "outbox_failures", instance_key=f"order_triage:{tenant}:main", tenant_id=tenant, parameters=json.dumps([MAIL])
    )


async def remember(world: World, tenant: str) -> None:
    """Store conversations and documents of a tenant: some name the subject, some say "content" and "user"."""
    mails, others = Namespace("desk", tenant, "mails"), Namespace("desk", tenant, "others")
    messages = [
        ChatMessage("user", MAIL),
        ChatMessage("assistant", "", (ToolCall("1", "ship", {"to": [ANN]}),)),
        ChatMessage("user", "Hi."),
    ]
    for memory in (SqlChatMemory(world.sql, mails), KvChatMemory(world.kv, mails)):
        await memory.save(messages)
    for memory in (SqlChatMemory(world.sql, others), KvChatMemory(world.kv, others)):
        await memory.save(messages[2:])
    texts = [f"A letter from {ANN}.", "A lamp."]
    kept = [
        VectorDocument(f"document-{number}", text, vector, {"kind": "letter"})
        for number, (text, vector) in enumerate(zip(texts, await world.embedder.embed(texts), strict=True))
    ]
    await IndexedVectorMemory(world.sql, world.index, world.clock, mails, dimensions=256, model="static").store(kept)
    await SqlVectorMemory(world.sql, others, dimensions=256, model="static").store(kept)


async def erased(world: World, tenant: str | None = None, subject: str = ANN, match: Any = "mention") -> Outcome:
    """Repeat the call until the erasure is complete; return its outcome."""
    erasure = Erasure(world.stores())
    return await world.completed(
        lambda: erasure.erase_tenant(tenant) if tenant else erasure.erase_subject("acme", subject, match)
    )


def rows_of(world: World, tenant: str, without: tuple[str, ...] = ()) -> dict[str, list[Any]]:
    """Return the rows that name a tenant in every store except its history."""
    return {
        table: mine
        for table, rows in world.everything().items()
        if table.partition("/")[2] not in (*HISTORY, "erasure_receipts", "erased_tenants", *without)
        if (mine := [row for row in rows if any(tenant in str(value) for value in row)])
    }
