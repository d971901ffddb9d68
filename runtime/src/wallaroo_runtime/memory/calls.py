"""Calls workers for a micro-batch: data calls for stages without state, bucket calls for stages with state."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from wallaroo.worker._proto import worker_pb2 as pb
from wallaroo_runtime.storage.state_log import grouped
from wallaroo_runtime.worker.client import Broken, CallClient, CallStream

REQUEST_BYTES = 8 * 1024 * 1024
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Version:
    """A version of a bucket's state; (0, 0) is the empty state. A worker with another version loads the state again."""

    counter: int = 0
    nonce: int = 0


@dataclass(slots=True)
class CallResult:
    """The results of one call that has processed messages of a bucket.

    Attributes:
        version: Version of the bucket's state after the call.
        outputs: Outputs in the order in which they were made.
        changes: Entries for the bucket's log.
        is_snapshot: Whether the changes replace the log.
        visits: Counts of the visits in the call.
        fired: Number of timers that ran.
    """

    version: Version
    outputs: list[pb.Output] = field(default_factory=list)
    changes: list[bytes] = field(default_factory=list)
    is_snapshot: bool = False
    visits: list[pb.Visited] = field(default_factory=list)
    fired: int = 0


def with_more(groups: Iterable[list[T]]) -> Iterator[tuple[list[T], bool]]:
    """Yield each group with a flag: whether another group follows. If there is no group, yield one empty group.

    Example:
        >>> [(group, more) for group, more in with_more(grouped([b"ab", b"c", b"de"], len, 3))]
        [([b'ab', b'c'], True), ([b'de'], False)]
    """
    held: list[T] | None = None
    for group in groups:
        if held is not None:
            yield held, True
        held = group
    yield held or [], False


def run_data(client: CallClient, opening: pb.Opening, inputs: Iterable[bytes]) -> Iterator[list[pb.Output]]:
    """Call a stage without state, and yield its outputs for each input.

    Args:
        client: Client of the worker.
        opening: Stage, partition and micro-batch of the calls. The partition chooses the endpoint of the worker.
        inputs: Each input is one or more whole frames.

    Raises:
        RunError: An error that the worker reports; W410 if it breaks the protocol.
    """
    source = iter(inputs)
    held, skips = next(source, None), list[pb.Skip]()
    while held is not None:
        stream, index = client.open(opening.partition, "Process", opening), 0
        try:
            while held is not None:
                stream.send(pb.Request(data=pb.Data(index=index, frames=held, skips=skips)))
                outputs = _outputs(client, stream, index)
                client.progressed()
                yield outputs
                index, held, skips = index + 1, next(source, None), []
            stream.finish()
        except Broken as broken:
            skips += broken.skips  # input `held` has no answer yet, so it is sent again
        finally:
            stream.close()


def _outputs(client: CallClient, stream: CallStream, index: int) -> list[pb.Output]:
    outputs: list[pb.Output] = []
    while True:
        reply = stream.receive()
        kind = reply.WhichOneof("kind")
        if kind not in ("output", "done") or getattr(reply, kind).index != index:
            raise _out_of_turn(client, kind, index)
        if kind == "done":
            return outputs
        outputs.append(reply.output)


def _out_of_turn(client: CallClient, kind: str | None, index: int) -> Exception:
    return client.broke_rules(f"{kind or 'an empty reply'} came out of turn; call {index} is not done")


class StateSession:
    """Makes the bucket calls of one stage in one micro-batch, over one stream to each endpoint of the worker."""

    def __init__(self, client: CallClient, opening: pb.Opening) -> None:
        self.client, self.opening = client, opening
        self._streams: dict[int, tuple[CallStream, int]] = {}  # by endpoint: the stream and its number of calls

    def run_bucket(
        self,
        bucket: int,
        version: Version,
        frames: Sequence[bytes],
        load_log: Callable[[], Iterable[bytes]],
        wants_snapshot: bool,
    ) -> CallResult:
        """Process the messages of a bucket. A call that was interrupted is repeated.

        Args:
            bucket: Number of the bucket.
            version: Version of the bucket's committed state.
            load_log: Returns the entries of the log, oldest first. It is called if the worker lacks the state.
            wants_snapshot: Whether the worker shall return the whole state in place of changes.

        Raises:
            RunError: An error that the worker reports; W410 if it breaks the protocol.
        """
        skips, is_careful = list[pb.Skip](), False
        while True:
            stream, index = self._stream(bucket)
            call = pb.Bucket(index=index, bucket=bucket, wants_snapshot=wants_snapshot, skips=skips, careful=is_careful)
            call.version.counter, call.version.nonce = version.counter, version.nonce
            try:
                self._send(stream, call, frames)
                result = self._receive(stream, index, version, load_log)
            except Broken as broken:
                self.abandon()
                skips, is_careful = skips + broken.skips, True
                continue
            self.client.progressed()
            return result

    def close(self) -> None:
        """End the streams, after all calls have ended."""
        for stream, _ in self._streams.values():
            stream.finish()
        self._streams.clear()

    def abandon(self) -> None:
        """End the streams at once, after an error, without waiting for the worker."""
        for stream, _ in self._streams.values():
            stream.close()
        self._streams.clear()

    def _stream(self, bucket: int) -> tuple[CallStream, int]:
        number = bucket % self.client.width
        stream, calls = self._streams.get(number, (None, 0))
        if stream is None:
            stream = self.client.open(number, "ProcessState", self.opening)
        self._streams[number] = stream, calls + 1
        return stream, calls

    @staticmethod
    def _send(stream: CallStream, call: pb.Bucket, frames: Sequence[bytes]) -> None:
        for group, more in with_more(grouped(frames, len, REQUEST_BYTES)):
            request = pb.Bucket(more=more, frames=b"".join(group))
            request.MergeFrom(call)
            stream.send(pb.Request(bucket=request))

    def _receive(
        self, stream: CallStream, index: int, version: Version, load_log: Callable[[], Iterable[bytes]]
    ) -> CallResult:
        result = CallResult(version)
        while True:
            reply = stream.receive()
            kind = reply.WhichOneof("kind")
            if kind is None or getattr(reply, kind).index != index:
                raise _out_of_turn(self.client, kind, index)
            if kind == "need_state":
                for group, more in with_more(grouped(load_log(), len, REQUEST_BYTES)):
                    stream.send(pb.Request(log=pb.StateLog(index=index, entries=group, more=more)))
                result = CallResult(version)
            elif kind == "output":
                result.outputs.append(reply.output)
            elif kind == "change":
                result.changes.extend(reply.change.entries)
            else:
                return self._done(reply.done, result)

    def _done(self, done: pb.Done, result: CallResult) -> CallResult:
        if not done.nonce:
            msg = "a version's nonce is 0"
            raise self.client.broke_rules(msg)
        result.version = Version(result.version.counter + 1, done.nonce)
        result.is_snapshot, result.visits = done.snapshot, list(done.visits)
        result.fired = sum(count.more["timers_fired"] for count in done.counts)
        return result
