# mypy: ignore-errors
"""One memory of the benchmark, in a process of its own: `kept.py retain|langgraph|mem0|fulltext FOLDER TABLE`.

Reads a line of JSON for each block and answers one. {"add": texts} and {"search": texts} are answered with the milliseconds
of each text, and how many found something; {"fill": texts} when they are stored; {"find": [[text, before], …]} with the
numbers of the texts that each found, best first, of those before a number (null: of all). All embed with the same local
table. `retain` needs the environment of the project, `langgraph` and `mem0` that of the lock of the benchmarks.
"""

import asyncio
import json
import os
import re
import sqlite3
import sys
import time
from itertools import count
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

    async def search(text, _before=None):
        return [hit.record.content for hit in await memory.search(RecallQuery(text, top_k=TOP_K))]

    return add, fill, search


def langgraph(folder, embedder):
    """Return LangGraph's store on SQLite, with its vector index."""
    from langgraph.store.sqlite import SqliteStore

    def embed(texts):
        return embedded(embedder, texts)

    connection = sqlite3.connect(f"{folder}/store.db", check_same_thread=False, isolation_level=None)
    store = SqliteStore(connection, index={"dims": embedder.dimensions, "embed": embed, "fields": ["text"]})
    store.setup()
    numbers = count()

    async def add(text):
        number = next(numbers)
        store.put(("acme",), str(number), {"text": text, "number": number})

    async def fill(texts):
        for text in texts:
            await add(text)

    async def search(text, before=None):
        earlier = None if before is None else {"number": {"$lt": before}}
        return [item.value["number"] for item in store.search(("acme",), query=text, filter=earlier, limit=TOP_K)]

    return add, fill, search


def mem0(folder, embedder):
    """Return mem0 with its default vector store in a folder. Each text is stored as it is (`infer=False`)."""
    os.environ |= {"MEM0_TELEMETRY": "False", "MEM0_DIR": folder, "OPENAI_API_KEY": "none"}
    from mem0 import Memory
    from mem0.embeddings.base import EmbeddingBase

    class Local(EmbeddingBase):
        def embed(self, text, memory_action=None):  # noqa: ARG002 -- the base class's names
            return embedded(embedder, [text])[0]

        def embed_batch(self, texts, memory_action=None):  # noqa: ARG002 -- the base class's names
            return embedded(embedder, texts)

    stored = {"path": f"{folder}/vectors", "embedding_model_dims": embedder.dimensions, "on_disk": True}
    vectors = {"provider": "qdrant", "config": stored}
    memory = Memory.from_config({"vector_store": vectors, "history_db_path": f"{folder}/history.db"})
    memory.embedding_model = Local()
    numbers = count()

    async def add(text):
        memory.add(text, user_id="acme", infer=False, metadata={"number": next(numbers)})

    async def fill(texts):
        for text in texts:
            await add(text)

    async def search(text, before=None):
        asked = {"user_id": "acme", **({} if before is None else {"number": {"lt": before}})}
        found = memory.search(text, filters=asked, top_k=TOP_K, threshold=0.0)
        return [item["metadata"]["number"] for item in found["results"]]

    return add, fill, search


def embedded(embedder, texts):
    """Return the vectors of texts, without an event loop."""
    try:
        embedder.embed(list(texts)).send(None)
    except StopIteration as done:  # the local table waits for nothing
        return [list(vector) for vector in done.value]
    raise AssertionError


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

    async def search(text, before=None):
        words = " OR ".join(f'"{word}"' for word in re.findall(r"\w+", text))
        sql = "SELECT rowid - 1 FROM kept WHERE kept MATCH ? AND rowid <= ? ORDER BY bm25(kept) LIMIT ?"
        return [row[0] for row in connection.execute(sql, (words, 1 << 40 if before is None else before, TOP_K))]

    return add, fill, search


async def served(kind, folder, table):
    """Answer blocks until the input ends."""
    kinds = {"retain": retain, "langgraph": langgraph, "mem0": mem0, "fulltext": fulltext}
    add, fill, search = kinds[kind](folder, StaticEmbedder(Path(table)))
    for line in sys.stdin:
        [(what, texts)] = json.loads(line).items()  # noqa: TID251 -- one interpreter that runs this has no dependency of Retain
        times_ms, found = [], []
        if what == "find":
            print(json.dumps([await search(text, before) for text, before in texts]), flush=True)
            continue
        if what == "fill":
            await fill(texts)
        for text in texts if what != "fill" else ():
            started_ns = time.perf_counter_ns()
            found.append(await (add if what == "add" else search)(text))
            times_ms.append((time.perf_counter_ns() - started_ns) / 1e6)
        hits = sum(bool(result) for result in found)
        print(json.dumps([times_ms, hits]), flush=True)


asyncio.run(served(*sys.argv[1:]))
