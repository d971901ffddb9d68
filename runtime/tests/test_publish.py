"""Publishing a micro-batch while the query is being stopped."""

import socket
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from wallaroo.frame import encode_frame
from wallaroo_runtime.lowering.error_policy import ErrorPolicy
from wallaroo_runtime.service.client import Away
from wallaroo_runtime.service.endpoint import Service
from wallaroo_runtime.spark.backpressure import OutboxRoom
from wallaroo_runtime.spark.failure import TaskFailure, translated
from wallaroo_runtime.spark.progress import Progress
from wallaroo_runtime.spark.publish import Publisher
from wallaroo_runtime.spark.realtime.query import RealTimeQuery
from wallaroo_runtime.storage import remote_outbox
from wallaroo_runtime.storage.outbox.outbox import Outbox
from wallaroo_runtime.storage.outbox.staging import StagingWriter
from wallaroo_runtime.storage.remote_outbox import RemoteOutbox


class Rows:
    """A micro-batch whose rows are there already."""

    def __init__(self, directory: Path, batch: int) -> None:
        writer = StagingWriter(str(directory / "staging"), "q", batch, 0, 1, 1)
        writer.write(2, encode_frame([b"x"], port=2))
        (file,) = writer.finish()
        self.rows = [{"query": "q"} | {name: getattr(file, name) for name in type(file).__slots__}]

    def collect(self) -> list[Any]:
        return [Row(row) for row in self.rows]


class Row(dict[str, Any]):
    """A row of Spark's: by name, or cut like a tuple."""

    def __getitem__(self, key: Any) -> Any:
        return list(self.values())[key] if isinstance(key, slice) else super().__getitem__(key)


class Slow(Outbox):
    """An outbox that waits before it publishes."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory / "outbox", directory / "dead-letters")
        self.entered, self.goes_on = threading.Event(), threading.Event()

    def publish(self, *arguments: Any) -> bool:
        self.entered.set()
        assert self.goes_on.wait(10)
        return super().publish(*arguments)


def test_the_end_waits_for_what_is_being_published_and_nothing_follows(tmp_path: Path) -> None:
    outbox = Slow(tmp_path)
    publisher = Publisher(outbox, ErrorPolicy())
    at_work = threading.Thread(target=publisher, args=(Rows(tmp_path, 0), 0))
    at_work.start()
    assert outbox.entered.wait(10)
    ending = threading.Thread(target=publisher.end)
    ending.start()
    ending.join(0.2)
    assert ending.is_alive(), "a publication is in flight"
    outbox.goes_on.set()
    for thread in (at_work, ending):
        thread.join(10)
        assert not thread.is_alive()
    assert (publisher.batches, outbox.last().batch) == (1, 0)
    publisher(Rows(tmp_path, 1), 1)
    assert (publisher.batches, outbox.last().batch) == (1, 0)


def test_an_egress_that_is_gone_before_a_micro_batch_begins_is_named(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        address = f"127.0.0.1:{closed.getsockname()[1]}"
    outbox = RemoteOutbox(Service("egress", address, "token"), patience_s=0.1)
    room = OutboxRoom(Publisher(outbox, ErrorPolicy()), outbox, limit_bytes=1)
    with pytest.raises(TaskFailure) as caught:
        room(Rows(tmp_path, 0), 0)
    assert room.failure is not None and room.failure.diagnostics[0].code == "R642"
    assert address in str(room.failure)
    assert str(translated(str(caught.value))) == str(room.failure)


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
    query.__dict__.update(_batch=-1, _end=-1, _progress=Progress(), _outbox=outbox, _planned=planned)
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
