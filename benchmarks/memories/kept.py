# mypy: ignore-errors
"""One memory of the benchmark, in a process of its own: `kept.py retain|langgraph|fulltext FOLDER TABLE`.

Reads a line of JSON for each block, {"add": texts} or {"search": texts}, and answers one with the milliseconds of each
text. All embed with the same local table. `retain` needs the environment of the project, `langgraph` that of the lock of
the benchmarks.
"""

import asyncio
import json
import re
import sqlite3
import sys
import time
from pathlib import Path

from retain.models.embedders.static import StaticEmbedder

TOP_K = 10


def retain(folder, embedder):
    """Return Retain's semantic memory on SQLite."""
    from retain import NewRecord, RecallQuery, RecordSource, Scope, SemanticMemory
    from retain.host.clock import system_clock
    from retain.host.shipped import migrations
    from retain.host.sql import SqliteSql
    from retain.host.vectors import SqliteVectorIndex

    sql = SqliteSql.open(f"{folder}/memory.db")
    sql.migrate(migrations())
    index = SqliteVectorIndex.open(embedder.dimensions, f"{folder}/vectors.db")
    memory = SemanticMemory(Scope("acme", "assistant"), sql, index, embedder, system_clock)

    async def add(text):
        await memory.store(NewRecord(text), RecordSource("person"))

    async def fill(texts):
        await memory.store_all([NewRecord(text) for text in texts], RecordSource("person"))

    async def search(text):
        return [hit.record.content for hit in await memory.search(RecallQuery(text, top_k=TOP_K))]

    return add, fill, search


def langgraph(folder, embedder):
    """Return LangGraph's store on SQLite, with its vector index."""
    from langgraph.store.sqlite import SqliteStore

    async def embedded(texts):
        return await embedder.embed(list(texts))

    def embed(texts):
        try:
            embedded(texts).send(None)
        except StopIteration as done:  # the local table waits for nothing
            return [list(vector) for vector in done.value]
        raise AssertionError

    connection = sqlite3.connect(f"{folder}/store.db", check_same_thread=False, isolation_level=None)
    store = SqliteStore(connection, index={"dims": embedder.dimensions, "embed": embed, "fields": ["text"]})
    store.setup()
    numbers = iter(range(10**9))

    async def add(text):
        store.put(("acme",), str(next(numbers)), {"text": text})

    async def fill(texts):
        for text in texts:
            await add(text)

    async def search(text):
        return [item.value["text"] for item in store.search(("acme",), query=text, limit=TOP_K)]

    return add, fill, search


def fulltext(folder, _embedder):
    """Return full text alone: FTS5 with Porter's stems, any word, by BM25."""
    connection = sqlite3.connect(f"{folder}/text.db", isolation_level=None)
    connection.execute("CREATE VIRTUAL TABLE kept USING fts5(text, tokenize='porter unicode61')")

    async def add(text):
        connection.execute("INSERT INTO kept VALUES (?)", (text,))

    async def fill(texts):
        connection.execute("BEGIN")
        connection.executemany("INSERT INTO kept VALUES (?)", [(text,) for text in texts])
        connection.execute("COMMIT")

    async def search(text):
        words = " OR ".join(f'"{word}"' for word in re.findall(r"\w+", text))
        sql = "SELECT text FROM kept WHERE kept MATCH ? ORDER BY bm25(kept) LIMIT ?"
        return [row[0] for row in connection.execute(sql, (words, TOP_K))]

    return add, fill, search


async def served(kind, folder, table):
    """Answer blocks until the input ends."""
    add, fill, search = {"retain": retain, "langgraph": langgraph, "fulltext": fulltext}[kind](
        folder, StaticEmbedder(Path(table))
    )
    for line in sys.stdin:
        [(what, texts)] = json.loads(line).items()  # noqa: TID251 -- one interpreter that runs this has no dependency of Retain
        times_ms, found = [], []
        if what == "fill":
            await fill(texts)
        for text in texts if what != "fill" else ():
            started_ns = time.perf_counter_ns()
            found.append(await (add if what == "add" else search)(text))
            times_ms.append((time.perf_counter_ns() - started_ns) / 1e6)
        hits = sum(bool(result) for result in found)
        print(json.dumps([times_ms, hits]), flush=True)


asyncio.run(served(*sys.argv[1:]))
