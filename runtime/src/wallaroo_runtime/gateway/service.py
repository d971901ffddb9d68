"""The gateway as a service: `wallaroo gateway` serves its journal to drivers and executors."""

import pkgutil
import shutil
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import grpc

from wallaroo.worker.host.rpc import add_service
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.gateway.config import CONNECTOR, FSYNC_POLICIES, WORKER
from wallaroo_runtime.gateway.framing import KINDS, Splitter
from wallaroo_runtime.gateway.gateway import Gateway
from wallaroo_runtime.gateway.generator import Maker
from wallaroo_runtime.service._proto import service_pb2 as pb
from wallaroo_runtime.service.attachment import Attachment
from wallaroo_runtime.service.chunk import CHUNK_BYTES, chunks
from wallaroo_runtime.service.client import SERVICES
from wallaroo_runtime.service.host import Host
from wallaroo_runtime.service.server import answering
from wallaroo_runtime.storage.journal.head import Position, read_committed
from wallaroo_runtime.storage.journal.reader import JournalReader
from wallaroo_runtime.storage.journal.visit import add_counts, read_visited, read_visits
from wallaroo_runtime.storage.journal.writer import JournalWriter

# Names as text, since this package does not import `worker`.
SPLITTER, MAKER = (f"wallaroo_runtime.worker.idempotent_call:{name}" for name in ("WorkerSplitter", "WorkerMaker"))
MAX_SOURCES = 1000
MAX_PARTS = 100_000


class GatewayHost(Host):
    """Runs a gateway for one driver: the one that attached last.

    Args:
        directory: Directory of the service; the journal is `journal` in the directory of the data.
        address: Address of the service, for errors.
        local: Keyword arguments `checkpoint` and `has_driver` of a local gateway.

    Raises:
        RunError: As `Host`; R698 if the journal is damaged; R714 if an address cannot be used.
    """

    request = pb.AttachJournalRequest

    def __init__(self, directory: Path, address: str, **local: Any) -> None:
        super().__init__("gateway", directory, address, **local)
        self.heads = HeadWatch()
        self._is_ending = False
        self.journal = self.data / "journal"
        if not (self.journal / "head").exists():
            JournalWriter(self.journal).close()
        self.resume()

    def id(self) -> str:
        """Return the id of the journal."""
        return f"{JournalReader(self.journal).end().journal_id:016x}"

    def clear(self) -> None:
        """Remove the journal and begin an empty one."""
        shutil.rmtree(self.journal)
        JournalWriter(self.journal).close()

    def fault(self, config: pb.AttachJournalRequest) -> RunError | None:
        """Return R647 if a source needs a worker, but the driver sent no address of a worker."""
        asking = (*(source for source in config.sources if source.framing == WORKER), *config.generators)
        name = next((part.name for part in asking if not part.target), None)
        return None if name is None else RunError.of("R647", source=name)

    def answer(self, server: grpc.Server) -> None:
        """Add the gRPC methods of the gateway to a server."""
        add_service(SERVICES["gateway"], JournalServicer(self), server)

    def make(self, config: pb.AttachJournalRequest) -> Gateway:
        """Make the gateway, which begins to listen at once."""
        return Gateway(
            self.data, config, worker_splitter, worker_maker, has_driver=self.has_driver, moved=self.heads.move
        )

    def reply(self, attachment: Attachment) -> pb.AttachReply:
        """Return the reply to a driver that has just attached. End the calls of `follow` by earlier drivers."""
        self.heads.wake()
        return super().reply(attachment)

    def release(self) -> None:
        """End the calls that wait for the journal to grow, because the service ends."""
        self._is_ending = True
        self.heads.wake()

    def follow(self, epoch: int, reader: JournalReader, is_open: Callable[[], bool]) -> Iterator[Position]:
        """Yield the end of the journal now, and again whenever the journal has grown, while the caller listens.

        Raises:
            RunError: R644 if another driver has attached; R698 if the journal is damaged.
        """
        sent, version = None, self.heads.version
        safe: Position | None = reader.end()
        while is_open() and not self._is_ending:
            self.store.check(epoch)
            if safe is not None and safe != sent:
                yield (sent := safe)
                continue
            version, safe = self.heads.wait(version)

    def visit(self, name: str, metadata: bytes) -> int:
        """Write a visit (a call of user code for each key of a state) to the journal. Return its id.

        Raises:
            RunError: As `VisitIntake.ask`; R733 if no driver has attached.
        """
        if not isinstance(self._part, Gateway):
            raise RunError.of(
                "R733", name=name, reason="no driver has attached to the gateway", fix="run the application"
            )
        return self._part.visits.ask(name, metadata)


class JournalServicer:
    """Implements the gRPC methods of the gateway."""

    def __init__(self, host: GatewayHost) -> None:
        self._host, self._refused = host, host.store.refused

    @answering
    def Attach(self, request: pb.AttachJournalRequest, context: grpc.ServicerContext) -> pb.AttachReply:  # noqa: N802
        """Attach a driver: from now on only its calls are accepted."""
        for source in request.sources:
            is_connector = source.framing == CONNECTOR and source.HasField("connector")
            is_possible = is_connector or source.framing in (*KINDS, WORKER)
            if not is_possible or not source.host or source.tcp_port > 65535:
                raise self._refused(reason=f"source {source.name!r} cannot be")
        count = len(request.sources) + len(request.generators)
        if count > MAX_SOURCES:
            raise self._refused(reason=f"a driver has {count} sources")
        if request.fsync not in FSYNC_POLICIES or not request.backlog_bytes:
            reason = f"fsync {request.fsync!r} and backlog_bytes {request.backlog_bytes} cannot be"
            raise self._refused(reason)
        return self._host.attach(request)

    def _open(self, request: Any) -> JournalReader:
        self._host.store.check(request.epoch)
        try:
            return JournalReader(self._host.journal, int(request.journal, 16) if request.journal else None)
        except ValueError:
            raise self._refused(reason=f"{request.journal[:40]!r} is no journal's id") from None

    @answering
    def Follow(self, request: pb.ReadRequest, context: grpc.ServicerContext) -> Iterator[pb.Position]:  # noqa: N802
        """Send the position up to which the journal may be read, and send it again whenever it changes."""
        reader = self._open(request)
        context.add_callback(self._host.heads.wake)
        yield from map(position_message, self._host.follow(request.epoch, reader, context.is_active))

    @answering
    def Limit(self, request: pb.LimitRequest, context: grpc.ServicerContext) -> pb.Position:  # noqa: N802
        """Return the position at which the next micro-batch ends: the journal's end, unless its size is limited."""
        reader = self._open(request)
        end = reader.end()
        self._check_range(request.start, end.offset, reader)
        start = Position(request.start, request.messages, end.journal_id)
        return position_message(reader.limit(start, request.max_bytes))

    @answering
    def Split(self, request: pb.SplitRequest, context: grpc.ServicerContext) -> pb.SplitReply:  # noqa: N802
        """Cut the part of the journal for a micro-batch into ranges for tasks."""
        reader = self._open(request)
        self._check_range(request.start, request.end, reader)
        parts = min(max(1, request.parts), MAX_PARTS)
        return pb.SplitReply(ends=reader.split(request.start, request.end, parts))

    @answering
    def Read(self, request: pb.ReadRequest, context: grpc.ServicerContext) -> Iterator[pb.Chunk]:  # noqa: N802
        """Send a range of the journal, or the journal from an offset on, as it grows."""
        reader, at = self._open(request), request.start
        if request.HasField("end"):
            ends: Iterable[int] = [request.end]
        else:
            context.add_callback(self._host.heads.wake)
            ends = (safe.offset for safe in self._host.follow(request.epoch, reader, context.is_active))
        self._check_range(at, request.end or at, reader)
        for end in ends:
            for data in reader.read(at, end, CHUNK_BYTES):
                self._host.store.check(request.epoch)
                at += len(data)
                yield from chunks(data)

    @answering
    def Commit(self, request: pb.CommitRequest, context: grpc.ServicerContext) -> pb.CommitReply:  # noqa: N802
        """Note the counts of the latest visits. Then note up to which position the journal is processed."""
        reader = self._open(request)
        self._check_range(0, request.offset, reader)
        if request.counts or request.done:
            add_counts(self._host.journal, request.counts, request.done)
        reader.commit(request.offset)
        return pb.CommitReply()

    @answering
    def Status(self, request: pb.StatusRequest, context: grpc.ServicerContext) -> pb.StatusReply:  # noqa: N802
        """Return the status and the end of the journal."""
        self._host.store.check_look(request.epoch)
        reader = JournalReader(self._host.journal)
        end = position_message(reader.end())
        sequence = reader.next_sequence(request.offset) if request.HasField("offset") else None
        return pb.StatusReply(document=self._host.status(), end=end, store=end.journal, next_sequence=sequence)

    @answering
    def Visit(self, request: pb.VisitRequest, context: grpc.ServicerContext) -> pb.VisitReply:  # noqa: N802
        """Write a visit to the journal; or, for an earlier visit's id, return its counts, and whether it is done."""
        if not request.id:
            return pb.VisitReply(id=self._host.visit(request.name, request.metadata))
        journal = self._host.journal
        end = read_visits(journal).get(request.id)
        committed = read_committed(journal)  # before the counts, which are written first
        visited = read_visited(journal)
        is_done = end is not None and max(committed, visited.done) >= end
        reply = pb.VisitReply(id=0 if end is None else request.id, done=is_done)
        if request.id in visited.counts:
            reply.count.id = request.id
            reply.count.keys, reply.count.failed = visited.counts[request.id]
        return reply

    def _check_range(self, start: int, end: int, reader: JournalReader) -> None:
        last = reader.end().offset
        if start > end and start > last or end > last:
            reason = f"it ends there; {max(start, end)} was asked for"
            raise RunError.of("R698", what=f"journal {self._host.journal} at offset {last}", reason=reason)


def position_message(position: Position) -> pb.Position:
    """Return a position as a message of the protocol."""
    return pb.Position(offset=position.offset, messages=position.messages, journal=f"{position.journal_id:016x}")


def worker_splitter(config: pb.Source) -> Splitter:
    """Return a splitter that sends a source's bytes to the source's worker, whose decoder cuts them into messages."""
    splitter: Splitter = pkgutil.resolve_name(SPLITTER)(config.target, config.path, config.max_message_bytes)
    return splitter


def worker_maker(config: pb.Generator) -> Maker:
    """Return a `Maker` that gets the messages of a generator source from the source's worker."""
    maker: Maker = pkgutil.resolve_name(MAKER)(config.target, config.path)
    return maker


class HeadWatch:
    """Notifies waiting threads when the journal's readable end moves. A slow thread gets only the latest position.

    Attributes:
        version: A number that changes with each call of `move` or `wake`.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._safe: Position | None = None
        self.version = 0

    def move(self, safe: Position) -> None:
        """Wake the waiting threads: the journal may now be read up to `safe`. Any thread may call this."""
        with self._changed:
            self._safe = safe
            self._turn()

    def wake(self) -> None:
        """Wake all waiting threads, which then check whether to go on, e.g. after another driver has attached."""
        with self._changed:
            self._turn()

    def _turn(self) -> None:
        self.version += 1
        self._changed.notify_all()

    def wait(self, version: int) -> tuple[int, Position | None]:
        """Wait until the version differs from `version`. Return the version and the journal's readable end."""
        with self._changed:
            self._changed.wait_for(lambda: self.version != version)
            return self.version, self._safe
