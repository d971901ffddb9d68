"""The faults of the wrong worker: each changes one thing in what a right worker says or hears."""

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

from wallaroo.frame import check_frame, read_frame, write_frame
from wallaroo.worker._proto import worker_pb2 as pb

BUCKETS = 8
Reply = Any


class Fault:
    """Breaks nothing; one object per stream."""

    shared: dict[str, Any] = {}

    def init_request(self, request: pb.InitRequest) -> None:
        """Change what the right worker hears in Init."""

    def request(self, request: Any) -> None:
        """Change a request of a stream."""

    def reply(self, reply: Reply) -> Iterator[Reply]:
        """Yield what is said instead of one reply of a stream."""
        yield reply

    def split(self, reply: pb.SplitReply) -> None:
        """Change the reply of SplitFrames."""


def output(change: Callable[[pb.Output], Iterator[None] | None]) -> type[Fault]:
    """Make a fault that changes outputs; `change` may return an iterator, which has an item per copy to be sent."""

    class OutputFault(Fault):
        def reply(self, reply: Reply) -> Iterator[Reply]:
            copies = change(reply.output) if reply.WhichOneof("kind") == "output" else None
            for _ in [None] if copies is None else copies:
                yield reply

    return OutputFault


def wrong_bucket(out: pb.Output) -> None:
    if out.bucket >= 0:
        out.bucket = (out.bucket + 1) % BUCKETS


def later_sequence(out: pb.Output) -> None:
    header, frame = check_frame(out.frame), out.frame
    out.frame = write_frame(dataclasses.replace(header, sequence=header.sequence + 1), [frame[40:]])


def without_letters(out: pb.Output) -> Iterator[None]:
    return iter([] if out.port == 65535 else [None])


def one_code(out: pb.Output) -> None:
    if out.port != 65535:
        return
    frame = read_frame(out.frame)
    letters = [pb.DeadLetter.FromString(value) for value in frame.values()]
    for letter in letters:
        letter.code = "C501"
    # C501 is as long as every other code: lengths and columns stay as they are.
    body = out.frame[40 : len(out.frame) - len(frame.data)]
    out.frame = write_frame(frame.header, [body, b"".join(letter.SerializeToString() for letter in letters)])


class LosesMessages(Fault):
    """The first output of every stream gets lost."""

    has_lost = False

    def reply(self, reply: Reply) -> Iterator[Reply]:
        if reply.WhichOneof("kind") == "output" and not self.has_lost:
            self.has_lost = True
            return
        yield reply


class DoneFirst(Fault):
    """`done` comes before the last output."""

    def __init__(self) -> None:
        self.held: Reply = None

    def reply(self, reply: Reply) -> Iterator[Reply]:
        kind = reply.WhichOneof("kind")
        if kind == "output":
            if self.held is not None:
                yield self.held
            self.held = reply
            return
        yield reply
        if kind == "done" and self.held is not None:
            yield self.held
            self.held = None


class ReusedNonce(Fault):
    """Every call ends with the same nonce."""

    def reply(self, reply: Reply) -> Iterator[Reply]:
        if reply.WhichOneof("kind") == "done" and isinstance(reply, pb.StateReply):
            reply.done.nonce = 7
        yield reply


class StaleCopy(Fault):
    """Whatever version is asked for, the copy at hand is used."""

    def request(self, request: Any) -> None:
        if isinstance(request, pb.StateRequest) and request.WhichOneof("kind") == "bucket":
            self.bucket, self.counter = request.bucket.bucket, request.bucket.version.counter
            if self.bucket in self.shared:
                request.bucket.version.counter, request.bucket.version.nonce = self.shared[self.bucket]
                self.counter = request.bucket.version.counter

    def reply(self, reply: Reply) -> Iterator[Reply]:
        if isinstance(reply, pb.StateReply) and reply.WhichOneof("kind") == "done":
            self.shared[self.bucket] = (self.counter + 1, reply.done.nonce)
        yield reply


class LosesChanges(Fault):
    """Changed states are not told."""

    def reply(self, reply: Reply) -> Iterator[Reply]:
        if not isinstance(reply, pb.StateReply) or reply.WhichOneof("kind") != "change":
            yield reply


class AlwaysSnapshot(Fault):
    """Every delta is called a snapshot."""

    def reply(self, reply: Reply) -> Iterator[Reply]:
        if isinstance(reply, pb.StateReply) and reply.WhichOneof("kind") == "done":
            reply.done.snapshot = True
        yield reply


class NeverSnapshot(Fault):
    """A snapshot that is wanted is not made."""

    def request(self, request: Any) -> None:
        if isinstance(request, pb.StateRequest) and request.WhichOneof("kind") == "bucket":
            request.bucket.wants_snapshot = False


class UnmarkedRollback(Fault):
    """`need_state` does not say that it is for a rollback."""

    def reply(self, reply: Reply) -> Iterator[Reply]:
        if isinstance(reply, pb.StateReply) and reply.WhichOneof("kind") == "need_state":
            reply.need_state.rollback = False
        yield reply


class Blind(Fault):
    """The in-flight file stays as it is."""

    def request(self, request: Any) -> None:
        if request.WhichOneof("kind") == "opening":
            request.opening.in_flight = ""


class IgnoresSkips(Fault):
    """Messages that are to be skipped are run."""

    def request(self, request: Any) -> None:
        if isinstance(request, pb.ProcessRequest) and request.WhichOneof("kind") == "data":
            del request.data.skips[:]


class SwallowsFailures(Fault):
    """Damaged data counts as done."""

    def reply(self, reply: Reply) -> Iterator[Reply]:
        if isinstance(reply, pb.ProcessReply) and reply.WhichOneof("kind") == "failure":
            yield pb.ProcessReply(done=pb.Done(index=0))
        else:
            yield reply


class InternalFailures(Fault):
    """Every failure is called an internal one."""

    def reply(self, reply: Reply) -> Iterator[Reply]:
        if reply.WhichOneof("kind") == "failure":
            reply.failure.code = "I901"
        yield reply


class AcceptsAnyHash(Fault):
    """Init does not compare interface hashes."""

    def init_request(self, request: pb.InitRequest) -> None:
        request.interface_hash = ""


class AcceptsAnyVersion(Fault):
    """Init does not compare protocol versions."""

    def init_request(self, request: pb.InitRequest) -> None:
        request.protocol_min = 1


class WrongCut(Fault):
    """SplitFrames counts payloads without headers."""

    def split(self, reply: pb.SplitReply) -> None:
        lengths = [length - 3 for length in reply.lengths]
        del reply.lengths[:]
        reply.lengths.extend(lengths)


# The last two are faults of the process, not of what it says; see wrong_worker.py.
class LaxCodec(Fault):
    """Messages pass a border whatever their bytes are."""

    def request(self, request: Any) -> None:
        if request.WhichOneof("kind") == "opening":
            for node in request.opening.stage.nodes:
                node.codec = node.codec and "bytes"


class KeylessBorder(Fault):
    """Messages lose their key on the way to another stage."""

    def request(self, request: Any) -> None:
        if request.WhichOneof("kind") == "opening":
            for node in request.opening.stage.nodes:
                node.keys = False


FAULTS: dict[str, type[Fault]] = {
    "none": Fault,
    "wrong-bucket": output(wrong_bucket),
    "later-sequence": output(later_sequence),
    "no-dead-letters": output(without_letters),
    "one-code": output(one_code),
    "says-twice": output(lambda out: iter([None, None])),
    "loses-messages": LosesMessages,
    "done-first": DoneFirst,
    "reused-nonce": ReusedNonce,
    "stale-copy": StaleCopy,
    "loses-changes": LosesChanges,
    "always-snapshot": AlwaysSnapshot,
    "never-snapshot": NeverSnapshot,
    "unmarked-rollback": UnmarkedRollback,
    "blind": Blind,
    "ignores-skips": IgnoresSkips,
    "swallows-failures": SwallowsFailures,
    "internal-failures": InternalFailures,
    "accepts-any-hash": AcceptsAnyHash,
    "accepts-any-version": AcceptsAnyVersion,
    "lax-codec": LaxCodec,
    "keyless-border": KeylessBorder,
    "wrong-cut": WrongCut,
    "ignores-sigterm": Fault,
    "leaves-orphan": Fault,
}
