"""What every chat adapter does when its provider fails, at once or in the middle of a stream."""

from __future__ import annotations

from typing import Protocol, get_args

import pytest

from retain.errors import Misconfigured, RetainError, Unavailable, UpstreamFailed
from retain.models.chat import ChatReply, ChatRequest, Cut, ToolCall, Usage, usage_of
from tests.models.chat_contract import ASKED, FORECAST, Heard, Stage
from tests.ports import Case, raises
from tests.support.model_server import Failure

REQUEST = ChatRequest(ASKED, [FORECAST])
TEXT = "It will be cold in Oslo, and it will snow."


class ProviderStage(Stage, Protocol):
    """An adapter, and a provider that fails on demand. The adapter tries three times."""

    def fail(self, failure: Failure, *, times: int = 1) -> None:
        """Let the next requests fail in this way."""
        ...

    @property
    def waited(self) -> int:
        """How often the adapter waited before another try."""
        ...


async def check_usage_is_what_the_provider_counts(stage: ProviderStage) -> None:
    for heard in (None, Heard()):
        stage.say(ChatReply(TEXT, usage=Usage(123, 45)))
        assert (await stage.model.complete(REQUEST, heard)).usage == Usage(123, 45)


async def check_what_an_answer_without_use_costs_is_in_its_error(stage: ProviderStage) -> None:
    for heard in (None, Heard()):
        for cut in get_args(Cut):
            stage.say(ChatReply(" ", usage=Usage(12, 3), cut=cut))
            with pytest.raises(UpstreamFailed) as caught:
                await stage.model.complete(REQUEST, heard)
            assert usage_of(caught.value) == Usage(12, 3)


async def check_usage_of_both_tries_is_counted(stage: ProviderStage) -> None:
    stage.say(ChatReply("not JSON", usage=Usage(10, 2)))
    stage.say(ChatReply("{}", usage=Usage(30, 5)))
    reply = await stage.model.complete(ChatRequest(ASKED, schema={"type": "object"}))
    assert (reply.usage, reply.structured) == (Usage(40, 7), {})


async def check_an_answer_that_was_withheld_is_an_error(stage: ProviderStage) -> None:
    for heard in (None, Heard()):
        for calls in ((), (ToolCall("a", "forecast", {}),)):
            stage.say(ChatReply("", calls, Usage(1, 1), "content_filter"))
            with raises(UpstreamFailed, code="content_filtered"):
                await stage.model.complete(REQUEST, heard)


async def check_an_answer_that_was_withheld_in_part_says_so(stage: ProviderStage) -> None:
    for heard in (None, Heard()):
        stage.say(ChatReply("One takes", usage=Usage(1, 1), cut="content_filter"))
        reply = await stage.model.complete(REQUEST, heard)
        assert (reply.content, reply.finish_reason) == ("One takes", "content_filter")


async def check_an_answer_cut_before_any_text_is_an_error(stage: ProviderStage) -> None:
    for heard in (None, Heard()):
        stage.say(ChatReply("", usage=Usage(1, 1), cut="length"))
        with raises(UpstreamFailed, code="answer_cut"):
            await stage.model.complete(REQUEST, heard)


async def check_an_answer_cut_within_its_thoughts_is_an_error(stage: ProviderStage) -> None:
    for heard in (None, Heard()):
        stage.say(ChatReply("<think>They ask me", usage=Usage(3, 1), cut="length"))
        with raises(UpstreamFailed, code="answer_cut"):
            await stage.model.complete(REQUEST, heard)
        assert heard is None or heard.text == ""


async def check_a_transient_failure_is_retried(stage: ProviderStage) -> None:
    for failure in (Failure(status=429), Failure(status=500), Failure(status=408), Failure("drop")):
        for heard in (None, Heard()):
            before, waited = stage.asked, stage.waited
            stage.fail(failure)
            stage.say(ChatReply(TEXT))
            assert (await stage.model.complete(REQUEST, heard)).content == TEXT
            assert (stage.asked - before, stage.waited - waited) == (2, 1)


async def check_a_failure_that_lasts_is_unavailable(stage: ProviderStage) -> None:
    for heard in (None, Heard()):
        before = stage.asked
        stage.fail(Failure(status=500), times=3)
        with raises(Unavailable):
            await stage.model.complete(REQUEST, heard)
        assert stage.asked - before == 3


async def check_silence_is_a_timeout(stage: ProviderStage) -> None:
    for heard in (None, Heard()):
        stage.fail(Failure("never"), times=3)
        with raises(Unavailable, code="upstream_timeout"):
            await stage.model.complete(REQUEST, heard)


async def check_what_another_try_cannot_fix_is_raised_at_once(stage: ProviderStage) -> None:
    terminal: list[tuple[int, type[RetainError], str]] = [
        (400, UpstreamFailed, "model_refused"),
        (401, Misconfigured, "model_credentials"),
        (402, UpstreamFailed, "model_quota"),
        (403, Misconfigured, "model_credentials"),
        (404, UpstreamFailed, "model_refused"),
        (413, UpstreamFailed, "model_refused"),
    ]
    for status, kind, code in terminal:
        for heard in (None, Heard()):
            before = stage.asked
            stage.fail(Failure(status=status))
            with raises(kind, code=code):
                await stage.model.complete(REQUEST, heard)
            assert stage.asked - before == 1


async def check_a_stream_that_breaks_before_any_text_is_restarted(stage: ProviderStage) -> None:
    for fault in ("break", "error_event"):
        heard = Heard()
        stage.say(ChatReply("lost"))
        stage.fail(Failure(fault, events=0))
        stage.say(ChatReply(TEXT))
        reply = await stage.model.complete(REQUEST, heard)
        assert reply.content == heard.text == TEXT


async def check_a_stream_that_breaks_within_a_call_is_restarted(stage: ProviderStage) -> None:
    answer = ChatReply("", (ToolCall("a", "forecast", {"city": "Longyearbyen"}),))
    stage.say(answer)
    stage.fail(Failure("break", events=5 if stage.model.name != "@cf/native" else 1))
    stage.say(answer)
    reply = await stage.model.complete(REQUEST, Heard())
    assert [call.arguments for call in reply.tool_calls] == [{"city": "Longyearbyen"}]


async def check_text_is_never_given_twice(stage: ProviderStage) -> None:
    for fault in ("break", "error_event"):
        await _interrupted(stage, Failure(fault, events=6))


async def check_text_before_silence_is_never_given_twice(stage: ProviderStage) -> None:
    await _interrupted(stage, Failure("stall", events=6))


async def _interrupted(stage: ProviderStage, failure: Failure) -> None:
    before, heard = stage.asked, Heard()
    stage.say(ChatReply(TEXT))
    stage.fail(failure)
    with raises(Unavailable, code="stream_interrupted"):
        await stage.model.complete(REQUEST, heard)
    assert heard.text
    assert TEXT.startswith(heard.text)
    assert heard.text != TEXT
    assert stage.asked - before == 1


TIMEOUTS_MS: dict[Case, int] = {check_silence_is_a_timeout: 200, check_text_before_silence_is_never_given_twice: 2_000}
"""How long the adapter waits where it waits in vain. In the second case the beginning must arrive in time."""


async def check_an_event_that_is_not_json_is_a_failure_of_the_server(stage: ProviderStage) -> None:
    before = stage.asked
    stage.say(ChatReply(TEXT))
    stage.fail(Failure("malformed_event", events=3))
    with raises(UpstreamFailed, code="malformed_answer"):
        await stage.model.complete(REQUEST, Heard())
    assert stage.asked - before == 1


async def check_what_the_caller_raises_is_raised_as_it_is(stage: ProviderStage) -> None:
    async def refuse(text: str) -> None:
        raise Unavailable("the reader is gone", code="contended")

    before = stage.asked
    stage.say(ChatReply(TEXT))
    with raises(Unavailable, code="contended"):
        await stage.model.complete(REQUEST, refuse)
    assert stage.asked - before == 1
