"""Passes messages from one stage of a task to a later stage of the task, which runs in another worker.

It also selects and counts frames of the journal by port, the number that names a source, step or sink.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence

from wallaroo.message.frame import CONTROL_PORTS, FRAMED, TICK_PORT, FrameHeader, read_header, split_frames, write_frame
from wallaroo.worker._proto import worker_pb2 as pb
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.plan import NodeKind, Stage


def frames_of_ports(data: bytes, ports: Collection[int]) -> Iterator[bytes]:
    """Return the frames in `data` whose port is in `ports`."""
    return (data[start:end] for header, start, end in split_frames(data) if header.port in ports)


def messages_by_port(frames: bytes) -> Counter[int]:
    """Return the number of messages in frames, by port. A tick counts as no message, a visit as one."""
    counts: Counter[int] = Counter()
    for header, _, _ in split_frames(frames):
        counts[header.port] += header.count
    return counts


def controls_of(data: bytes, ports: Collection[int]) -> Iterator[tuple[int, bytes]]:
    """Yield the ticks and visits among the frames of a journal, as workers receive them. Each goes to all buckets.

    In the journal, a tick has its own sequence, as if it were a message.

    Args:
        ports: Ports of the ticks and visits to yield.

    Yields:
        The sequence of the tick or visit, and its frame.
    """
    for frame in frames_of_ports(data, CONTROL_PORTS & set(ports)):
        header = read_header(frame)
        if header.port == TICK_PORT:
            frame = write_frame(FrameHeader(TICK_PORT, 0, header.sequence, 0, FRAMED, header.timestamp_ms), [])
        yield header.sequence, frame


class Crossing:
    """Holds frames between two stages of a task, from the sending stage until the receiving stage runs.

    The stages run one after the other, so at most the task's share of a micro-batch is in memory.

    Args:
        stages: The stages of the task, in the order in which they run.
    """

    def __init__(self, stages: Sequence[Stage]) -> None:
        self._stages = stages
        entries = (node for stage in stages for node in stage.entries)
        self._held: dict[int, list[bytes]] = {node.port: [] for node in entries if node.kind is NodeKind.RECEIVE}
        self._taken: Counter[tuple[str, int]] = Counter()  # messages, by stage and port

    def keep(self, outputs: Iterable[pb.Output]) -> list[pb.Output]:
        """Keep the outputs that later stages receive, and return the other outputs."""
        others = []
        for output in outputs:
            if output.port in self._held:
                self._held[output.port].append(output.frame)
            else:
                others.append(output)
        return others

    def take(self, stage: Stage) -> Iterator[bytes]:
        """Yield the frames that other stages have sent to a stage, in the order of sending."""
        for node in stage.entries:
            if node.kind is NodeKind.RECEIVE:
                for frame in self._held[node.port]:
                    self._taken[stage.id, node.port] += read_header(frame).count
                    yield frame

    def check(self, batch: int) -> None:
        """Check at the end of a micro-batch that each stage has taken all messages that were sent to it.

        Raises:
            RunError: I902 if a stage has not taken all its messages.
        """
        for stage in self._stages:
            for port in self._held.keys() & {node.port for node in stage.entries if node.kind is NodeKind.RECEIVE}:
                sent = sum(read_header(frame).count for frame in self._held[port])
                taken = self._taken[stage.id, port]
                if taken != sent:
                    reason = f'stage "{stage.id}" has taken {taken} of {sent} messages of port {port}'
                    what, effect = f"micro-batch {batch}", "nothing of it was published"
                    raise RunError.of("I902", what=what, effect=effect, reason=reason)
