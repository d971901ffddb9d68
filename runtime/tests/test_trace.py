"""Traces of micro-batches, with a real receiver: from the driver over a task and gRPC to the worker; and none."""

import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from java_client import JavaChannel, JavaClient

from support.otlp import Received, about, receiver
from support.run import TESTS, Receiver, Run, framed
from wallaroo.message.frame import FRAMED, FrameHeader, write_frame
from wallaroo.worker._proto import worker_pb2 as pb
from wallaroo.worker.host import trace
from wallaroo_runtime.cli.main import main
from wallaroo_runtime.system.process import ProcessId
from wallaroo_runtime.worker.discovery import stop_worker
from wallaroo_runtime.worker.spec import WorkerSpec

QUERY, MS_NS = "0b9a1f60-1111-2222-3333-444455556666", 1_000_000
REVERSE = TESTS / "cases" / "reverse" / "app.py"
TRACED = Path(__file__).parent / "traced" / "app.py"
STAGE = pb.Stage(id="s0", bucket_count=1, frame_bytes=1 << 20)
STAGE.nodes.add(path="0/sources/0", kind=pb.NODE_KIND_SOURCE, port=0)
STAGE.nodes.add(path="0/steps/0", kind=pb.NODE_KIND_COMPUTATION, inputs=["0/sources/0"])
STAGE.nodes.add(path="0/sinks/0", kind=pb.NODE_KIND_SINK, inputs=["0/steps/0"], port=2)


@pytest.fixture
def received(monkeypatch: pytest.MonkeyPatch) -> Iterator[Received]:
    with receiver() as found:
        for name, value in found.environment.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr(trace, "_made", {})
        yield found
        for provider in filter(None, trace._made.values()):
            provider.shutdown()  # else its thread goes on, and draws from the random numbers of later tests


@given(st.lists(st.tuples(st.text(max_size=5), st.integers(0, 1 << 60)), unique=True, max_size=20))
def test_each_micro_batch_has_ids_of_its_own(drawn: list[tuple[str, int]]) -> None:
    ids = [trace.batch_ids(*each) for each in drawn]
    assert len({found for found, _ in ids}) == len({span for _, span in ids}) == len(drawn)
    assert all(0 < found < 1 << 128 and 0 < span < 1 << 64 for found, span in ids)


@pytest.mark.parametrize(
    ("environment", "wanted"),
    [
        ({}, False),
        ({"OTEL_SERVICE_NAME": "x"}, False),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://h:4318/v1/traces"}, True),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://h:4318"}, True),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://h:4318", "OTEL_SDK_DISABLED": "true"}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://h:4318", "OTEL_TRACES_EXPORTER": "none"}, False),
        ({"OTEL_TRACES_EXPORTER": "otlp"}, True),
    ],
)
def test_who_wants_traces(environment: dict[str, str], wanted: bool) -> None:
    assert trace.is_wanted(environment) == wanted


def test_a_package_that_is_missing_is_named(received: Received, monkeypatch: pytest.MonkeyPatch) -> None:
    assert trace.missing() == ""
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http.trace_exporter", None)
    assert trace.missing() == "opentelemetry-exporter-otlp-proto-http"
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    assert trace.missing() == "opentelemetry-sdk"
    assert trace.missing({}) == ""
    assert trace.sampled_below("app") == 0


def test_the_sampler_of_the_environment_decides(received: Received, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", "parentbased_traceidratio")
    monkeypatch.setenv("OTEL_TRACES_SAMPLER_ARG", "0.5")
    for batch in range(40):
        trace.task_span("app", QUERY, batch, 1, 2, stage="s0", worker="main", partition=0, attempt=batch)
        trace.batch_span("app", QUERY, batch, 1, {}, "")
    trace.flush()
    found = {about(span)["wallaroo.batch"] for span in received.named("micro-batch")}
    assert found == {about(span)["wallaroo.batch"] for span in received.named("stage s0")}
    assert 5 < len(found) < 35


@pytest.mark.slow
def test_a_trace_crosses_to_the_worker(
    received: Received,
    java_client: JavaClient,
    plain_spec: WorkerSpec,
    executor: ProcessId,
    wait_until: Callable[..., None],
) -> None:
    command = ("{python}", "-m", "wallaroo.worker", str(REVERSE))
    args = ("--in", "127.0.0.1:7010", "--out", "127.0.0.1:7002")
    spec = replace(
        plain_spec, application="Reverse Word", command=command, args=args, directory=str(REVERSE.parent), processes=1
    )
    opening = pb.Opening(application="Reverse Word", query=QUERY, stage=STAGE, batch=7, partition=3, attempt=5)
    data = framed([b"abc"])
    frame = write_frame(FrameHeader(0, 1, 0, encoding=FRAMED, timestamp_ms=1), [data])
    try:
        channel = JavaChannel(java_client, spec, executor, trace.sampled_below("Reverse Word"))
        begun = time.time_ns()
        assert len(list(channel.data(opening, [frame]))) == 1
        about_task = {"stage": "s0", "worker": "main", "partition": 3, "attempt": 5}
        trace.task_span("Reverse Word", QUERY, 7, begun, time.time_ns(), **about_task)
        trace.batch_span("Reverse Word", QUERY, 7, 1, {"messages_out": 1}, "")
        trace.flush()
        # Before the worker is stopped: a worker that ends tries for a few seconds only to send its spans.
        wait_until(lambda: len(received.spans) == 3, "three spans")
    finally:
        stop_worker(spec, executor)
    (root,), (client,), (server,) = map(received.named, ("micro-batch", "stage s0", "Process"))
    ids = trace.batch_ids(QUERY, 7)
    assert (int.from_bytes(root.trace_id, "big"), int.from_bytes(root.span_id, "big")) == ids
    assert (root.parent_span_id, client.parent_span_id, server.parent_span_id) == (b"", root.span_id, client.span_id)
    assert {span.trace_id for span in received.spans} == {root.trace_id}
    assert about(client) == {
        "wallaroo.worker": "main", "wallaroo.stage": "s0", "wallaroo.batch": 7, "wallaroo.partition": 3,
        "wallaroo.attempt": 5,
    }  # fmt: skip
    assert about(root) == {"wallaroo.query": QUERY, "wallaroo.batch": 7, "wallaroo.messages_out": 1}
    assert received.services == {"Reverse Word"}
    assert client.start_time_unix_nano <= server.start_time_unix_nano <= client.end_time_unix_nano


@pytest.mark.jvm
def test_an_application_is_traced(tmp_path: Path) -> None:
    """Lines are read and written in Python, their words split and counted in Go; functions in both begin spans."""
    with receiver() as received, Receiver() as sink:
        with Run(TRACED, sink, tmp_path / "checkpoint", **received.environment).ready() as run:
            run.send(framed([b"to be or not to be"]))
            sink.wait_for_lines(6, run)
            assert run.stop() == 0, run.said()
        counts = ("to => 1", "to => 2", "be => 1", "be => 2", "or => 1", "not => 1")
        assert sorted(sink.lines()) == sorted(counts)
    roots = {span.span_id: span for span in received.named("micro-batch")}
    assert sum(about(root)["wallaroo.messages_out"] for root in roots.values()) == 6
    tasks = {span.span_id: span for span in received.named("stage")}
    for task in tasks.values():
        root = roots.get(task.parent_span_id)  # None: it was not over at the end of the run
        if root is not None:
            assert about(task)["wallaroo.batch"] == about(root)["wallaroo.batch"]
            assert root.start_time_unix_nano // MS_NS <= task.start_time_unix_nano // MS_NS
            assert task.end_time_unix_nano <= root.end_time_unix_nano
    calls = {span.span_id: span for span in received.named("Process")}
    assert {call.parent_span_id for call in calls.values()} <= set(tasks)
    for function, method, worker in (
        ("split", "Process", "words"),
        ("count", "ProcessState", "words"),
        ("line", "Process", "main"),
    ):
        spans = received.named(function)
        assert spans, function
        for span in spans:
            call = calls[span.parent_span_id]
            task = tasks[call.parent_span_id]
            assert (call.name, about(task)["wallaroo.worker"]) == (method, worker)
            assert span.trace_id == call.trace_id == task.trace_id == roots[task.parent_span_id].trace_id
    assert received.services == {"Traced words"}


@pytest.mark.slow
def test_a_run_without_the_packages_says_so(
    received: Received, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http.trace_exporter", None)
    command = ["run", str(REVERSE), "--in", "127.0.0.1:7010", "--out", "127.0.0.1:7002"]
    main([*command, "--checkpoint", str(tmp_path / "new"), "--master", "spark://127.0.0.1:1"])
    said = capfd.readouterr().err
    assert (
        "R728 the receiver of traces that OTEL_* names needs the package opentelemetry-exporter-otlp-proto-http; "
        "there are no traces\n"
        f"  fix: {sys.executable} -m pip install 'wallaroo-spark[otel]', also where executors run; "
        "or set OTEL_SDK_DISABLED=true\n"
    ) in said
    assert "R659" in said, "nothing was started"


@pytest.mark.parametrize("name", ["OTEL_EXPORTER_OTLP_PROTOCOL", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"])
def test_the_remedy_brings_the_package_that_is_missing(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    environment = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4317", name: "grpc"}
    monkeypatch.setitem(sys.modules, trace.PACKAGES["grpc"][0], None)
    package = trace.missing(environment)
    found = trace.not_installed(package, environment)
    assert package == "opentelemetry-exporter-otlp-proto-grpc"
    assert found.fix == (
        f"{sys.executable} -m pip install 'wallaroo-spark[otel]' {package}, also where executors run; "
        "or set OTEL_SDK_DISABLED=true"
    )
