"""Emitters, views and lookups when Kafka does not answer; the client is a fake."""

import sys
import threading
import time
from types import SimpleNamespace
from typing import Any

import pytest

from wallaroo import goka
from wallaroo.goka import emitter, view
from wallaroo.goka.lookup import Lookups

WAIT_S = 60.0
BROKERS = ["127.0.0.1:1"]


class KafkaError(Exception):
    """What the client raises."""


class FullProducer:
    """A producer whose queue stays full, as without brokers."""

    def __init__(self, settings: Any) -> None:
        self.polled = threading.Event()

    def produce(self, *_: Any, **__: Any) -> None:
        raise BufferError

    def poll(self, seconds: float) -> None:
        time.sleep(min(seconds, 0.001))
        self.polled.set()

    def flush(self, seconds: float) -> None:
        pass


class LateProducer:
    """A producer that reports deliveries once it may. Errors of the reports are passed on, as by Kafka's client."""

    def __init__(self, settings: Any) -> None:
        self.may_report, self.reports = threading.Event(), list[Any]()

    def produce(self, *_: Any, on_delivery: Any, **__: Any) -> None:
        self.reports.append(on_delivery)

    def poll(self, seconds: float) -> None:
        self.may_report.wait(min(seconds, 0.001))
        while self.may_report.is_set() and self.reports:
            self.reports.pop(0)(None, SimpleNamespace(partition=lambda: 0, offset=lambda: 7))

    def flush(self, seconds: float) -> None:
        self.poll(seconds)


class SilentConsumer:
    """A consumer of a table with one partition, which never ends."""

    def __init__(self, settings: Any) -> None:
        pass

    def list_topics(self, timeout: float) -> Any:
        return SimpleNamespace(topics={"table": SimpleNamespace(partitions={0: None})})

    def assign(self, partitions: Any) -> None:
        pass

    def consume(self, most: int, seconds: float) -> list[Any]:
        time.sleep(0.001)
        return []

    def close(self) -> None:
        pass


CLIENT = SimpleNamespace(
    Producer=FullProducer, Consumer=SilentConsumer, KafkaException=KafkaError, OFFSET_BEGINNING=-2,
    TopicPartition=lambda *place: place,
)  # fmt: skip


@pytest.fixture(autouse=True)
def _fake(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (emitter, view):
        monkeypatch.setattr(module, "kafka_client", lambda what: CLIENT)


def views() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith("view of ")]


def test_finish_does_not_wait_for_an_emit_that_has_no_room() -> None:
    writer, promises = goka.Emitter(BROKERS, "clicks", goka.String()), []
    thread = threading.Thread(target=lambda: promises.append(writer.emit("Ann", "x")), daemon=True)
    thread.start()
    assert writer._producer.polled.wait(WAIT_S)
    ending = threading.Thread(target=writer.finish, args=(0.1,), daemon=True)
    ending.start()
    for each in (ending, thread):
        each.join(WAIT_S)
        assert not each.is_alive()
    assert isinstance(promises[0].exception(0), goka.EmitterClosedError)


def test_a_caller_that_gives_up_does_not_stop_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """`asyncio.wait_for(asyncio.wrap_future(promise), 1)` cancels the promise after a second."""
    monkeypatch.setattr(CLIENT, "Producer", LateProducer)
    with goka.Emitter(BROKERS, "clicks", goka.String()) as writer:
        first = writer.emit("Ann", "x")
        first.cancel()
        writer._producer.may_report.set()
        assert writer.emit("Bob", "y").result(WAIT_S / 10) == goka.Delivered(0, 7)
        assert first.result(WAIT_S / 10) == goka.Delivered(0, 7)


def test_a_view_that_is_stopped_before_its_thread_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    table, begins = goka.View(BROKERS, "table", goka.String()), threading.Event()
    run = table._run_in_thread

    def begin() -> None:
        assert begins.wait(WAIT_S)
        run()

    monkeypatch.setattr(table, "_run_in_thread", begin)
    for _ in range(2):
        begins.clear()
        table.start()
        ending = threading.Thread(target=table.stop, daemon=True)
        ending.start()
        assert table._stopping.wait(WAIT_S)
        begins.set()
        ending.join(WAIT_S)
        assert not ending.is_alive() and not views()


def test_lookups_that_cannot_be_read_leave_no_view(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules[Lookups.__module__], "START_S", 0.01)
    tables = Lookups(BROKERS, ["table"], "fnv1a", {})
    with pytest.raises(goka.ViewError, match=r"the view of table is \w+ after 0\.01 s"):
        tables.start()
    assert not views()
