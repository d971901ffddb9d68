"""Spans that user code begins are below that of its call, in Python and in Go; what a Go worker sends."""

import random
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from java_client import JavaChannel, JavaClient
from opentelemetry import trace as api
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider

from support.otlp import Received, about, receiver
from wallaroo.message.frame import encode_frame
from wallaroo.worker._proto import worker_pb2 as pb
from wallaroo.worker.host import trace
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.program.build import build
from wallaroo_runtime.program.module import sdk_modules
from wallaroo_runtime.program.sdk import sdk_directory
from wallaroo_runtime.system.process import ProcessId
from wallaroo_runtime.worker.discovery import stop_worker
from wallaroo_runtime.worker.spec import WorkerSpec

TRACED = Path(__file__).parent / "traced"
QUERY = "0b9a1f60-1111-2222-3333-444455556666"
HEADER = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
SPLIT = pb.Stage(id="s1", bucket_count=1, frame_bytes=1 << 20)
SPLIT.nodes.add(path="0/sources/0", kind=pb.NODE_KIND_RECEIVE, port=7, codec="string", timestamps=True)
SPLIT.nodes.add(path="0/steps/0", kind=pb.NODE_KIND_COMPUTATION_MULTI, inputs=["0/sources/0"], component="split")
SPLIT.nodes.add(path="0/steps/0", kind=pb.NODE_KIND_SEND, inputs=["0/steps/0"], port=8, codec="string", timestamps=True)


class Ended(SpanProcessor):
    """Keeps the spans that have ended."""

    def __init__(self) -> None:
        self.spans: list[ReadableSpan] = []

    def on_end(self, span: ReadableSpan) -> None:
        self.spans.append(span)


@contextmanager
def program_provider(monkeypatch: pytest.MonkeyPatch) -> Iterator[Ended]:
    """Set a provider as a user's program does."""
    ended = Ended()
    with monkeypatch.context() as patch:
        made = TracerProvider()
        made.add_span_processor(ended)
        patch.setattr(api, "_TRACER_PROVIDER", made)
        patch.setattr(trace, "_made", {})
        patch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
        yield ended


CALLS = st.lists(st.tuples(st.integers(0, 4), st.booleans()), min_size=1, max_size=5)


@given(CALLS, st.randoms(use_true_random=False))
def test_user_code_of_each_call_runs_in_its_span(drawn: list[tuple[int, bool]], order: random.Random) -> None:
    """Calls of so many replies, then a failure or none, in turns on one thread; some are given up."""
    with program_provider(pytest.MonkeyPatch()) as ended:
        tracer = api.get_tracer("user")

        def replies(number: int, count: int, fails: bool) -> Generator[pb.Reply, None, None]:
            for _ in range(count):
                tracer.start_span(f"user {number}").end()
                yield pb.Reply(done=pb.Done())
            if fails:
                yield pb.Reply(failure=pb.Failure(code="W410", message="a damaged frame"))

        calls, expected = [], []
        for number, (count, fails) in enumerate(drawn):
            span = trace.call_span("app", f"call {number}", [(trace.HEADER, HEADER)])
            assert span is not None
            calls.append((number, trace.within(span, replies(number, count, fails))))
            expected.append([0, ""])
        while calls:
            number, call = order.choice(calls)
            reply = next(call, None)
            if reply is not None and reply.HasField("failure"):
                expected[number][1] = "W410 a damaged frame"
            elif reply is not None:
                expected[number][0] += 1
            if reply is None or order.random() < 0.1:
                call.close()
                calls.remove((number, call))
            assert not api.get_current_span().get_span_context().is_valid
        compare(ended.spans, expected)


def compare(spans: list[ReadableSpan], expected: list[list[object]]) -> None:
    """Compare the spans that have ended with the number of each call's user spans, and its error."""
    for number, (count, error) in enumerate(expected):
        (call,) = [span for span in spans if span.name == f"call {number}"]
        own = [span for span in spans if span.name == f"user {number}"]
        assert (len(own), call.status.description or "") == (count, error)
        assert all(span.parent == call.get_span_context() for span in own)


def test_a_program_without_a_provider_gets_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    with program_provider(monkeypatch), receiver() as received:
        monkeypatch.setattr(api, "_TRACER_PROVIDER", None)
        monkeypatch.setattr(api, "_TRACER_PROVIDER_SET_ONCE", type(api._TRACER_PROVIDER_SET_ONCE)())
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", received.environment["OTEL_EXPORTER_OTLP_ENDPOINT"])
        tracer = api.get_tracer("user")  # before there is a provider, as programs have it
        span = trace.call_span("app", "Process", [(trace.HEADER, HEADER)])
        assert span is not None
        span.run(lambda: tracer.start_span("user").end())
        span.end()
        trace.flush()
        (call,), (user,) = received.named("Process"), received.named("user")
        assert (user.parent_span_id, call.parent_span_id.hex()) == (call.span_id, HEADER.split("-")[2])


@pytest.mark.parametrize(
    ("imported", "names"),
    [
        (["stream"], []),
        (["otel"], ["otel"]),
        (["goka/codec"], ["goka"]),
        (["otel", "goka"], ["goka", "otel"]),
        (["others", "gokas"], []),
        ([], []),
    ],
)
def test_modules_are_those_that_a_program_imports(imported: list[str], names: list[str], tmp_path: Path) -> None:
    for number, name in enumerate(imported):
        (tmp_path / f"{number}.go").write_text(f'package main\n\nimport _ "wallarooapi/{name}"\n')
    assert sdk_modules(tmp_path) == [sdk_directory(), *(sdk_directory() / name for name in names)]


@pytest.mark.slow
def test_a_go_worker_continues_the_trace(
    java_client: JavaClient,
    plain_spec: WorkerSpec,
    executor: ProcessId,
    monkeypatch: pytest.MonkeyPatch,
    wait_until: Callable[..., None],
) -> None:
    with receiver() as received:
        for name, value in received.environment.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr(trace, "_made", {})
        binary = build(TRACED / "words", static=True)
        spec = replace(
            plain_spec, application="Words", command=(str(binary),), args=(), directory=str(TRACED), processes=1
        )
        frame = encode_frame([b"to be or not"], port=7, timestamps=[1])
        channel = JavaChannel(java_client, spec, executor, trace.sampled_below("Words"))
        try:
            for attempt in range(2):  # a micro-batch, and again after a crash
                opening = pb.Opening(application="Words", query=QUERY, stage=SPLIT, batch=7, attempt=attempt)
                assert len(list(channel.data(opening, [frame]))) == 1
                record_task(opening)
            broken = pb.Opening(application="Words", query=QUERY, stage=SPLIT, batch=8)
            with pytest.raises(RunError, match="W410"):
                list(channel.data(broken, [frame[:-1] + b"\0"]))
            record_task(broken)
        finally:
            stop_worker(spec, executor)
        trace.flush()
        wait_until(lambda: len(received.spans) == 8, "three spans of tasks, of calls, and two of the program")
        check_go_spans(received)
        assert received.services == {"Words"}


def record_task(opening: pb.Opening) -> None:
    """Record a task as the driver does."""
    about_task = {"stage": "s1", "worker": "main", "partition": 0, "attempt": opening.attempt}
    trace.task_span("Words", QUERY, opening.batch, 1, 2, **about_task)


def check_go_spans(received: Received) -> None:
    """Check spans of two attempts at a micro-batch, and of one that failed at once."""
    tasks = {span.span_id: span for span in received.named("stage s1")}
    calls = {span.span_id: span for span in received.named("Process")}
    splits = received.named("split")
    for call in calls.values():
        task = tasks[call.parent_span_id]
        assert (call.trace_id, call.kind) == (task.trace_id, call.SPAN_KIND_SERVER)
        assert set(about(call)) == {"process.pid"}
        fails = about(task)["wallaroo.batch"] == 8
        assert (call.status.code == call.status.STATUS_CODE_ERROR) == fails
        assert call.status.message.startswith("W410 ") == fails
    assert len({call.parent_span_id for call in calls.values()}) == 3
    assert len({split.parent_span_id for split in splits}) == 2
    trace_id = trace.batch_ids(QUERY, 7)[0].to_bytes(16, "big")
    assert all(split.trace_id == calls[split.parent_span_id].trace_id == trace_id for split in splits)
