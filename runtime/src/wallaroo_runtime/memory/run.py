"""Runs an application in this process: processes messages, and gives outputs, states and dead letters."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from wallaroo.diagnostic.diagnostic import shown
from wallaroo.message.frame import FRAMED, PLAIN, FrameHeader, write_frame
from wallaroo.message.kafka_record import KafkaRecord
from wallaroo.message.key import readable
from wallaroo.message.memory_message import DeadLetter, Message, Record
from wallaroo.message.memory_topic import using
from wallaroo.worker._proto import worker_pb2 as pb
from wallaroo.worker.host.call import CallRunner
from wallaroo.worker.value.kafka_record import read_record
from wallaroo_runtime.errors import USAGE, RunError
from wallaroo_runtime.gateway.framing import Splitter
from wallaroo_runtime.memory.argument import check_payloads, chosen, key_of, refused, unknown
from wallaroo_runtime.memory.engine import BatchResult, Engine
from wallaroo_runtime.memory.local import LocalClient, LocalMaker, LocalSplitter
from wallaroo_runtime.memory.message import Numbering, in_order, runs, with_row_time
from wallaroo_runtime.memory.source_frame import repeat_last_tick, tick_frames, value_frames, visit_frame, wire_frames
from wallaroo_runtime.memory.store import foreign_state, read_states, state_names
from wallaroo_runtime.memory.topic import TopicFeed, written_record
from wallaroo_runtime.plan import Plan
from wallaroo_runtime.storage.outbox.letter_tail import letters_of
from wallaroo_runtime.topology.error_policy import ErrorPolicy
from wallaroo_runtime.topology.model import (
    GeneratorSource,
    KafkaSink,
    Sink,
    Source,
    TcpSource,
    Topology,
    has_records,
)
from wallaroo_runtime.worker.client import WorkerClient
from wallaroo_runtime.worker.idempotent_call import WorkerMaker, WorkerSplitter

FIRST_MS = 1_767_225_600_000  # 2026-01-01: the clock of an application begins here, as `Start` of `wallarootest`
MOST_GENERATED, MOST_BYTES = 4096, 1 << 20  # limits for a micro-batch of generated messages
STATE, VISIT, WHOLE = "state", "visit", "sink of whole records"


class MemoryRun:
    """An application that runs in this process.

    Each call of `send`, `generate` and `advance` is a micro-batch. Its effects are visible when the call returns.

    Args:
        clients: Client of each worker, by its name.
        on_error: `dead_letter` or `fail`, which overrides the application; empty keeps the application's choice.
        closing: Is closed at the end, which ends the workers that were started for the run.
        topics: Directory in which workers that are other processes find the topics; None if there are no such workers.

    Attributes:
        now_ms: The application's clock, in milliseconds since 1970. Only `advance` moves the clock.
        letters: The dead letters since the last `take`; `written_letters` has them as the workers sent them.
        letter_count: Number of dead letters since the start.
        feed: The topics of sources and sinks, with their records.
    """

    def __init__(
        self,
        topology: Topology,
        plan: Plan,
        clients: Mapping[str, LocalClient | WorkerClient],
        *,
        on_error: str = "",
        closing: ExitStack | None = None,
        topics: Path | None = None,
    ) -> None:
        self.topology, self.plan = topology, plan
        self.now_ms, self.letters, self.written_letters = FIRST_MS, list[DeadLetter](), list[pb.DeadLetter]()
        self._clients, self._closing = clients, closing or ExitStack()
        tables = {plan.ports[each.path] for each in topology.kafka_sources() if each.table}
        self._engine = Engine(plan, clients, ErrorPolicy.of(topology, on_error), tables=tables)
        self._records, self.feed = Numbering(), TopicFeed(topology, topics, self._find_lookups)
        self._waiting: list[KafkaRecord] = []  # records that sinks have written and sources have not yet read
        self._sequence = self.letter_count = 0
        self._outputs: dict[str, list[Record]] = {sink.path: [] for sink in topology.sinks()}
        self._generated: dict[str, tuple[bytes | None, int]] = {}
        self._sources = {plan.ports[source.path]: source for source in topology.sources()}

    @property
    def batches(self) -> int:
        """Number of micro-batches that were run."""
        return self._engine.batches

    def close(self) -> None:
        """End the workers of the run."""
        self._closing.close()

    def send(self, messages: Iterable[Any], source: str = "") -> None:
        """Process messages of a source as one micro-batch.

        Args:
            messages: Payloads as bytes, which the source's decoder reads; in Python also objects in place of the
                decoder's results. Either may be in a `Message`, with key and time. A source of whole records also takes
                a `KafkaRecord`; a payload is then the value of a record.
            source: Name of the source, or its position; empty for the only source.

        Raises:
            RunError: R720 if there is no such source, R721 if it does not accept a message, R611 for a dead letter that
                stops the application, or an error of a worker. Then the micro-batch has no effect.
        """
        part = self.source(source)
        if isinstance(messages, bytes | bytearray | memoryview | str) or not isinstance(messages, Iterable):
            raise refused(part, shown(messages), "expected a list of messages", "send([message])")
        items = [with_row_time(part, item if isinstance(item, Message) else Message(item)) for item in messages]
        if has_records(part):
            items = [self._record(part, item) for item in items]
        frames: list[bytes] = []
        with self._restored_on_failure():
            for is_payload, group in runs(items):
                frames += self._frames(part, group, is_payload)
                self._sequence += len(group)
            self._run([frames])
        self._follow()

    def produce(self, records: Iterable[KafkaRecord] | KafkaRecord) -> int:
        """Write records to topics, whose sources read them as one micro-batch. Return the number of records read.

        If sinks write records to topics that sources read, further micro-batches follow until there are no new records.

        Args:
            records: Records with topic, key and value; partition, offset and time may be left out.

        Raises:
            RunError: R721 if an item is not a record, R720 if its topic is misspelt, or one of `send`. A batch that
                fails has no effect.
        """
        written = [records] if isinstance(records, KafkaRecord) else list(records)
        for topic in dict.fromkeys(each.topic for each in written if isinstance(each, KafkaRecord)):
            self.feed.check(topic, is_new=True)
        self._waiting = self.feed.write(written, self.now_ms)
        count = len(self._waiting)
        self._follow()
        return count

    def topic(self, name: str) -> list[KafkaRecord]:
        """Return the records that `produce` and sinks have written to a topic, in order.

        Raises:
            RunError: R720 if the application has no such topic.
        """
        self.feed.check(name, is_new=False)
        return self.feed.topics.records(name)

    def receive(self, source: Source, data: bytes, count: int) -> None:
        """Process whole messages, given as the bytes that TCP delivers.

        Raises:
            RunError: As `send`.
        """
        port, first = self.plan.ports[source.path], self._sequence
        self._run([[write_frame(FrameHeader(port, count, first, 0, FRAMED, self.now_ms), [data])]])
        self._sequence += count
        self._follow()

    def splitter(self, source: TcpSource) -> Splitter:
        """Return the splitter for a source whose framing only its decoder knows."""
        client = self._clients[source.worker]
        if isinstance(client, LocalClient):
            return LocalSplitter(client.calls, source.path, source.max_message_bytes)
        return WorkerSplitter(client.endpoints().connection.target, source.path, source.max_message_bytes)

    def advance(self, milliseconds: int) -> None:
        """Let time pass: run one micro-batch with the ticks that a gateway would write for windows and states.

        Raises:
            RunError: The errors of `send`, T207 if time would go back, and R721 if timers set themselves without end.
        """
        frames = tick_frames(self._sequence, self.now_ms, milliseconds, self.topology.tick_ms())
        with self._restored_on_failure():
            self.now_ms += milliseconds
            fired = self._run([[b"".join(frames)]]).fired if self._engine.has_ticks else 0
        repeat_last_tick(lambda: self._run([[frames[-1]]]).fired if fired else 0, milliseconds)
        self._follow()

    def visit(self, name: str, metadata: bytes | str = b"") -> int:
        """Run a visit as one micro-batch: call the steps' functions for it, once for every key that has state.

        Args:
            name: Name of the visit.
            metadata: Passed to these functions (visitors); a text is passed as UTF-8.

        Returns:
            The number of keys for which a visitor ran; dead letters are included.

        Raises:
            RunError: The errors of `send`, R720 if no step takes the visit, R733 if metadata are no bytes or text.
        """
        if name not in (known := self.topology.visits()):
            raise unknown(VISIT, name, known)
        data = metadata.encode() if isinstance(metadata, str) else metadata
        if not isinstance(data, bytes | bytearray | memoryview):
            reason, fix = f"it cannot take {shown(metadata)}", 'give bytes or a text as metadata, e.g. b"50"'
            raise RunError.of("R733", USAGE, name=name, reason=reason, fix=fix)
        visit = pb.Visit(id=self._sequence, name=name, metadata=bytes(data))
        batch = self._run([[visit_frame(visit.id, self.now_ms, visit)]])
        self._sequence += 1
        self._follow()
        return batch.visits[visit.id]["keys"] if visit.id in batch.visits else 0

    def generate(self, most: int | None = None, source: str = "") -> int:
        """Process the next messages of a generator.

        Args:
            most: Greatest number of messages; None for all until the generator ends.
            source: As for `send`.

        Returns:
            The number of messages.

        Raises:
            RunError: The errors of `send`, R721 if the source is not a generator, R670 if the generator failed.
        """
        part, count, ended = self.source(source), 0, False
        if not isinstance(part, GeneratorSource):
            raise refused(part, "a generator's messages", "messages are sent to it", "use send")
        while not ended and (most is None or count < most):
            wanted = MOST_GENERATED if most is None else min(MOST_GENERATED, most - count)
            previous, encoding = self._generated.get(part.path, (None, 0))
            values, encoding, ended, reason = self._maker(part).make(previous, encoding, wanted, MOST_BYTES)
            if values:
                port, messages = self.plan.ports[part.path], list(map(Message, values))
                frames = value_frames(part, port, messages, self._sequence, now_ms=self.now_ms, encoding=encoding)
                self._run([list(frames)])
                self._generated[part.path] = values[-1], encoding
                self._sequence += len(values)
                count += len(values)
                self._follow()
            if reason:
                raise RunError.of("R670", source=part.name, reason=reason)
        return count

    def records(self, sink: str = "") -> list[Record]:
        """Return the records of a sink so far. Those of one micro-batch are in the order of their source messages.

        Args:
            sink: Name of the sink, or its position; empty for the only sink.

        Raises:
            RunError: R720 if there is no such sink.
        """
        return list(self._outputs[self.sink(sink).path])

    def kafka_records(self, sink: str = "") -> list[KafkaRecord]:
        """Return the records of a sink whose messages are whole records. Arguments and order are as for `records`.

        Raises:
            RunError: R720 if there is no such sink, or its encoder does not make whole records.
        """
        if not has_records(part := self.sink(sink)):
            raise unknown(WHOLE, sink, [each.name for each in self.topology.sinks() if has_records(each)])
        return [read_record(record.value or b"") for record in self._outputs[part.path]]

    def take(self) -> dict[str, list[Record]]:
        """Return the records of all sinks, by path of the sink. Forget outputs and dead letters; keep the states."""
        self.letters, self.written_letters = [], []
        taken, self._outputs = self._outputs, {path: [] for path in self._outputs}
        return taken

    def states(self, name: str) -> dict[str | bytes, Any]:
        """Return the committed states of all keys: objects if a Python program wrote them, else bytes or Goka states.

        Raises:
            RunError: R720 if there is no such state.
        """
        calls = self._state_calls(name)
        states = read_states(self.plan, self._engine.store, name).items()
        return {readable(key): calls.state(*state) if calls else foreign_state(state[1]) for key, state in states}

    def state(self, name: str, key: Any) -> Any:
        """Return the state of a key, in the form that `states` returns; None if the key has no state."""
        calls = self._state_calls(name)
        value = read_states(self.plan, self._engine.store, name).get(key_of(key))
        if value is None:
            return None
        return calls.state(*value) if calls else foreign_state(value[1])

    def source(self, name: str) -> Source:
        """Return the source with a name, or at a position."""
        return chosen("source", list(self.topology.sources()), name)

    def sink(self, name: str) -> Sink:
        """Return the sink with a name, or at a position."""
        return chosen("sink", list(self.topology.sinks()), name)

    def _frames(self, source: Source, messages: Sequence[Message], is_payload: bool) -> Iterator[bytes]:
        port = self.plan.ports[source.path]
        if isinstance(source, GeneratorSource):
            raise refused(source, shown(messages[0].value), "it makes its messages itself", "use generate")
        if is_payload and type(source) is TcpSource:
            payloads = check_payloads(source, messages, self.splitter)
            return wire_frames(source, port, payloads, self._sequence, now_ms=self.now_ms)
        if is_payload:
            return value_frames(source, port, messages, self._sequence, now_ms=self.now_ms, encoding=PLAIN)
        calls = self._calls(source.worker)
        if calls is None:
            fix = "send what its decoder reads, as bytes"
            raise refused(source, shown(messages[0].value), "its program does not run in this process", fix)
        try:
            written = [calls.message_bytes(message.value) for message in messages]
        except Exception as error:
            fix = "send what can be pickled: messages travel between processes"
            raise refused(source, shown(messages[0].value), f"{type(error).__name__}: {error}", fix) from error
        values = [Message(data, each.key, each.time_ms) for each, (_, data) in zip(messages, written, strict=True)]
        return value_frames(source, port, values, self._sequence, now_ms=self.now_ms, encoding=written[0][0])

    def _record(self, source: Source, message: Message) -> Message:
        try:
            return self._records.record(source, message, self.now_ms)
        except (TypeError, ValueError) as error:
            fix = "give it attributes of the types that KafkaRecord names"
            raise refused(source, shown(message.value), str(error), fix) from error

    def _maker(self, source: GeneratorSource) -> WorkerMaker:
        client = self._clients[source.worker]
        if isinstance(client, LocalClient):
            return LocalMaker(client.calls, source.path)
        return WorkerMaker(client.endpoints().connection.target, source.path)

    def _follow(self) -> None:
        """Process the records that sinks have written to topics, until sources have read all records."""
        while self._waiting:
            written, self._waiting = self._waiting, []
            tasks: list[list[bytes]] = []
            with self._restored_on_failure():
                for source, messages in self.feed.messages(written):
                    tasks.append(list(self._frames(source, messages, is_payload=True)))
                    self._sequence += len(messages)
                self._run(tasks)

    @contextmanager
    def _restored_on_failure(self) -> Iterator[None]:
        before = self._sequence, self.now_ms
        try:
            yield
        except BaseException:  # a micro-batch that fails has no effect
            self._sequence, self.now_ms = before
            raise

    def _run(self, tasks: list[list[bytes]]) -> BatchResult:
        """Run one micro-batch. Later, `_follow` processes the records that its sinks have written to topics."""
        with using(self.feed.topics):
            batch = self._engine.run(tasks)
        for sink in self.topology.sinks():
            records = list(in_order(batch, self.plan.ports[sink.path]))
            self._outputs[sink.path] += records
            if isinstance(sink, KafkaSink):
                self._waiting += self.feed.write((written_record(sink, each) for each in records), self.now_ms)
        letters = sorted(letters_of(batch.letters), key=lambda letter: letter.sequence)
        self.written_letters += letters
        self.letters += map(self._letter, letters)
        self.letter_count += len(letters)
        return batch

    def _letter(self, letter: pb.DeadLetter) -> DeadLetter:
        source = self._sources.get(letter.port)
        calls = self._calls(next(each for each in self.topology.parts() if each.path == letter.path).worker)
        return DeadLetter(
            step=letter.step,
            code=letter.code,
            error=letter.error,
            message=calls.message(letter.encoding, letter.input) if calls else letter.input,
            key=readable(letter.key) if letter.has_key else None,
            source=source.name if source else "",
            sequence=min(letter.sequence, self._sequence),  # the ticks of one `advance` have later sequences
            traceback=letter.traceback,
        )

    def _find_lookups(self) -> None:
        """Start the workers that run in other processes. Each reports at its start the topics that it looks up."""
        for client in self._clients.values():
            if isinstance(client, WorkerClient):
                client.endpoints()

    def _calls(self, worker: str) -> CallRunner | None:
        """Return the object that calls a worker in this process; None if the worker runs in another process."""
        client = self._clients[worker]
        return client.calls if isinstance(client, LocalClient) else None

    def _state_calls(self, name: str) -> CallRunner | None:
        for stage in self.plan.stages:
            if any(node.state == name for node in stage.nodes if node.state):
                return self._calls(stage.worker)
        raise unknown(STATE, name, state_names(self.plan))
