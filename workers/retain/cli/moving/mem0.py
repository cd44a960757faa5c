"""Memories of mem0: what `get_all` returns, of the library and of the platform.

Source: https://docs.mem0.ai/api-reference/memory/get-memory
"""

from __future__ import annotations

from collections.abc import Iterator

from retain.cli.moving.entries import invalid, moment_in, present, read_entries, text_in
from retain.cli.moving.memory import ForeignMemory

_KEPT = ("agent_id", "app_id", "run_id", "actor_id", "role", "categories")


def memories(text: str) -> Iterator[ForeignMemory]:
    """Yield the memories of a file. What mem0 knows next to a memory becomes metadata of its own name.

    Raises: InvalidInput (code `invalid_export`), naming the entry.
    """
    for number, entry in read_entries(text, ("results", "memories")):
        content, source_id = text_in(entry, "memory"), text_in(entry, "id")
        if content is None or source_id is None:
            raise invalid(number, "a memory of mem0 has an id and a memory")
        metadata = entry.get("metadata") or {}
        if not isinstance(metadata, dict):
            raise invalid(number, "its metadata is not an object")
        try:
            yield ForeignMemory(
                number,
                source_id,
                content,
                {**metadata, **present(entry, _KEPT)},
                text_in(entry, "user_id"),
                recorded_at_ms=moment_in(entry, "created_at"),
                expires_at_ms=moment_in(entry, "expiration_date"),
            )
        except ValueError as error:
            raise invalid(number, str(error)) from error
