"""`OutboxService.Deliver`: output of running micro-batches, over real sockets."""

import json
import os
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from support.delivery import WAIT_S, Attempt, Receiver, attach, data, egress, frame_of, lines
from support.run import wait_until
from support.service import SINK, code_of, serving
from wallaroo.message.frame import DEAD_LETTER_PORT, FRAMED, encode_frame, read_frame, split_frames
from wallaroo_runtime.egress.delivery_stream import PACE_S
from wallaroo_runtime.egress.service import EgressHost
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.service._proto import service_pb2 as pb
from wallaroo_runtime.storage.outbox.check import check_outbox


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    made = Receiver()
    yield made
    made.close()


def test_output_is_delivered_while_the_micro_batch_runs(tmp_path: Path, receiver: Receiver) -> None:
    with egress(tmp_path, receiver) as place:
        attempt = Attempt(place.service)
        for number in range(100):
            attempt.send(frame_of(lines(number, number + 1)))
            receiver.wait(7 * (number + 1))
        attempt.end()
        assert receiver.wait(700) == data(lines(0, 100))


def test_deliveries_that_follow_closely_are_made_safe_together(tmp_path: Path, receiver: Receiver) -> None:
    with egress(tmp_path, receiver) as place:
        attempt, begin = Attempt(place.service), time.monotonic()
        for number in range(200):
            attempt.send(frame_of(lines(number, number + 1)))
            receiver.wait(7 * (number + 1))  # a result never waits for its acknowledgement
        count = 1
        for number in attempt.replies():
            if number == attempt.number:
                break
            count += 1
        assert count <= (time.monotonic() - begin) / PACE_S + 2
        attempt.end()


def test_what_comes_again_is_dropped_whatever_its_frames(tmp_path: Path, receiver: Receiver) -> None:
    results = [(sequence, b"%d.%d\n" % (sequence, number)) for sequence in range(9) for number in range(sequence % 4)]
    with egress(tmp_path, receiver) as place:
        first = Attempt(place.service, 1)
        for result in results[:7]:
            first.send(frame_of([result]), bucket=3)
        first.settle()
        first.drop()
        again = Attempt(place.service, 2)
        for at in range(0, len(results), 4):
            again.send(frame_of(results[at : at + 4]), bucket=3)
        again.end()
        assert receiver.wait(len(data(results))) == data(results)
        assert place.host.deliveries().live.dropped == 7


def test_messages_have_a_latency_when_their_sink_has_their_output_once(tmp_path: Path, receiver: Receiver) -> None:
    def counted() -> dict[str, dict[str, int]]:
        live = json.loads(place.host.status()).get("live", {})
        return {"output": {}, "deliver": {}, "end_to_end": {}, **live.get("latency_ms", {})}

    with egress(tmp_path, receiver) as place:
        first, before = Attempt(place.service, 1), time.time_ns() // 1_000_000 - 5000
        first.send(frame_of(lines(0, 3)))
        first.arrive({before: 2, before + 1000: 1}, computed_ms=before + 2000)
        first.settle()
        wait_until(lambda: sum(counted()["end_to_end"].values()) == 3, lambda: str(counted()))
        assert sum(counted()["deliver"].values()) == sum(counted()["output"].values()) == 3
        assert all(3000 <= int(ms) < 1000 * WAIT_S for ms in counted()["output"])
        ages = sorted(map(int, counted()["end_to_end"]))
        assert 4000 <= ages[0] < ages[-1]
        assert 5000 <= ages[-1] < 1000 * WAIT_S
        first.drop()
        again = Attempt(place.service, 2)
        again.send(frame_of(lines(0, 3)))  # what only comes again was counted
        again.arrive({before: 3})
        again.send(encode_frame([b"letter"], port=DEAD_LETTER_PORT, sequence=3), port=DEAD_LETTER_PORT)
        again.arrive({before: 1})  # no sink waits for a dead letter
        again.send(frame_of(lines(4, 5)))
        again.arrive({before: 1})
        again.end()
        wait_until(lambda: sum(counted()["end_to_end"].values()) == 5, lambda: str(counted()))
        assert sum(counted()["deliver"].values()) == 4


def test_buckets_and_partitions_have_places_of_their_own(tmp_path: Path, receiver: Receiver) -> None:
    with egress(tmp_path, receiver) as place:
        one, two = Attempt(place.service, 1, partition=0), Attempt(place.service, 2, partition=1)
        one.send(frame_of([(5, b"a")]), bucket=0)
        one.send(frame_of([(2, b"b")]), bucket=2)
        one.settle()
        two.send(frame_of([(1, b"c")]), bucket=1)
        two.end()
        one.end()
        assert receiver.wait(3) == b"abc"


def test_an_earlier_attempt_delivers_no_more(tmp_path: Path, receiver: Receiver) -> None:
    with egress(tmp_path, receiver) as place:
        older = Attempt(place.service, 1)
        older.send(frame_of(lines(0, 1)))
        older.settle()
        newer = Attempt(place.service, 2)
        newer.send(frame_of(lines(0, 2)))
        newer.settle()
        older.send(frame_of(lines(1, 3)))
        assert code_of(lambda: list(older.replies())) == "R750"
        text = "takes output of partition 0 from attempt 2; attempt 1, of micro-batch 0, delivers no more"
        with pytest.raises(RunError, match=f"R750 the egress at .* {text}"):
            Attempt(place.service, 1).end()
        newer.send(frame_of(lines(2, 3)))
        newer.end()
        assert receiver.wait(21) == data(lines(0, 3))


def test_an_earlier_driver_delivers_no_more(tmp_path: Path, receiver: Receiver) -> None:
    with egress(tmp_path, receiver) as place:
        before = place.service
        older = Attempt(before, 9)
        older.send(frame_of(lines(0, 1)))
        older.settle()
        attach(place, receiver, "d2")
        older.send(frame_of(lines(1, 2)))
        assert code_of(lambda: list(older.replies())) == "R644"
        assert code_of(lambda: Attempt(before, 10).end()) == "R644"
        newer = Attempt(place.service, 1)  # attempts of another Spark begin again
        newer.send(frame_of(lines(0, 3)))
        newer.end()
        assert receiver.wait(21) == data(lines(0, 3))


FALLING = encode_frame([b"a", b"b"], port=SINK, sequence=5, sequences=[2, 1])


@pytest.mark.parametrize(
    ("frames", "code", "text"),
    [
        ([FALLING], "R751", "a frame's sequences fall"),
        ([frame_of(lines(5, 6)), frame_of(lines(4, 6))], "R751", "sequence 4 comes after 5"),
        ([b"no frame"], "R648", "no frame"),
        ([frame_of(lines(0, 9))[:-1]], "R648", "are left"),
        ([frame_of(lines(0, 1), port=9)], "R648", "a frame of port 9"),
        ([encode_frame([b"\0\0\0\1a"], port=SINK, encoding=FRAMED)], "R648", "encoding 1"),
    ],
)
def test_what_cannot_be_delivered_is_refused(
    tmp_path: Path, receiver: Receiver, frames: list[bytes], code: str, text: str
) -> None:
    with egress(tmp_path, receiver) as place:
        attempt = Attempt(place.service)
        for frame in frames:
            attempt.send(frame)
        with pytest.raises(RunError, match=text) as caught:
            attempt.end()
        assert caught.value.diagnostics[0].code == code
        if code == "R751":
            assert f"output for port {SINK} of bucket -1 is out of order; {text}" in str(caught.value)


def test_the_rules_of_a_stream(tmp_path: Path, receiver: Receiver) -> None:
    whole = pb.Chunk(data=frame_of(lines(0, 2)))
    part = pb.Chunk(data=whole.data[:50], is_continued=True)
    with egress(tmp_path, receiver) as place:
        for deliveries, text in [
            ([pb.Delivery(number=2, port=SINK, chunk=whole)], "delivery 2 comes after 0"),
            ([pb.Delivery(number=1, port=8, chunk=whole)], "port 8 is of no sink"),
            ([pb.Delivery(number=1, port=SINK, chunk=part)], "ended within a frame"),
            ([pb.Delivery(number=n, port=SINK, bucket=n, chunk=part) for n in (1, 2)], "ended within a frame"),
        ]:
            attempt = Attempt(place.service)
            for delivery in deliveries:
                attempt.raw(delivery)
            with pytest.raises(RunError, match=f"R648.*{text}"):
                attempt.end()
        with pytest.raises(RunError, match="R648.*cannot be part of a file name"):
            Attempt(place.service, query="../x").end()


def test_frames_larger_than_a_chunk(tmp_path: Path, receiver: Receiver) -> None:
    results = [(number, bytes([65 + number]) * 700_000) for number in range(5)]
    with egress(tmp_path, receiver) as place:
        attempt = Attempt(place.service)
        attempt.send(frame_of(results))
        attempt.end()
        assert receiver.wait(3_500_000) == data(results)


def test_dead_letters_come_once_and_keep_their_names(tmp_path: Path, receiver: Receiver) -> None:
    letters = [(7, b"x"), (3, b"y"), (7, b"z")]  # of one call they have no order
    path = tmp_path / "dead-letters" / "q-4-0.frames"

    def values() -> list[bytes]:
        content = path.read_bytes()
        return [value for _, at, _ in split_frames(content) for value in read_frame(content, at).values()]

    with egress(tmp_path, receiver) as place:
        first = Attempt(place.service, 1, batch=4)
        first.send(frame_of(letters[:2], DEAD_LETTER_PORT), port=DEAD_LETTER_PORT)
        first.settle()
        again = Attempt(place.service, 2, batch=4)
        for letter in (letters[1], letters[0], letters[2]):
            again.send(frame_of([letter], DEAD_LETTER_PORT), port=DEAD_LETTER_PORT)
        again.settle()
        assert values() == [b"x", b"y", b"z"]
    path.write_bytes(path.read_bytes()[:50] + b"garbage")
    with serving("egress", tmp_path) as place:
        assert values() == [b"x", b"y", b"z"], "the log has them, too"
        attach(place, receiver)
        last = Attempt(place.service, 3, batch=4)
        last.send(frame_of([*letters, (9, b"!")], DEAD_LETTER_PORT), bucket=-1, port=DEAD_LETTER_PORT)
        last.end()
        assert values() == [b"x", b"y", b"z", b"!"]
        following = Attempt(place.service, 4, batch=5)
        following.send(frame_of([(9, b"!"), (10, b"?")], DEAD_LETTER_PORT), port=DEAD_LETTER_PORT)
        following.end()
        assert values() == [b"x", b"y", b"z", b"!"], "it goes on in a file of its own, after the letter of before"
        path = tmp_path / "dead-letters" / "q-5-0.frames"
        assert values() == [b"?"]
    for written in path.parent.iterdir():
        os.utime(written, (1_000, 1_000))
    with serving("egress", tmp_path):
        assert values() == [b"?"]
        ages = {written.stat().st_mtime for written in path.parent.iterdir()}
        assert ages == {1_000}, "a file that has all of them keeps its time, which is the age of its letters"


def test_letters_are_forgotten_with_the_commit_after_theirs(tmp_path: Path, receiver: Receiver) -> None:
    with egress(tmp_path, receiver) as place:
        attempt = Attempt(place.service)
        attempt.send(frame_of([(number, b"x") for number in range(9)], DEAD_LETTER_PORT), port=DEAD_LETTER_PORT)
        attempt.settle()
        attempt.commit(4)
        attempt.commit(7)
        attempt.send(frame_of([(9, b"x")], DEAD_LETTER_PORT), port=DEAD_LETTER_PORT)
        attempt.end()
        known = place.host.deliveries().live.state.letters[0]
        assert known == {(-1, number): 1 for number in range(4, 10)}, "a loss of power may take the newest commit"


def test_nothing_is_taken_while_too_much_waits(
    tmp_path: Path, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken, looks = socket.create_server(("127.0.0.1", 0)), 0

    def is_full(host: EgressHost, original: Callable[[EgressHost], bool] = EgressHost.is_full) -> bool:
        nonlocal looks
        looks += 1
        return original(host)

    monkeypatch.setattr(EgressHost, "is_full", is_full)
    with serving("egress", tmp_path) as place:
        receiver_port, receiver.port = receiver.port, taken.getsockname()[1]
        taken.close()  # nobody listens there
        attach(place, receiver, backlog_bytes=1000)
        attempt = Attempt(place.service)
        for number in range(100):
            attempt.send(frame_of([(number, bytes(200))]))
        next(attempt.replies())
        wait_until(place.host.is_full, lambda: "the log to be full", WAIT_S)
        live = place.host.deliveries().live
        assert live.end < 3000
        known = looks
        time.sleep(2)
        assert looks - known < 30, "who waits for a receiver that is away looks rarely"
        receiver.port = receiver_port
        attach(place, receiver, backlog_bytes=1000)
        attempt.end()
        receiver.wait(20_000)


def test_the_egress_goes_on_after_it_ended(tmp_path: Path, receiver: Receiver) -> None:
    with egress(tmp_path, receiver) as place:
        attempt = Attempt(place.service)
        attempt.send(frame_of(lines(0, 50)))
        attempt.end()
        receiver.wait(350)
    check_outbox(tmp_path / "outbox", [SINK])
    with serving("egress", tmp_path) as place:
        attach(place, receiver)
        again = Attempt(place.service, 2)
        again.send(frame_of(lines(0, 60)))
        again.end()
        assert receiver.wait(420) == data(lines(0, 60))
