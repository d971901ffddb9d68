"""The faults of the wrong worker: each changes one thing in what a right worker says or hears."""

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

from conformance.release_fault import ReleasesNothing, ReleasesTwice
from conformance.visit_fault import VisitsTwice, on_visit, other_order, without_visits
from conformance.wire import Fault, Reply, on_bucket, on_letter, on_node, on_opening, on_reply, output, unhosted
from wallaroo.message.frame import check_frame, split_frames, write_frame
from wallaroo.worker._proto import worker_pb2 as pb

BUCKETS = 8


def wrong_bucket(out: pb.Output) -> None:
    if out.bucket >= 0:
        out.bucket = (out.bucket + 1) % BUCKETS


def later_sequence(out: pb.Output) -> None:
    header, frame = check_frame(out.frame), out.frame
    out.frame = write_frame(dataclasses.replace(header, sequence=header.sequence + 1), [frame[40:]])


def without_letters(out: pb.Output) -> Iterator[None]:
    return iter([] if out.port == 65535 else [None])


class AsksAlways(Fault):
    """Asks for a state where there is none."""

    has_asked = False

    def reply(self, reply: Reply) -> Iterator[Reply]:
        if self.has_state and not self.has_asked:
            self.has_asked = True
            yield pb.Reply(need_state=pb.NeedState(index=0))
        yield reply


class DropsTicks(Fault):
    """Ticks do nothing."""

    def request(self, request: Any) -> None:
        if request.WhichOneof("kind") == "bucket":
            data = request.bucket.frames
            parts = [data[start : start + 40 + header.body_bytes] for header, start, _ in split_frames(data)]
            kept = [part for part in parts if check_frame(part).port != 65534]
            request.bucket.frames = b"".join(kept)


def no_key(letter: pb.DeadLetter) -> None:
    letter.key, letter.has_key = b"", False


def two_lines(letter: pb.DeadLetter) -> None:
    letter.error += "\nand more"


def without_input(letter: pb.DeadLetter) -> None:
    letter.input = b""


def more_counted(done: Any) -> None:
    for each in done.counts:
        each.messages_in += 1


def without_more(done: Any) -> None:
    for each in done.counts:
        each.ClearField("more")


def without_key(failure: pb.Failure) -> None:
    failure.message = failure.message.partition("key")[0]


def retriable(failure: pb.Failure) -> None:
    failure.retriable = True


def other_failure(code: str) -> Callable[[pb.Failure], None]:
    def change(failure: pb.Failure) -> None:
        if failure.code == code:
            failure.code = "I901"

    return change


def other_state_port(node: pb.Node) -> None:
    node.state_port += 1 if node.state else 0


class OneFirst(Fault):
    """Generate begins with the initial value, whatever came before."""

    def generate_request(self, request: pb.GenerateRequest) -> None:
        request.begins = True


class GivesAll(Fault):
    """Generate gives as many messages as there are."""

    def generate_request(self, request: pb.GenerateRequest) -> None:
        request.max_count, request.max_bytes = 1 << 30, 1 << 30


class NoGenerator(Fault):
    """Generate is not there."""

    def generate(self, reply: pb.GenerateReply) -> None:
        reply.Clear()
        reply.failure.code = "W403"


class NeverEnds(Fault):
    """Generate does not say that no more will come."""

    def generate(self, reply: pb.GenerateReply) -> None:
        reply.ended = False


class LosesGenerated(Fault):
    """A failure of a generator takes the values before it away."""

    def generate(self, reply: pb.GenerateReply) -> None:
        if reply.HasField("failure"):
            del reply.values[:]


class ShowsNothing(Fault):
    """ShowState finds no states, and says nothing of damage."""

    def shown(self, reply: pb.ShowStateReply) -> None:
        reply.Clear()


class ShowsText(Fault):
    """ShowState gives texts that are no JSON."""

    def shown(self, reply: pb.ShowStateReply) -> None:
        for state in reply.states:
            state.json = b"<" + state.json + b">"


class NoLanguage(Fault):
    """Init does not report the language."""

    def init(self, reply: pb.InitReply) -> None:
        reply.language = ""


class EndpointsDiffer(Fault):
    """Each endpoint reports other endpoints."""

    def init(self, reply: pb.InitReply) -> None:
        self.shared["inits"] = self.shared.get("inits", 0) + 1
        reply.endpoints[:] = reply.endpoints[:: 1 if self.shared["inits"] % 2 else -1]


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
        if self.has_state and reply.WhichOneof("kind") == "done":
            reply.done.nonce = 7
        yield reply


class StaleCopy(Fault):
    """Whatever version is asked for, the copy at hand is used."""

    def request(self, request: Any) -> None:
        if request.WhichOneof("kind") == "bucket":
            self.bucket, self.counter = request.bucket.bucket, request.bucket.version.counter
            if self.bucket in self.shared:
                request.bucket.version.counter, request.bucket.version.nonce = self.shared[self.bucket]
                self.counter = request.bucket.version.counter

    def reply(self, reply: Reply) -> Iterator[Reply]:
        if self.has_state and reply.WhichOneof("kind") == "done":
            self.shared[self.bucket] = (self.counter + 1, reply.done.nonce)
        yield reply


class LosesChanges(Fault):
    """Changed states are not told."""

    def reply(self, reply: Reply) -> Iterator[Reply]:
        if reply.WhichOneof("kind") != "change":
            yield reply


class AlwaysSnapshot(Fault):
    """Every delta is called a snapshot."""

    def reply(self, reply: Reply) -> Iterator[Reply]:
        if self.has_state and reply.WhichOneof("kind") == "done":
            reply.done.snapshot = True
        yield reply


class NeverSnapshot(Fault):
    """A snapshot that is wanted is not made."""

    def request(self, request: Any) -> None:
        if request.WhichOneof("kind") == "bucket":
            request.bucket.wants_snapshot = False


class UnmarkedRollback(Fault):
    """`need_state` does not say that it is for a rollback."""

    def reply(self, reply: Reply) -> Iterator[Reply]:
        if reply.WhichOneof("kind") == "need_state":
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
        if request.WhichOneof("kind") == "data":
            del request.data.skips[:]


class SwallowsFailures(Fault):
    """Damaged data counts as done."""

    def reply(self, reply: Reply) -> Iterator[Reply]:
        if not self.has_state and reply.WhichOneof("kind") == "failure":
            yield pb.Reply(done=pb.Done(index=0))
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
    "wrong-bucket": output(wrong_bucket),
    "later-sequence": output(later_sequence),
    "no-dead-letters": output(without_letters),
    "one-code": on_letter(lambda letter: setattr(letter, "code", "C501")),
    "letters-without-key": on_letter(no_key),
    "letters-of-two-lines": on_letter(two_lines),
    "letters-without-input": on_letter(without_input),
    "letters-without-time": on_letter(lambda letter: setattr(letter, "timestamp_ms", 0)),
    "says-twice": output(lambda out: iter([None, None])),
    "loses-messages": LosesMessages,
    "done-first": DoneFirst,
    "one-frame": on_opening(frame_bytes=0),
    "wrong-counts": on_reply("done", more_counted),
    "reused-nonce": ReusedNonce,
    "stale-copy": StaleCopy,
    "asks-always": AsksAlways,
    "loses-changes": LosesChanges,
    "other-state-port": on_node(other_state_port),
    "always-snapshot": AlwaysSnapshot,
    "never-snapshot": NeverSnapshot,
    "unmarked-rollback": UnmarkedRollback,
    "ignores-careful": on_bucket(lambda bucket: setattr(bucket, "careful", False)),
    "failures-without-key": on_reply("failure", without_key),
    "failures-to-repeat": on_reply("failure", retriable),
    "another-code-for-c507": on_reply("failure", other_failure("C507")),
    "another-code-for-c511": on_reply("failure", other_failure("C511")),
    "blind": Blind,
    "ignores-skips": IgnoresSkips,
    "ignores-skips-of-state": on_bucket(lambda bucket: bucket.ClearField("skips")),
    "swallows-failures": SwallowsFailures,
    "internal-failures": InternalFailures,
    "accepts-any-hash": AcceptsAnyHash,
    "accepts-any-version": AcceptsAnyVersion,
    "no-language": NoLanguage,
    "endpoints-differ": EndpointsDiffer,
    "ignores-codecs": on_node(lambda node: node.ClearField("codec")),
    "lax-codec": LaxCodec,
    "keyless-border": KeylessBorder,
    "timeless-border": on_node(lambda node: setattr(node, "timestamps", False)),
    "no-key-by": unhosted(pb.NODE_KIND_KEY_BY),
    "no-collect": unhosted(pb.NODE_KIND_COLLECT),
    "no-window": unhosted(pb.NODE_KIND_WINDOW),
    "no-ticks": DropsTicks,
    "states-stay": on_node(lambda node: node.ClearField("ttl_ms")),
    "arrival-counts": on_node(lambda node: node.ClearField("event_time")),
    "no-timers": on_node(lambda node: node.ClearField("timers")),
    "uncounted-timers": on_reply("done", without_more),
    "visits-twice": VisitsTwice,
    "visits-in-another-order": on_visit(other_order),
    "visits-without-metadata": on_visit(lambda visit: visit.ClearField("metadata")),
    "no-visits": on_node(lambda node: node.ClearField("visits")),
    "uncounted-visits": on_reply("done", without_visits),
    "releases-twice": ReleasesTwice,
    "releases-nothing": ReleasesNothing,
    "no-generate": NoGenerator,
    "shows-nothing": ShowsNothing,
    "shows-text": ShowsText,
    "generates-from-the-beginning": OneFirst,
    "generates-all": GivesAll,
    "generates-for-ever": NeverEnds,
    "generates-nothing-before-a-failure": LosesGenerated,
    "wrong-cut": WrongCut,
}
