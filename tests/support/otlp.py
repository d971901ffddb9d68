"""A receiver of OpenTelemetry's protocol over HTTP, which keeps the spans that it gets."""

import gzip
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from wallaroo.worker.host import trace


class Received:
    """What has come.

    Attributes:
        spans: In the order in which they came.
        services: Names of the services that sent them.
    """

    def __init__(self, address: str) -> None:
        self.environment = {"OTEL_EXPORTER_OTLP_ENDPOINT": address, "OTEL_BSP_SCHEDULE_DELAY": "100"}
        self.spans: list[Span] = []
        self.services: set[str] = set()

    def add(self, request: ExportTraceServiceRequest) -> None:
        """Keep the spans of a request."""
        for each in request.resource_spans:
            named = {attribute.key: attribute.value.string_value for attribute in each.resource.attributes}
            self.services.add(named["service.name"])
            for scope in each.scope_spans:
                self.spans.extend(scope.spans)

    def named(self, name: str) -> list[Span]:
        """Return the spans whose name begins so."""
        return [span for span in list(self.spans) if span.name.startswith(name)]


def about(span: Span) -> dict[str, Any]:
    """Return the attributes of a span."""
    return {each.key: getattr(each.value, each.value.WhichOneof("value")) for each in span.attributes}


@contextmanager
def receiver() -> Iterator[Received]:
    """Receive traces on a free port of this machine."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:  # noqa: N802 - the library's name
            assert self.path == "/v1/traces"
            data = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers.get("Content-Encoding") == "gzip":
                data = gzip.decompress(data)
            received.add(ExportTraceServiceRequest.FromString(data))
            self.send_response(200)
            self.send_header("Content-Type", "application/x-protobuf")
            self.end_headers()
            self.wfile.write(ExportTraceServiceResponse().SerializeToString())

        def log_message(self, *arguments: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        received = Received(f"http://127.0.0.1:{server.server_address[1]}")
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield received
        finally:
            for provider in filter(None, trace._made.values()):  # else its thread reports later that nobody receives
                provider.shutdown()
            server.shutdown()
            thread.join()
