"""The model's extractor, against a server with the real wire format: what it accepts and what it refuses."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from retain.errors import UpstreamFailed
from retain.host.fetch import HostFetch
from retain.ingest.extraction import SourceMessage
from retain.ingest.extractors.llm_extractor import LlmExtractor, read_facts
from retain.ingest.extractors.selection import extractor
from retain.models.openai_endpoint import OpenAiEndpoint
from retain.models.providers.openai import OpenAiChat
from retain.models.retry import Retries
from tests.ingest.substrate import IngestSubstrate, turns
from tests.ports import raises
from tests.support.model_server import Failure, ModelServer

MESSAGES = (SourceMessage("01A", "Bea", "I live in Paris."), SourceMessage("01B", "Tom", "Ida hates rain."))
FACT: dict[str, Any] = {
    "message": 0,
    "subject": "bea ",
    "predicate": "lives_in",
    "object": "Paris",
    "content": "Bea lives in Paris.",
    "kind": "fact",
    "confidence": 1,
}
BAD: dict[str, Any] = {
    "not JSON": "I found these facts:",
    "nothing": "",
    "JSON of another form": {"result": []},
    "a list": [FACT],
    "more fields than allowed": {"facts": [], "note": "none"},
    "a fact without a field": {"facts": [{name: value for name, value in FACT.items() if name != "object"}]},
    "a fact with an extra field": {"facts": [{**FACT, "source": "me"}]},
    "a message that does not exist": {"facts": [{**FACT, "message": 2}]},
    "a message as text": {"facts": [{**FACT, "message": "0"}]},
    "a predicate in words": {"facts": [{**FACT, "predicate": "lives in"}]},
    "an unknown kind": {"facts": [{**FACT, "kind": "rumour"}]},
    "too much confidence": {"facts": [{**FACT, "confidence": 7}]},
    "confidence that is not a number": {"facts": [{**FACT, "confidence": "NaN"}]},
    "a blank object": {"facts": [{**FACT, "object": " "}]},
    "a truncated answer": '{"facts": [{"message": 0, "subj',
}


def script(answer: object) -> Any:
    text = answer if isinstance(answer, str) else json.dumps(answer)
    return {"name": "extraction", "rules": [{"rule": "answer", "when": {}, "reply": {"text": text}}]}


@asynccontextmanager
async def extracting(answer: object) -> AsyncIterator[tuple[LlmExtractor, ModelServer]]:
    """Yield an extractor whose model returns this answer."""

    async def no_wait(_: float, /) -> None:
        """Retry immediately."""

    fetch = HostFetch()
    try:
        with ModelServer(scripts={"extraction": script(answer)}) as server:
            endpoint = OpenAiEndpoint(
                server.base_url, fetch, Retries(no_wait, lambda: 0.5, attempts=2), api_key=server.api_key
            )
            model = OpenAiChat(endpoint, model="extraction")
            chosen = extractor("llm", lambda: model)
            assert isinstance(chosen, LlmExtractor)
            yield chosen, server
    finally:
        await fetch.close()


async def test_the_facts_of_a_valid_answer_have_a_confidence_a_little_below_one() -> None:
    about_ida = {
        **FACT,
        "message": 1,
        "subject": "Ida",
        "predicate": "dislikes",
        "object": "Rain",
        "content": "Ida hates rain.",
    }
    async with extracting({"facts": [{**about_ida, "confidence": 0.5}, FACT, FACT]}) as (llm, server):
        facts = await llm.extract(MESSAGES)
    assert [(fact.subject, fact.predicate, fact.object, fact.confidence, fact.message) for fact in facts] == [
        ("speaker:bea", "lives_in", "Paris", 0.9, "01A"),
        ("entity:ida", "dislikes:rain", "Rain", 0.5, "01B"),
    ]
    [request] = server.received
    assert request.body["temperature"] == 0
    system, user = request.body["messages"]
    assert '"additionalProperties": false' in system["content"]
    assert json.loads(user["content"])[1] == {"message": 1, "speaker": "Tom", "content": "Ida hates rain."}


async def test_the_model_is_given_the_day_on_which_a_message_was_sent() -> None:
    async with extracting({"facts": []}) as (llm, server):
        await llm.extract([SourceMessage("01A", "Bea", "I fly to Lisbon tomorrow.", 1_714_571_760_000), MESSAGES[1]])
    [request] = server.received
    dated, undated = json.loads(request.body["messages"][1]["content"])
    assert (dated["at"], "at" in undated) == ("2024-05-01, Wednesday", False)


async def test_an_answer_without_facts_is_valid() -> None:
    async with extracting({"facts": []}) as (llm, _):
        assert await llm.extract(MESSAGES) == []


async def test_without_messages_the_model_is_not_called() -> None:
    async with extracting("must not be asked") as (llm, server):
        assert await llm.extract([]) == []
        assert server.received == []


def test_a_fenced_answer_is_read() -> None:
    assert len(read_facts(f"```json\n{json.dumps({'facts': [FACT]})}\n```\n", MESSAGES)) == 1


@pytest.mark.parametrize("answer", BAD.values(), ids=BAD)
async def test_an_answer_of_another_form_is_an_error(answer: object) -> None:
    async with extracting(answer) as (llm, _):
        with raises(UpstreamFailed, code="malformed_extraction"):
            await llm.extract(MESSAGES)


def test_the_error_does_not_repeat_the_answer() -> None:
    with pytest.raises(UpstreamFailed) as caught:
        read_facts(json.dumps({"facts": [{**FACT, "kind": "secret-4711"}]}), MESSAGES)
    assert "4711" not in caught.value.message + str(caught.value.details)
    assert "facts.0.kind" in caught.value.message


async def test_an_invalid_answer_fails_the_job_and_the_messages_stay_stored(substrate: IngestSubstrate) -> None:
    async with extracting("I could not find any facts, sorry!") as (llm, _):
        substrate.extractor = lambda: llm
        job = await substrate.ingest("chat", turns("Bea: I live in Paris."))
    assert job.error is not None
    assert (job.state, job.stored, job.extracted) == ("failed", 1, 0)
    assert (job.error["stage"], job.error["code"]) == ("extraction", "malformed_extraction")
    assert await substrate.texts("chat") == ["Bea: I live in Paris."]


async def test_an_unavailable_model_fails_the_job_which_then_resumes(substrate: IngestSubstrate) -> None:
    async with extracting({"facts": [FACT]}) as (llm, server):
        substrate.extractor = lambda: llm
        server.fail(Failure(status=503), times=2)
        request = turns("Bea: I live in Paris.")
        failed = await substrate.ingest("chat", request)
        assert failed.error is not None
        assert (failed.state, failed.error["code"]) == ("failed", "model_unavailable")
        done = await substrate.ingest("chat", request)
    assert (done.state, done.stored, done.extracted) == ("completed", 1, 1)
    assert await substrate.true_facts() == ["Bea lives in Paris."]


def test_what_the_model_calls_ended_is_never_stored_as_valid() -> None:
    ended = {**FACT, "state": "ended", "content": "Bea no longer lives in Paris."}
    [fact] = read_facts(json.dumps({"facts": [ended]}), MESSAGES)
    assert (fact.predicate, fact.content) == ("no_longer:lives_in:paris", "Bea no longer lives in Paris.")
    with raises(UpstreamFailed, code="malformed_extraction"):
        read_facts(json.dumps({"facts": [{**FACT, "state": "over"}]}), MESSAGES)
