"""Traces of micro-batches for OpenTelemetry, which is imported only if variables OTEL_* name a receiver.

The ids of a micro-batch's trace are computed from its query and number. So driver and tasks agree on them without
communication, and a micro-batch that is repeated after a crash continues its trace.
"""

import hashlib
import logging
import os
import sys
import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, TextIO, TypeVar

from wallaroo.diagnostic.diagnostic import Diagnostic

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider

HEADER = "traceparent"  # name of the metadata of a call with the trace, from W3C's Trace Context
PACKAGES = {
    "http/protobuf": (
        "opentelemetry.exporter.otlp.proto.http.trace_exporter",
        "opentelemetry-exporter-otlp-proto-http",
    ),
    "grpc": ("opentelemetry.exporter.otlp.proto.grpc.trace_exporter", "opentelemetry-exporter-otlp-proto-grpc"),
}
FLUSH_S = 3.0
MOST_CHARACTERS = 300
SCOPE = "wallaroo"

T = TypeVar("T")


class FirstFailure(logging.Handler):
    """Reports only the first message of OpenTelemetry's log in this process, since the log repeats it each second.

    Example:
        >>> log = logging.getLogger("opentelemetry.example")
        >>> log.propagate = False
        >>> log.addHandler(FirstFailure(sys.stdout))
        >>> for number in range(3):
        ...     log.warning("receiver is away: %d", number)
        <BLANKLINE>
        traces: receiver is away: 0; more of this is not reported
    """

    def __init__(self, stream: TextIO | None = None) -> None:
        super().__init__(logging.WARNING)
        self._stream, self._is_said = stream, False

    def emit(self, record: logging.LogRecord) -> None:
        """Report a record if it is the first record."""
        if self._is_said:
            return
        self._is_said = True
        text = " ".join(record.getMessage().split())[:MOST_CHARACTERS]
        print(f"\ntraces: {text}; more of this is not reported", file=self._stream or sys.stderr, flush=True)


_lock = threading.Lock()
_made: "dict[int, TracerProvider | None]" = {}  # by process id, since its threads do not survive a fork
_ids = threading.local()


def is_wanted(environment: Mapping[str, str] = os.environ) -> bool:
    """Return whether the environment names a receiver of traces.

    Example:
        >>> is_wanted({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318"}), is_wanted({})
        (True, False)
    """
    if environment.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return False
    exporters = environment.get("OTEL_TRACES_EXPORTER", "")
    if exporters:
        return "otlp" in map(str.strip, exporters.split(","))
    return bool({"OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"} & set(filter(None, environment)))


def service(application: str, environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the environment variables by which the traces of an application's worker get a service name.

    The result is empty if the environment has a service name, or no receiver of traces. A worker that hosts a library
    needs the variables, since it does not know the application.

    Example:
        >>> service("Words", {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318"}), service("Words", {})
        ({'OTEL_SERVICE_NAME': 'Words'}, {})
    """
    is_named = environment.get("OTEL_SERVICE_NAME") or "service.name=" in environment.get(
        "OTEL_RESOURCE_ATTRIBUTES", ""
    )
    return {} if is_named or not is_wanted(environment) else {"OTEL_SERVICE_NAME": application}


def missing(environment: Mapping[str, str] = os.environ) -> str:
    """Return the name of a missing package that the requested traces need, or an empty text."""
    if not is_wanted(environment):
        return ""
    name, package = PACKAGES.get(_protocol(environment), PACKAGES["http/protobuf"])
    for module, wanted in (("opentelemetry.sdk.trace", "opentelemetry-sdk"), (name, package)):
        try:
            import_module(module)
        except ImportError:
            return wanted
    return ""


def not_installed(package: str, environment: Mapping[str, str] = os.environ) -> Diagnostic:
    """Return the warning that there are no traces because a package is missing.

    Example:
        >>> not_installed("x", {"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}).fix.partition(" pip ")[2].partition(",")[0]
        "install 'wallaroo-spark[otel]' opentelemetry-exporter-otlp-proto-grpc"
    """
    exporter = f" {PACKAGES['grpc'][1]}" if _protocol(environment) == "grpc" else ""  # the extra has the one for HTTP
    install = f"'wallaroo-spark[otel]'{exporter}, also where executors run; or set OTEL_SDK_DISABLED=true"
    what = "the receiver of traces that OTEL_* names"
    return Diagnostic.no_package(what, package, "there are no traces", install)


@dataclass(frozen=True, slots=True)
class Span:
    """A span of OpenTelemetry (a timed piece of work in a trace) that has begun."""

    _span: Any

    def run(self, work: Callable[[], T]) -> T:
        """Run a function in this thread within the span. Spans of user code then become children of this span."""
        from opentelemetry.trace import use_span

        with use_span(self._span, record_exception=False, set_status_on_exception=False):
            return work()

    def end(self, error: str = "") -> None:
        """End the span, with an error if `error` is not empty."""
        from opentelemetry.trace import Status, StatusCode

        if error:
            self._span.set_status(Status(StatusCode.ERROR, error))
        self._span.end()


def batch_ids(query: str, batch: int) -> tuple[int, int]:
    """Return the ids of a micro-batch's trace and of its first span. No id is 0.

    Example:
        >>> trace, span = batch_ids("0b9a1f60", 7)
        >>> (trace, span) == batch_ids("0b9a1f60", 7), (trace, span) == batch_ids("0b9a1f60", 8)
        (True, False)
    """
    digest = hashlib.sha256(f"{query}/{batch}".encode()).digest()
    return int.from_bytes(digest[:16], "big") or 1, int.from_bytes(digest[16:24], "big") or 1


def batch_span(application: str, query: str, batch: int, begun_ns: int, counts: Mapping[str, int], error: str) -> None:
    """Record, in the driver, the span of a micro-batch that ends now.

    Args:
        application: Name of the application.
        query: Id of Spark's query.
        batch: Number of the micro-batch.
        begun_ns: When its tasks began, in nanoseconds since 1970.
        counts: Counts of the micro-batch, by name.
        error: Why the micro-batch was not published; empty if it was published.
    """
    provider = _provider(application)
    if provider is None:
        return
    from opentelemetry.context import Context

    _ids.next = batch_ids(query, batch)
    about: dict[str, Any] = {"wallaroo.query": query, "wallaroo.batch": batch}
    about |= {f"wallaroo.{name}": count for name, count in counts.items()}
    span = provider.get_tracer(SCOPE).start_span("micro-batch", Context(), attributes=about, start_time=begun_ns)
    _ids.next = None
    Span(span).end(error)


def task_ids(query: str, batch: int, stage: str, attempt: int) -> int:
    """Return the id of the span for one stage in one attempt of a task. Each attempt has another id.

    The task sends the id to its worker with each call.

    Example:
        >>> task_ids("0b9a1f60", 7, "s1", 12) == task_ids("0b9a1f60", 7, "s1", 13)
        False
    """
    digest = hashlib.sha256(f"{query}/{batch}/{stage}/{attempt}".encode()).digest()
    return int.from_bytes(digest[:8], "big") or 1


def task_span(application: str, query: str, batch: int, begun_ns: int, ended_ns: int, **about: Any) -> None:
    """Record, in the driver, the span of a task in a stage.

    Args:
        application: Name of the application.
        query: Id of Spark's query.
        batch: Number of the micro-batch.
        begun_ns: When the stage began, in nanoseconds since 1970.
        ended_ns: When the stage ended, in nanoseconds since 1970.
        about: `stage`, `worker`, `partition` and `attempt`.
    """
    provider = _provider(application)
    if provider is None:
        return
    from opentelemetry.trace import SpanKind

    trace, root = batch_ids(query, batch)
    decision: Any = provider.sampler.should_sample(None, trace, "micro-batch").decision
    parent = _parent(trace, root, is_sampled=decision.is_sampled())
    values = {"wallaroo.batch": batch, **{f"wallaroo.{name}": value for name, value in about.items()}}
    _ids.next = trace, task_ids(query, batch, about["stage"], about["attempt"])
    span = provider.get_tracer(SCOPE).start_span(
        f"stage {about['stage']}", parent, SpanKind.CLIENT, values, start_time=begun_ns
    )
    _ids.next = None
    span.end(ended_ns)


def sampled_below(application: str) -> int:
    """Return a bound by which Java samples traces: it reports those whose id ends in 8 bytes below this bound."""
    provider = _provider(application)
    if provider is None:
        return 0
    sampler: Any = getattr(provider.sampler, "_root", provider.sampler)
    if (bound := getattr(sampler, "bound", None)) is None:
        bound = 1 << 64 if sampler.should_sample(None, 1, "micro-batch").decision.is_sampled() else 0
    return int(min(bound, (1 << 64) - 1))


def call_span(application: str, method: str, metadata: Iterable[tuple[str, Any]]) -> Span | None:
    """Begin the span of a call in the worker. Return None if the client sends no trace, or OTEL_* name no receiver."""
    header = next((str(value) for name, value in metadata if name == HEADER), "")
    provider = _provider(application, _global_provider) if header else None
    ids = header.split("-")
    if provider is None or len(ids) != 4:
        return None
    from opentelemetry.trace import SpanKind

    parent = _parent(int(ids[1], 16), int(ids[2], 16), is_sampled=bool(int(ids[3], 16) & 1))
    return Span(provider.get_tracer(SCOPE).start_span(method, parent, SpanKind.SERVER, {"process.pid": os.getpid()}))


def within(span: Span, replies: Generator[Any, None, None]) -> Iterator[Any]:
    """Yield the replies of a call, whose user code runs within the span. If the call fails, the span notes it."""
    error = ""
    try:
        while (reply := span.run(lambda: next(replies, None))) is not None:
            if reply.HasField("failure"):
                error = f"{reply.failure.code} {reply.failure.message}"
            yield reply
    finally:
        replies.close()
        span.end(error)


def flush() -> None:
    """Send the ended spans. Take a few seconds at most, since a dead receiver must not delay the end of a process."""
    provider = _made.get(os.getpid())
    if provider is not None:
        sender = threading.Thread(target=provider.force_flush, args=(int(FLUSH_S * 1000),), daemon=True)
        sender.start()
        sender.join(FLUSH_S)


def _protocol(environment: Mapping[str, str]) -> str:
    names = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
    return next((environment[name] for name in names if environment.get(name)), "http/protobuf")


def _provider(application: str, make: "Callable[[str], TracerProvider] | None" = None) -> "TracerProvider | None":
    """Return OpenTelemetry's provider of spans for this process; None if there are no traces."""
    process = os.getpid()
    if process not in _made:
        with _lock:
            if process not in _made:
                _made[process] = (make or _new_provider)(application) if is_wanted() and not missing() else None
    return _made[process]


def _global_provider(application: str) -> "TracerProvider":
    """Return the provider that the user's program has set. If there is no provider, set a new provider."""
    from opentelemetry import trace
    from opentelemetry.sdk.trace import TracerProvider

    own = trace.get_tracer_provider()
    if isinstance(own, TracerProvider):
        return own
    provider = _new_provider(application)
    trace.set_tracer_provider(provider)
    return provider


def _new_provider(application: str) -> "TracerProvider":
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor
    from opentelemetry.sdk.trace.id_generator import RandomIdGenerator

    class Ids(RandomIdGenerator):
        """Generates ids: those of `batch_ids` and `task_ids` for micro-batches and tasks, else random ones."""

        def generate_trace_id(self) -> int:
            wanted = getattr(_ids, "next", None)
            return int(wanted[0]) if wanted else super().generate_trace_id()

        def generate_span_id(self) -> int:
            wanted = getattr(_ids, "next", None)
            return int(wanted[1]) if wanted else super().generate_span_id()

    log = logging.getLogger("opentelemetry")
    if not log.handlers:  # keep handlers that the program has added
        log.addHandler(FirstFailure())
        log.propagate = False
    about: dict[str, Any] = {"process.pid": os.getpid()}
    if name := service(application):
        about["service.name"] = name["OTEL_SERVICE_NAME"]
    resource = Resource.create(about)
    provider = TracerProvider(resource=resource, id_generator=Ids(), shutdown_on_exit=False)
    module, _ = PACKAGES.get(_protocol(os.environ), PACKAGES["http/protobuf"])
    provider.add_span_processor(BatchSpanProcessor(import_module(module).OTLPSpanExporter()))
    return provider


def _parent(trace: int, span: int, *, is_sampled: bool) -> Any:
    from opentelemetry.context import Context
    from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags, set_span_in_context

    context = SpanContext(trace, span, is_remote=True, trace_flags=TraceFlags(int(is_sampled)))
    return set_span_in_context(NonRecordingSpan(context), Context())
