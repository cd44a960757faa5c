"""OpenAI's interface of chat models: what any request means, which errors there are, and texts that only grow."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai.types.chat.completion_create_params import CompletionCreateParamsBase

from retain.agents.calls.client import InstanceClient
from retain.agents.calls.report import ApprovalAwaited, Awaited, ModelAwaited, RunStanding
from retain.agents.calls.run_request import PriorMessage
from retain.agents.front_ends.chat_answer import Completion
from retain.agents.front_ends.chat_request import IGNORED, ChatBody
from retain.agents.front_ends.chat_stream import ChatText
from retain.agents.front_ends.messages import MAX_PRIOR_BYTES, MAX_PRIOR_MESSAGES, earlier_messages, newest_question
from retain.agents.front_ends.openai_errors import refused
from retain.agents.front_ends.question import question_of
from retain.agents.identity import instance_of
from retain.errors import (
    Conflict,
    Forbidden,
    InvalidInput,
    MethodNotAllowed,
    QuotaExceeded,
    RateLimited,
    RetainError,
    Unauthenticated,
    Unavailable,
)
from retain.http import Request
from retain.identifiers import new_id, time_of
from retain.routing.bodies import JsonBody
from tests.agents.front_ends.chat_client import (
    ANN,
    HELLO,
    Deploy,
)
from tests.support.instances import LocalInstances


@pytest.mark.parametrize(
    ("error", "status", "kind", "again"),
    [
        pytest.param(RateLimited("slow", retry_after_s=7), 429, "rate_limit_error", True, id="a rate"),
        pytest.param(
            RateLimited("full", code="queue_full", retry_after_ms=500), 429, "rate_limit_error", True, id="a queue"
        ),
        pytest.param(QuotaExceeded("spent", code="run_quota"), 429, "insufficient_quota", False, id="a quota"),
        pytest.param(Unavailable("away", code="d1_unavailable"), 503, "server_error", True, id="a store"),
        pytest.param(RetainError("oops"), 500, "server_error", False, id="a fault"),
        pytest.param(Conflict("busy", code="instance_busy"), 409, "conflict_error", True, id="a busy instance"),
        pytest.param(Conflict("not yours", code="wrong_user"), 409, "conflict_error", False, id="another user"),
        pytest.param(Unauthenticated("who?"), 401, "authentication_error", False, id="nobody"),
        pytest.param(Forbidden("no", code="scope_required"), 403, "permission_error", False, id="a scope"),
        pytest.param(MethodNotAllowed("no", allowed=["POST"]), 405, "invalid_request_error", False, id="a method"),
    ],
)
def test_a_client_that_retries_on_its_own_learns_whether_it_should(
    error: RetainError, status: int, kind: str, again: bool
) -> None:
    answer = refused(error, "request-1")
    assert (answer.status, answer.headers["x-should-retry"]) == (status, str(again).lower())
    assert json.loads(answer.body)["error"]["type"] == kind
    if isinstance(error, RateLimited):
        assert answer.headers["retry-after"] == ("7" if error.code == "rate_limited" else "1")
    assert answer.headers.get("allow") == ("POST" if status == 405 else None)


NEW_CODES = ("unsupported_parameter", "unsupported_content", "no_user_message")
TEXTS = st.text("ab \u00e9\u4e16", max_size=6)
MESSAGES = st.lists(st.tuples(st.sampled_from(["system", "user", "assistant"]), TEXTS), max_size=8)


@given(MESSAGES)
def test_each_message_of_user_and_agent_is_read_once(messages: list[tuple[str, str]]) -> None:
    texts = [text for role, text in messages if role != "system" and text.strip()]
    try:
        last = newest_question(messages)
    except InvalidInput as error:
        assert error.code == "no_user_message"
        answered = max((n for n, (role, _) in enumerate(messages) if role == "assistant"), default=-1)
        assert not any(role == "user" and text.strip() for role, text in messages[answered + 1 :])
        return
    before = [message.content for message in earlier_messages(messages)[0]]
    assert [*before, *(text for text in last.split("\n\n") if text.strip())] == texts


@given(MESSAGES, st.booleans())
def test_a_request_means_one_run_whose_instance_and_history_have_one_keeper(
    messages: list[tuple[str, str]], is_named: bool
) -> None:
    body = ChatBody.model_validate(
        {
            "model": "clerk",
            "messages": [*({"role": role, "content": text} for role, text in messages), HELLO],
            "metadata": {"instance_id": "desk", "page": "cart"} if is_named else {"page": "cart"},
        }
    )
    asked = body.asked(None, None)
    assert asked.instance_id == ("desk" if is_named else None)
    assert asked.metadata == {"page": "cart"}
    assert not (asked.prior and is_named)
    of_token = body.asked(ANN, None)
    assert of_token.instance_id is not None
    assert of_token.prior == []


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.floats(-9, 9) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)
PARTS = st.fixed_dictionaries({"type": st.sampled_from(["text", "refusal", "image_url"])}, optional={"text": TEXTS})
ANY_MESSAGE = st.fixed_dictionaries(
    {"role": st.sampled_from(["system", "developer", "user", "assistant", "tool"])},
    optional={"content": TEXTS | st.none() | st.lists(PARTS, max_size=3) | JSON, "tool_calls": JSON},
)
ANY_BODY = st.fixed_dictionaries(
    {"model": TEXTS, "messages": st.lists(ANY_MESSAGE, min_size=1, max_size=4)},
    optional={
        **dict.fromkeys(ChatBody.model_fields.keys() - {"model", "messages", "metadata", "user"}, JSON),
        "metadata": st.dictionaries(st.sampled_from(["instance_id", "page"]), TEXTS),
        "user": TEXTS,
        "colour": JSON,
    },
)


@given(ANY_BODY, st.booleans())
def test_any_body_is_a_run_or_is_refused_with_a_code_that_is_documented(body: dict[str, Any], is_bound: bool) -> None:
    request = Request("POST", "/v1/chat/completions", {}, {}, json.dumps(body), "host", "request-1")
    try:
        asked = JsonBody(ChatBody).read(request).asked(ANN if is_bound else None, None)
    except RetainError as error:
        shown = json.loads(refused(error, "request-1").body)["error"]
        assert set(shown) == {"message", "type", "param", "code"}
        assert shown["code"] in ("invalid_body", "invalid_user", "invalid_attachment", *NEW_CODES)
        return
    assert isinstance(asked.input, str)
    assert asked.input.strip()


def test_as_much_of_the_end_of_a_conversation_is_read_as_a_run_takes() -> None:
    many = [("user", f"q{n}") for n in range(MAX_PRIOR_MESSAGES + 5)] + [("assistant", "yes")]
    kept, files = earlier_messages([*many, ("user", "now")])
    assert len(kept) == len(files) == MAX_PRIOR_MESSAGES
    assert kept[-1] == PriorMessage("assistant", "yes")
    for extra, count in ((-1, 2), (0, 2), (1, 1)):
        long = ("user", "x" * (MAX_PRIOR_BYTES - 1 + extra))
        assert len(earlier_messages([long, ("assistant", "y"), ("user", "now")])[0]) == count


@given(st.lists(st.tuples(st.integers(1, 3), st.integers(0, 4), TEXTS), max_size=8), TEXTS)
def test_a_message_only_grows_and_ends_with_the_answer(written: list[tuple[int, int, str]], output: str) -> None:
    text, sent = ChatText(), ""
    for turn, offset, piece in sorted(written, key=lambda one: one[0]):
        sent += text.written(turn, offset, piece)
    sent += text.rest(output)
    assert sent.endswith(output)


@pytest.mark.parametrize(
    ("awaited", "is_waited_for"),
    [
        pytest.param(None, True, id="under way"),
        pytest.param(ModelAwaited("model_unavailable", "away", 1, 2), True, id="its model is away"),
        pytest.param(ApprovalAwaited("1.0", "pay", {}, 1), False, id="a person"),
    ],
)
async def test_whoever_asks_waits_for_a_model_and_not_for_a_person(
    deploy: Deploy, awaited: Awaited | None, is_waited_for: bool
) -> None:
    standing = RunStanding("0" * 26, "desk", "waiting" if awaited else "queued", awaited)
    client = InstanceClient(LocalInstances(deploy()), instance_of("acme", "clerk", "desk"))
    question = await question_of(client, standing)
    assert (question is None) is is_waited_for
    notice = Completion(client.identity, "0" * 26).notice(standing, question)
    assert f"/v1/agents/acme/clerk/instances/desk/runs/{'0' * 26}" in notice


def test_an_answer_that_is_begun_again_is_apart_from_what_was_read_of_it() -> None:
    text = ChatText()
    assert [text.written(1, 0, "Good"), text.written(1, 0, "Bad"), text.written(1, 3, "ly.")] == [
        "Good",
        "\n\nBad",
        "ly.",
    ]
    assert [text.rest("Badly."), text.rest("Well.")] == ["", "\n\nWell."]


def test_the_time_of_an_id_is_when_it_was_made() -> None:
    before = time.time_ns() // 1_000_000
    assert before <= time_of(new_id()) <= time.time_ns() // 1_000_000


def test_every_ignored_parameter_is_one_of_the_body() -> None:
    assert set(IGNORED) < set(ChatBody.model_fields)


def test_every_parameter_of_the_official_client_is_known() -> None:
    assert set(CompletionCreateParamsBase.__annotations__) <= set(ChatBody.model_fields)
