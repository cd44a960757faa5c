"""Spans of what people and programs do with memory through the administrator's routes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from retain.http import Response
from retain.identifiers import ULID
from retain.json_text import read_own_json
from retain.telemetry.spans import Attribute, Operation, Span, span_of

_MEMORIES = "/admin/tenants/{tenant}/memories"
OPERATIONS: Mapping[str, Operation] = {
    f"POST {_MEMORIES}": "create_memory",
    f"POST {_MEMORIES}/ingest": "create_memory",
    "POST /admin/seed-memory": "create_memory",
    f"POST {_MEMORIES}/recall": "search_memory",
    f"PATCH {_MEMORIES}/{{id}}": "update_memory",
    f"DELETE {_MEMORIES}/{{id}}": "delete_memory",
}
"""What the routes do, by method and path."""


@dataclass(frozen=True, slots=True)
class MemoryCall:
    """A call of one of the routes. path: as it was asked for. error: the code of its failure."""

    route: str
    request_id: str
    path: str
    start_ms: int
    end_ms: int
    error: str | None = None


async def memory_spans(call: MemoryCall, answer: Response | None) -> list[Span]:
    """Return the span of a call. It has ids and counts, and no text. answer: None when the call failed."""
    operation, segments = OPERATIONS[call.route], call.path.split("/")
    attributes: dict[str, Attribute] = {"http.route": call.route.partition(" ")[2]}
    if segments[2] == "tenants":
        attributes |= {"gen_ai.memory.store.id": segments[3], "retain.tenant.id": segments[3]}
    if ULID.fullmatch(segments[-1]):
        attributes["gen_ai.memory.record.id"] = segments[-1]
    found = _answered(answer)
    if isinstance(record_id := found.get("id"), str):
        attributes["gen_ai.memory.record.id"] = record_id
    for name in ("memories", "ids"):
        if isinstance(listed := found.get(name), list):
            attributes["gen_ai.memory.record.count"] = len(listed)
    ref = span_of(call.request_id, "memory")
    return [Span(ref, operation, operation, "internal", call.start_ms, call.end_ms, attributes, error=call.error)]


def _answered(answer: Response | None) -> Mapping[str, object]:
    if answer is None or not isinstance(answer.body, str) or not answer.body.startswith("{"):
        return {}
    value = read_own_json(answer.body)
    return value if isinstance(value, dict) else {}
