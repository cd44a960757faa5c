"""Check consistency: records with events, both indexes with records, counters with rows, the history with itself."""

from __future__ import annotations

from array import array
from dataclasses import replace
from itertools import pairwise

from retain.memory.recall.preparation import prepare, signature
from retain.memory.recall.words import indexed_text
from retain.memory.records.events import fold
from retain.memory.records.record import Record
from retain.memory.records.rows import RECORD_COLUMNS, event_of, record_of, write_record
from retain.ports import Vector
from retain.tenants.history import WorldHistory
from tests.memory.semantic.substrate import Substrate


async def check_agreement(substrate: Substrate, *, settled: bool = True) -> None:
    """Check the whole substrate. settled: no index debt is left, so the vector index must agree as well."""
    records = await check_records(substrate)
    await check_search_rows(substrate, records)
    await check_earlier_texts(substrate, records)
    await check_counters(substrate)
    await check_history(substrate)
    if settled:
        assert await substrate.rows("SELECT * FROM memory_outbox WHERE state = 'owed'") == []
        await check_vectors(substrate, records)


async def check_records(substrate: Substrate) -> list[Record]:
    """Check that every row of `memory_records` is the fold of its events, in every column; return the records."""
    events = [event_of(row) for row in await substrate.rows("SELECT * FROM memory_events ORDER BY rowid")]
    rows = {row["id"]: row for row in await substrate.rows("SELECT * FROM memory_records ORDER BY number")}
    for record_id in {event.record_id for event in events} | rows.keys():
        folded = fold(event for event in events if event.record_id == record_id)
        row = rows.get(record_id)
        assert (folded is None) == (row is None), f"{record_id} exists in one of records and events only"
        if folded is not None and row is not None:
            _, values = write_record(folded)
            assert [row[column] for column in RECORD_COLUMNS] == list(values)
    return [record_of(row) for row in rows.values()]


async def check_search_rows(substrate: Substrate, records: list[Record]) -> None:
    """Check that each record has exactly one search row and one full text, and that both agree with the record."""
    search = await substrate.rows(
        "SELECT r.id, s.* FROM memory_search s LEFT JOIN memory_records r ON r.number = s.number ORDER BY s.number"
    )
    text = await substrate.rows(
        "SELECT r.id, t.content FROM memory_text t LEFT JOIN memory_records r ON r.number = t.rowid ORDER BY t.rowid"
    )
    assert [row["id"] for row in search] == [record.id for record in records]
    assert [row["id"] for row in text] == [record.id for record in records]
    for record, row, words in zip(records, search, text, strict=True):
        prepared, vectors = prepare(record.content, record.utterance), await vectors_of(substrate, record)
        assert words["content"] == indexed_text(record.tenant_id, record.scope_id, list(prepared.stems))
        expected = {
            "tenant_id": record.tenant_id,
            "scope_id": record.scope_id,
            "length": len(record.content),
            "words": len(prepared.stems),
            "terms": prepared.terms,
            "signature": signature(vectors),
            "parts": len(vectors),
            "embedding_model": substrate.embedder.model,
        }
        assert {name: row[name] for name in expected} == expected


async def check_earlier_texts(substrate: Substrate, records: list[Record]) -> None:
    """Check that each text that a record had before an edit is indexed as the present ones are, and nothing else is."""
    places = {record.id: record for record in records}
    events = [event_of(row) for row in await substrate.rows("SELECT * FROM memory_events ORDER BY event_id")]
    expected: dict[str, tuple[Record, int, int]] = {}
    for record in records:
        texts = [event for event in events if event.record_id == record.id and "content" in event.data]
        for event, following in pairwise(texts):
            then = replace(record, content=event.data["content"])
            expected[event.event_id] = (then, event.at_ms, following.at_ms)
    rows = await substrate.rows(
        "SELECT e.*, t.content FROM memory_earlier e LEFT JOIN memory_earlier_text t ON t.rowid = e.number"
    )
    assert {row["event_id"] for row in rows} == expected.keys()
    assert len(await substrate.rows("SELECT rowid FROM memory_earlier_text")) == len(rows)
    for row in rows:
        then, from_ms, until_ms = expected[row["event_id"]]
        prepared = prepare(then.content, then.utterance)
        wanted = {
            "record_id": then.id,
            "tenant_id": places[then.id].tenant_id,
            "scope_id": places[then.id].scope_id,
            "from_ms": from_ms,
            "until_ms": until_ms,
            "length": prepared.length,
            "words": len(prepared.stems),
            "terms": prepared.terms,
            "names_time": prepared.names_time,
            "asking": prepared.asking,
            "signature": signature(await vectors_of(substrate, then)),
            "embedding_model": substrate.embedder.model,
            "content": indexed_text(then.tenant_id, then.scope_id, list(prepared.stems)),
        }
        assert {name: row[name] for name in wanted} == wanted


async def check_counters(substrate: Substrate) -> None:
    """Check that each scope's counters equal its row counts."""
    wrong = await substrate.rows(
        "SELECT c.* FROM scopes c WHERE (c.records, c.words) IS NOT ("
        " SELECT COUNT(*), COALESCE(SUM(s.words), 0) FROM memory_search s"
        " WHERE s.tenant_id = c.tenant_id AND s.scope_id = c.scope_id)"
    )
    assert wrong == []


async def check_history(substrate: Substrate) -> None:
    """Check that each tenant's chain verifies, has no gap, and contains every event once."""
    for row in await substrate.rows("SELECT tenant_id, COUNT(*) AS n FROM memory_events GROUP BY tenant_id"):
        verdict = await WorldHistory(substrate.d1, substrate.clock).verify(row["tenant_id"], page=7)
        assert verdict.broken_at is None
        assert verdict.entries == row["n"]


async def check_vectors(substrate: Substrate, records: list[Record]) -> None:
    """Check that the vector index has exactly the records' parts, each with the right vector, scope and end."""
    entries = await substrate.vectors.entries()
    expected = {
        f"{record.id}#{number}": (record, vector)
        for record in records
        for number, vector in enumerate(await vectors_of(substrate, record))
    }
    assert entries.keys() == expected.keys()
    for vector_id, (record, vector) in expected.items():
        entry = entries[vector_id]
        assert list(entry.values) == array("f", vector).tolist(), f"{vector_id} is the vector of another content"
        assert entry.namespace == f"agent_memory_semantic:{record.tenant_id}"
        assert entry.metadata["tenant_id"] == record.tenant_id
        assert entry.metadata["scope_id"] == record.scope_id
        assert entry.metadata["kind"] == record.kind
        assert entry.metadata.get("subject") == record.subject
        assert entry.metadata.get("valid_to") == record.valid_to_ms
        by = None if record.valid_to_ms is None else record.superseded_by
        assert entry.metadata.get("superseded_by") == by


async def vectors_of(substrate: Substrate, record: Record) -> list[Vector]:
    """Return the vectors that the index must have for a record."""
    parts = prepare(record.content, record.utterance).parts
    return [vector for vector in await substrate.embedder.embed(parts) if any(vector)]
