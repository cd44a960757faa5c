"""OTLP's JSON encoding of spans, and of the metrics that follow from them.

Ids are hexadecimal, enumerations numbers, and 64-bit numbers text.
Source: https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding
"""

from __future__ import annotations

import bisect
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from retain.json_text import Json, JsonObject
from retain.telemetry.spans import Attribute, Span
from retain.version import __version__

_KINDS = {"internal": 1, "client": 3}
_ERROR = 2
_DELTA = 1
DURATION = "gen_ai.client.operation.duration"
TOKENS = "gen_ai.client.token.usage"
DROPPED = "retain.telemetry.spans.dropped"
_SECONDS = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92)
_COUNTS = (1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864)
"""The bounds that the conventions give for the two histograms.

Source: https://github.com/open-telemetry/semantic-conventions-genai/blob/main/docs/gen-ai/gen-ai-metrics.md
"""
_MEASURED = ("gen_ai.operation.name", "gen_ai.provider.name", "gen_ai.request.model", "gen_ai.agent.name", "error.type")
"""The attributes by which metrics are told apart: few values each, and no id."""


def traces_body(spans: Sequence[Span], resource: Mapping[str, Attribute]) -> str:
    """Return the body of a request that exports spans."""
    scope: JsonObject = {"scope": _SCOPE, "spans": [_span(span) for span in spans]}
    return _text({"resourceSpans": [{"resource": _resource(resource), "scopeSpans": [scope]}]})


def metrics_body(
    spans: Sequence[Span], resource: Mapping[str, Attribute], *, dropped: int, since_ms: int, now_ms: int
) -> str:
    """Return the body of a request that exports what the spans add to the metrics. dropped: spans that were lost."""
    durations, tokens = _Histograms(_SECONDS), _Histograms(_COUNTS)
    for span in spans:
        measured = _measured(span)
        if span.timed:
            durations.add(measured, (span.end_ms - span.start_ms) / 1000)
        for direction in ("input", "output"):
            used = span.attributes.get(f"gen_ai.usage.{direction}_tokens")
            if span.operation == "chat" and isinstance(used, int):
                tokens.add({**measured, "gen_ai.token.type": direction}, used)
    times: dict[str, Json] = {"startTimeUnixNano": _nano(since_ms), "timeUnixNano": _nano(now_ms)}
    metrics: list[Json] = [
        {"name": DURATION, "unit": "s", "histogram": durations.to_json(times)},
        {"name": TOKENS, "unit": "{token}", "histogram": tokens.to_json(times)},
    ]
    if dropped:
        point: JsonObject = {**times, "asInt": str(dropped), "attributes": []}
        lost: JsonObject = {"dataPoints": [point], "aggregationTemporality": _DELTA, "isMonotonic": True}
        metrics.append({"name": DROPPED, "unit": "{span}", "sum": lost})
    scope: JsonObject = {"scope": _SCOPE, "metrics": metrics}
    return _text({"resourceMetrics": [{"resource": _resource(resource), "scopeMetrics": [scope]}]})


@dataclass
class _Histograms:
    """Histograms by their attributes. bounds: between the buckets."""

    bounds: Sequence[float]
    _found: dict[str, list[float]] = field(default_factory=dict)
    _attributes: dict[str, Mapping[str, Attribute]] = field(default_factory=dict)

    def add(self, attributes: Mapping[str, Attribute], value: float) -> None:
        key = json.dumps(attributes, sort_keys=True)
        self._attributes[key] = attributes
        self._found.setdefault(key, []).append(value)

    def to_json(self, times: JsonObject) -> JsonObject:
        points = [self._point(key, values, times) for key, values in self._found.items()]
        return {"aggregationTemporality": _DELTA, "dataPoints": points}

    def _point(self, key: str, values: Sequence[float], times: JsonObject) -> JsonObject:
        buckets = [0] * (len(self.bounds) + 1)
        for value in values:
            buckets[bisect.bisect_left(self.bounds, value)] += 1
        return {
            **times,
            "count": str(len(values)),
            "sum": sum(values),
            "min": min(values),
            "max": max(values),
            "bucketCounts": [str(count) for count in buckets],
            "explicitBounds": list(self.bounds),
            "attributes": _attributes(self._attributes[key]),
        }


def _measured(span: Span) -> Mapping[str, Attribute]:
    every = _all(span)
    return {name: every[name] for name in _MEASURED if name in every}


def _all(span: Span) -> Mapping[str, Attribute]:
    failed: Mapping[str, Attribute] = {} if span.error is None else {"error.type": span.error}
    return {"gen_ai.operation.name": span.operation, **span.attributes, **failed}


def _span(span: Span) -> JsonObject:
    content: dict[str, Json] = {
        "traceId": span.ref.trace_id,
        "spanId": span.ref.span_id,
        "name": span.name,
        "kind": _KINDS[span.kind],
        "startTimeUnixNano": _nano(span.start_ms),
        "endTimeUnixNano": _nano(span.end_ms),
        "attributes": _attributes(_all(span)),
        "links": [{"traceId": link.trace_id, "spanId": link.span_id} for link in span.links],
        "status": {} if span.error is None else {"code": _ERROR},
    }
    return content if span.parent is None else {**content, "parentSpanId": span.parent.span_id}


def _attributes(attributes: Mapping[str, Attribute]) -> list[Json]:
    return [{"key": name, "value": _value(value)} for name, value in attributes.items()]


def _value(value: Attribute) -> JsonObject:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value}
    if isinstance(value, str):
        return {"stringValue": value}
    return {"arrayValue": {"values": [{"stringValue": one} for one in value]}}


def _resource(attributes: Mapping[str, Attribute]) -> JsonObject:
    return {"attributes": _attributes(attributes)}


def _nano(at_ms: int) -> str:
    return str(at_ms * 1_000_000)


def _text(body: JsonObject) -> str:
    return json.dumps(body, ensure_ascii=False, separators=(",", ":"))


_SCOPE: JsonObject = {"name": "retain", "version": __version__}
