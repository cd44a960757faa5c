"""A collector of OTLP over HTTP: it accepts what OpenTelemetry's own protobuf definitions accept, and nothing else."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from google.protobuf import json_format
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric
from opentelemetry.proto.trace.v1.trace_pb2 import Span

_IDS = ("traceId", "spanId", "parentSpanId")


class TestCollector(ThreadingHTTPServer):
    """What arrived. away: whether it refuses everything."""

    __test__ = False
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.away = False
        self.spans: list[Span] = []
        self.metrics: list[Metric] = []
        self.resources: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.bodies: list[str] = []

    @property
    def origin(self) -> str:
        """The collector's address, without a slash."""
        return f"http://127.0.0.1:{self.server_port}"

    def take(self, path: str, body: str) -> None:
        """Parse and keep a request. Raises: ParseError, LookupError for what OTLP does not have."""
        if path == "/v1/traces":
            traces = json_format.Parse(json.dumps(_base64_ids(json.loads(body))), ExportTraceServiceRequest())
            for resource in traces.resource_spans:
                self.resources.append(attributes(resource.resource))
                self.spans += [span for scope in resource.scope_spans for span in scope.spans]
        elif path == "/v1/metrics":
            found = json_format.Parse(body, ExportMetricsServiceRequest())
            for metrics in found.resource_metrics:
                self.metrics += [metric for scope in metrics.scope_metrics for metric in scope.metrics]
        else:
            raise LookupError(path)
        self.bodies.append(body)


class _Handler(BaseHTTPRequestHandler):
    server: TestCollector

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"])).decode()
        self.server.headers.append({name.lower(): value for name, value in self.headers.items()})
        status = 503 if self.server.away else 200
        if not self.server.away:
            try:
                self.server.take(self.path, body)
            except (json_format.ParseError, LookupError, ValueError):
                status = 400
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *_: Any) -> None:
        """Print nothing."""


def _base64_ids(value: Any) -> Any:
    """Return a request with its ids as protobuf's JSON has bytes: OTLP writes them in hexadecimal."""
    if isinstance(value, dict):
        return {
            name: base64.b64encode(bytes.fromhex(one)).decode() if name in _IDS else _base64_ids(one)
            for name, one in value.items()
        }
    return [_base64_ids(one) for one in value] if isinstance(value, list) else value


def attributes(holder: Any) -> dict[str, Any]:
    """Return the attributes of a span, a point or a resource."""
    return {one.key: _plain(one.value) for one in holder.attributes}


def _plain(value: Any) -> Any:
    kind = value.WhichOneof("value")
    return [_plain(one) for one in value.array_value.values] if kind == "array_value" else getattr(value, kind)


@contextmanager
def collecting() -> Iterator[TestCollector]:
    """Yield a collector that listens, and stop it."""
    collector = TestCollector()
    thread = threading.Thread(target=collector.serve_forever)
    thread.start()
    try:
        yield collector
    finally:
        collector.shutdown()
        thread.join()
        collector.server_close()
