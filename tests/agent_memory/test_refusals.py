"""What the interface refuses: limits one below, at and one above, and every error in Cloudflare's envelope."""

from __future__ import annotations

from typing import Any

import pytest

from retain.agent_memory.handlers import MAX_PER_PAGE
from retain.agent_memory.profile import MAX_QUERY_BYTES
from retain.ingest.messages import MAX_MESSAGE_BYTES, MAX_MESSAGES
from tests.agent_memory.account import NAMESPACES, Account
from tests.shell.worker import serving

ANN = "/acme/profiles/ann"


def message(content: str = "I like tea.", **more: object) -> dict[str, object]:
    return {"role": "user", "content": content, **more}


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "code", "reason"),
    [
        ("GET", "/absent", None, 404, 1003, "unknown_tenant"),
        ("POST", "/absent/profiles/ann/recall", {"query": "x"}, 404, 1003, "unknown_tenant"),
        ("POST", "", {"name": "acme"}, 409, 10008, "namespace_exists"),
        ("POST", "", {"name": "Not-A-Name"}, 400, 400, "invalid_namespace"),
        ("POST", "", {}, 400, 400, "invalid_body"),
        ("GET", "/UPPER", None, 400, 400, "invalid_namespace"),
        ("GET", "/acme/nothing", None, 404, 7003, "no_such_route"),
        ("PUT", "/acme", None, 405, 405, "method_not_allowed"),
        ("GET", "/acme/profiles/under_score/memories", None, 400, 400, "invalid_profile"),
        ("GET", "/acme/profiles/house-9/memories", None, 400, 400, "invalid_house"),
        ("GET", f"{ANN}/memories/x", None, 400, 400, "invalid_id"),
        ("GET", f"{ANN}/memories?type=thought", None, 400, 400, "invalid_query"),
        ("GET", f"{ANN}/memories?per_page=0", None, 400, 400, "invalid_limit"),
        ("GET", f"{ANN}/memories?cursor=x", None, 400, 400, "invalid_cursor"),
        ("GET", f"{ANN}/memories?page=2", None, 400, 400, "invalid_query"),
        ("GET", "/acme/profiles?cursor=%20", None, 400, 400, "invalid_cursor"),
        ("GET", f"{ANN}/memories?session_id=%FF", None, 400, 400, "invalid_query"),
        ("DELETE", f"{ANN}/sessions/%FF", None, 404, 7003, "no_such_route"),
        ("POST", f"{ANN}/remember", {"content": ""}, 400, 400, "invalid_body"),
        ("POST", f"{ANN}/remember", {"content": " "}, 400, 400, "empty_content"),
        ("POST", f"{ANN}/remember", {"content": "x", "sessionId": "."}, 400, 400, "invalid_session"),
        (
            "POST",
            f"{ANN}/ingest",
            {"messages": [{"role": "user", "content": "x"}], "sessionId": ".."},
            400,
            400,
            "invalid_session",
        ),
        ("POST", f"{ANN}/recall", {"query": "tea", "thinkingLevel": "deep"}, 400, 400, "invalid_body"),
        ("POST", f"{ANN}/recall", {"query": "tea", "referenceDate": "soon"}, 400, 400, "invalid_body"),
        ("POST", f"{ANN}/recall", {"query": " "}, 400, 400, "empty_query"),
        ("POST", f"{ANN}/ingest", {"messages": []}, 400, 400, "no_messages"),
        ("POST", f"{ANN}/ingest", {"sessionId": "s1"}, 400, 400, "invalid_body"),
        ("POST", f"{ANN}/ingest", {"messages": "hello"}, 400, 400, "invalid_body"),
    ],
)
async def test_an_error_is_in_the_envelope_with_cloudflare_s_number_and_retain_s_code(
    account: Account, method: str, path: str, body: object, status: int, code: int, reason: str
) -> None:
    assert await account.refusal(method, path, body) == (status, code, reason)


@pytest.mark.parametrize(
    ("body", "pointer", "reason"),
    [
        ({"messages": [message(), message(role="tool")]}, "/messages/1/role", "invalid_message"),
        ({"messages": [message("")]}, "/messages/0/content", "invalid_message"),
        ({"messages": [message("a\x00b")]}, "/messages/0/content", "invalid_message"),
        ({"messages": [message(timestamp="soon")]}, "/messages/0/timestamp", "invalid_message"),
        ({"messages": [message(timestamp=1)]}, "/messages/0/timestamp", "invalid_message"),
        (
            {"messages": [message(timestamp="9999-12-31T23:59:59-14:00")]},
            "/messages/0/timestamp",
            "invalid_message",
        ),
        ({"messages": [message(name="Ann")]}, "/messages/0", "invalid_message"),
        ({"messages": [message()], "profile": "ben"}, "/profile", "invalid_body"),
        ({"messages": [message("x" * 300_000)]}, "/messages/0", "content_too_large"),
    ],
)
async def test_a_bad_conversation_is_refused_whole_with_a_pointer_to_the_fault(
    account: Account, body: dict[str, Any], pointer: str, reason: str
) -> None:
    answer = await account.ask("POST", f"{ANN}/ingest", body)
    [error] = answer.content["errors"]
    assert (answer.status, error["reason"], error["source"]) == (400, reason, {"pointer": pointer})
    assert await account.recall("tea") == []
    assert await account.worker.rows("SELECT 1 FROM ingest_uploads") == []


async def test_what_a_conversation_has_besides_is_refused_at_once_and_not_kept(account: Account) -> None:
    answer = await account.ask("POST", f"{ANN}/ingest", body=b'{"messages": [], "a1": 0, not JSON')
    [error] = answer.content["errors"]
    assert (answer.status, error["reason"], error["source"]) == (400, "invalid_body", {"pointer": "/a1"})


async def test_each_problem_of_a_body_is_an_error_with_a_pointer(account: Account) -> None:
    answer = await account.ask("POST", f"{ANN}/recall", {"query": 7, "responseLength": "endless"})
    assert [error["source"]["pointer"] for error in answer.content["errors"]] == ["/query", "/responseLength"]


async def test_a_conversation_has_at_most_five_hundred_messages(account: Account) -> None:
    for count, status in ((MAX_MESSAGES - 1, 200), (MAX_MESSAGES, 200), (MAX_MESSAGES + 1, 400)):
        sent = [message(f"Line {number}.") for number in range(count)]
        answer = await account.ask("POST", f"{ANN}/ingest", {"messages": sent, "sessionId": f"s{count}"})
        assert answer.status == status
    assert answer.content["errors"][0]["reason"] == "too_many_messages"
    assert (await account.worker.rows("SELECT COUNT(*) AS n FROM memory_records"))[0]["n"] == 2 * MAX_MESSAGES - 1


@pytest.mark.parametrize("more", [-1, 0, 1])
async def test_lengths_have_the_limits_that_cloudflare_documents(account: Account, more: int) -> None:
    status = 200 if more <= 0 else 400
    content = "é" * (MAX_MESSAGE_BYTES // 2 - 1) + "x" * (2 + more)
    for path, body in (
        (f"{ANN}/remember", {"content": content}),
        (f"{ANN}/ingest", {"messages": [message(content)]}),
        (f"{ANN}/recall", {"query": "x" * (MAX_QUERY_BYTES + more)}),
        (f"{ANN}/remember", {"content": "x", "sessionId": "s" * (64 + more)}),
        (f"/acme/profiles/{'p' * (100 + more)}/summary", {}),
    ):
        assert (await account.ask("POST", path, body)).status == status, path
    assert (await account.ask("GET", f"{ANN}/memories?per_page={MAX_PER_PAGE + more}")).status == status
    created = await account.ask("POST", "", {"name": "n" * (32 + more)})
    assert created.status == (201 if more <= 0 else 400)


async def test_only_the_configured_account_is_answered_and_in_production_none_without_one() -> None:
    for variables, account, status in (
        ({"AGENT_MEMORY_ACCOUNT": "0123456789abcdef"}, "0123456789abcdef", 200),
        ({"AGENT_MEMORY_ACCOUNT": "0123456789abcdef"}, "fedcba9876543210", 404),
        ({}, "fedcba9876543210", 200),
    ):
        async with serving(**variables) as worker:
            path = NAMESPACES.replace("0123456789abcdef", account)
            assert (await worker.request("GET", path)).status == status
    settings = {
        "RETAIN_ENVIRONMENT": "production",
        "ACCESS_TEAM_DOMAIN": "a.cloudflareaccess.com",
        "ACCESS_AUDIENCE": "x",
    }
    async with serving(**settings) as worker:
        made = await worker.request("GET", NAMESPACES)
        assert (made.status, made.content["errors"][0]["reason"]) == (401, "missing_access_token")


async def test_an_unexpected_error_is_in_the_envelope_too(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(*_: object) -> None:
        raise RuntimeError("a fault")

    monkeypatch.setattr("retain.agent_memory.profile.Profile.get", broken)
    assert await account.refusal("GET", f"{ANN}/memories/01ARZ3NDEKTSV4RRFFQ69G5FAV") == (500, 500, "internal")


async def test_a_body_that_breaks_off_is_refused(account: Account) -> None:
    for path in ("ingest", "remember"):
        assert await account.refusal("POST", f"{ANN}/{path}", body=b'{"messages": [') == (400, 400, "malformed_json")
