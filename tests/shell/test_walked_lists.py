"""Every list, page by page, while entries are added and deleted: what is there the whole time is on one page, once.

Everything happens in one millisecond, so most entries have equal times. After each page a new entry is added, and the last
one on the page is deleted: the one that the cursor names.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from itertools import count
from typing import Any
from urllib.parse import quote

import pytest

from retain.routing.queries import QueryString
from tests.shell.guarded_routes import ROUTES, code_of
from tests.shell.walks import AGENT_MEMORY, WALKS, Walk, sent
from tests.shell.worker import Worker, serving

ENTRIES = 6
ELSEWHERE = {
    "GET /admin/moves": "tests/shards",
    "GET /admin/tenants/{tenant}/memories/similar": "tests/limits/test_pages.py",
    "GET /admin/tenants/{tenant}/memories/{id}": "tests/limits/test_pages.py",
    "GET /admin/agents/{tenant}/runs/{run_id}/events": "tests/admin/test_runs.py",
}
"""Lists that other tests walk, and where."""


@pytest.fixture
async def worker() -> AsyncIterator[Worker]:
    async with serving(APPLICATION_KEYS="true") as served:
        await served.tenant()
        yield served


@pytest.mark.parametrize("name", list(WALKS))
async def test_what_is_there_the_whole_time_is_on_one_page(worker: Worker, name: str) -> None:
    walk, numbers = WALKS[name], count()
    for _ in range(ENTRIES):
        await walk.add(worker, next(numbers))
    for size in (2, 1):
        whole = [key_of(walk, entry) for entry in (await page(worker, walk, 50, None))[0]]
        assert len(whole) >= ENTRIES - 3
        found: list[object] = []
        cursor: str | None = None
        while set(whole) - set(found):
            entries, cursor = await page(worker, walk, size, cursor)
            assert len(entries) <= size
            found += [key_of(walk, entry) for entry in entries]
            if cursor is None:
                break
            await walk.add(worker, next(numbers))
            if walk.deleted is not None and entries:
                table, column = walk.deleted
                await worker.rows(f"DELETE FROM {table} WHERE {column} = ?", entries[-1][walk.key[-1]])
        assert len(found) == len(set(found)), "an entry is on two pages"
        assert [key for key in found if key in whole] == whole, "an entry is missing, or the order changed"


BAD = (
    "",
    "*",
    "x" * 5000,
    "\0",
    "\u200b",
    "٣",
    '[1e400, "x"]',
    '[1, "\\ud800"]',
    '["\\ud800", "x"]',
    "9" * 400,
    "items/",
)


@pytest.mark.parametrize("name", list(WALKS))
async def test_a_cursor_that_is_not_of_the_list_is_refused(worker: Worker, name: str) -> None:
    for cursor in BAD:
        path = f"{WALKS[name].path}{'&' if '?' in WALKS[name].path else '?'}cursor={quote(cursor)}"
        answer = await worker.request("GET", path)
        assert (answer.status, code_of(answer)) == (400, "invalid_cursor"), (cursor, answer.body)


@pytest.mark.parametrize("name", [name for name, walk in WALKS.items() if walk.entries == "memories"])
async def test_a_number_that_no_memory_can_have_is_refused_as_a_cursor(worker: Worker, name: str) -> None:
    path = f"{WALKS[name].path}{'&' if '?' in WALKS[name].path else '?'}cursor="
    last = await worker.request("GET", f"{path}{2**53 - 1}")
    assert (last.status, last.content["memories"]) == (200, [])
    answer = await worker.request("GET", f"{path}{2**53}")
    assert (answer.status, code_of(answer)) == (400, "invalid_cursor")


@pytest.mark.parametrize("path", ["export", "users/ann/export", "history/verify"])
async def test_a_number_that_no_store_can_hold_is_refused_as_a_position(worker: Worker, path: str) -> None:
    await sent(worker, "PUT", "/admin/tenants/acme/users/ann", {})
    number, head = 2**53, "0" * 64
    for cursor in (
        f"records.{number}",
        f"scopes.{number}",
        f"{number}.{head}",
        f"seals.1.{number}.{head}",
        "records.9Z",
    ):
        answer = await worker.request("GET", f"/admin/tenants/acme/{path}?cursor={cursor}")
        assert (answer.status, code_of(answer)) == (400, "invalid_cursor"), (cursor, answer.body)


@pytest.mark.parametrize("text", ['{"a": "\\ud800"}', '{"a": NaN}', '{"a": 1e400}'])
async def test_a_filter_with_what_no_store_can_hold_is_refused(worker: Worker, text: str) -> None:
    answer = await worker.request("GET", f"/admin/tenants/acme/memories?filter={quote(text)}")
    assert (answer.status, code_of(answer)) == (400, "invalid_filter"), answer.body


@pytest.mark.parametrize("text", ["0", "1001", "01", "0000000001", "00000000100000000000000000000", "1e2", "٣"])
async def test_a_page_of_the_other_interface_has_at_most_a_thousand_entries(worker: Worker, text: str) -> None:
    answer = await worker.request("GET", f"{AGENT_MEMORY}?per_page={quote(text)}")
    assert (answer.status, code_of(answer)) == (400, "invalid_limit"), answer.body


def test_every_list_is_walked() -> None:
    paged = {
        name
        for name, route in ROUTES.items()
        if isinstance(route.query, QueryString) and {"cursor", "limit"} <= set(route.query.model.model_fields)
    }
    assert {walk.route for walk in WALKS.values() if walk.entries != "result"} == paged - set(ELSEWHERE)


async def page(worker: Worker, walk: Walk, size: int, cursor: str | None) -> tuple[list[Any], str | None]:
    enveloped = walk.entries == "result"
    more = {"per_page" if enveloped else "limit": str(min(size, 50 if enveloped else 200))}
    if cursor is not None:
        more["cursor"] = quote(cursor, safe="")
    query = "&".join(f"{name}={value}" for name, value in more.items())
    answer = await sent(worker, "GET", f"{walk.path}{'&' if '?' in walk.path else '?'}{query}")
    return answer[walk.entries], answer["result_info"].get("cursor") if enveloped else answer["cursor"]


def key_of(walk: Walk, entry: Any) -> tuple[object, ...]:
    return tuple(entry[name] for name in walk.key)
