"""Spans as values, with ids that follow from what they are about: exported twice, a span is the same span.

Names and attributes are those of OpenTelemetry's conventions for generative AI, which are in development.
Source: https://github.com/open-telemetry/semantic-conventions-genai/blob/main/docs/gen-ai/gen-ai-spans.md
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

Attribute = str | int | float | bool | Sequence[str]
Operation = Literal[
    "invoke_agent", "chat", "execute_tool", "search_memory", "create_memory", "update_memory", "delete_memory"
]
SpanKind = Literal["internal", "client"]
_CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


@dataclass(frozen=True, slots=True)
class SpanRef:
    """A span as others name it: 32 and 16 hexadecimal digits."""

    trace_id: str
    span_id: str


@dataclass(frozen=True, slots=True)
class Span:
    """One operation. parent: its span in the same trace. error: the code of its failure. links: spans of other traces.

    timed: whether it is known how long it took; else it begins and ends at once, and its duration is in no metric.
    """

    ref: SpanRef
    name: str
    operation: Operation
    kind: SpanKind
    start_ms: int
    end_ms: int
    attributes: Mapping[str, Attribute] = field(default_factory=dict)
    parent: SpanRef | None = None
    error: str | None = None
    links: Sequence[SpanRef] = ()
    timed: bool = True


def span_of(trace: str, *parts: object) -> SpanRef:
    """Return the reference of a span. trace: the ULID of what the trace is about, such as a run. parts: name it in there."""
    number = 0
    for letter in trace:
        number = number * 32 + _CROCKFORD.index(letter)
    digest = hashlib.sha256("/".join([trace, *map(str, parts)]).encode()).hexdigest()
    return SpanRef(f"{number % 2**128:032x}", digest[:16])
