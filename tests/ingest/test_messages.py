"""Messages are checked one by one: a bad message does not affect the others."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import pytest

from retain.errors import InvalidInput, LimitExceeded
from retain.host.clock import ManualClock
from retain.ingest.intake import Intake
from retain.ingest.messages import MAX_AT_MS, IncomingMessage, Rejection, check_conversation
from tests.ports import raises
from tests.support.databases import migrated_d1

GOOD: dict[str, Any] = {"speaker": "Bea", "content": "Hello"}
BAD: dict[str, tuple[object, str]] = {
    "not an object": ("Hello", "invalid_message"),
    "an unknown field": ({**GOOD, "rank": "user"}, "invalid_message"),
    "no content": ({"speaker": "Bea"}, "invalid_content"),
    "content that is not text": ({**GOOD, "content": ["Hello"]}, "invalid_content"),
    "blank content": ({**GOOD, "content": " \n"}, "empty_content"),
    "content with NUL": ({**GOOD, "content": "a\x00b"}, "invalid_content"),
    "a lone surrogate": ({**GOOD, "content": "\ud800"}, "invalid_content"),
    "content over 32 KiB": ({**GOOD, "content": "x" * 32_769}, "content_too_large"),
    "32 KiB in characters, more in bytes": ({**GOOD, "content": "ü" * 16_385}, "content_too_large"),
    "only recalled text": ({**GOOD, "content": '<memory section="records">x</memory>'}, "recalled_text"),
    "no speaker": ({"content": "Hello"}, "invalid_speaker"),
    "a blank speaker": ({**GOOD, "speaker": " "}, "invalid_speaker"),
    "a speaker of several lines": ({**GOOD, "speaker": "Bea\nTom"}, "invalid_speaker"),
    "a speaker of over 512 bytes": ({**GOOD, "speaker": "x" * 513}, "invalid_speaker"),
    "an id that is not text": ({**GOOD, "id": 5}, "invalid_id"),
    "an empty id": ({**GOOD, "id": ""}, "invalid_id"),
    "a time that is not a number": ({**GOOD, "at_ms": "now"}, "invalid_at_ms"),
    "a time that is a truth value": ({**GOOD, "at_ms": True}, "invalid_at_ms"),
    "a time before 1970": ({**GOOD, "at_ms": -1}, "invalid_at_ms"),
    "a time after the year 9999": ({**GOOD, "at_ms": MAX_AT_MS + 1}, "invalid_at_ms"),
}


async def read(raw: list[object]) -> tuple[list[IncomingMessage], list[Rejection]]:
    """Return the valid messages, and the rejected ones."""
    with closing(migrated_d1()) as sql:
        intake = Intake(sql, "acme", ManualClock())
        for one in raw:
            await intake.add(one)
        await intake.finish()
        return list(intake.held.values()), intake.rejected


@pytest.mark.parametrize(("bad", "code"), BAD.values(), ids=BAD)
async def test_a_bad_message_is_rejected_with_its_index_and_the_others_are_read(bad: object, code: str) -> None:
    accepted, [rejected] = await read([GOOD, bad, GOOD])
    assert [message.index for message in accepted] == [0, 2]
    assert (rejected.index, rejected.code) == (1, code)
    assert rejected.message


async def test_a_message_at_the_limits_is_read() -> None:
    limit = {"id": "i" * 512, "speaker": "s" * 512, "content": "x" * 32_768, "at_ms": MAX_AT_MS}
    [message], rejected = await read([limit])
    assert (message.id, message.speaker, message.content, message.at_ms) == (*limit.values(),)
    assert rejected == []


async def test_a_message_without_a_speaker_is_that_of_its_role() -> None:
    named, unnamed = {"role": "user", **GOOD}, [{"role": role, "content": "Hello"} for role in ("user", "assistant")]
    messages, rejected = await read([named, *unnamed, {**unnamed[0], "speaker": None}])
    assert [(message.speaker, message.role) for message in messages] == [
        ("Bea", "user"),
        ("user", "user"),
        ("assistant", "assistant"),
        ("user", "user"),
    ]
    assert rejected == []


async def test_recalled_text_is_left_out_of_a_message() -> None:
    content = 'I agree.\n<memory section="episodes" note="n">\nold\n</memory>'
    [message], _ = await read([{**GOOD, "content": content}])
    assert message.content == "I agree."


async def test_five_hundred_messages_are_read_and_one_more_is_too_many() -> None:
    assert len((await read([GOOD] * 500))[0]) == 500
    with raises(LimitExceeded, code="too_many_messages"):
        await read([GOOD] * 501)


async def test_a_request_without_messages_is_refused() -> None:
    with raises(InvalidInput, code="no_messages"):
        await read([])


@pytest.mark.parametrize("conversation", ["", " ", "a\nb", "x" * 513])
def test_a_conversation_needs_an_id(conversation: str) -> None:
    with raises(InvalidInput, code="invalid_conversation"):
        check_conversation(conversation)
