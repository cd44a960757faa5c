"""The export of traces and metrics, where a collector is configured."""

from __future__ import annotations

from collections.abc import Awaitable
from dataclasses import replace

import bindings
from retain.errors import RetainError
from retain.http import Request, Response
from retain.telemetry.collector import Collector
from retain.telemetry.exporter import SpanExporter
from retain.version import __version__


def exporter_of(collector: Collector, environment: str) -> SpanExporter:
    """Return the exporter of this isolate."""
    resource = {"service.name": "retain", "service.version": __version__, "deployment.environment.name": environment}
    return SpanExporter(collector, bindings.fetch, bindings.now_ms, bindings.in_background, resource)


async def observed(exporter: SpanExporter, route: str, request: Request, work: Awaitable[Response]) -> Response:
    """Return what a request is answered, and export the span of what it did with memory, after the answer."""
    from retain.admin.memories.memory_spans import OPERATIONS, MemoryCall, memory_spans

    if route not in OPERATIONS:
        return await work
    call = MemoryCall(route, request.request_id, request.path, bindings.now_ms(), 0)
    try:
        answer = await work
    except RetainError as error:
        exporter.later(memory_spans(replace(call, end_ms=bindings.now_ms(), error=error.code), None))
        raise
    exporter.later(memory_spans(replace(call, end_ms=bindings.now_ms()), answer))
    return answer
