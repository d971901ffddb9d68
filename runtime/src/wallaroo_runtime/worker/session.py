"""Runs a stage with state, bucket by bucket."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from wallaroo.worker._proto import worker_pb2 as pb
from wallaroo_runtime.worker.audit import Audit, messages_by_port
from wallaroo_runtime.worker.channel import AnyStream, Broken, WorkerChannel
from wallaroo_runtime.worker.poison import Quarantine

REQUEST_BYTES = 8 * 1024 * 1024
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Version:
    """Which state of a bucket is meant; (0, 0) is the empty one."""

    counter: int = 0
    nonce: int = 0


@dataclass(slots=True)
class BucketResult:
    """What one bucket call gave.

    Attributes:
        version: Of the bucket's state after the call.
        outputs: In the order in which they were made.
        changes: Entries for the bucket's log.
        is_snapshot: Whether the changes replace the log.
        keys: How many keys the bucket has now.
        visits: What visits of the call came to.
        counts: What passed the nodes of the stage.
    """

    version: Version
    outputs: list[pb.Output] = field(default_factory=list)
    changes: list[bytes] = field(default_factory=list)
    is_snapshot: bool = False
    keys: int = 0
    visits: list[pb.Visited] = field(default_factory=list)
    counts: list[pb.StepCount] = field(default_factory=list)


def grouped(items: Iterable[T], size_of: Callable[[T], int], limit: int = REQUEST_BYTES) -> Iterator[list[T]]:
    """Yield the items in groups of at most `limit` bytes, or of one item."""
    group: list[T] = []
    size = 0
    for item in items:
        if group and size + size_of(item) > limit:
            yield group
            group, size = [], 0
        group.append(item)
        size += size_of(item)
    if group:
        yield group


def with_more(groups: Iterable[list[T]]) -> Iterator[tuple[list[T], bool]]:
    """Yield each group with whether another one follows; nothing at all becomes one empty group."""
    held: list[T] | None = None
    for group in groups:
        if held is not None:
            yield held, True
        held = group
    yield held or [], False


class StateSession:
    """The bucket calls of one task; one stream per endpoint that its buckets live at.

    Example:
        >>> [(group, more) for group, more in with_more(grouped([b"ab", b"c", b"de"], len, 3))]
        [([b'ab', b'c'], True), ([b'de'], False)]
    """

    def __init__(self, channel: WorkerChannel, opening: pb.Opening) -> None:
        self.channel, self.opening = channel, opening
        self._audit = Audit(opening.stage)
        self._streams: dict[int, tuple[AnyStream, int]] = {}  # by endpoint: stream, calls made

    def run_bucket(
        self,
        bucket: int,
        version: Version,
        frames: Sequence[bytes],
        load_log: Callable[[], Iterable[bytes]],
        wants_snapshot: bool,
    ) -> BucketResult:
        """Run a bucket's messages; a call that broke is repeated.

        Args:
            bucket: Number of the bucket.
            version: Of its committed state.
            load_log: Gives the entries of the log, oldest first; called when the worker lacks the state.
            wants_snapshot: Whether the changes shall be the whole state.
        """
        quarantine = Quarantine()
        while True:
            index = -1
            try:
                stream, index = self._stream(bucket)
                call = pb.Bucket(index=index, bucket=bucket, wants_snapshot=wants_snapshot)
                call.version.counter, call.version.nonce = version.counter, version.nonce
                self._send(stream, call, frames, quarantine)
                came = sum(map(messages_by_port, frames), Counter[int]())
                result = self._receive(stream, index, version, load_log, came)
            except Broken as broken:
                self._drop()
                if broken.suspect and broken.suspect.index == index:
                    self.channel.learn(quarantine, broken.suspect)
                continue
            self.channel.progressed()
            return result

    def close(self) -> None:
        """End the streams."""
        for stream, _ in self._streams.values():
            stream.finish()
        self._streams.clear()

    def abandon(self) -> None:
        """End the streams without waiting for the worker."""
        self._drop()

    def _drop(self) -> None:
        for stream, _ in self._streams.values():
            stream.close()
        self._streams.clear()

    def _stream(self, bucket: int) -> tuple[AnyStream, int]:
        number = bucket % self.channel.width
        stream, calls = self._streams.get(number, (None, 0))
        if stream is None:
            method = lambda stub: stub.ProcessState  # noqa: E731 - names the method of a stub that is not there yet
            stream = self.channel.open(number, method, self.opening, pb.StateRequest)
        self._streams[number] = stream, calls + 1
        return stream, calls

    @staticmethod
    def _send(stream: AnyStream, call: pb.Bucket, frames: Sequence[bytes], quarantine: Quarantine) -> None:
        stream.arm(quarantine)
        skips = quarantine.skips
        for group, more in with_more(grouped(frames, len)):
            request = pb.Bucket(more=more, skips=skips, alone=quarantine.is_alone, careful=quarantine.is_careful)
            request.MergeFrom(call)
            request.frames = group[0] if len(group) == 1 else b"".join(group)
            stream.send(pb.StateRequest(bucket=request))
            skips = []

    def _receive(
        self,
        stream: AnyStream,
        index: int,
        version: Version,
        load_log: Callable[[], Iterable[bytes]],
        came: Counter[int],
    ) -> BucketResult:
        result, left = BucketResult(version), Counter[int]()
        while True:
            reply = stream.receive()
            kind = reply.WhichOneof("kind")
            if kind is None or getattr(reply, kind).index != index:
                msg = f"{kind or 'an empty reply'} came out of turn; call {index} is not done"
                raise self.channel.broke_rules(msg)
            if kind == "need_state":
                stream.rest()
                self._send_log(stream, index, load_log())
                result, left = BucketResult(version), Counter()
                stream.resume()
            elif kind == "output":
                with self.channel.held_to_rules():
                    left[reply.output.port] += self._audit.output(reply.output).count
                result.outputs.append(reply.output)
            elif kind == "change":
                result.changes.extend(reply.change.entries)
            else:
                with self.channel.held_to_rules():
                    self._audit.call(came, left, reply.done.counts, reply.done.visits)
                return self._done(stream, reply.done, result)

    @staticmethod
    def _send_log(stream: AnyStream, index: int, entries: Iterable[bytes]) -> None:
        for group, more in with_more(grouped(entries, len)):
            stream.send(pb.StateRequest(log=pb.StateLog(index=index, entries=group, more=more)))

    def _done(self, stream: AnyStream, done: pb.StateDone, result: BucketResult) -> BucketResult:
        stream.rest()
        if not done.nonce:
            msg = "a version's nonce is 0"
            raise self.channel.broke_rules(msg)
        result.version = Version(result.version.counter + 1, done.nonce)
        result.is_snapshot, result.keys, result.visits = done.snapshot, done.keys, list(done.visits)
        result.counts = list(done.counts)
        return result
