"""Indexes of a part of a table are used by the statements that look rows up in it."""

from __future__ import annotations

import pytest

from tests.support.databases import migrated_d1


@pytest.mark.parametrize(
    ("statement", "index"),
    [
        ("UPDATE ingest_messages SET message = NULL WHERE record_id = 'r-1'", "ingest_messages_by_record"),
        ("SELECT 1 FROM ingest_messages WHERE record_id IN ('r-1', 'r-2')", "ingest_messages_by_record"),
        ("DELETE FROM memory_outbox WHERE state = 'sent' AND at_ms <= 5", "memory_outbox_by_age"),
        ("UPDATE memory_outbox SET writers = 1 WHERE state = 'owed' AND at_ms <= 5", "memory_outbox_by_turn"),
        (
            "SELECT record_id FROM memory_outbox WHERE state = 'owed' AND at_ms <= 5 AND due_at_ms <= 9"
            " ORDER BY due_at_ms, record_id LIMIT 7",
            "memory_outbox_by_turn",
        ),
    ],
    ids=["erased with their records", "of records", "forgotten", "abandoned", "due"],
)
async def test_a_statement_uses_the_index_of_the_rows_that_it_is_about(statement: str, index: str) -> None:
    sql = migrated_d1()
    plan = (await sql.run(f"EXPLAIN QUERY PLAN {statement}")).rows
    sql.close()
    assert any(f"INDEX {index}" in row["detail"] for row in plan), plan
