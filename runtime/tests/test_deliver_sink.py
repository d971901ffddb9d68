"""Live output on its way to sinks: sent again, removed, counted, and after the end of the egress."""

import errno
import json
import os
import random
import threading
import time
from collections.abc import Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from support.delivery import WAIT_S, Attempt, Receiver, attach, data, egress, frame_of, lines
from support.peer import attached, kill, service_of
from support.run import wait_until
from support.service import SINK, code_of, serving
from wallaroo.message.frame import DEAD_LETTER_PORT
from wallaroo_runtime.egress import position_recorder, sender
from wallaroo_runtime.egress.position_recorder import PositionRecorder
from wallaroo_runtime.peer.local import LocalPeer
from wallaroo_runtime.service._proto import service_pb2 as pb
from wallaroo_runtime.service.attachment import PROTOCOL_VERSION
from wallaroo_runtime.service.client import ServiceClient, close_channel
from wallaroo_runtime.storage.outbox.check import check_outbox
from wallaroo_runtime.storage.outbox.live import live_segments
from wallaroo_runtime.storage.outbox.live_log import LiveLog
from wallaroo_runtime.storage.outbox.position import read_position, undelivered, write_position


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    made = Receiver()
    yield made
    made.close()


@pytest.fixture
def small_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let segments of the live log be small."""
    monkeypatch.setattr("wallaroo_runtime.egress.service.LiveLog", partial(LiveLog, segment_bytes=2000))


def segments(directory: Path) -> int:
    return len(live_segments(directory / "outbox" / "live"))


@pytest.mark.usefixtures("small_segments")
def test_segments_go_when_all_of_them_is_delivered(tmp_path: Path, receiver: Receiver) -> None:
    with egress(tmp_path, receiver) as place:
        attempt = Attempt(place.service)
        for number in range(0, 400, 4):
            attempt.send(frame_of(lines(number, number + 4)))
        attempt.end()
        assert receiver.wait(2800) == data(lines(0, 400))
        wait_until(lambda: segments(tmp_path) == 1, lambda: f"{segments(tmp_path)} segments to go", WAIT_S)
    with serving("egress", tmp_path) as place:
        attach(place, receiver)
        again = Attempt(place.service, 2)
        again.send(frame_of(lines(0, 410)))
        again.end()
        assert receiver.wait(2870) == data(lines(0, 410))
    check_outbox(tmp_path / "outbox", [SINK])


@pytest.mark.usefixtures("small_segments")
def test_a_sink_without_output_keeps_no_segments_and_misses_nothing(tmp_path: Path, receiver: Receiver) -> None:
    quiet = Receiver()
    who = pb.Driver(protocol_version=PROTOCOL_VERSION, id="d1", application="app", checkpoint="c1")
    request = pb.AttachOutboxRequest(driver=who)
    request.sinks.add(port=SINK, name="out", host="127.0.0.1", tcp_port=receiver.port)
    request.sinks.add(port=SINK + 1, name="quiet", host="127.0.0.1", tcp_port=quiet.port)
    with serving("egress", tmp_path) as place:
        reply = ServiceClient(place.service, 1.0).call("Attach", request)
        attempt = Attempt(place.service.attached(reply.epoch, reply.store))
        for at in range(0, 200, 100):
            for number in range(at, at + 100, 4):
                attempt.send(frame_of(lines(number, number + 4)))
            attempt.settle()
            receiver.wait(7 * (at + 100))
            wait_until(lambda: segments(tmp_path) == 1, lambda: f"{segments(tmp_path)} segments to go", WAIT_S)
        attempt.send(frame_of(lines(0, 2), port=SINK + 1), port=SINK + 1)
        attempt.end()
        assert quiet.wait(14) == data(lines(0, 2))
    quiet.close()


def test_the_status_says_what_was_delivered_and_dropped(tmp_path: Path, receiver: Receiver) -> None:
    def said() -> dict[str, Any]:
        return dict(json.loads(place.host.status()))

    with egress(tmp_path, receiver) as place:
        assert "live" not in said()
        for number in (1, 2):
            attempt = Attempt(place.service, number, batch=6)
            attempt.send(frame_of(lines(0, 5)))
            attempt.send(frame_of([(1, b"x")], DEAD_LETTER_PORT), port=DEAD_LETTER_PORT)
            attempt.end()
        wait_until(
            lambda: said().get("live", {}).get("dropped") == 6 and said()["sinks"][0]["messages"] == 5,
            lambda: f"delivery; {said()}",
            WAIT_S,
        )
        wait_until(lambda: said()["sinks"][0]["pending_bytes"] == 0, lambda: f"delivery; {said()}", WAIT_S)
        status = said()
        reply = ServiceClient(place.service).call("Status", pb.StatusRequest(epoch=place.service.epoch, ports=[SINK]))
    assert (reply.dead_letters, reply.backlog_bytes, reply.waiting_messages) == (1, 0, 0)
    live = status["live"]
    assert (live["messages"], live["dead_letters"], live["dropped"], live["batch"]) == (5, 1, 6, 6)
    assert (live["waiting_bytes"], status["sinks"][0]["pending_messages"]) == (0, 0)
    assert undelivered(tmp_path / "outbox", [SINK]) == 0


def test_a_delivery_after_a_pause_shows_in_the_status_at_once(
    tmp_path: Path, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sender, "QUIET_S", 100 * WAIT_S)

    def shown() -> tuple[int, int]:
        found = json.loads((tmp_path / "egress.json").read_bytes())
        return sum(sink["messages"] for sink in found["sinks"]), sum(sink["pending_bytes"] for sink in found["sinks"])

    with egress(tmp_path, receiver) as place:
        attempt = Attempt(place.service)
        for number in range(1, 6):
            attempt.send(frame_of(lines(number - 1, number)))
            wait_until(lambda number=number: shown() == (number, 0), lambda: f"{shown()}", WAIT_S)  # type: ignore[misc]
            time.sleep(3 * sender.STATUS_S)  # by then it waits for something new
        attempt.end()


def test_a_slow_disk_holds_up_no_message(tmp_path: Path, receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    """The position is recorded in a thread of its own: what comes meanwhile is sent."""
    is_slow, goes_on = threading.Event(), threading.Event()

    def write_slowly(*position: Any, durable: bool) -> None:
        if is_slow.is_set():
            recording.set()
            assert goes_on.wait(WAIT_S)
        write_position(*position, durable=durable)

    recording = threading.Event()
    monkeypatch.setattr("wallaroo_runtime.egress.sink.write_position", write_slowly)
    with egress(tmp_path, receiver) as place:
        attempt = Attempt(place.service)
        is_slow.set()
        attempt.send(frame_of(lines(0, 1)))
        assert recording.wait(WAIT_S)
        attempt.send(frame_of(lines(1, 2)))
        receiver.wait(14)
        assert read_position(tmp_path / "outbox", SINK).messages == 0
        goes_on.set()
        attempt.end()
        wait_until(lambda: read_position(tmp_path / "outbox", SINK).messages == 2, lambda: "the position", WAIT_S)


@pytest.mark.parametrize("seed", range(4))
def test_what_moves_is_recorded_in_order_and_durably_in_the_end(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(position_recorder, "RECORD_S", 0.001)
    monkeypatch.setattr(position_recorder, "RECORD_DURABLY_S", 0.01)
    source, position, records = random.Random(seed), 0, [(0, True)]

    def record(is_durable: bool) -> bool:
        time.sleep(source.random() / 500)
        if source.random() < 0.3:
            return False
        records.append((position, is_durable))
        return True

    made = PositionRecorder(record, lambda: None, "recorder")
    for position in range(1, 40):  # noqa: B007
        made.notify()
        time.sleep(source.random() / 200)
    wait_until(lambda: records[-1] == (39, True), lambda: f"the last; {records}", WAIT_S, every=0.005)
    made.close()
    assert records == sorted(records, key=lambda each: each[0])
    assert any(not is_durable for _, is_durable in records)


@pytest.mark.slow
def test_a_local_egress_that_is_killed_goes_on(checkpoint: Path, receiver: Receiver, tmp_path: Path) -> None:
    request = pb.AttachOutboxRequest()
    request.sinks.add(port=SINK, name="out", host="127.0.0.1", tcp_port=receiver.port)
    peer = attached(LocalPeer("egress", checkpoint), request)
    endpoint = service_of(peer, tmp_path / "e")
    for number in (1, 2):
        attempt = Attempt(endpoint, number)
        for at in range(0, 100 * number, 10):
            attempt.send(frame_of(lines(at, at + 10)))
        attempt.settle()
        kill(peer)
        assert code_of(lambda: list(attempt.replies())) == "R642"  # noqa: B023
        peer.check(lambda note: None)
        close_channel(endpoint)
    last = Attempt(endpoint, 4)
    last.send(frame_of(lines(0, 400)))
    last.end()
    wait_until(lambda: receiver.received.endswith(b"000399\n"), lambda: "the last message", WAIT_S)
    close_channel(endpoint)
    peer.stop()
    got = [int(line) for line in receiver.received.split()]
    # TCP may repeat what no position covers yet; the order within a connection, and all of them, are there.
    steps = {after - before for before, after in pairwise(got) if after > before}
    assert steps == {1}
    assert sorted(set(got)) == list(range(400))


def test_a_disk_that_fails_ends_the_egress(tmp_path: Path, receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sync that failed may have lost what it was for, and the next one would not say so."""
    with egress(tmp_path, receiver) as place:
        attempt = Attempt(place.service)
        attempt.send(frame_of(lines(0, 1)))
        attempt.settle()
        with monkeypatch.context() as patch:
            patch.setattr(os, "fdatasync", refuse)
            attempt.send(frame_of(lines(1, 2)))
            assert code_of(lambda: list(attempt.replies())) == "R626"
        assert place.host.ended.wait(WAIT_S)
        assert place.host.deliveries().live.safe < place.host.deliveries().live.end
        with pytest.raises(OSError, match="No space"):  # said again, so that each call is answered with R626
            place.host.deliveries().live.sync()


def refuse(descriptor: int) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
