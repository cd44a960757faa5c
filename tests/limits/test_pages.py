"""A page ends after so many bytes, and the next one continues: every entry is on one page, whatever its size."""

from __future__ import annotations

import json
from contextlib import closing
from typing import Any

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


async def _pages(bench: Bench, path: str, name: str, *, limit: int = 200) -> list[Any]:
    pages = []
    cursor = ""
    while True:
        page = await bench.ask("GET", f"{path}?limit={limit}{cursor}")
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


async def test_the_events_of_one_memory_come_on_several_pages() -> None:
    async with serving() as worker:
        await worker.tenant()
        bench = Bench(worker)
        texts = [f"{number} {text_of(60_000, 'x')}" for number in range(20)]
        made = await bench.ask("POST", "/admin/tenants/{tenant}/memories", {"content": texts[0]})
        path = f"/admin/tenants/{{tenant}}/memories/{made['id']}"
        for text in texts[1:]:
            await bench.ask("PATCH", path, {"content": text})
        pages = await _pages(bench, path, "events")
        assert [event["data"]["content"] for page in pages for event in page] == texts
        assert len(pages) == 3
        first = await bench.ask("GET", path)
        assert (first["content"], first["events"]) == (texts[-1], pages[0])
        one = await bench.ask("GET", f"{path}?limit=1&cursor={first['events'][0]['event_id']}")
        assert [event["event_id"] for event in one["events"]] == [first["events"][1]["event_id"]]


async def test_the_results_of_an_evaluation_come_on_several_pages() -> None:
    case = {"input": "Contact contact:7 responded positively.", "expected": {"contains": ["contact"]}}
    cases = [{**case, "id": f"case-{number}"} for number in range(2)]
    async with serving() as worker:
        await worker.tenant()
        bench = Bench(worker)
        base = "/admin/tenants/{tenant}/evals"
        await bench.ask("PUT", f"{base}/datasets/large", {"target": {"agent": "sdr"}, "cases": cases})
        run_id = (await bench.ask("POST", f"{base}/runs", {"dataset": "large"}))["run"]["run_id"]
        await worker.rows(
            "UPDATE eval_results SET state = 'scored', outcome = 'passed', output = ?, observed = ?, scores = '[]'",
            text_of(64_000),
            json.dumps({"text": text_of(250_000)}, ensure_ascii=False),
        )
        for number in range(2, 9):
            await worker.rows(
                "INSERT INTO eval_results SELECT run_id, ?, tenant_id, ?, state, attempts, outcome, output, observed,"
                " scores, error, started_at_ms, scored_at_ms FROM eval_results WHERE position = 0",
                number,
                f"case-{number}",
            )
        path, found, cursor = f"{base}/runs/{run_id}", [], ""
        while True:
            page = await bench.ask("GET", f"{path}{cursor}")
            assert len(json.dumps(page, ensure_ascii=False).encode()) < PAGE_BYTES + 400_000
            assert page["summary"]["passed"] == 9, "the whole run is counted"
            found.append(page["results"])
            if page["cursor"] is None:
                break
            cursor = f"?cursor={page['cursor']}"
        assert [result["position"] for page in found for result in page] == list(range(9))
        assert {len(result["output"].encode()) for page in found for result in page} == {64_000}
        assert [len(page) for page in found] == [2, 2, 2, 2, 1]


async def test_groups_of_large_similar_memories_come_on_several_pages() -> None:
    contents = [f"{number} {text_of(60_000)}" for number in range(20)]
    async with serving() as worker:
        await worker.tenant()
        bench = Bench(worker)
        memories = [{"content": content} for content in contents]
        for start in (0, 10):
            body = {"tenant": "acme", "agent_type": "sdr", "memories": memories[start : start + 10]}
            await bench.ask("POST", "/admin/seed-memory", body)
        await worker.rows("DELETE FROM memory_likeness")
        await worker.rows(
            "INSERT INTO memory_likeness (record_id, tenant_id, similar)"
            " SELECT id, tenant_id, printf('%064x', CAST(content AS INTEGER) / 2) FROM memory_records"
        )
        pages = await _pages(bench, "/admin/tenants/{tenant}/memories/similar", "groups", limit=50)
        assert [memory["content"] for page in pages for group in page for memory in group] == contents
        assert [len(page) for page in pages] == [5, 5]
