"""Requests to an instance and its reports survive their JSON, and anything else is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retain.agents.calls.answers import News, RunStreamEvent
from retain.agents.calls.report import (
    ApprovalAwaited,
    BegunCall,
    CallOutcome,
    DelegateAwaited,
    EndStatus,
    FollowedWorkflow,
    RunError,
    RunMemory,
    RunReport,
    RunResult,
    RunStanding,
    RunUsage,
    report_from_json,
)
from retain.agents.calls.requests import (
    AnswerRequest,
    CancelCallRequest,
    CancelRequest,
    DescribeRequest,
    EraseRequest,
    FollowRequest,
    NamedRun,
    OutcomeRequest,
    ReadPosition,
)
from retain.agents.calls.run_request import Budget, RunReference, RunRequest
from retain.errors import InvalidInput
from retain.json_text import JsonObject

texts, numbers = st.text(max_size=8), st.integers(0, 2**40)
some_text = st.none() | texts
objects = st.dictionaries(
    texts, st.none() | st.booleans() | numbers | texts | st.lists(numbers, max_size=2), max_size=3
)
references = st.builds(RunReference, texts, texts, texts)
positions = st.builds(ReadPosition, st.integers(-1, 999), numbers, numbers)
REQUESTS: dict[Any, st.SearchStrategy[Any]] = {
    RunRequest: st.builds(
        RunRequest,
        texts | objects,
        objects,
        some_text,
        st.booleans(),
        st.none() | references,
        numbers,
        st.builds(Budget, st.none() | numbers, st.none() | numbers),
    ),
    NamedRun: st.builds(NamedRun, texts),
    FollowRequest: st.builds(FollowRequest, texts, positions, st.floats(0, 60)),
    AnswerRequest: st.builds(AnswerRequest, texts, texts, st.booleans(), texts, some_text),
    CancelRequest: st.builds(CancelRequest, texts, texts, some_text),
    CancelCallRequest: st.builds(CancelCallRequest, texts, texts, some_text),
    OutcomeRequest: st.builds(OutcomeRequest, texts, texts, texts, st.floats(0, 1)),
    DescribeRequest: st.builds(DescribeRequest, numbers),
    EraseRequest: st.builds(EraseRequest, some_text),
    News: st.builds(
        News,
        st.lists(st.builds(RunStreamEvent, texts, objects, st.none() | numbers), max_size=3).map(tuple),
        positions,
        texts,
    ),
}
awaited = st.builds(ApprovalAwaited, texts, texts, objects, numbers) | st.builds(DelegateAwaited, texts, references)
REPORTS = st.builds(
    RunStanding, texts, texts, st.sampled_from(["running", "waiting"]), st.none() | awaited, st.booleans()
) | st.builds(
    RunResult,
    texts,
    texts,
    st.sampled_from(get_args(EndStatus)),
    some_text,
    numbers,
    st.builds(RunUsage, numbers, numbers, numbers, numbers),
    st.builds(RunMemory, numbers, numbers),
    st.none() | st.builds(FollowedWorkflow, texts, texts),
    st.none() | st.builds(RunError, texts, texts, some_text),
    st.none() | st.lists(st.builds(BegunCall, texts, texts, st.sampled_from(get_args(CallOutcome)))).map(tuple),
)


def over_the_wire(content: JsonObject) -> Any:
    return json.loads(json.dumps(content))


@pytest.mark.parametrize("kind", REQUESTS, ids=lambda kind: kind.__name__)
@given(data=st.data())
def test_a_request_survives_its_json(kind: Any, data: st.DataObject) -> None:
    request = data.draw(REQUESTS[kind])
    assert kind.from_json(over_the_wire(request.to_json())) == request


@given(report=REPORTS)
def test_a_report_survives_its_json(report: RunReport) -> None:
    assert report_from_json(over_the_wire(report.to_json())) == report
    assert report.ended is isinstance(report, RunResult)


@pytest.mark.parametrize(
    ("read", "content"),
    [
        pytest.param(RunRequest.from_json, {}, id="a run without input"),
        pytest.param(RunRequest.from_json, {"input": 7}, id="an input that is a number"),
        pytest.param(RunRequest.from_json, {"input": "x", "metadata": []}, id="metadata that are a list"),
        pytest.param(RunRequest.from_json, {"input": "x", "depth": True}, id="a depth that is a truth value"),
        pytest.param(RunRequest.from_json, {"input": "x", "budget": {"tokens": "9"}}, id="tokens as text"),
        pytest.param(RunRequest.from_json, {"input": "x", "parent": {"agent_type": "a"}}, id="half a parent"),
        pytest.param(NamedRun.from_json, {"run_id": None}, id="a run without an id"),
        pytest.param(FollowRequest.from_json, {"run_id": "r", "after": 1.5}, id="a position between two events"),
        pytest.param(
            AnswerRequest.from_json, {"run_id": "r", "call": "1.0", "by": "a"}, id="an answer without approval"
        ),
        pytest.param(OutcomeRequest.from_json, {"run_id": "r", "task_type": "t", "workflow_id": "w"}, id="no score"),
        pytest.param(report_from_json, {"status": "resting", "usage": {}, "memory": {}}, id="an unknown status"),
    ],
)
def test_what_is_not_a_request_is_refused(read: Callable[[JsonObject], object], content: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput) as refused:
        read(content)
    assert refused.value.code == "invalid_request"


def test_a_request_that_an_earlier_version_stored_is_read() -> None:
    stored: dict[str, Any] = {
        "tenant_id": "acme",
        "agent_type": "clerk",
        "instance_id": "main",
        "request_id": "r",
        "input": "hello",
        "metadata": {},
        "idempotency_key": None,
        "stream": False,
    }
    assert RunRequest.from_json(stored) == RunRequest("hello")


@given(given=objects, other=objects)
def test_two_requests_have_one_digest_exactly_when_they_ask_the_same(
    given: dict[str, Any], other: dict[str, Any]
) -> None:
    same = json.dumps(given, sort_keys=True) == json.dumps(other, sort_keys=True)
    assert (RunRequest(given).digest == RunRequest(other).digest) is same
    assert RunRequest(given, idempotency_key="k", stream=True).digest == RunRequest(given).digest
