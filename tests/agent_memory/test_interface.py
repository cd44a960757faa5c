"""Agent Memory's interface over HTTP, through the whole Worker on the host: what its documentation promises."""

from __future__ import annotations

import re

import pytest

from retain.agent_memory.profile import _IDS, _LIST
from retain.agent_memory.summary import _MEMORIES, _MESSAGES
from tests.agent_memory.account import NAMESPACES, Account

ULID = re.compile(r"[0-9A-HJKMNP-TV-Z]{26}")
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
MEMORY = ["content", "createdAt", "id", "sessionId", "summary", "type", "updatedAt"]


async def test_a_namespace_is_created_shown_listed_and_deleted_and_its_name_is_free_again(account: Account) -> None:
    shown = await account.result("GET", "/acme")
    assert (shown["id"], shown["name"], shown["account_id"]) == ("acme", "acme", "0123456789abcdef")
    assert TIME.fullmatch(shown["created_at"])
    assert shown["updated_at"] == shown["created_at"]
    assert await account.refusal("POST", "", {"name": "acme"}) == (409, 10008, "namespace_exists")
    listed = await account.envelope("GET")
    assert [one["name"] for one in listed["result"]] == ["acme", "default"]
    assert listed["result"][0] == shown
    assert listed["result_info"] == {"count": 2, "per_page": 20}
    await account.remember("Ann drinks tea.")
    assert await account.result("DELETE", "/acme") is None
    assert await account.refusal("GET", "/acme") == (404, 1003, "unknown_tenant")
    assert await account.refusal("DELETE", "/acme") == (404, 1003, "unknown_tenant")
    await account.result("POST", "", {"name": "acme"}, status=201)
    assert await account.listed() == []


async def test_pages_of_namespaces_go_in_both_directions(account: Account) -> None:
    for name in ("beta", "gamma"):
        await account.result("POST", "", {"name": name}, status=201)
    await account.worker.tenant("t" * 33)  # the interface cannot name it
    await account.worker.tenant("ends-with-")
    for direction, names in (
        ("asc", ["acme", "beta", "default", "gamma"]),
        ("desc", ["gamma", "default", "beta", "acme"]),
    ):
        first = await account.envelope("GET", f"?per_page=3&order=id&direction={direction}")
        assert [one["name"] for one in first["result"]] == names[:3]
        cursor = first["result_info"]["cursor"]
        rest = await account.envelope("GET", f"?per_page=3&direction={direction}&cursor={cursor}")
        assert ([one["name"] for one in rest["result"]], rest["result_info"]) == (
            names[3:],
            {"count": 1, "per_page": 3},
        )


async def test_a_memory_is_remembered_listed_recalled_shown_and_deleted(account: Account) -> None:
    stored = await account.remember("Ann drinks green tea. She buys it in Basel.", sessionId="s1")
    assert sorted(stored) == MEMORY
    assert (stored["type"], stored["content"], stored["sessionId"]) == (
        "fact",
        "Ann drinks green tea. She buys it in Basel.",
        "s1",
    )
    assert ULID.fullmatch(stored["id"])
    assert TIME.fullmatch(stored["createdAt"])
    assert await account.remember("Ann drinks green tea. She buys it in Basel.", sessionId="s1") == stored
    [listed] = await account.listed()
    assert listed == {name: value for name, value in stored.items() if name != "content"}
    [found] = await account.recall("What does Ann drink?")
    assert (found["id"], found["summary"], found["sessionId"]) == (stored["id"], stored["summary"], "s1")
    assert found["score"] > 0
    path = f"/acme/profiles/ann/memories/{stored['id']}"
    assert await account.result("GET", path) == stored
    assert await account.result("DELETE", path) == stored
    assert await account.refusal("GET", path) == (404, 404, "no_such_memory")
    assert await account.refusal("DELETE", path) == (404, 404, "no_such_memory")
    assert await account.recall("What does Ann drink?") == []


async def test_a_recall_without_a_language_model_has_no_answer(account: Account) -> None:
    await account.remember("Ann drinks green tea.")
    body = await account.result("POST", "/acme/profiles/ann/recall", {"query": "tea?", "responseLength": "long"})
    assert sorted(body) == ["candidates", "count"]


async def test_the_thinking_level_is_how_many_candidates_there_are(account: Account) -> None:
    for number in range(12):
        await account.remember(f"Ann has tea of kind {number} in the cupboard.")
    assert len(await account.recall("tea in the cupboard")) == 10
    assert len(await account.recall("tea in the cupboard", thinkingLevel="medium")) == 12


async def test_a_profile_sees_neither_another_one_nor_another_namespace(account: Account) -> None:
    stored = await account.remember("Ann drinks green tea.")
    await account.result("POST", "", {"name": "other"}, status=201)
    for path in ("/acme/profiles/ben", "/other/profiles/ann", "/acme/profiles/house-ann"):
        found = await account.result("POST", f"{path}/recall", {"query": "Who drinks tea?"})
        assert found == {"count": 0, "candidates": []}
        assert await account.result("GET", f"{path}/memories") == []
        for method in ("GET", "DELETE"):
            assert (await account.refusal(method, f"{path}/memories/{stored['id']}"))[0] == 404


async def test_a_conversation_is_searched_and_its_facts_are_listed_with_their_session(account: Account) -> None:
    lines = ("user: My name is Ann Lang and I live in Basel.", "assistant: Nice to meet you.")
    await account.ingest(*lines, sessionId="s1")
    await account.ingest(*lines, sessionId="s1")
    found = await account.recall("Where does Ann live?")
    assert {one["sessionId"] for one in found} == {"s1"}
    [message] = [one for one in found if one["summary"].startswith("My name is")]
    assert (await account.result("GET", f"/acme/profiles/ann/memories/{message['id']}"))["type"] == "event"
    facts = await account.listed()
    assert {(one["type"], one["sessionId"]) for one in facts} == {("fact", "s1")}
    assert await account.listed(query="?session_id=s2") == []
    assert await account.listed(query="?session_id=s1&type=fact") == facts
    # With a fact goes the message that stated it.
    home = next(one for one in facts if "Basel" in one["summary"])
    await account.result("DELETE", f"/acme/profiles/ann/memories/{home['id']}")
    assert "My name is" not in str(await account.recall("Where does Ann live?"))


async def test_messages_without_a_session_get_the_same_one_again(account: Account) -> None:
    for _ in range(2):
        await account.ingest("user: I own a red bicycle.", "user: I own a red bicycle.")
    found = await account.recall("Who owns a bicycle?")
    sessions = {one["sessionId"] for one in found}
    assert len(sessions) == 1
    assert sessions.pop().startswith("auto-")
    assert len([one for one in found if one["summary"] == "I own a red bicycle."]) == 1


async def test_a_session_is_deleted_with_all_that_came_from_it_and_can_be_sent_again(account: Account) -> None:
    lines = ("user: I live in Basel.", "user: I own a red bicycle.")
    await account.ingest(*lines, sessionId="s1")
    await account.ingest("user: I have a cat called Mia.", sessionId="s2")
    await account.remember("Prefers the window seat.", sessionId="s1")
    kept = await account.remember("Speaks French.")
    before = await account.listed()
    for _ in range(2):
        assert await account.result("DELETE", "/acme/profiles/ann/sessions/s1") is None
    left = await account.listed()
    assert kept["id"] in [one["id"] for one in left]
    assert {one["sessionId"] for one in left} <= {"s2", None}
    assert all("bicycle" not in one["summary"] for one in await account.recall("Who owns a bicycle?"))
    assert "Mia" in str(await account.recall("What is the cat called?"))
    await account.ingest(*lines, sessionId="s1")
    assert "I own a red bicycle." in str(await account.recall("Who owns a bicycle?"))
    assert len(await account.listed()) == len(before) - 1


async def test_a_fact_that_a_deleted_session_replaced_is_valid_again(account: Account) -> None:
    await account.ingest("user: I live in Basel.", sessionId="s1")
    await account.ingest("user: I live in Rome.", "user: I live in Oslo.", sessionId="s2")
    homes = [one["summary"] for one in await account.listed() if "lives in" in one["summary"]]
    assert homes == ["user lives in Oslo"]
    await account.result("DELETE", "/acme/profiles/ann/sessions/s2")
    assert [(one["summary"], one["sessionId"]) for one in await account.listed()] == [("user lives in Basel", "s1")]
    verified = await account.worker.request("POST", "/admin/tenants/acme/verify")
    assert (verified.content["checked"], verified.content["drift"]) == (2, {}), verified.body
    history = await account.worker.request("GET", "/admin/tenants/acme/history/verify")
    assert (history.status, history.content["problem"]) == (200, None), history.body


async def test_a_fact_goes_with_its_session_when_its_message_is_gone_already(account: Account) -> None:
    await account.ingest("user: I live in Basel. I own a red bicycle.", sessionId="s1")
    home = next(one for one in await account.listed() if "Basel" in one["summary"])
    await account.result("DELETE", f"/acme/profiles/ann/memories/{home['id']}")
    [left] = await account.listed()
    assert left["sessionId"] == "s1"
    assert await account.listed(query="?session_id=s1") == [left]
    assert (await account.result("GET", f"/acme/profiles/ann/memories/{left['id']}"))["sessionId"] == "s1"
    await account.result("DELETE", "/acme/profiles/ann/sessions/s1")
    assert await account.listed() == []


async def test_a_fact_that_two_sessions_state_goes_with_the_last_of_them(account: Account) -> None:
    await account.ingest("user: I live in Basel.", sessionId="s1")
    account.worker.clock.advance(1000)
    await account.ingest("user: As you know, I live in Basel.", sessionId="s2")
    [fact] = await account.listed(query="?session_id=s1")
    assert await account.listed(query="?session_id=s2") == [fact]
    await account.result("DELETE", "/acme/profiles/ann/sessions/s1")
    assert [(one["id"], one["sessionId"]) for one in await account.listed()] == [(fact["id"], "s2")]
    assert "As you know" in str(await account.recall("Where does the user live?"))
    await account.result("DELETE", "/acme/profiles/ann/sessions/s2")
    assert await account.listed() == []


async def test_a_session_is_not_deleted_while_it_is_ingested(account: Account) -> None:
    await account.ingest("user: I own a red bicycle.", sessionId="s1")
    until = account.worker.clock() + 60_000
    await account.worker.rows("UPDATE ingest_jobs SET state = 'running', lease_until_ms = ?", until)
    answer = await account.ask("DELETE", "/acme/profiles/ann/sessions/s1")
    assert (answer.status, answer.content["errors"][0]["reason"]) == (503, "contended")
    assert "I own a red bicycle." in str(await account.recall("Who owns a bicycle?"))
    assert await account.result("DELETE", "/acme/profiles/ann/sessions/s2") is None
    account.worker.clock.set(until + 1)
    assert await account.result("DELETE", "/acme/profiles/ann/sessions/s1") is None
    assert await account.recall("Who owns a bicycle?") == []


async def test_more_than_one_page_of_a_session_is_deleted(account: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    await account.ingest(*(f"user: Line {number} of the story." for number in range(130)), sessionId="s1")
    monkeypatch.setattr("retain.agent_memory.profile.MAX_PAGES", 1)
    answer = await account.ask("DELETE", "/acme/profiles/ann/sessions/s1")
    assert (answer.status, answer.content["errors"][0]["reason"]) == (503, "contended")
    monkeypatch.undo()
    assert await account.result("DELETE", "/acme/profiles/ann/sessions/s1") is None
    assert await account.recall("the story") == []
    assert await account.worker.rows("SELECT 1 FROM memory_records") == []


async def test_profiles_are_listed_once_they_were_used_users_and_houses_alike(account: Account) -> None:
    assert await account.result("GET", "/acme/profiles") == []
    for profile in ("ben", "ann", "house-big-team", "house-crm"):
        await account.remember("Likes tea.", profile)
    await account.worker.request("PUT", "/admin/tenants/acme/users/Not.A.Profile@example.com", {})
    page = await account.envelope("GET", "/acme/profiles?per_page=3")
    assert [one["name"] for one in page["result"]] == ["ann", "ben", "house-big-team"]
    assert all(TIME.fullmatch(one["createdAt"]) for one in page["result"])
    rest = await account.envelope("GET", f"/acme/profiles?per_page=3&cursor={page['result_info']['cursor']}")
    assert ([one["name"] for one in rest["result"]], rest["result_info"]["count"]) == (["house-crm"], 1)


async def test_a_profile_is_a_user_or_a_house_of_the_tenant(account: Account) -> None:
    await account.remember("Ann drinks green tea.")
    await account.remember("The team meets on the roof.", "house-big-team")
    for owner, content in (
        ({"user_id": "ann"}, "Ann drinks green tea."),
        ({"house": "big_team"}, "The team meets on the roof."),
    ):
        query = "&".join(f"{name}={value}" for name, value in owner.items())
        answer = await account.worker.request("GET", f"/admin/tenants/acme/memories?{query}")
        assert [one["content"] for one in answer.content["memories"]] == [content]
    everyone = await account.worker.request(
        "POST", "/admin/tenants/acme/memories", {"content": "The shop is closed on Monday."}
    )
    assert everyone.status == 201
    for profile in ("ann", "house-big-team"):
        found = (await account.recall("When is the shop closed?", profile))[0]
        assert found["id"] == everyone.content["id"]
        path = f"/acme/profiles/{profile}/memories/{found['id']}"
        assert (await account.result("GET", path))["content"] == "The shop is closed on Monday."
        assert await account.refusal("DELETE", path) == (404, 404, "no_such_memory")


@pytest.mark.parametrize("profile", ["ann", "house-big-team"])
async def test_a_deleted_profile_is_empty_and_can_be_used_again(account: Account, profile: str) -> None:
    await account.remember("Drinks green tea.", profile, sessionId="s1")
    await account.ingest("user: I own a red bicycle.", profile=profile, sessionId="s2")
    await account.remember("Drinks coffee.", "ben")
    for _ in range(2):
        assert await account.result("DELETE", f"/acme/profiles/{profile}") is None
    assert await account.listed(profile) == []
    assert await account.recall("Who owns a bicycle or drinks tea?", profile) == []
    assert [one["summary"] for one in await account.listed("ben")] == ["Drinks coffee."]
    await account.remember("Drinks milk.", profile)
    await account.ingest("user: I own a red bicycle.", profile=profile, sessionId="s2")
    assert (await account.listed(profile))[0]["summary"] == "Drinks milk."


async def test_pages_of_memories_have_each_once(account: Account) -> None:
    for number in range(5):
        await account.remember(f"Note {number}.")
    seen: list[str] = []
    query = "?per_page=2"
    for count in (2, 2, 1):
        page = await account.envelope("GET", f"/acme/profiles/ann/memories{query}")
        assert (page["result_info"]["count"], page["result_info"]["per_page"]) == (count, 2)
        seen += [one["summary"] for one in page["result"]]
        query = f"?per_page=2&cursor={page['result_info'].get('cursor')}"
    assert seen == [f"Note {number}." for number in range(5)]
    assert query.endswith("None")


async def test_a_reference_date_is_what_relative_dates_refer_to(account: Account) -> None:
    messages = [
        {"role": "user", "content": "We had lunch at the lake.", "timestamp": "2026-03-04T12:00:00Z"},
        {"role": "user", "content": "We had lunch at the station.", "timestamp": "2026-06-09T12:00:00Z"},
    ]
    for number, message in enumerate(messages):
        body = {"messages": [message], "sessionId": f"s{number}"}
        await account.result("POST", "/acme/profiles/ann/ingest", body)
    for today, place in (("2026-03-05", "lake"), ("2026-06-10T09:00:00+02:00", "station")):
        first = (await account.recall("Where did we have lunch yesterday?", referenceDate=today))[0]
        assert place in first["summary"]


async def test_only_the_configured_account_is_answered(account: Account) -> None:
    found = await account.worker.request("GET", NAMESPACES.replace("0123456789abcdef", "other"))
    assert found.status == 200  # in development without a configured one, any


async def test_what_a_profile_answers_reads_no_record_of_another_profile(account: Account) -> None:
    for query, parameters in ((_LIST, 7), (_IDS, 3), (_MEMORIES, 6), (_MESSAGES, 4)):
        plan = await account.worker.rows(f"EXPLAIN QUERY PLAN {query}", *([""] * parameters))
        found = [row["detail"] for row in plan if re.match(r"(SEARCH|SCAN) [rls] ", row["detail"])]
        assert found
        of_the_scope = ("tenant_id=? AND scope_id=?", "(rowid=?)")
        assert all(any(text in one for text in of_the_scope) for one in found), found
