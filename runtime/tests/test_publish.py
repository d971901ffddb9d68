"""Publishing a micro-batch while the query is being stopped."""

import json
import socket
import threading
import time
from collections import deque
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as some
from py4j.protocol import Py4JNetworkError  # type: ignore[import-untyped]

from wallaroo_runtime.errors import RunError
from wallaroo_runtime.service.client import Away
from wallaroo_runtime.service.endpoint import Service
from wallaroo_runtime.spark.failure.cause import causes_of
from wallaroo_runtime.spark.failure.translate import translated
from wallaroo_runtime.spark.micro_batches import MicroBatches, Rows
from wallaroo_runtime.spark.outbox_gate import OutboxGate
from wallaroo_runtime.spark.realtime.query import RealTimeQuery
from wallaroo_runtime.storage import remote_outbox
from wallaroo_runtime.storage.progress import Progress
from wallaroo_runtime.storage.remote_outbox import RemoteOutbox


class Java:
    """The questions of one query, as Java has them.

    Args:
        gone_after: So many; -1: it stays.
    """

    def __init__(self, questions: list[dict[str, Any]], gone_after: int = -1) -> None:
        self.questions, self.answers, self.gone_after = deque(questions), dict[int, str](), gone_after
        self.has_ended, self.is_empty = False, threading.Event()
        self._jvm = self
        setattr(self, "org.wallaroo.spark.sink.MicroBatches", lambda: self)

    def sinkFormat(self) -> str:  # noqa: N802 - Java's name
        return "org.wallaroo.spark.sink.MicroBatchSink"

    def open(self) -> str:
        return "these"

    def next(self, milliseconds: int) -> str:
        if self.gone_after == len(self.answers):
            self.is_empty.set()
            raise Py4JNetworkError
        if self.questions:
            return json.dumps(self.questions.popleft())
        self.is_empty.set()
        time.sleep(0.001)
        return ""

    def answer(self, number: int, failure: str) -> None:
        self.answers[number] = failure

    def end(self) -> None:
        self.has_ended = True


class Writer:
    """PySpark's, of a stream."""

    def __init__(self) -> None:
        self.options: dict[str, str] = {}

    def format(self, name: str) -> "Writer":
        self.options["format"] = name
        return self

    def option(self, name: str, value: str) -> "Writer":
        self.options[name] = value
        return self

    def start(self) -> str:
        assert self.options == {"format": "org.wallaroo.spark.sink.MicroBatchSink", "questions": "these"}
        return "query"


def started(java: Java, **functions: Any) -> MicroBatches:
    batches = MicroBatches(cast(Any, java), **{"publish": lambda rows, batch: None, **functions})
    assert batches.start(cast(Any, Writer())) == "query"
    return batches


def test_the_end_waits_for_what_is_being_published_and_nothing_follows() -> None:
    questions = [{"number": number, "batch": number, "rows": [[number]]} for number in (1, 2)]
    entered, goes_on, published = threading.Event(), threading.Event(), list[int]()

    def publish(rows: Rows, batch: int) -> None:
        entered.set()
        assert goes_on.wait(60)
        published.append(batch)

    java = Java(questions)
    batches = started(java, publish=publish)
    assert entered.wait(60)
    ending = threading.Thread(target=batches.end)
    ending.start()
    ending.join(0.2)
    assert ending.is_alive(), "a publication is in flight"
    goes_on.set()
    ending.join(60)
    assert not ending.is_alive()
    assert (published, java.answers, java.has_ended) == ([1], {1: ""}, True)


QUESTIONS = some.lists(some.tuples(some.booleans(), some.sampled_from(["", "run", "code", "exit"])), max_size=8)


@given(QUESTIONS, some.integers(-1, 8))
def test_each_question_is_answered_whatever_the_function_raises(drawn: list[tuple[bool, str]], gone_after: int) -> None:
    kinds = {
        "run": RunError.of("R625", size=2, limit=1), "code": ValueError("no"), "exit": SystemExit(3)
    }  # fmt: skip
    asked = list[tuple[int, bool]]()

    def do(batch: int, has_run: bool) -> None:
        asked.append((batch, has_run))
        if error := kinds.get(drawn[batch][1]):
            raise error

    questions = [{"number": at, "batch": at, "rows": [] if has_run else None} for at, (has_run, _) in enumerate(drawn)]
    java = Java(questions, gone_after)
    batches = started(java, begin=lambda batch: do(batch, False), publish=lambda rows, batch: do(batch, True))
    assert java.is_empty.wait(60)
    batches.end()
    count = len(drawn) if gone_after < 0 else min(gone_after, len(drawn))
    assert asked == [(at, has_run) for at, (has_run, _) in enumerate(drawn)][:count]
    assert java.has_ended, "what is asked later fails, and the query does not hang"
    for at, (_, kind) in enumerate(drawn[:count]):
        answer = java.answers[at]
        assert bool(answer) == bool(kind)
        if kind == "run":
            assert "R625" in translated(causes_of(answer)).diagnostics[0].message
        if kind == "code":
            assert "ValueError: no" in translated(causes_of(answer)).diagnostics[0].message


def test_an_egress_that_is_gone_before_a_micro_batch_begins_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        address = f"127.0.0.1:{closed.getsockname()[1]}"
    outbox = RemoteOutbox(Service("egress", address, "token"), patience_s=0.1)
    gate = OutboxGate(lambda rows, batch: None, outbox, max_outbox_bytes=1)
    with pytest.raises(RunError) as caught:
        gate.begin(0)
    assert gate.failure is not None and gate.failure.diagnostics[0].code == "R642"
    assert address in str(gate.failure)
    assert caught.value is gate.failure


class Flaky:
    """A remote egress that is away for some calls.

    Args:
        away: For so many.
    """

    def __init__(self, away: int) -> None:
        self.away, self.published = away, list[int]()

    def publish(self, query: str, batch: int, files: tuple[()], offsets: str) -> bool:
        self.away -= 1
        if self.away >= 0:
            raise Away([])
        self.published.append(batch)
        return True


@given(some.lists(some.tuples(some.integers(1, 3), some.integers(0, 3)), min_size=1, max_size=6))
def test_in_real_time_mode_a_batch_is_recorded_once_whenever_the_egress_is_back(drawn: list[tuple[int, int]]) -> None:
    outbox, planned = Flaky(0), SimpleNamespace(query="q", offsets=str)
    query = object.__new__(RealTimeQuery)
    query.__dict__.update(_batch=-1, _end=-1, _progress=Progress(), _outbox=outbox, _offset_log=planned)
    batch, wanted = -1, []
    for step, away in drawn:
        batch, outbox.away = batch + step, away
        report = {"batchId": batch, "sources": [{"endOffset": {"offset": 10 * batch}}]}
        for look in range(away + 2):
            query._record(report)
            assert query._batch == (batch if look >= away else (wanted or [-1])[-1])
        wanted.append(batch)
    assert (outbox.published, query._end, query._progress.batches) == (wanted, 10 * batch, len(wanted))


@pytest.mark.parametrize("is_there", [False, True], ids=["gone", "stalled"])
def test_in_real_time_mode_an_egress_that_is_away_holds_up_nothing(
    is_there: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote_outbox, "LOOK_S", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        if not is_there:
            server.close()
        outbox = RemoteOutbox(Service("egress", address, "token"), waits=False)
        began = time.monotonic()
        with pytest.raises(Away):
            outbox.publish("q", 0, ())
        assert time.monotonic() - began < 30  # it waits 60 s otherwise
