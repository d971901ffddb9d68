"""Runs a stage without state over a stream of data."""

from collections import Counter, deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from wallaroo.worker._proto import worker_pb2 as pb
from wallaroo_runtime.worker.audit import Audit, messages_by_port
from wallaroo_runtime.worker.channel import AnyStream, Broken, WorkerChannel
from wallaroo_runtime.worker.poison import Quarantine, Suspect

IN_FLIGHT_BYTES = 8 * 1024 * 1024


@dataclass(slots=True)
class Unanswered:
    """Data that was sent, with what is known of it when it is sent again."""

    frames: bytes
    quarantine: Quarantine = field(default_factory=Quarantine)

    def request(self, index: int) -> pb.ProcessRequest:
        """Return what to send."""
        return pb.ProcessRequest(
            data=pb.Data(index=index, frames=self.frames, skips=self.quarantine.skips, alone=self.quarantine.is_alone)
        )


class ProcessCall:
    """Sends data to the worker with a bounded amount unanswered, and gives the outputs in order.

    Outputs of one data are given when the worker is done with it, so that repeating it after the worker's death
    gives nothing twice.

    Args:
        channel: The way to the worker.
        opening: What the call is about; its partition chooses the endpoint.
        window: Bound of the bytes that are sent and not yet answered.
    """

    def __init__(self, channel: WorkerChannel, opening: pb.Opening, window: int = IN_FLIGHT_BYTES) -> None:
        self.channel, self.opening, self.window = channel, opening, window
        self.counts: list[pb.StepCount] = []
        self._audit = Audit(opening.stage)
        self._unanswered: deque[Unanswered] = deque()
        self._answered = 0  # on the stream that is open
        self._held: bytes | None = None

    def run(self, inputs: Iterable[bytes]) -> Iterator[list[pb.Output]]:
        """Yield, for each of the inputs, its outputs; an input is one or more whole frames."""
        source = iter(inputs)
        self._held = next(source, None)
        while self._held is not None or self._unanswered:
            stream = self._open()
            try:
                yield from self._exchange(stream, source)
                stream.finish()
            except Broken as broken:
                self._learn(broken.suspect)
                continue
            finally:
                stream.close()

    def _learn(self, suspect: Suspect | None) -> None:
        position = suspect.index - self._answered if suspect else -1
        if 0 <= position < len(self._unanswered):
            self.channel.learn(self._unanswered[position].quarantine, suspect)

    def _open(self) -> AnyStream:
        number = self.opening.partition
        return self.channel.open(number, lambda stub: stub.Process, self.opening, pb.ProcessRequest)

    def _exchange(self, stream: AnyStream, source: Iterator[bytes]) -> Iterator[list[pb.Output]]:
        sent = self._answered = 0
        for data in self._unanswered:  # what a broken stream left
            stream.send(data.request(sent))
            sent += 1
        flying = sum(len(data.frames) for data in self._unanswered)
        self._arm(stream)
        while True:
            while self._held is not None and (not flying or flying + len(self._held) <= self.window):
                self._unanswered.append(Unanswered(self._held))
                stream.send(self._unanswered[-1].request(sent))
                sent, flying = sent + 1, flying + len(self._held)
                stream.rest()  # Kafka may be away: the worker has answered, and nobody has looked
                self._held = next(source, None)
                self._arm(stream)
            if not self._unanswered:
                return
            outputs = self._receive_one(stream, self._answered, self._unanswered[0].frames)
            flying -= len(self._unanswered.popleft().frames)
            self._answered += 1
            self.channel.progressed()
            stream.rest()  # the reader of the outputs may take its time
            yield outputs
            self._arm(stream)

    def _arm(self, stream: AnyStream) -> None:
        stream.arm(self._unanswered[0].quarantine if self._unanswered else Quarantine())

    def _receive_one(self, stream: AnyStream, index: int, frames: bytes) -> list[pb.Output]:
        outputs: list[pb.Output] = []
        left: Counter[int] = Counter()
        while True:
            reply = stream.receive()
            kind = reply.WhichOneof("kind")
            if kind not in ("output", "done") or getattr(reply, kind).index != index:
                msg = f"{kind or 'an empty reply'} came out of turn; call {index} is not done"
                raise self.channel.broke_rules(msg)
            with self.channel.held_to_rules():
                if kind == "done":
                    self._audit.call(messages_by_port(frames), left, reply.done.counts)
                    self.counts.extend(reply.done.counts)
                    return outputs
                left[reply.output.port] += self._audit.output(reply.output).count
            outputs.append(reply.output)
