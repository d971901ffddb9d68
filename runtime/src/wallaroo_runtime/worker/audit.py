"""Checks what a worker sends, where it is taken: the form of each output, and that the messages of a call add up."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import NoReturn

from google.protobuf.message import DecodeError

from wallaroo.message.frame import (
    DEAD_LETTER_PORT,
    FRAMED,
    HEADER_BYTES,
    KEYS,
    TICK_PORT,
    VISIT_PORT,
    FrameError,
    FrameHeader,
    check_frame,
    read_frame,
    read_header,
    read_keys,
)
from wallaroo.message.key import bucket_of
from wallaroo.worker._proto import worker_pb2 as pb

OUTPUT = pb.NODE_KIND_OUTPUT
WINDOW = pb.NODE_KIND_WINDOW
KEY, SEND, RECEIVE, SINK = pb.NODE_KIND_KEY, pb.NODE_KIND_SEND, pb.NODE_KIND_RECEIVE, pb.NODE_KIND_SINK
EXITS = frozenset({KEY, SEND, SINK})
STATE_ENTRIES = frozenset({pb.NODE_KIND_STATE_COMPUTATION, pb.NODE_KIND_STATE_COMPUTATION_MULTI, WINDOW})
ENTRIES = STATE_ENTRIES | {pb.NODE_KIND_SOURCE, RECEIVE}
# Each message that enters these leaves once at most: to the next node, or as a dead letter.
SINGLE = frozenset(
    {
        pb.NODE_KIND_SOURCE,
        pb.NODE_KIND_COMPUTATION,
        pb.NODE_KIND_STATE_COMPUTATION,
        pb.NODE_KIND_KEY_BY,
        pb.NODE_KIND_COLLECT,
        SINK,
    }
)

# So many keys of a frame are checked, of the next frame others: each costs 0.3 to 1 us, a message all in all 8.
MOST_KEYS = 64


class RuleError(Exception):
    """A worker broke a rule of the protocol; the text names stage, field and value."""


class DamageError(Exception):
    """A worker sent a damaged frame."""


def messages_by_port(frames: bytes) -> Counter[int]:
    """Count the messages of frames that stand one after the other; ticks have none, visits one."""
    found: Counter[int] = Counter()
    offset = 0
    while offset < len(frames):
        header = read_header(frames, offset)
        found[header.port] += header.count
        offset += HEADER_BYTES + header.body_bytes
    return found


class Audit:
    """The rules that hold for the outputs of one stage.

    Args:
        stage: The stage, as sent to the worker.
    """

    def __init__(self, stage: pb.Stage) -> None:
        self._id, self._nodes, self._buckets = stage.id, list(stage.nodes), stage.bucket_count
        self._keyed = {node.port: node.kind == KEY for node in stage.nodes if node.kind in EXITS}
        self._keyed[DEAD_LETTER_PORT] = False
        self._paths = frozenset(node.path for node in stage.nodes)
        self._visited = Counter[str]()
        self._entries = [node for node in stage.nodes if node.kind in ENTRIES]
        self._sends = {node.path: node.port for node in stage.nodes if node.kind == SEND}

    def output(self, output: pb.Output) -> FrameHeader:
        """Check one output; returns the header of its frame.

        Raises:
            RuleError: It is not one of this stage.
            DamageError: Its frame is damaged.
        """
        is_keyed = self._keyed.get(output.port)
        if is_keyed is None:
            self._refuse("port", output.port, f"expected one of {sorted(self._keyed)}")
        if is_keyed and not 0 <= output.bucket < self._buckets:
            self._refuse("bucket", output.bucket, f"port {output.port} has 0 to {self._buckets - 1}")
        if not is_keyed and output.bucket != -1:
            self._refuse("bucket", output.bucket, f"port {output.port} has -1")
        try:
            header = check_frame(output.frame)
        except FrameError as error:
            msg = f'stage "{self._id}", port {output.port}: {error}'
            raise DamageError(msg) from error
        self._frame(output, header, is_keyed)
        if is_keyed:
            self._keys(output, header)
        if output.port == DEAD_LETTER_PORT:
            self._letters(output.frame)
        return header

    def _letters(self, frame: bytes) -> None:
        """Check that dead letters are such: the driver reads them."""
        try:
            for value in read_frame(frame).values():
                pb.DeadLetter.FromString(value)
        except (FrameError, DecodeError) as error:
            self._refuse("frame", f"port {DEAD_LETTER_PORT}", f"each value is a DeadLetter; {error}")

    def _frame(self, output: pb.Output, header: FrameHeader, is_keyed: bool) -> None:
        if header.port != output.port:
            self._refuse("frame", f"port {header.port}", f"the output has {output.port}")
        size = HEADER_BYTES + header.body_bytes
        if size != len(output.frame):
            self._refuse("frame", f"{len(output.frame)} bytes", f"one frame, of {size} bytes")
        if header.encoding == FRAMED:
            self._refuse("frame", f"encoding {FRAMED}", "only sources have it")
        if is_keyed and header.count and not header.flags & KEYS:
            self._refuse("frame", f"flags {header.flags}", f"port {output.port} has keys")

    def _keys(self, output: pb.Output, header: FrameHeader) -> None:
        """Check that keys belong to the bucket; of very many keys a part, another one in each frame."""
        try:
            keys = read_keys(header, output.frame, HEADER_BYTES, MOST_KEYS)
        except FrameError as error:
            msg = f'stage "{self._id}", port {output.port}: {error}'
            raise DamageError(msg) from error
        for key in keys:
            if (bucket := bucket_of(key, self._buckets)) != output.bucket:
                self._refuse("bucket", output.bucket, f"the key {key[:80]!r} belongs to {bucket}")

    def call(
        self,
        came: Mapping[int, int],
        left: Mapping[int, int],
        counts: Iterable[pb.StepCount],
        visits: Iterable[pb.Visited] = (),
    ) -> None:
        """Check that all messages of a call went somewhere: on, into a dead letter, or nowhere as the step said.

        Args:
            came: How many messages the frames of the call have, by port.
            left: How many its outputs have, by port.
            counts: What the worker has counted.
            visits: What visits came to: each key may emit as much as a message.

        Raises:
            RuleError: They do not add up.
        """
        self._visited = Counter[str]()
        for visit in visits:
            self._visited[visit.path] += visit.keys
            self._visit(visit)
        told: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0])
        for count in counts:
            if count.path not in self._paths:
                self._refuse("counts", count.path[:80], f"expected one of {sorted(self._paths)}")
            self._check_more(count)
            row = told[count.path]
            for at, number in enumerate((count.messages_in, count.messages_out, count.dead_letters)):
                row[at] += number
        dead = sum(row[2] for row in told.values())
        if dead != left.get(DEAD_LETTER_PORT, 0):
            self._refuse("dead_letters", dead, f"frames hold {left.get(DEAD_LETTER_PORT, 0)}")
        outs = self._enter(came, told, left)
        for node in self._nodes:
            if node.kind not in ENTRIES:
                self._flow(node, told[node.path], outs, left)
            if node.kind not in EXITS and node.kind != RECEIVE:
                _, out, _ = told[node.path]
                outs[node.path] = (out, out)

    def _check_more(self, count: pb.StepCount) -> None:
        """Check that a step counts what it has a counter for, and not more than came."""
        for name, number in count.more.items():
            has_counter = any(node.path == count.path and name in node.counters for node in self._nodes)
            if number > has_counter * count.messages_in:
                self._refuse(name[:80], number, f"{count.path} had {count.messages_in} messages")

    def _enter(
        self, came: Mapping[int, int], told: Mapping[str, list[int]], left: Mapping[int, int]
    ) -> dict[str, tuple[int, int]]:
        """Check the entries; returns of those that pass messages on uncounted how many these are: at least, at most."""
        outs: dict[str, tuple[int, int]] = {}
        ports: Counter[int] = Counter(came)
        ports.pop(TICK_PORT, None)
        ports.pop(VISIT_PORT, None)
        for node in self._entries:
            entered, _, dead = told[node.path]
            sent = ports.pop(node.port, 0)
            if node.kind == RECEIVE:
                outs[node.path] = (max(0, sent - dead), sent)
            elif entered != sent:
                self._refuse("messages_in", entered, f"{node.path} was sent {sent}")
            self._single(node, told[node.path], left)
        return outs

    def _own(self, node: pb.Node, row: list[int], left: Mapping[int, int]) -> list[int]:
        """Return the numbers of a node without those of its SEND, which has its path: what that did not send died."""
        if node.path not in self._sends:
            return row
        entered, out, dead = row
        return [entered, out, dead - out + left.get(self._sends[node.path], 0)]

    def _single(self, node: pb.Node, row: list[int], left: Mapping[int, int]) -> None:
        entered, out, dead = self._own(node, row, left)
        if node.kind in SINGLE and out + dead > entered + self._visited[node.path]:
            self._refuse("messages_out", out, f"{entered} came to {node.path}, {dead} of them are dead letters")

    def _visit(self, visit: pb.Visited) -> None:
        if all(visit.path != node.path or not node.visits for node in self._entries):
            self._refuse("visits", visit.path, "a step of the stage that takes visits")
        if visit.failed > visit.keys:
            self._refuse("visits", visit.failed, f"{visit.keys} keys of {visit.path} were visited")

    def _flow(
        self, node: pb.Node, row: list[int], outs: Mapping[str, tuple[int, int]], left: Mapping[int, int]
    ) -> None:
        """Check that what the inputs of a node emitted is what came to it, and what an exit got is what it sent."""
        least = sum(outs[path][0] for path in node.inputs)
        most = sum(outs[path][1] for path in node.inputs)
        entered, out, dead = row
        sent = left.get(node.port, 0)
        if node.kind in (KEY, SEND):
            if not least - dead <= sent <= most:
                self._refuse("messages", sent, f"{most} came to the exit {node.path}, {dead} are dead letters")
            return
        if node.kind == OUTPUT:
            if self._own(node, row, left) != [entered, entered, 0]:
                self._refuse("messages_out", out, f"{entered} came to the output {node.path}")
            return
        if not least <= entered <= most:
            self._refuse("messages_in", entered, f"its inputs gave {most} to {node.path}")
        if node.kind == SINK and out != sent:
            self._refuse("messages_out", out, f"the frames of {node.path} hold {sent}")
        self._single(node, row, left)

    def _refuse(self, field: str, value: object, expected: str) -> NoReturn:
        msg = f'stage "{self._id}", field {field}: {value}; {expected}'
        raise RuleError(msg)
