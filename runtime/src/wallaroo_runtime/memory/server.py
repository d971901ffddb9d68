"""Serves an application over TCP, in one process and without recovery (`wallaroo run --engine memory`)."""

import asyncio
import socket
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from wallaroo.diagnostic.diagnostic import Diagnostic, DiagnosticError
from wallaroo.message.kafka_record import KafkaRecord
from wallaroo.worker._proto import worker_pb2
from wallaroo_runtime.errors import TOPOLOGY, USAGE, RunError
from wallaroo_runtime.gateway.clock import Clock
from wallaroo_runtime.gateway.connection import EOF, RESET, listen, real_address, too_large, within_message
from wallaroo_runtime.gateway.framing import NEWLINE, Cutter, fixed_cutter, splitter_cut
from wallaroo_runtime.memory.receiver import Receiver
from wallaroo_runtime.memory.run import MemoryRun
from wallaroo_runtime.memory.topic import written_record
from wallaroo_runtime.service._proto import service_pb2 as pb
from wallaroo_runtime.topology.model import (
    GeneratorSource,
    KafkaSink,
    KafkaSource,
    Part,
    Sink,
    Source,
    SparkSink,
    TcpSink,
    TcpSource,
    Topology,
)

TEST_KITS = {"python": "wallaroo.testing", "go": "wallarootest"}
NOOP = "noop"
READ_BYTES = 256 * 1024
TURN_S = 0.1  # between two calls of `turn`, which moves clock and generators
GENERATED = 1000  # messages of a generator in one turn
PENDING_BYTES = 64 * 1024 * 1024  # sources pause while more bytes wait for receivers
FINISH_S = 2.0


def ignore(record: KafkaRecord | Sequence[worker_pb2.DeadLetter]) -> None:
    """Do nothing with the argument, as the default of callbacks."""


class MemoryServer:
    """Serves an application: takes messages over TCP, processes them at once, and sends the output to receivers.

    Records of topics come through `produce`.

    Args:
        say: Is called with each finding.
        show: Is called with each record that a sink has written to a topic.
        bury: Is called with dead letters.

    Attributes:
        is_over: Whether the server processes no further messages.
        emitted: Number of messages for sinks so far.
        began: Monotonic time of the start.
    """

    def __init__(
        self,
        run: MemoryRun,
        say: Callable[[Diagnostic], None],
        show: Callable[[KafkaRecord], None] = ignore,
        bury: Callable[[Sequence[worker_pb2.DeadLetter]], None] = ignore,
    ) -> None:
        check_served(run.topology)
        self.run, self._say, self._show, self._bury = run, say, show, bury
        self._topics = {end.path: end for end in run.topology.sinks() if isinstance(end, KafkaSink)}
        self.received = self.emitted = 0
        self.began = self._received_at = time.monotonic()
        self.failure: RunError | None = None
        self.is_over = False
        self._receivers: dict[str, Receiver] = {}
        self._checked: set[str] = set()  # names of topics
        self._clock = Clock()
        self._tasks: list[asyncio.Task[None]] = []
        self._servers: list[asyncio.Server] = []
        sources = enumerate(run.topology.sources())
        self._generators = [str(at) for at, source in sources if isinstance(source, GeneratorSource)]

    @property
    def pending(self) -> int:
        """Number of bytes that wait for receivers."""
        return sum(len(receiver.pending) for receiver in self._receivers.values())

    @property
    def unsent(self) -> dict[str, int]:
        """Number of messages that wait for receivers, by name of the sink."""
        return {each.sink.name: each.waiting for each in self._receivers.values() if each.waiting}

    @property
    def active_at(self) -> float:
        """Monotonic time when a source last took a message, or a receiver last took output."""
        return max(self._received_at, *(each.sent_at for each in self._receivers.values()), 0.0)

    async def start(self) -> list[tuple[str, str]]:
        """Listen, and connect to receivers. Return name and address of each source that listens.

        Raises:
            RunError: R714 if an address cannot be used.
        """
        for sink in self.run.topology.tcp_sinks():
            receiver = self._receivers[sink.path] = Receiver(sink, self._say)
            self._tasks.append(asyncio.create_task(receiver.run()))
        return [await self._listen(part) for part in self.run.topology.sources() if isinstance(part, TcpSource)]

    async def turn(self) -> None:
        """Let time pass, and let generators make messages. The caller repeats this."""
        self._do(lambda: self.run.advance(max(0, self._clock.now_ms() - self.run.now_ms)))
        for source in list(self._generators) if self.pending < PENDING_BYTES else []:
            self._do(lambda source=source: self._generate(source))  # type: ignore[misc]
        await asyncio.sleep(0 if self._generators else TURN_S)

    def produce(self, records: list[KafkaRecord]) -> None:
        """Process records of topics. Records of a misspelt topic are left out, and the topic is reported."""
        for topic in dict.fromkeys(record.topic for record in records):
            if not self._do(partial(self._check, topic), may_be_wrong=True):
                records = [record for record in records if record.topic != topic]
        if records:
            self._do(lambda: self._produce(records), may_be_wrong=True)

    def _check(self, topic: str) -> None:
        self.run.feed.check(topic, is_new=True)
        if topic not in self._checked and (finding := self.run.feed.unread(topic)):
            self._say(finding)
        self._checked.add(topic)

    def _produce(self, records: list[KafkaRecord]) -> None:
        self._received(self.run.produce(records))

    def visit(self, name: str, metadata: str) -> None:
        """Run a visit (`MemoryRun.visit`). An unknown visit is reported."""
        self._do(lambda: self.run.visit(name, metadata), may_be_wrong=True)

    def refuse(self) -> None:
        """From now on, process no messages, e.g. after an error."""
        self.is_over = True

    async def stop(self) -> None:
        """Stop listening, and wait a moment until receivers have taken the waiting messages."""
        for server in self._servers:
            server.close()
        deadline = time.monotonic() + FINISH_S
        while self.pending and time.monotonic() < deadline:
            await asyncio.sleep(TURN_S / 10)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _listen(self, source: TcpSource) -> tuple[str, str]:
        config = pb.Source(
            name=source.name,
            host=source.host,
            tcp_port=source.port,
            framing=source.framing.kind,
            max_message_bytes=source.max_message_bytes,
        )
        listener = listen(config)
        cut = self._cutter(source)

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            self._tasks.append(task := asyncio.ensure_future(self._take(source, config, cut, reader, writer)))
            await asyncio.wait([task])
            self._tasks.remove(task)

        self._servers.append(await asyncio.start_server(serve, sock=listener))
        return source.name, str(real_address(config, listener)["address"])

    def _cutter(self, source: TcpSource) -> Cutter:
        if source.framing.kind != "worker":
            return fixed_cutter(source.framing.kind, source.max_message_bytes)
        splitter = self.run.splitter(source)
        header = source.framing.header_bytes
        return lambda data, size: splitter_cut(splitter, bytes(data), header, source.max_message_bytes)

    async def _take(
        self,
        source: TcpSource,
        config: pb.Source,
        cut: Cutter,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        peer = ":".join(map(str, writer.get_extra_info("peername")[:2]))
        tail, connection = b"", writer.get_extra_info("socket")
        # As in the gateway, EOF means that all messages were taken, so a connection that closes otherwise is reset.
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        try:
            while data := await reader.read(READ_BYTES):
                tail += data
                messages = cut(tail, len(tail))
                if messages.count:
                    self._do(lambda part=tail[: messages.end], count=messages.count: self._process(source, part, count))  # type: ignore[misc]
                tail = tail[messages.end :]
                if messages.too_large:
                    self._say(too_large(config, peer, messages.too_large))
                    return
                while self.pending >= PENDING_BYTES:
                    await asyncio.sleep(TURN_S)
            if tail and source.framing.kind == NEWLINE:
                self._do(lambda: self._process(source, tail + b"\n", 1))
            elif tail:
                self._say(within_message(config, peer, len(tail)))
                return
            if not self.is_over:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, EOF)
        except ConnectionError:
            return
        except DiagnosticError as error:  # the decoder has failed to find the ends of messages
            for finding in error.diagnostics:
                self._say(replace(finding, message=f'source "{source.name}", connection {peer}: {finding.message}'))
        except ValueError as error:
            self._say(Diagnostic.of("W410", worker=source.name, reason=str(error)))
        finally:
            writer.close()

    def _process(self, source: Source, data: bytes, count: int) -> None:
        self.run.receive(source, data, count)
        self._received(count)

    def _generate(self, source: str) -> None:
        count = self.run.generate(GENERATED, source)
        self._received(count)
        if count < GENERATED:
            self._generators.remove(source)

    def _received(self, count: int) -> None:
        self.received += count
        self._received_at = time.monotonic()

    def _do(self, action: Callable[[], object], *, may_be_wrong: bool = False) -> bool:
        """Run an action, e.g. a micro-batch, and send its output. An error of the action ends the run.

        Args:
            may_be_wrong: Whether the action depends on a user's input, whose usage errors do not end the run.

        Returns:
            Whether the action has raised no error.
        """
        if self.is_over:
            return False
        is_done = False
        try:
            action()
            is_done = True
        except RunError as error:
            if not (may_be_wrong and error.exit_code == USAGE):
                self.failure = error
                self.refuse()
            for finding in error.diagnostics if self.failure is None else ():
                self._say(finding)
        self._bury(self.run.written_letters)
        for path, records in self.run.take().items():
            self.emitted += len(records)
            if path in self._topics:
                for record in records:
                    self._show(written_record(self._topics[path], record))
            elif records and path in self._receivers:
                self._receivers[path].put(b"".join(record.value or b"" for record in records), len(records))
        return is_done


def check_served(topology: Topology) -> None:
    """Refuse an application with sources or sinks that only a run on Spark can serve.

    Raises:
        RunError: P303 if there are such parts.
    """
    parts: list[Source | Sink] = [*topology.sources(), *topology.sinks()]
    for part in parts:
        is_served = type(part) in (TcpSource, TcpSink) or isinstance(part, GeneratorSource | KafkaSource | KafkaSink)
        # A group without outputs has Spark's sink `noop`.
        if not (is_served or (isinstance(part, SparkSink) and part.place == NOOP)):
            raise not_served(part, f'kind "{part.kind}" with --engine memory', topology.worker(part.worker).language)


def not_served(part: Part, what: str, language: str) -> RunError:
    """Return the error that only a run on Spark can serve a source or sink."""
    kit = TEST_KITS.get(language)
    fix = "run it on Spark" + (f", or give it messages in a test with {kit}" if kit else "")
    return RunError.of("P303", TOPOLOGY, path=part.path, what=what, fix=fix)
