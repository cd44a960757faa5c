"""The vector index's names for a tenant and a record's parts."""

from __future__ import annotations


def vector_namespace(tenant_id: str) -> str:
    """Return the vector index's namespace for a tenant's records, at most 64 bytes.

    It is an isolation boundary: every query, write and deletion of records gets its namespace here.
    """
    return f"agent_memory_semantic:{tenant_id}"


def vector_id(record_id: str, part: int) -> str:
    """Return the vector id of a record's part. part: from 0."""
    return f"{record_id}#{part}"


def record_id_of(vector_id: str) -> str:
    """Return the id of the record that a vector belongs to."""
    return vector_id.partition("#")[0]
