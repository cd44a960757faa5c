"""The administrator's routes for memories, on the real workerd: D1, the vector index's stand-in, the local embedder."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import httpx
import pytest

pytestmark = pytest.mark.workerd

BY_DEVELOPER = {"origin": "person", "by": "developer"}
"""What a record says of whoever asks the local server."""
BERLIN, MUNICH = "Ann lives in Berlin.", "Ann lives in Munich."
CITY = {"subject": "ann", "predicate": "lives_in"}
NOBODY = "01ARZ3NDEKTSV4RRFFQ69G5FAV"


class Memories:
    """One tenant's memories."""

    def __init__(self, api: httpx.Client, tenant_id: str) -> None:
        self.api = api
        self.tenant_id = tenant_id
        self.path = f"/admin/tenants/{tenant_id}/memories"

    def store(self, content: str, **fields: Any) -> str:
        response = self.api.post(self.path, json={"content": content, **fields})
        assert response.is_success, response.text
        found: str = response.json()["id"]
        return found

    def page(self, **query: str) -> Any:
        response = self.api.get(self.path, params=query)
        assert response.status_code == 200, response.text
        return response.json()

    def contents(self, **query: str) -> Any:
        return [memory["content"] for memory in self.page(**query)["memories"]]

    def get(self, record_id: str) -> Any:
        response = self.api.get(f"{self.path}/{record_id}")
        assert response.status_code == 200, response.text
        return response.json()

    def patch(self, record_id: str, changes: Any, *, if_match: str | None = None) -> httpx.Response:
        headers = {} if if_match is None else {"if-match": if_match}
        return self.api.patch(f"{self.path}/{record_id}", json=changes, headers=headers)

    def hits(self, query: str, **wanted: Any) -> Any:
        response = self.api.post(f"{self.path}/recall", json={"query": query, **wanted})
        assert response.status_code == 200, response.text
        return response.json()["memories"]

    def recalled(self, query: str, **wanted: Any) -> list[str]:
        return [memory["content"] for memory in self.hits(query, **wanted)]


@pytest.fixture
def memories(api: httpx.Client, tenant: Callable[[], str]) -> Memories:
    return Memories(api, tenant())


def test_a_memory_is_stored_once_and_shown_with_all_its_fields(memories: Memories) -> None:
    before = int(time.time() * 1000)
    body = {
        "content": BERLIN, "metadata": {"checked": True, "by": {"name": "Bo"}}, "kind": "fact", "confidence": 0.75,
        "importance": 0.25, "object": "berlin", **CITY,
    }  # fmt: skip
    first = memories.api.post(memories.path, json=body)
    again = memories.api.post(memories.path, json=body)
    assert (first.status_code, again.status_code) == (201, 200)
    assert again.json() == {"id": first.json()["id"], "created": False, "merged": [], "kept": []}
    shown = memories.get(first.json()["id"])
    assert {name: shown[name] for name in body} == body
    assert (shown["tenant_id"], shown["scope_id"]) == (memories.tenant_id, "tenant")
    assert (shown["source"], shown["edited"], shown["valid_to_ms"]) == (BY_DEVELOPER, True, None)
    assert before - 60_000 < shown["valid_from_ms"] <= shown["recorded_at_ms"]
    [event] = shown["events"]
    assert (event["kind"], event["data"]["content"], event["source"]) == ("stored", BERLIN, BY_DEVELOPER)


def test_memories_are_listed_page_by_page_and_filtered(memories: Memories) -> None:
    for number in range(5):
        memories.store(f"Cupboard {number} holds tea.", metadata={"number": number, "odd": number % 2 == 1})
    first = memories.page(limit="2")
    second = memories.page(limit="2", cursor=first["cursor"])
    third = memories.page(limit="2", cursor=second["cursor"])
    pages = [first, second, third]
    assert [len(page["memories"]) for page in pages] == [2, 2, 1]
    assert third["cursor"] is None
    listed = [memory["content"] for page in pages for memory in page["memories"]]
    assert listed == [f"Cupboard {number} holds tea." for number in range(5)]
    assert memories.contents(filter=json.dumps({"number": {"$gte": 1, "$lt": 4}, "odd": True})) == [
        listed[1],
        listed[3],
    ]
    assert memories.contents(filter=json.dumps({"number": {"$in": [0, 9]}})) == [listed[0]]


def test_an_edit_is_read_back_with_its_events(memories: Memories) -> None:
    record_id = memories.store(BERLIN)
    response = memories.patch(record_id, {"content": MUNICH, "metadata": {"checked": True}, "importance": 0.75})
    assert response.status_code == 200
    shown = memories.get(record_id)
    events, cursor = shown.pop("events"), shown.pop("cursor")
    assert shown.pop("last_event_id") == events[-1]["event_id"]
    assert response.json() == shown
    assert cursor is None
    assert (shown["content"], shown["metadata"], shown["importance"]) == (MUNICH, {"checked": True}, 0.75)
    assert [event["kind"] for event in events] == ["stored", "edited"]
    assert memories.recalled("Where does Ann live?") == [MUNICH]
    assert memories.hits("Berlin", explain=True)[0]["components"]["words"] == 0


def test_a_memory_is_closed_and_opened_again(memories: Memories) -> None:
    record_id = memories.store(BERLIN)
    closed = memories.patch(record_id, {"valid_to_ms": 1_600_000_000_000})
    assert (closed.status_code, closed.json()["valid_to_ms"]) == (200, 1_600_000_000_000)
    assert memories.recalled("Ann") == memories.contents() == []
    assert memories.contents(all="true") == [BERLIN]
    opened = memories.patch(record_id, {"valid_to_ms": None})
    assert (opened.status_code, opened.json()["valid_to_ms"]) == (200, None)
    assert memories.recalled("Ann") == memories.contents() == [BERLIN]
    assert [event["kind"] for event in memories.get(record_id)["events"]] == ["stored", "invalidated", "restored"]


def test_a_deleted_memory_is_gone(memories: Memories) -> None:
    record_id = memories.store(BERLIN)
    assert memories.api.delete(f"{memories.path}/{record_id}").status_code == 204
    assert memories.recalled("Ann") == memories.contents(all="true") == []
    for response in (
        memories.api.get(f"{memories.path}/{record_id}"),
        memories.api.delete(f"{memories.path}/{record_id}"),
        memories.patch(record_id, {"content": MUNICH}),
    ):
        assert (response.status_code, response.json()["code"]) == (404, "no_such_memory")
    assert memories.store(BERLIN) != record_id


def test_a_newer_fact_supersedes_and_the_past_is_readable(memories: Memories) -> None:
    old = memories.store(BERLIN, valid_from_ms=1_600_000_000_000, **CITY)
    recorded_at_ms = memories.get(old)["recorded_at_ms"]
    new = memories.store(MUNICH, **CITY)
    assert memories.get(new)["recorded_at_ms"] > recorded_at_ms
    assert memories.recalled("Where does Ann live?") == [MUNICH]
    assert memories.recalled("Where does Ann live?", as_of_ms=recorded_at_ms) == [BERLIN]
    assert memories.recalled("Where does Ann live?", as_of_ms=recorded_at_ms - 1) == []
    shown = memories.get(old)
    assert (shown["superseded_by"], shown["valid_to_ms"]) == (new, memories.get(new)["valid_from_ms"])
    assert [event["kind"] for event in shown["events"]] == ["stored", "superseded"]
    replaced_at_ms = memories.get(new)["recorded_at_ms"]
    assert shown["events"][-1]["at_ms"] == replaced_at_ms
    stated_at_ms = memories.get(new)["valid_from_ms"]
    for at_ms, known in ((stated_at_ms, [BERLIN]), (replaced_at_ms - 1, [BERLIN]), (replaced_at_ms, [MUNICH])):
        if stated_at_ms < replaced_at_ms or known == [MUNICH]:
            assert memories.recalled("Where does Ann live?", as_of_ms=at_ms) == known


def test_what_was_known_before_an_edit_is_found_by_the_text_that_it_had(memories: Memories) -> None:
    record_id = memories.store("The doctor prescribed antibiotics to Ann.")
    memories.store(BERLIN)
    memories.store("The doctor prescribed antibiotics to Ann.", agent_type="sdr")
    before = memories.get(record_id)["recorded_at_ms"]
    assert memories.patch(record_id, {"content": "The invoice was paid."}).status_code == 200
    for query in ("antibiotics", "Which medicine did the physician order?"):
        [hit] = memories.hits(query, as_of_ms=before, top_k=1)
        assert (hit["id"], hit["content"]) == (record_id, "The doctor prescribed antibiotics to Ann.")
    assert memories.recalled("invoice", as_of_ms=before, top_k=1) != ["The invoice was paid."]
    assert memories.recalled("antibiotics", agent_type="sdr", top_k=1) == ["The doctor prescribed antibiotics to Ann."]
    assert memories.recalled("invoice", top_k=1) == ["The invoice was paid."]


def test_what_was_valid_in_another_year_is_recalled_and_listed(memories: Memories) -> None:
    memories.store(BERLIN, valid_from_ms=1_600_000_000_000, **CITY)
    before = memories.get(memories.page(all="true")["memories"][0]["id"])["recorded_at_ms"]
    memories.store(MUNICH, valid_from_ms=1_700_000_000_000, **CITY)
    for at_ms, expected in ((1_599_999_999_999, []), (1_650_000_000_000, [BERLIN]), (1_700_000_000_000, [MUNICH])):
        assert memories.recalled("Where does Ann live?", valid_at_ms=at_ms) == expected
        assert memories.contents(valid_at_ms=str(at_ms)) == expected
    now = memories.recalled("Where does Ann live?", valid_at_ms=1_700_000_000_000, as_of_ms=before)
    assert now == [BERLIN], "what was then known of that time"


def test_a_recall_is_explained_filtered_and_bounded(memories: Memories) -> None:
    for number in range(4):
        memories.store(f"Order AB-100{number} of Ann holds tea.", metadata={"number": number})
    memories.store("Bob repairs engines.", metadata={"number": 9})
    best, *others = memories.hits("What is in order AB-1002?", explain=True, top_k=3)
    assert best["content"] == "Order AB-1002 of Ann holds tea."
    assert len(others) == 2
    assert sum(best["components"].values()) == pytest.approx(best["score"], abs=1e-4)
    assert best["components"]["exact"] > 0
    assert best["source"] == BY_DEVELOPER
    assert "components" not in memories.hits("tea")[0]
    assert memories.recalled("tea", filter={"number": {"$gt": 2}}) == [
        "Order AB-1003 of Ann holds tea.",
        "Bob repairs engines.",
    ]


def test_a_recall_in_an_agents_scope_sees_what_that_agent_sees(memories: Memories) -> None:
    contents = {"sdr": "Ann likes green tea.", "refund_decision": "Ann likes black tea.", None: "Ann likes tea."}
    for agent_type, content in contents.items():
        memories.store(content, **({} if agent_type is None else {"agent_type": agent_type}))
    assert sorted(memories.recalled("tea", agent_type="sdr")) == ["Ann likes green tea.", "Ann likes tea."]
    assert sorted(memories.recalled("tea")) == sorted(contents.values())
    assert memories.contents(agent_type="sdr") == ["Ann likes green tea."]
    assert memories.contents() == list(contents.values())
    seeded = memories.api.post(
        "/admin/seed-memory",
        json={"tenant": memories.tenant_id, "agent_type": "sdr", "memories": [{"content": "Ann likes green tea."}]},
    )
    assert (seeded.status_code, seeded.json()["created"]) == (201, 0)


def test_a_memory_stored_again_with_other_fields_names_those_added_and_those_kept(memories: Memories) -> None:
    first = memories.api.post(memories.path, json={"content": BERLIN, "metadata": {"user": "ann"}, "confidence": 0.5})
    body = {"content": BERLIN, "metadata": {"user": "bob", "desk": 7}, **CITY}
    again = memories.api.post(memories.path, json=body)
    assert (again.status_code, again.json()) == (
        200,
        {
            "id": first.json()["id"],
            "created": False,
            "merged": ["metadata.desk", "subject", "predicate"],
            "kept": ["metadata.user", "confidence"],
        },
    )
    shown = memories.get(first.json()["id"])
    assert (shown["metadata"], shown["confidence"], shown["subject"]) == ({"user": "ann", "desk": 7}, 0.5, "ann")
    assert [event["kind"] for event in shown["events"]] == ["stored", "edited"]


def test_seeding_again_names_for_each_memory_the_fields_added_and_kept(memories: Memories) -> None:
    body = {"tenant": memories.tenant_id, "agent_type": "sdr", "memories": [{"content": BERLIN}, {"content": "Tea."}]}
    [berlin, tea] = memories.api.post("/admin/seed-memory", json=body).json()["ids"]
    other_fields = [{"content": BERLIN, "metadata": {"a": 1}}, {"content": "Tea.", "kind": "event"}]
    again = memories.api.post("/admin/seed-memory", json={**body, "memories": other_fields}).json()
    assert again["results"] == [
        {"id": berlin, "created": False, "merged": ["metadata.a"], "kept": []},
        {"id": tea, "created": False, "merged": [], "kept": ["kind"]},
    ]


def test_another_tenant_cannot_reach_it(memories: Memories, tenant: Callable[[], str]) -> None:
    record_id, other = memories.store(BERLIN), Memories(memories.api, tenant())
    assert other.recalled("Ann") == other.contents(all="true") == []
    for response in (
        other.api.get(f"{other.path}/{record_id}"),
        other.api.delete(f"{other.path}/{record_id}"),
        other.patch(record_id, {"valid_to_ms": 1}),
    ):
        assert (response.status_code, response.json()["code"]) == (404, "no_such_memory")
    assert memories.recalled("Ann") == [BERLIN]


@pytest.mark.parametrize(
    ("method", "suffix", "body", "status", "code"),
    [
        ("POST", "", {"content": " "}, 400, "empty_content"),
        ("POST", "", {"content": "x", "confidence": 2}, 400, "invalid_confidence"),
        ("POST", "", {"content": "x", "house": "*"}, 400, "invalid_house"),
        ("POST", "", {"content": "x", "house": "a", "agent_type": "sdr"}, 400, "invalid_scope"),
        ("POST", "", {"content": "x", "agent_type": "nobody"}, 404, "unknown_agent"),
        ("POST", "", {"content": "x", "tenant": "other"}, 400, "invalid_body"),
        ("POST", "", {"content": "x" * 65_537}, 413, "content_too_large"),
        ("POST", "/recall", {"query": ""}, 400, "empty_query"),
        ("POST", "/recall", {"query": "x" * 8_193}, 413, "query_too_large"),
        ("POST", "/recall", {"query": "x", "context": ["x" * 32_769]}, 413, "context_too_large"),
        ("POST", "/recall", {"query": "x", "context": "before"}, 400, "invalid_body"),
        ("POST", "/recall", {"query": "x", "context": [{"content": "before"}]}, 400, "invalid_body"),
        ("POST", "/recall", {"query": "x", "top_k": 51}, 400, "invalid_top_k"),
        ("POST", "/recall", {"query": "x", "valid_at_ms": -1}, 400, "invalid_valid_at"),
        ("GET", "?valid_at_ms=soon", None, 400, "invalid_valid_at"),
        ("GET", "?valid_at_ms=1&all=true", None, 400, "invalid_valid_at"),
        ("POST", "/recall", {"query": "x", "as_of_ms": -1}, 400, "invalid_as_of"),
        ("POST", "/recall", {"query": "x", "filter": {"a": {"$like": 1}}}, 400, "invalid_filter"),
        ("POST", "/recall", {"query": "x", "filter": {"a": "x" * 2_048}}, 413, "filter_too_large"),
        ("GET", "?filter=[1]", None, 400, "invalid_filter"),
        ("GET", "?filter=%7B", None, 400, "invalid_filter"),
        ("GET", "?cursor=x", None, 400, "invalid_cursor"),
        ("GET", "?limit=0", None, 400, "invalid_limit"),
        ("GET", f"/{NOBODY}", None, 404, "no_such_memory"),
        ("GET", "/x", None, 400, "invalid_id"),
        ("PATCH", f"/{NOBODY}", {"content": "x"}, 404, "no_such_memory"),
        ("PATCH", f"/{NOBODY}", {"valid_to_ms": None}, 404, "no_such_memory"),
        ("PATCH", f"/{NOBODY}", {"valid_to_ms": "now"}, 400, "invalid_body"),
        ("PATCH", f"/{NOBODY}", {"tenant_id": "other"}, 400, "invalid_edit"),
        ("PATCH", f"/{NOBODY}", [], 400, "invalid_body"),
        ("DELETE", f"/{NOBODY}", None, 404, "no_such_memory"),
    ],
)
def test_each_refusal_has_its_status_and_code(
    memories: Memories, method: str, suffix: str, body: Any, status: int, code: str
) -> None:
    response = memories.api.request(method, f"{memories.path}{suffix}", json=body)
    assert (response.status_code, response.json()["code"]) == (status, code)
    assert response.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"confidence": "high"}, "invalid_body"),
        ({"confidence": None}, "invalid_body"),
        ({"confidence": 1.5}, "invalid_confidence"),
        ({"expires_at_ms": 1.5}, "invalid_body"),
        ({"expires_at_ms": -1}, "invalid_expires_at_ms"),
        ({"subject": 7}, "invalid_body"),
        ({"subject": ""}, "invalid_subject"),
        ({"kind": ["fact"]}, "invalid_body"),
        ({"metadata": None}, "invalid_body"),
        ({"content": None}, "invalid_body"),
        ({"content": " "}, "empty_content"),
        ({}, "invalid_edit"),
        ({"content": "x", "valid_to_ms": 5}, "invalid_edit"),
    ],
    ids=str,
)
def test_a_value_that_a_memory_cannot_have_is_refused_by_an_edit(
    memories: Memories, changes: dict[str, Any], code: str
) -> None:
    record_id = memories.store(BERLIN)
    response = memories.patch(record_id, changes)
    assert (response.status_code, response.json()["code"]) == (400, code)
    assert len(memories.get(record_id)["events"]) == 1


def test_an_edit_to_content_that_the_scope_already_has_is_a_conflict(memories: Memories) -> None:
    memories.store(BERLIN)
    record_id = memories.store(MUNICH)
    response = memories.patch(record_id, {"content": BERLIN})
    assert (response.status_code, response.json()["code"]) == (409, "duplicate_content")
    assert memories.contents() == [BERLIN, MUNICH]


def test_a_change_that_is_based_on_an_earlier_state_is_refused_and_says_which_is_the_last(memories: Memories) -> None:
    record_id = memories.store(BERLIN)
    seen = memories.get(record_id)["last_event_id"]
    assert memories.patch(record_id, {"importance": 0.9}, if_match=f'"{seen}"').status_code == 200
    last = memories.get(record_id)["last_event_id"]
    for changes in ({"content": MUNICH}, {"valid_to_ms": 5}, {"importance": 0.9, "confidence": 0.5}):
        late = memories.patch(record_id, changes, if_match=f'"{seen}"')
        assert (late.status_code, late.json()["code"]) == (409, "memory_changed")
        assert late.json()["last_event_id"] == last
    assert memories.get(record_id)["last_event_id"] == last
    repeated = memories.patch(record_id, {"importance": 0.9}, if_match=seen)
    assert repeated.status_code == 200, "the same request again is not refused"
    assert memories.patch(record_id, {"valid_to_ms": None}, if_match=f'"{seen}"').status_code == 200
    assert memories.patch(record_id, {"valid_to_ms": 5}).status_code == 200
    late = memories.patch(record_id, {"valid_to_ms": None}, if_match=f'W/"{seen}"')
    assert (late.status_code, late.json()["code"]) == (409, "memory_changed")
    malformed = memories.patch(record_id, {"importance": 0.1}, if_match="*")
    assert (malformed.status_code, malformed.json()["code"]) == (400, "invalid_id")


def test_texts_of_every_script_are_returned_unchanged(memories: Memories) -> None:
    contents = ["Заказ отменён", "Λόγος σαφής", "客户的订单已取消", "👩‍👧 naïve \u202e\u0007 \"quoted\" 'x' \\"]
    for content in contents:
        assert memories.get(memories.store(content))["content"] == content
    assert memories.contents() == contents
    assert memories.recalled("λόγος")[0] == contents[1]
    assert memories.recalled("отменён")[0] == contents[0]
