"""Calls of a worker: what a runtime sends, and what came back, taken apart and checked for form."""

import queue
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from conformance.application import BUCKETS, DEAD_LETTERS, FIRST, LINES, NAME, NUMBERS, WORDS, bucket_of
from conformance.process import CALL_S, Client
from wallaroo.message.frame import FRAMED, FrameHeader, encode_frame, read_frame, split_frames, write_frame
from wallaroo.worker._proto import worker_pb2 as pb

HEADER_WIDTHS = {WORDS: 4, NUMBERS: 2, LINES: 3}
BORDERS = range(40, 50)  # ports of SEND and RECEIVE in the checks
ATTEMPTS = count(1)
TIME_MS = 1700000000000


@dataclass(frozen=True)
class Message:
    """One message of an output."""

    port: int
    bucket: int
    sequence: int
    key: bytes | None
    value: bytes
    time: int

    def text(self) -> str:
        """Return the value of a sink's message."""
        return self.value.decode()


@dataclass
class Answer:
    """What came back for one data or one bucket call, up to `done`."""

    messages: list[Message] = field(default_factory=list)
    frames: dict[int, list[bytes]] = field(default_factory=dict)
    letters: list[pb.DeadLetter] = field(default_factory=list)
    changes: list[bytes] = field(default_factory=list)
    rollbacks: list[bool] = field(default_factory=list)
    done: Any = None

    def texts(self, port: int) -> list[tuple[int, str]]:
        """Return sequence and text of a sink's messages, in order."""
        return [(message.sequence, message.text()) for message in self.messages if message.port == port]

    def keyed(self, port: int) -> list[tuple[int, bytes]]:
        """Return sequence and key of a KEY exit's messages, ordered by sequence."""
        found = [message for message in self.messages if message.port == port]
        return sorted((message.sequence, message.key or b"") for message in found)

    def codes(self) -> list[tuple[str, str, int]]:
        """Return code, path and sequence of the dead letters, in order."""
        return [(letter.code, letter.path, letter.sequence) for letter in self.letters]

    def add(self, output: pb.Output) -> None:
        """Take an output apart; assert that it has the form that the specification gives."""
        frame = read_frame(output.frame)
        size = sum(1 for _ in split_frames(output.frame))
        assert size == 1, f"an output has {size} frames"
        assert frame.header.port == output.port, f"output of port {output.port} has a frame of port {frame.header.port}"
        assert frame.header.flags & 2, "an output frame has no sequences"
        is_keyed = bool(frame.header.flags & 1)
        is_border = output.port in BORDERS
        assert is_border or is_keyed == (output.bucket >= 0), f"bucket {output.bucket}, but keys: {is_keyed}"
        if not is_keyed or is_border:
            assert output.bucket == -1, f"an output without keys has bucket {output.bucket}"
            assert frame.header.encoding == 0, f"values of an exit in encoding {frame.header.encoding}"
        times = frame.times()
        for index, value in enumerate(frame.values()):
            key = frame.keys[frame.key_indexes[index]] if is_keyed else None
            if key is not None and not is_border:
                assert bucket_of(key) == output.bucket, (
                    f"key {key!r} is of bucket {bucket_of(key)}, not {output.bucket}"
                )
            sequence = frame.sequence_of(index)
            self.messages.append(Message(output.port, output.bucket, sequence, key, value, times[index]))
            if output.port == DEAD_LETTERS:
                self.letters.append(pb.DeadLetter.FromString(value))
        if is_keyed and not is_border:
            assert 0 <= output.bucket < BUCKETS
            self.frames.setdefault(output.bucket, []).append(output.frame)


class Failed(Exception):
    """The worker answered with a failure."""

    def __init__(self, failure: pb.Failure) -> None:
        self.failure = failure
        super().__init__(f"{failure.code} {failure.message}")


def opening(stage: pb.Stage, partition: int, in_flight: str = "") -> pb.Opening:
    """Return the first request of a stream."""
    attempt = next(ATTEMPTS)
    return pb.Opening(
        application=NAME, query="q", stage=stage, batch=1, partition=partition, attempt=attempt, in_flight=in_flight
    )


def source_frame(port: int, payloads: Sequence[bytes], sequence: int = 0, framed: bool = True) -> bytes:
    """Return what the journal would hold of messages of a source; not framed, the payloads alone."""
    if not framed:
        return encode_frame(payloads, port=port, sequence=sequence, timestamp_ms=TIME_MS)
    header = FrameHeader(port, len(payloads), sequence, 0, FRAMED, TIME_MS)
    return write_frame(header, [len(p).to_bytes(HEADER_WIDTHS[port], "big") + p for p in payloads])


class Stream:
    """A stream with the requests in a queue, so that a test can answer what the worker asks."""

    def __init__(self, method: Callable[..., Any]) -> None:
        self.requests: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.replies = method(iter(self.requests.get, None), timeout=CALL_S, wait_for_ready=True)

    def send(self, **kind: Any) -> None:
        """Send one request."""
        self.requests.put(pb.Request(**kind))

    def receive(self) -> Any:
        """Return the next reply's content.

        Raises:
            Failed: The worker reports a failure.
            EOFError: The stream has ended.
        """
        try:
            reply = next(self.replies)
        except StopIteration:
            raise EOFError from None
        kind = reply.WhichOneof("kind")
        if kind == "failure":
            self.close()
            raise Failed(reply.failure)
        return getattr(reply, kind)

    def close(self) -> None:
        """End the client's side."""
        self.requests.put(None)

    def finish(self) -> None:
        """End the client's side and expect nothing but the stream's end."""
        self.close()
        rest = [reply.WhichOneof("kind") for reply in self.replies]
        assert not rest, f"after the last done came {rest}"

    def __enter__(self) -> "Stream":
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            self.finish()
        else:
            self.close()
            self.replies.cancel()


class ProcessStream(Stream):
    """A stream of `Process`."""

    def __init__(self, worker: Client, stage: pb.Stage, partition: int = 0, in_flight: str = "") -> None:
        super().__init__(worker.stub(worker.endpoint(partition)).Process)
        self.send(opening=opening(stage, partition, in_flight))

    def answer(self, index: int) -> Answer:
        """Read up to the `done` of data `index`."""
        answer = Answer()
        while True:
            reply = self.receive()
            assert reply.index == index, f"data {index} is not done, but an answer to {reply.index} came"
            if isinstance(reply, pb.Done):
                answer.done = reply
                return answer
            answer.add(reply)


def process(worker: Client, stage: pb.Stage, frames: Sequence[bytes], partition: int = 0) -> list[Answer]:
    """Send each item of `frames` as one data and return the answers."""
    with ProcessStream(worker, stage, partition) as stream:
        for index, data in enumerate(frames):
            stream.send(data=pb.Data(index=index, frames=data))
        return [stream.answer(index) for index in range(len(frames))]


@dataclass
class BucketStore:
    """The state of one bucket as a runtime keeps it: version and log."""

    bucket: int
    counter: int = 0
    nonce: int = 0
    log: list[bytes] = field(default_factory=list)

    def commit(self, answer: Answer) -> None:
        """Take over what a call changed."""
        self.log = list(answer.changes) if answer.done.snapshot else self.log + answer.changes
        self.counter, self.nonce = self.counter + 1, answer.done.nonce


class StateStream(Stream):
    """A stream of `ProcessState`."""

    def __init__(self, worker: Client, stage: pb.Stage, bucket: int, in_flight: str = "") -> None:
        super().__init__(worker.stub(worker.endpoint(bucket)).ProcessState)
        self.send(opening=opening(stage, bucket, in_flight))

    def ask(
        self, store: BucketStore, pieces: Sequence[bytes], index: int = 0, snapshot: bool = False, careful: bool = False
    ) -> None:
        """Send a bucket call in as many requests as there are pieces."""
        version = pb.Version(counter=store.counter, nonce=store.nonce)
        for number, piece in enumerate(pieces):
            more = number < len(pieces) - 1
            self.send(
                bucket=pb.Bucket(
                    index=index,
                    bucket=store.bucket,
                    version=version,
                    frames=piece,
                    more=more,
                    wants_snapshot=snapshot,
                    careful=careful,
                )  # fmt: skip
            )

    def part(
        self, store: BucketStore, data: bytes, *, is_last: bool = False, is_released: bool = True, **options: Any
    ) -> None:
        """Send a request of a call that stays open; it ends a part, or the call."""
        version = pb.Version(counter=store.counter, nonce=store.nonce)
        is_released = is_released and not is_last
        bucket = pb.Bucket(
            bucket=store.bucket, version=version, frames=data, more=not is_last, release=is_released, **options
        )
        self.send(bucket=bucket)

    def answer(self, store: BucketStore, index: int = 0) -> Answer:
        """Read up to `done` or `released`, giving the log whenever it is asked for, one entry per request."""
        answer = Answer()
        while True:
            reply = self.receive()
            assert reply.index == index, f"call {index} is not done, but an answer to {reply.index} came"
            if isinstance(reply, pb.NeedState):
                assert store.counter, "state of version (0, 0) was asked for"
                answer.rollbacks.append(reply.rollback)
                for number in range(max(1, len(store.log))):
                    entries = store.log[number : number + 1]
                    self.send(log=pb.StateLog(index=index, entries=entries, more=number < len(store.log) - 1))
            elif isinstance(reply, pb.Output):
                answer.add(reply)
            elif isinstance(reply, pb.StateChange):
                answer.changes += reply.entries
            elif isinstance(reply, pb.Released):
                return answer
            else:
                assert reply.nonce, "the nonce is 0"
                answer.done = reply
                return answer


def call(
    worker: Client,
    stage: pb.Stage,
    store: BucketStore,
    pieces: Sequence[bytes],
    snapshot: bool = False,
    careful: bool = False,
) -> Answer:
    """Run one bucket call on a stream of its own; the store is left as it is."""
    with StateStream(worker, stage, store.bucket) as stream:
        stream.ask(store, pieces, snapshot=snapshot, careful=careful)
        return stream.answer(store)


def keyed(worker: Client, source: int, payloads: Sequence[str], sequence: int = 0) -> dict[int, list[bytes]]:
    """Run payloads through the first stage; returns the KEY frames per bucket."""
    (answer,) = process(worker, FIRST, [source_frame(source, [p.encode() for p in payloads], sequence)])
    assert not answer.letters, f"dead letters: {answer.codes()}"
    return answer.frames
