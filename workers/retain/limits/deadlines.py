"""How long a call outside may take, in milliseconds.

The platform bounds none of these calls for a Worker, nor how long a client takes to send a body, so a store that hangs would
hold its request, and an instance, without end. Each is far above what the call takes when the store is well, and low enough
for someone who waits for the answer. Requests over HTTP have bounds of their own: a tool's `timeout_ms`, and
`retain.models.endpoint`. A run has the bound of its definition, `limits.run_minutes`.
"""

BODY_MS = 10_000
"""How long Retain waits, in all, for a request's body that is not small …"""
BODY_BYTES_PER_MS = 16
"""… and a millisecond more for so many bytes that have arrived."""
KV_MS = 5_000
"""A call of KV. A key that is read for the first time in a place takes up to a second."""
SQL_MS = 30_000
"""A call of D1. The platform ends a query after 30 seconds.

Source: https://developers.cloudflare.com/d1/platform/limits/
"""
OBJECTS_MS = 15_000
"""A call of R2 that moves no large content …"""
OBJECT_BYTES_PER_MS = 500
"""… and a millisecond more for so many bytes that are written."""
OBJECT_STREAM_MS = 300_000
"""Writing an object to R2 as it arrives from a client."""
VECTOR_QUERY_MS = 3_000
"""A call that reads the vector index. A recall does without it after that."""
VECTOR_WRITE_MS = 5_000
"""A call that changes the vector index, if it has few vectors …"""
VECTOR_ENTRY_MS = 10
"""… and so much more for each vector or id."""
QUERY_EMBEDDING_MS = 4_000
"""Embedding a query, with all its attempts. A recall does without it after that."""
RERANKING_MS = 4_000
"""Reranking what a recall found, with all attempts. The recall does without it after that."""
EMBEDDING_MS = 20_000
"""Embedding what is written, with all its attempts, if it is little …"""
EMBEDDED_TEXT_MS = 200
"""… and so much more for each text."""
AI_MS = 65_000
"""A call of Workers AI. A chat model's adapter has a shorter bound of its own."""
INSTANCE_MS = 60_000
"""A call of an instance, which answers at once or after half a minute …"""
RUN_CALL_MS = 900_000
"""… except one that waits for a run to end. The run continues; repeat the call with its key."""

WRITER_MS = 60_000
"""A call of a tenant's writer: the store waits for the group before its own."""


def object_write_ms(size_bytes: int) -> int:
    """Return how long writing an object of this size may take."""
    return OBJECTS_MS + size_bytes // OBJECT_BYTES_PER_MS


def vector_write_ms(entries: int) -> int:
    """Return how long writing or deleting so many vectors may take."""
    return VECTOR_WRITE_MS + entries * VECTOR_ENTRY_MS


def embedding_ms(texts: int) -> int:
    """Return how long embedding so many texts may take."""
    return EMBEDDING_MS + texts * EMBEDDED_TEXT_MS
