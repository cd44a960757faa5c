"""Ingest over HTTP, on the real workerd."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from tests.e2e.local_state import LocalState
from tests.e2e.waiting import eventually
from tests.ingest.substrate import turns

pytestmark = pytest.mark.workerd

LINES = (
    "Bea: Hi! My name is Bea Lang and I live in Paris.",
    "assistant: Nice to meet you, Bea.",
    "Bea: I'm allergic to peanuts.",
    "Bea: Remind me to call the dentist tomorrow.",
)


def post(api: httpx.Client, tenant_id: str, **body: Any) -> httpx.Response:
    return api.post(f"/admin/tenants/{tenant_id}/memories/ingest", json=body)


def show(api: httpx.Client, tenant_id: str, job_id: str) -> dict[str, Any]:
    response = api.get(f"/admin/tenants/{tenant_id}/memories/ingest/{job_id}")
    assert response.status_code == 200, response.text
    job: dict[str, Any] = response.json()
    return job


def recall(api: httpx.Client, tenant_id: str, query: str, **body: Any) -> list[dict[str, Any]]:
    response = api.post(f"/admin/tenants/{tenant_id}/memories/recall", json={"query": query, **body})
    memories: list[dict[str, Any]] = response.json()["memories"]
    return memories


def test_a_conversation_is_recalled_immediately_with_its_facts(api: httpx.Client, tenant: Callable[[], str]) -> None:
    tenant_id = tenant()
    request = {"conversation": "chat-1", "agent_type": "sdr", "messages": turns(*LINES, first_id=1, at_ms=10**12)}
    response = post(api, tenant_id, **request)
    job = response.json()
    assert response.status_code == 201, job
    counts = ("state", "received", "stored", "duplicate", "rejected", "extracted", "rejections", "error")
    assert [job[name] for name in counts] == ["completed", 4, 4, 0, 0, 4, [], None]
    assert show(api, tenant_id, job["job_id"]) == job
    contents = [memory["content"] for memory in recall(api, tenant_id, "What must Bea not eat?", agent_type="sdr")]
    assert {"I'm allergic to peanuts.", "Bea is allergic to peanuts"} <= set(contents)
    [fact] = [
        memory
        for memory in recall(api, tenant_id, "where does Bea live", agent_type="sdr", filter={"kind": "fact"})
        if memory["predicate"] == "lives_in"
    ]
    assert fact["object"] == "Paris"
    assert fact["source"]["message"] == "m1"
    assert recall(api, tenant_id, "where does Bea live", agent_type="order_triage") == []
    # The same request is the same job.
    again = post(api, tenant_id, **request)
    assert (again.status_code, again.json()) == (200, job)


def test_an_overlapping_window_adds_what_is_new(
    api: httpx.Client, tenant: Callable[[], str], state: LocalState
) -> None:
    tenant_id = tenant()
    lines = [f"Bea: Line {number} of what I had to say." for number in range(15)]
    assert post(api, tenant_id, conversation="c", messages=turns(*lines[:10])).json()["stored"] == 10
    job = post(api, tenant_id, conversation="c", messages=turns(*lines[5:])).json()
    assert (job["stored"], job["duplicate"]) == (5, 5)
    rows = state.d1("SELECT content FROM memory_records WHERE tenant_id = ? ORDER BY position", tenant_id)
    assert [f"Bea: {row['content']}" for row in rows] == lines


def test_five_hundred_messages_are_processed_after_the_response(api: httpx.Client, tenant: Callable[[], str]) -> None:
    tenant_id = tenant()
    lines = [f"Bea: Line {number} of what I had to say, and I own a boat." for number in range(500)]
    response = post(api, tenant_id, conversation="long", messages=turns(*lines, first_id=0))
    job = response.json()
    assert (response.status_code, job["state"]) == (202, "running")
    done = eventually(lambda: show(api, tenant_id, job["job_id"]), lambda job: job["state"] != "running", within_s=90)
    assert (done["state"], done["stored"], done["duplicate"], done["error"]) == ("completed", 500, 0, None)


def test_a_bad_message_is_listed_and_the_others_are_stored(api: httpx.Client, tenant: Callable[[], str]) -> None:
    tenant_id = tenant()
    fence = '<memory section="records" note="n">\nBea hates tea.\n</memory>'
    messages = [*turns("Bea: Hello"), {"speaker": "Bea", "content": "x" * 32_769}, *turns(f"Bea: {fence}")]
    job = post(api, tenant_id, conversation="c", messages=messages).json()
    assert (job["state"], job["stored"], job["rejected"]) == ("completed", 1, 2)
    assert [(rejection["index"], rejection["code"]) for rejection in job["rejections"]] == [
        (1, "content_too_large"),
        (2, "recalled_text"),
    ]
    assert all("hates tea" not in memory["content"] for memory in recall(api, tenant_id, "Does Bea like tea?"))


def test_a_request_of_megabytes_is_accepted_and_a_larger_one_is_refused(
    api: httpx.Client, tenant: Callable[[], str], state: LocalState
) -> None:
    tenant_id = tenant()
    large = [{"speaker": "Bea", "content": f"{number} " + "z" * 32_700} for number in range(500)]
    # Text quoted from recall is left out: the request has the maximum size, and there is little to store.
    fence = '<memory section="records" note="n">{}</memory>'
    quoted = [{**one, "content": fence.format(one["content"][:32_600])} for one in large[10:]]
    response = post(api, tenant_id, conversation="c", messages=large[:10] + quoted)
    assert response.status_code == 202, response.text
    job = response.json()
    assert (job["received"], job["rejected"]) == (500, 490)
    path = f"/admin/tenants/{tenant_id}/memories/ingest"
    head = b'{"conversation": "c", "messages": ["'

    def endless() -> Iterator[bytes]:
        yield head
        yield from itertools.repeat(b"x" * 1_048_576, 50)

    response = api.post(path, content=endless())
    assert (response.status_code, response.json()["code"]) == (413, "body_too_large")
    cut = json.dumps({"conversation": "c", "messages": large[10:]}).encode()[:-2]
    response = api.post(path, content=cut)
    assert (response.status_code, response.json()["code"]) == (400, "malformed_json")
    assert state.d1("SELECT 1 FROM ingest_uploads") == []
    done = eventually(lambda: show(api, tenant_id, job["job_id"]), lambda job: job["state"] != "running", within_s=90)
    assert (done["state"], done["stored"]) == ("completed", 10)


def test_a_request_without_a_body_is_refused(api: httpx.Client, tenant: Callable[[], str]) -> None:
    response = api.post(f"/admin/tenants/{tenant()}/memories/ingest")
    assert (response.status_code, response.json()["code"]) == (400, "malformed_json")


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"conversation": "c", "messages": turns("Bea: x") * 501}, 413, "too_many_messages"),
        ({"conversation": "c", "messages": []}, 400, "no_messages"),
        ({"conversation": "", "messages": turns("Bea: x")}, 400, "invalid_conversation"),
        ({"messages": turns("Bea: x")}, 400, "invalid_body"),
        ({"conversation": "c", "messages": "Hello"}, 400, "invalid_body"),
        ({"conversation": "c", "messages": turns("Bea: x"), "tenant": "other"}, 400, "invalid_body"),
        ({"conversation": "c", "messages": turns("Bea: x"), "agent_type": "nobody"}, 404, "unknown_agent"),
        ({"conversation": "c", "messages": turns("Bea: x"), "agent_type": "No Agent"}, 400, "invalid_agent_type"),
        ({"conversation": "c", "messages": turns("Bea: x"), "agent_type": "sdr", "house": "a"}, 400, "invalid_scope"),
    ],
    ids=[
        "too many",
        "none",
        "no id",
        "no conversation",
        "no list",
        "another tenant",
        "no such agent",
        "no agent",
        "two scopes",
    ],
)
def test_an_invalid_request_is_refused(
    api: httpx.Client, tenant: Callable[[], str], body: dict[str, Any], status: int, code: str
) -> None:
    response = post(api, tenant(), **body)
    assert (response.status_code, response.json()["code"]) == (status, code)


def test_a_job_of_another_tenant_does_not_exist(api: httpx.Client, tenant: Callable[[], str]) -> None:
    owner, other = tenant(), tenant()
    job = post(api, owner, conversation="c", messages=turns("Bea: x")).json()
    for tenant_id, job_id, status, code in (
        (other, job["job_id"], 404, "no_such_job"),
        (owner, "0" * 32, 404, "no_such_job"),
        (owner, "nonsense", 400, "invalid_job_id"),
    ):
        response = api.get(f"/admin/tenants/{tenant_id}/memories/ingest/{job_id}")
        assert (response.status_code, response.json()["code"]) == (status, code)


def test_an_interrupted_job_resumes_when_it_is_read_and_by_the_daily_cron(
    api: httpx.Client, tenant: Callable[[], str], state: LocalState
) -> None:
    tenant_id = tenant()
    jobs = [post(api, tenant_id, conversation=name, messages=turns("Bea: I live in Rome.")).json() for name in "ab"]
    _interrupt(state, tenant_id)
    assert show(api, tenant_id, jobs[0]["job_id"])["state"] == "running"
    eventually(lambda: show(api, tenant_id, jobs[0]["job_id"]), lambda job: job["state"] == "completed")
    _interrupt(state, tenant_id)
    assert api.get("/cdn-cgi/handler/scheduled", params={"cron": "0 4 * * *"}).status_code == 200
    rows = state.d1("SELECT state, stored FROM ingest_jobs WHERE tenant_id = ?", tenant_id)
    assert [tuple(row.values()) for row in rows] == [("completed", 1)] * 2
    assert len(state.d1("SELECT 1 FROM memory_records WHERE tenant_id = ? AND kind = 'event'", tenant_id)) == 2


def test_a_failed_job_is_answered_with_an_error_and_the_same_request_resumes_it(
    api: httpx.Client, tenant: Callable[[], str], state: LocalState
) -> None:
    tenant_id = tenant()
    request = {"conversation": "c", "messages": turns("Bea: I live in Rome.")}
    job = post(api, tenant_id, **request).json()
    _interrupt(state, tenant_id)
    with state.d1_transaction() as database:  # no request is stored so: its job stops
        database.execute("UPDATE ingest_messages SET content = ' ' WHERE tenant_id = ?", (tenant_id,))
    failed = post(api, tenant_id, **request)
    answered = {name: failed.json()[name] for name in ("code", "job_id", "stage", "cause", "stored")}
    assert (failed.status_code, answered) == (
        503,
        {"code": "ingest_failed", "job_id": job["job_id"], "stage": "storing", "cause": "empty_content", "stored": 0},
    )
    assert show(api, tenant_id, job["job_id"])["state"] == "failed"
    _interrupt(state, tenant_id)
    again = post(api, tenant_id, **request)
    assert (again.status_code, again.json()["state"], again.json()["stored"]) == (200, "completed", 1)


def test_conversations_of_one_tenant_are_ingested_at_once_and_none_is_lost(
    api: httpx.Client, tenant: Callable[[], str]
) -> None:
    tenant_id = tenant()

    def send(number: int) -> httpx.Response:
        lines = [f"Person{number}: Line {line} of mine: I own a boat." for line in range(20)]
        return post(api, tenant_id, conversation=f"chat-{number}", messages=turns(*lines))

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(send, range(8)))
    assert {answer.status_code for answer in answers} <= {201, 202}, [answer.text for answer in answers]
    for answer in answers:
        job_id = answer.json()["job_id"]
        done = eventually(lambda: show(api, tenant_id, job_id), lambda job: job["state"] != "running", within_s=90)  # noqa: B023
        assert (done["state"], done["stored"]) == ("completed", 20)


def test_what_is_over_is_closed_when_it_was_said(
    api: httpx.Client, tenant: Callable[[], str], state: LocalState
) -> None:
    tenant_id, start, day = tenant(), 1_600_000_000_000, 86_400_000
    for number, line in enumerate(("Bea: I'm vegetarian.", "Bea: I'm not vegetarian any more.")):
        post(api, tenant_id, conversation="c", messages=turns(line, at_ms=start + number * day))
    rows = state.d1(
        "SELECT content, valid_to_ms FROM memory_records WHERE tenant_id = ? AND kind = 'fact' ORDER BY id", tenant_id
    )
    assert [tuple(row.values()) for row in rows] == [
        ("Bea is vegetarian", start + day),
        ("Bea is no longer vegetarian", None),
    ]


def test_the_message_of_a_superseded_fact_comes_after_the_new_fact(
    api: httpx.Client, tenant: Callable[[], str]
) -> None:
    tenant_id = tenant()
    for number, line in enumerate(("Bea: I live in Paris.", "Bea: I just moved to Berlin.")):
        post(api, tenant_id, conversation="c", messages=turns(line, at_ms=1_600_000_000_000 + number))
    found = recall(api, tenant_id, "Where does Bea live?", explain=True)
    assert found[0]["content"] == "Bea lives in Berlin"
    [old] = [memory for memory in found if memory["content"] == "I live in Paris."]
    assert old["components"]["outdated"] < 0


def test_parts_that_arrive_out_of_order_are_placed_by_their_times(
    api: httpx.Client, tenant: Callable[[], str], state: LocalState
) -> None:
    tenant_id, day = tenant(), 86_400_000
    parts = [[f"Bea: Part {part}, line {line}." for line in range(5)] for part in range(3)]
    for part in (2, 0, 1):
        post(api, tenant_id, conversation="c", messages=turns(*parts[part], at_ms=1_600_000_000_000 + part * day))
    rows = state.d1("SELECT content FROM memory_records WHERE tenant_id = ? ORDER BY position", tenant_id)
    assert [f"Bea: {row['content']}" for row in rows] == [line for part in parts for line in part]


def test_an_assistant_is_told_from_a_person_by_its_role(api: httpx.Client, tenant: Callable[[], str]) -> None:
    tenant_id = tenant()
    messages = [
        {"speaker": "Maya", "role": "assistant", "content": "I live in the cloud, and my name is Maya."},
        {"speaker": "Claude", "role": "user", "content": "By the way: I moved to Oslo."},
    ]
    assert post(api, tenant_id, conversation="c", messages=messages).status_code == 201
    facts = recall(api, tenant_id, "who lives where", filter={"kind": "fact"})
    assert [fact["content"] for fact in facts] == ["Claude lives in Oslo"]


def _interrupt(state: LocalState, tenant_id: str) -> None:
    """Leave the tenant's jobs as if their Worker had stopped after storing the messages and before recording that."""
    with state.d1_transaction() as database:
        database.execute(
            "UPDATE ingest_jobs SET state = 'running', stored = 0, lease_until_ms = 1, completed_at_ms = NULL"
            " WHERE tenant_id = ?",
            (tenant_id,),
        )
        database.execute(
            "UPDATE ingest_messages SET state = 'received', speaker = 'Bea', content = 'I live in Rome.',"
            " record_id = NULL WHERE tenant_id = ?",
            (tenant_id,),
        )
