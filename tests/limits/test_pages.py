"""A page ends after so many bytes, and the next one continues: every entry is on one page, whatever its size."""

from __future__ import annotations

import json
from contextlib import closing

import pytest

from retain.host.connection import open_database
from retain.host.sql import SqliteSql
from retain.limits.pages import PAGE_BYTES, cut, sized
from tests.limits.limit import Bench, text_of
from tests.shell.worker import serving
from tests.support.instances import staged_agents


@pytest.mark.parametrize(
    ("first", "limit", "shown", "more"),
    [
        pytest.param(PAGE_BYTES - 1, 5, [1, 2], True, id="one below: another entry is on the page"),
        pytest.param(PAGE_BYTES, 5, [1], True, id="at: the page is full"),
        pytest.param(PAGE_BYTES + 1, 5, [1], True, id="above: the entry is on it all the same"),
        pytest.param(6, 1, [1], True, id="as many as were asked for"),
        pytest.param(6, 2, [1, 2], True, id="the second is large"),
    ],
)
async def test_a_page_ends_with_the_entry_that_passes_its_bytes(
    first: int, limit: int, shown: list[int], more: bool
) -> None:
    with closing(SqliteSql(open_database(":memory:"))) as database:
        await database.run("CREATE TABLE t (n INTEGER PRIMARY KEY, a TEXT, b TEXT)")
        for number, text in enumerate((text_of(first - 3), text_of(PAGE_BYTES), "z"), start=1):
            await database.run("INSERT INTO t VALUES (?, ?, ?)", number, text, "b" * 3 if number == 1 else None)
        page = sized("SELECT * FROM t ORDER BY n LIMIT ?", "n", "a", "b")
        rows, left = cut((await database.run(page, limit + 1)).rows, limit)
        assert ([int(row["n"]) for row in rows], left) == (shown, more)


async def test_the_last_page_has_no_successor() -> None:
    with closing(SqliteSql(open_database(":memory:"))) as database:
        await database.run("CREATE TABLE t (n INTEGER PRIMARY KEY, a TEXT)")
        page = sized("SELECT * FROM t ORDER BY n LIMIT ?", "n", "a")
        assert cut((await database.run(page, 3)).rows, 2) == ([], False)
        await database.run("INSERT INTO t VALUES (1, 'a'), (2, 'b')")
        rows, left = cut((await database.run(page, 3)).rows, 2)
        assert ([int(row["n"]) for row in rows], left) == ([1, 2], False)


async def _pages(bench: Bench, path: str, name: str) -> list[list[dict[str, object]]]:
    pages = []
    cursor = ""
    while True:
        page = await bench.ask("GET", f"{path}?limit=200{cursor}")
        assert len(json.dumps(page[name], ensure_ascii=False).encode()) < PAGE_BYTES + 300_000
        pages.append(page[name])
        if page["cursor"] is None:
            return pages
        cursor = f"&cursor={page['cursor']}"


async def test_large_memories_come_on_several_pages() -> None:
    contents = [f"{number} {text_of(65_000)}" for number in range(20)]
    async with serving() as worker:
        await worker.tenant()
        bench = Bench(worker)
        for start in (0, 10):
            memories = [{"content": content} for content in contents[start : start + 10]]
            await bench.ask("POST", "/admin/seed-memory", {"tenant": "acme", "agent_type": "sdr", "memories": memories})
        pages = await _pages(bench, "/admin/tenants/{tenant}/memories", "memories")
    assert [memory["content"] for page in pages for memory in page] == contents
    assert len(pages) == 3


async def test_large_inputs_of_a_conversation_come_on_several_pages() -> None:
    agent = {
        "type": "reader",
        "description": "Reads.",
        "instructions": "Read.",
        "model": {"script": "sdr"},
        "limits": {"context_tokens": 1_000_000},
    }
    async with serving(agents=staged_agents(agent)) as worker:
        await worker.tenant()
        bench = Bench(worker)
        inputs = [f"{number} {text_of(200_000)}" for number in range(5)]
        for text in inputs:
            await bench.ask("POST", "/v1/agents/{tenant}/reader/run", {"input": text, "instance_id": "desk"})
            await worker.settled()
        place = "/v1/agents/{tenant}/reader/instances/desk/messages"
        pages = await _pages(bench, place, "messages")
        assert [message["content"] for page in pages for message in page if message["role"] == "user"] == inputs
        assert len(pages) == 2
        newest = await bench.ask("GET", f"{place}?limit=200")
        assert len(newest["messages"]) == len(pages[0])
