"""The messages that stages of one task pass to later stages of the same task, in another worker."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence

from wallaroo.message.frame import CONTROL_PORTS, FRAMED, HEADER_BYTES, TICK_PORT, FrameHeader, read_header, write_frame
from wallaroo.worker._proto import worker_pb2 as pb
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.plan import NodeKind, Stage


def frames_of_ports(data: bytes, ports: Collection[int]) -> Iterator[bytes]:
    """Yield those of the frames in `data` that have one of the ports."""
    offset = 0
    while offset < len(data):
        header = read_header(data, offset)
        end = offset + HEADER_BYTES + header.body_bytes
        if header.port in ports:
            yield data[offset:end]
        offset = end


def messages_by_port(frames: bytes) -> Counter[int]:
    """Count the messages of frames that stand one after the other; ticks have none, visits one."""
    counts: Counter[int] = Counter()
    offset = 0
    while offset < len(frames):
        header = read_header(frames, offset)
        counts[header.port] += header.count
        offset += HEADER_BYTES + header.body_bytes
    return counts


def controls_of(data: bytes, ports: Collection[int]) -> Iterator[tuple[int, bytes]]:
    """Yield ticks and visits, which go to all buckets, among the frames of a journal, as workers take them.

    A tick of the journal has a sequence of its own, as if it had a message.

    Args:
        ports: Of those that concern anything.

    Yields:
        Each with its sequence.
    """
    for frame in frames_of_ports(data, CONTROL_PORTS & set(ports)):
        header = read_header(frame)
        if header.port == TICK_PORT:
            frame = write_frame(FrameHeader(TICK_PORT, 0, header.sequence, 0, FRAMED, header.timestamp_ms), [])
        yield header.sequence, frame


class Crossing:
    """Holds the frames that stages have sent until the stages that receive them run.

    The stages of a task run one after the other, so at most the task's share of a micro-batch is held.

    Args:
        stages: Of the task, in the order in which they run.
    """

    def __init__(self, stages: Sequence[Stage]) -> None:
        self._stages = stages
        entries = (node for stage in stages for node in stage.entries)
        self._held: dict[int, list[bytes]] = {node.port: [] for node in entries if node.kind is NodeKind.RECEIVE}
        self._taken: Counter[tuple[str, int]] = Counter()  # messages, by stage and port

    def keep(self, outputs: Iterable[pb.Output]) -> list[pb.Output]:
        """Keep the messages for later stages; returns the rest."""
        others = []
        for output in outputs:
            if output.port in self._held:
                self._held[output.port].append(output.frame)
            else:
                others.append(output)
        return others

    def take(self, stage: Stage) -> Iterator[bytes]:
        """Yield the frames that a stage receives, in the order in which they were sent."""
        for node in stage.entries:
            if node.kind is NodeKind.RECEIVE:
                for frame in self._held[node.port]:
                    self._taken[stage.id, node.port] += read_header(frame).count
                    yield frame

    def check(self, batch: int) -> None:
        """Check that each stage has taken all messages that were sent to it; the stages of a micro-batch have run.

        Raises:
            RunError: I902.
        """
        for stage in self._stages:
            for port in self._held.keys() & {node.port for node in stage.entries if node.kind is NodeKind.RECEIVE}:
                sent = sum(read_header(frame).count for frame in self._held[port])
                taken = self._taken[stage.id, port]
                if taken != sent:
                    reason = f'stage "{stage.id}" has taken {taken} of {sent} messages of port {port}'
                    what, effect = f"micro-batch {batch}", "nothing of it was published"
                    raise RunError.of("I902", what=what, effect=effect, reason=reason)
