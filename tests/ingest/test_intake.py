"""Large requests: their text waits in D1 until one transaction opens the job, and nothing is lost or left over."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from retain.errors import InvalidInput, Unavailable
from retain.ingest.ingestion import IngestReceipt
from retain.ingest.intake import ABANDONED_MS, Intake, forget_abandoned
from retain.ingest.request import Oversized
from tests.ingest.substrate import IngestSubstrate
from tests.ports import raises
from tests.support.faults import Crash, Fault, Faults

LARGE = 30_000
UPLOADS = "SELECT * FROM ingest_uploads"
BODIES: list[dict[str, Any]] = [
    {"id": f"m{number}", "speaker": "Bea", "content": f"{number} " + "x" * LARGE, "at_ms": number}
    for number in range(20)
]


async def arrive(substrate: IngestSubstrate, messages: list[Any], conversation: str = "chat") -> IngestReceipt:
    return await substrate.ingestion().receive(conversation, messages)


async def test_a_large_request_is_stored_as_it_arrives_and_received_in_order(substrate: IngestSubstrate) -> None:
    intake = Intake(substrate.sql, "acme", substrate.clock)
    held = []
    for message in BODIES:
        await intake.add(message)
        held.append(sum(len(one.content) for one in intake.held.values()))
    assert max(held) <= 250_000
    assert len(await substrate.rows(UPLOADS)) > 10
    await intake.finish()
    receipt = await substrate.ingestion().accept("chat", intake)
    rows = await substrate.rows("SELECT * FROM ingest_messages ORDER BY position")
    fields = ("message", "speaker", "content", "at_ms")
    assert [tuple(row[name] for name in fields) for row in rows] == [tuple(one.values()) for one in BODIES]
    assert [(row["position"], row["message_index"], row["state"]) for row in rows] == [
        (number, number, "received") for number in range(20)
    ]
    assert {row["job_id"] for row in rows} == {receipt.job.job_id}
    assert await substrate.rows(UPLOADS) == []
    done = await substrate.ingestion().work(receipt.job.job_id)
    assert (done.state, done.received, done.stored, done.duplicate) == ("completed", 20, 20, 0)


async def test_the_same_large_request_is_the_same_job_and_an_overlapping_one_adds_what_is_new(
    substrate: IngestSubstrate,
) -> None:
    first, second = await asyncio.gather(arrive(substrate, BODIES[:15]), arrive(substrate, BODIES[:15]))
    assert first.job.job_id == second.job.job_id
    assert sorted([first.created, second.created]) == [False, True]
    changed = {**BODIES[3], "content": "other words"}
    bad = [Oversized("00"), {**BODIES[0], "id": "long", "content": "x" * 40_000}]
    later = await substrate.ingest("chat", [*BODIES[:3], changed, *BODIES[4:], *bad])
    assert (later.received, later.stored, later.duplicate) == (22, 5, 14)
    assert [(one.index, one.code) for one in later.rejections] == [
        (3, "message_changed"),
        (20, "content_too_large"),
        (21, "content_too_large"),
    ]
    assert await substrate.rows(UPLOADS) == []
    await substrate.ingestion().work(first.job.job_id)
    assert await substrate.texts("chat") == [f"Bea: {one['content']}" for one in BODIES]


async def test_a_large_request_that_is_interrupted_anywhere_is_received_when_it_is_sent_again() -> None:
    nth = 0
    while await _interrupted_at(nth := nth + 1):
        pass
    assert nth > 8


async def _interrupted_at(nth: int) -> bool:
    """Return whether the fault interrupted the request; if so, it is sent again."""
    substrate = IngestSubstrate()
    try:
        faults = Faults(lambda _: None)
        healthy, substrate.sql = substrate.sql, faults.wrap("sql", substrate.sql, faults.life("worker"))
        faults.plan(Fault(Crash(), nth=nth))
        try:
            await arrive(substrate, BODIES)
        except Crash:
            substrate.sql = healthy
        else:
            return False
        jobs = await substrate.rows("SELECT * FROM ingest_jobs")
        messages = await substrate.rows("SELECT * FROM ingest_messages")
        assert (len(jobs), len(messages)) in ((0, 0), (1, 20)), "half a request was received"
        receipt = await arrive(substrate, BODIES)
        assert receipt.job.received == 20
        rows = await substrate.rows("SELECT content FROM ingest_messages ORDER BY position")
        assert [row["content"] for row in rows] == [one["content"] for one in BODIES]
        substrate.clock.advance(ABANDONED_MS + 1)
        await forget_abandoned(substrate.sql, substrate.clock())
        assert await substrate.rows(UPLOADS) == []
        return True
    finally:
        substrate.close()


async def test_an_upload_that_was_deleted_meanwhile_does_not_count_as_received(substrate: IngestSubstrate) -> None:
    intake = Intake(substrate.sql, "acme", substrate.clock)
    for message in BODIES:
        await intake.add(message)
    await intake.finish()
    await substrate.d1.run("DELETE FROM ingest_uploads WHERE message_index = 3")
    with raises(Unavailable):
        await substrate.ingestion().accept("chat", intake)
    assert await substrate.rows("SELECT * FROM ingest_jobs") == []
    assert await substrate.rows("SELECT * FROM ingest_messages") == []


async def test_an_upload_that_is_refused_is_discarded(substrate: IngestSubstrate) -> None:
    intake = Intake(substrate.sql, "acme", substrate.clock)
    for message in BODIES:
        await intake.add(message)
    await intake.finish()
    with raises(InvalidInput, code="invalid_conversation"):
        await substrate.ingestion().accept("", intake)
    await intake.discard()
    await intake.discard()
    assert await substrate.rows(UPLOADS) == []


async def test_an_old_upload_is_deleted(substrate: IngestSubstrate) -> None:
    intake = Intake(substrate.sql, "acme", substrate.clock)
    for message in BODIES:
        await intake.add(message)
    waiting = len(await substrate.rows(UPLOADS))
    substrate.clock.advance(ABANDONED_MS)
    assert await forget_abandoned(substrate.sql, substrate.clock()) == 0
    substrate.clock.advance(1)
    assert await forget_abandoned(substrate.sql, substrate.clock()) == waiting > 0


@pytest.mark.parametrize("order", [[0, 1], [1, 0]])
async def test_only_equal_requests_have_equal_digests(substrate: IngestSubstrate, order: list[int]) -> None:
    async def digest(*messages: object) -> str:
        intake = Intake(substrate.sql, "acme", substrate.clock)
        for message in messages:
            await intake.add(message)
        return intake.digest

    pair = [{"speaker": "Bea", "content": "a"}, Oversized("00")]
    first = await digest(*[pair[place] for place in order])
    assert first == await digest(*[{**one} if isinstance(one, dict) else one for one in (pair[n] for n in order)])
    assert await digest({"content": "a", "speaker": "Bea"}) == await digest(pair[0])
    assert first != await digest(*[pair[place] for place in reversed(order)])
    assert await digest("oversized 00") != await digest(Oversized("00"))
