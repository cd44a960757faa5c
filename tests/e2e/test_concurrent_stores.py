"""Many stores into one tenant at once, on the real workerd: none is refused, and order and chain stay intact."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

pytestmark = pytest.mark.workerd
AT_ONCE = 64


def _stored(api: httpx.Client, tenant: str, bodies: Sequence[Mapping[str, object]]) -> list[httpx.Response]:
    """Store each body with a request of its own, all at once; return the answers in order."""

    def store(body: Mapping[str, object]) -> httpx.Response:
        return api.post(f"/admin/tenants/{tenant}/memories", json=body, timeout=120)

    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(store, bodies))


def _contents(api: httpx.Client, tenant: str, **query: str) -> list[str]:
    found: list[str] = []
    cursor: str | None = ""
    while cursor is not None:
        asked = {"limit": "100", **query, **({"cursor": cursor} if cursor else {})}
        page = api.get(f"/admin/tenants/{tenant}/memories", params=asked).raise_for_status().json()
        found += [one["content"] for one in page["memories"]]
        cursor = page["cursor"]
    return found


def _check_history(api: httpx.Client, tenant: str, events: int) -> None:
    verdict = api.get(f"/admin/tenants/{tenant}/history/verify").raise_for_status().json()
    assert verdict["problem"] is None
    assert verdict["entries"] == events


def test_many_stores_at_once_are_all_durable_and_none_is_refused(api: httpx.Client, tenant: Callable[[], str]) -> None:
    name = tenant()
    contents = [f"Lamp {number} is in room {number * 7}." for number in range(AT_ONCE)]
    answers = _stored(api, name, [{"content": content, "agent_type": "sdr"} for content in contents])
    assert Counter(one.status_code for one in answers) == {201: AT_ONCE}
    assert len({one.json()["id"] for one in answers}) == AT_ONCE
    assert sorted(_contents(api, name)) == sorted(contents)
    _check_history(api, name, AT_ONCE)
    again = _stored(api, name, [{"content": content, "agent_type": "sdr"} for content in contents])
    assert [one.json()["id"] for one in again] == [one.json()["id"] for one in answers]
    assert Counter(one.status_code for one in again) == {200: AT_ONCE}
    recalled = api.post(f"/admin/tenants/{name}/memories/recall", json={"query": "lamp 63 room 441", "top_k": 1})
    assert recalled.json()["memories"][0]["content"] == contents[63]


def test_of_facts_stored_at_once_one_is_valid_and_equal_contents_are_one_memory(
    api: httpx.Client, tenant: Callable[[], str]
) -> None:
    name = tenant()
    fact = {"subject": "ann", "predicate": "lives_in", "agent_type": "sdr"}
    bodies = [
        {"content": f"Ann lives in town {number % 16}.", "object": f"t{number % 16}", **fact} for number in range(32)
    ]
    answers = _stored(api, name, bodies)
    assert {one.status_code for one in answers} <= {200, 201}
    assert Counter(one.json()["created"] for one in answers) == {True: 16, False: 16}
    assert len(_contents(api, name, all="true")) == 16
    assert len(_contents(api, name)) == 1
    assert api.get(f"/admin/tenants/{name}/history/verify").json()["problem"] is None


def test_a_refused_store_does_not_refuse_those_that_came_with_it(api: httpx.Client, tenant: Callable[[], str]) -> None:
    name = tenant()
    limited = api.put(f"/admin/tenants/{name}", json={"max_memories_per_user": 4})
    assert limited.is_success, limited.text
    bodies = [
        {"content": f"Note {number}.", "agent_type": "sdr", **({"user_id": "ann"} if number % 2 else {})}
        for number in range(24)
    ]
    answers = _stored(api, name, bodies)
    assert Counter(one.status_code for one in answers[::2]) == {201: 12}
    assert Counter(one.status_code for one in answers[1::2]) == {201: 4, 507: 8}
    assert len(_contents(api, name)) == 16
