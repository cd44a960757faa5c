"""What the vector index calls a tenant and a record's parts."""

from __future__ import annotations


def vector_namespace(tenant_id: str) -> str:
    """Return the vector index's namespace of a tenant's records. At most 64 bytes.

    It is an isolation boundary: no query, write or deletion of records names a namespace made elsewhere.
    """
    return f"agent_memory_semantic:{tenant_id}"


def vector_id(record_id: str, part: int) -> str:
    """Return the id of the vector of a record's part, counted from 0."""
    return f"{record_id}#{part}"


def record_id_of(vector_id: str) -> str:
    """Return the id of the record that a vector belongs to."""
    return vector_id.partition("#")[0]
