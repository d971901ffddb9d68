"""Output of running micro-batches under drawn cuts, restarts and attempts that go on: each result once, in order.

A task repeats its micro-batch from the beginning, with other frames. The egress ends at any place: killed, with an
entry half written, or without power, which takes what is not safe. What was sent and is not in a recorded position
is sent again by design; the reference therefore counts what a position covers.
"""

import os
from itertools import count as count_from
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from support.delivery import Result, frame_of
from wallaroo.message.frame import DEAD_LETTER_PORT, read_frame, split_frames
from wallaroo_runtime.egress.delivery import AttemptReceiver, Deliveries
from wallaroo_runtime.egress.feed import Feed
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.service._proto import service_pb2 as pb
from wallaroo_runtime.service.attachment import PROTOCOL_VERSION, AttachmentStore
from wallaroo_runtime.storage.outbox.check import check_outbox
from wallaroo_runtime.storage.outbox.live_log import LiveLog
from wallaroo_runtime.storage.outbox.live_state import AttemptWriter, read_last
from wallaroo_runtime.storage.outbox.outbox import Outbox
from wallaroo_runtime.storage.outbox.position import SinkPosition, read_position, undelivered, write_position

PORTS = (3, 4)
BUCKETS = (-1, 0, 7)
Place = tuple[int, int]
Batch = dict[Place, list[Result]]


def batches_of(random: Random, count: int) -> list[Batch]:
    """Return micro-batches: for each place results in order of sequences, some with one sequence."""
    places = [(port, bucket) for port in (*PORTS, DEAD_LETTER_PORT) for bucket in BUCKETS]
    end, made = 0, []
    for _ in range(count):
        begin, end = end, end + random.randint(0, 12)
        made.append({place: results_of(random, place, range(begin, end)) for place in places})
    return made


def results_of(random: Random, place: Place, sequences: range) -> list[Result]:
    """Return the results of some messages for a place."""
    counts = [(sequence, random.choice((0, 0, 1, 3))) for sequence in sequences]
    return [(sequence, b"%d/%d/%d/%d;" % (*place, sequence, n)) for sequence, count in counts for n in range(count)]


class Egress:
    """An egress without its sockets: what takes output, and what a sink of each port has got."""

    def __init__(self, directory: Path, random: Random) -> None:
        self.directory, self.random = directory, random
        self.outbox, self.letters = directory / "outbox", directory / "dead-letters"
        self.driver = Outbox(self.outbox, self.letters)
        self.sent = dict.fromkeys(PORTS, b"")
        self.start()

    def start(self) -> None:
        check_outbox(self.outbox, PORTS)
        self.store = AttachmentStore(self.directory, "egress", "here")
        driver = pb.Driver(protocol_version=PROTOCOL_VERSION, id="d", application="a", checkpoint="c")
        self.store.save(self.store.admit(driver, "", {})[0])
        self.live = LiveLog(self.outbox, self.letters, segment_bytes=2000)
        self.deliveries = Deliveries(self.live, self.store, lambda: PORTS, lambda port: None)
        self.feeds: dict[int, Feed] = {}
        for port in PORTS:
            position = read_position(self.outbox, port)
            self.sent[port] = self.sent[port][: position.total_bytes]
            self.feeds[port] = Feed(self.outbox, port, position)

    def send(self, port: int) -> None:
        """Send what is there, and perhaps record a place within it, as a sink does."""
        position = SinkPosition()
        while (piece := self.feeds[port].next()) is not None:
            assert len(self.sent[port]) == piece.before.total_bytes
            self.sent[port] += piece.data
            position = piece.position(self.random.randint(0, len(piece.data))) if piece.data else piece.after
            if self.random.random() < 0.5:
                position = piece.after
            if self.random.random() < 0.7 and position.live_needed <= self.live.safe:
                write_position(self.outbox, port, position, durable=False)
        self.live.remove(min(read_position(self.outbox, each).live for each in PORTS))

    def end(self, how: str) -> None:
        """End without closing anything orderly."""
        end, safe, segments = self.live.end, self.live.safe, sorted((self.outbox / "live").glob("*.live"))
        for descriptor in (self.live._descriptor, self.live._head, *self.live._letter_files.values()):
            os.close(descriptor)
        for feed in self.feeds.values():
            feed.close()
        base = int(segments[-1].stem)
        if how == "torn":
            with segments[-1].open("ab") as file:
                file.write(self.random.choice((bytes(50), b"WLE1" + bytes(30), b"WLE1\3")))
        elif how == "power":
            os.truncate(segments[-1], self.random.randint(max(safe, base), end) - base)


class Run:
    """An attempt of a micro-batch: its results cut into frames, in an order that keeps that of each bucket."""

    def __init__(self, egress: Egress, batch: Batch, number: int, attempt: int) -> None:
        self.random = egress.random
        self.stream: AttemptReceiver = egress.deliveries.open(AttemptWriter(1, "q", number, 0, attempt))
        self.number = 0
        self.rest = {place: list(results) for place, results in batch.items() if results}

    def step(self) -> None:
        place = self.random.choice(sorted(self.rest))
        results = self.rest[place]
        count = self.random.randint(1, len(results))
        mine, self.rest[place] = results[:count], results[count:]
        if not self.rest[place]:
            del self.rest[place]
        port, bucket = place
        frames = [frame_of(mine, port)]
        if self.random.random() < 0.3 and count > 1:
            frames = [frame_of(mine[:1], port), frame_of(mine[1:], port)]
        self.number += 1
        chunk = pb.Chunk(data=b"".join(frames))
        self.stream.take(pb.Delivery(number=self.number, port=port, bucket=bucket, chunk=chunk))


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 1 << 32), st.integers(1, 4))
@example(12776, 3)  # power fails after a position within the log's last entry
def test_each_result_is_delivered_once_in_order(seed: int, count: int) -> None:
    random = Random(seed)
    batches = batches_of(random, count)
    with TemporaryDirectory() as folder:
        egress = Egress(Path(folder), random)
        for number, batch in enumerate(batches):
            process(egress, batch, number)
            egress.driver.publish("q", number, [], f"plan {number}")
        check(egress, batches)


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 1 << 32), st.integers(1, 6))
@example(391, 5)  # power fails after the first letters of an attempt, and another one begins at another place
@example(14163, 3)  # the same with a file that an earlier attempt has begun
def test_a_stream_goes_on_over_the_borders_of_batches(seed: int, count: int) -> None:
    random = Random(seed)
    batches = batches_of(random, count)
    with TemporaryDirectory() as folder:
        egress = Egress(Path(folder), random)
        commits, attempt = [0], 0
        while commits[-1] < count:
            attempt += 1
            go_on(egress, batches, commits, attempt)
            how = random.choice(("killed", "torn", "power", "", "", ""))
            if how:
                egress.end(how)
                egress.start()
            if how == "power" and len(commits) > 1 and random.random() < 0.5:
                commits[:] = commits[-2:-1]  # Spark's newest commit was lost, too; the one before it is on the disk
        check(egress, batches)


def go_on(egress: Egress, batches: list[Batch], commits: list[int], attempt: int) -> None:
    """Deliver batches from the first that is not committed on, and commit some; notes how many are committed."""
    random, committed = egress.random, commits[-1]
    run = Run(egress, {}, committed, attempt)
    for done in range(committed, len(batches)):
        run.rest = {place: list(results) for place, results in batches[done].items() if results}
        while run.rest:
            if attempt < 9 and random.random() < 0.03:
                return  # the engine fails
            run.step()
            if random.random() < 0.3:
                egress.send(random.choice(PORTS))
        if random.random() < 0.5 or done + 1 == len(batches):
            egress.live.sync()
            committed = done + 1
            commits.append(committed)
            if random.random() < 0.7:
                begun = [seq for batch in batches[committed:] for results in batch.values() for seq, _ in results]
                run.stream.commit(min(begun, default=1 << 40))


def process(egress: Egress, batch: Batch, number: int) -> None:
    """Attempt a micro-batch until an attempt has delivered all of it; earlier ones go on meanwhile."""
    random, zombie = egress.random, None
    for attempt in count_from(100 * number):
        run = Run(egress, batch, number, attempt)
        is_last = attempt % 100 > 6
        while run.rest and (is_last or random.random() < 0.9):
            run.step()
            zombie = haunt(zombie, random)
            if random.random() < 0.4:
                egress.live.sync()
            if random.random() < 0.4:
                egress.send(random.choice(PORTS))
        zombie = run
        if not run.rest:
            egress.live.sync()
        if random.random() < 0.5:
            egress.end(random.choice(("killed", "torn", "power")))
            egress.start()
            zombie = None
        if not run.rest:
            return


def haunt(zombie: Run | None, random: Random) -> Run | None:
    """Let an earlier attempt deliver, which is refused; returns it if it has not yet."""
    if zombie is None or not zombie.rest or random.random() < 0.7:
        return zombie
    with pytest.raises(RunError, match="R750"):
        zombie.step()
    return None


def check(egress: Egress, batches: list[Batch]) -> None:
    """Compare what sinks have got and files of dead letters hold with what was computed."""
    for port in PORTS:
        egress.send(port)
        got = egress.sent[port].split(b";")[:-1]
        assert len(got) == sum(len(results) for batch in batches for (p, _), results in batch.items() if p == port)
        for bucket in BUCKETS:
            expected = [value[:-1] for batch in batches for _, value in batch.get((port, bucket), [])]
            assert [value for value in got if value.split(b"/")[1] == b"%d" % bucket] == expected
        assert undelivered(egress.outbox, [port]) == len(got) - read_position(egress.outbox, port).messages
    content = b"".join(path.read_bytes() for path in sorted(egress.letters.glob("q-*-0.frames")))
    found = [value for _, at, _ in split_frames(content) for value in read_frame(content, at).values()]
    letters = [results for batch in batches for (port, _), results in batch.items() if port == DEAD_LETTER_PORT]
    assert sorted(found) == sorted(value for results in letters for _, value in results)
    assert read_last(egress.outbox).end == egress.live.end
    egress.end("killed")
