"""The egress as a service: `wallaroo egress` takes output from executors and delivers it."""

import re
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc

from wallaroo.message.frame import DEAD_LETTER_PORT, FrameError, split_frames
from wallaroo.worker.host.rpc import add_service
from wallaroo_runtime.egress.delivery import Deliveries
from wallaroo_runtime.egress.delivery_stream import DeliveryStream
from wallaroo_runtime.egress.fresh_letter import FreshLetters
from wallaroo_runtime.egress.sender import Sender
from wallaroo_runtime.service._proto import service_pb2 as pb
from wallaroo_runtime.service.attachment import Attachment
from wallaroo_runtime.service.chunk import ChunkJoiner, chunks
from wallaroo_runtime.service.client import SERVICES
from wallaroo_runtime.service.host import Host
from wallaroo_runtime.service.server import answering
from wallaroo_runtime.storage.outbox.check import check_outbox
from wallaroo_runtime.storage.outbox.live import FOLDER, live_segments
from wallaroo_runtime.storage.outbox.live_log import LiveLog
from wallaroo_runtime.storage.outbox.live_state import AttemptWriter
from wallaroo_runtime.storage.outbox.log import damaged
from wallaroo_runtime.storage.outbox.outbox import Outbox
from wallaroo_runtime.storage.outbox.position import undelivered
from wallaroo_runtime.storage.outbox.staging import StagedFile, StagingWriter
from wallaroo_runtime.storage.remote_outbox import staged_message

MAX_SINKS = 1000
_QUERY = re.compile(r"[A-Za-z0-9._-]{1,100}")
_NAME = re.compile(r"[A-Za-z0-9._-]{1,200}\.frames")
_FOLDERS = ("outbox", "dead-letters", "staging")


class EgressHost(Host):
    """Runs an egress (it keeps an outbox and delivers its output) for one driver: the one that attached last.

    Each epoch has a directory for its staged files, so files that tasks of an earlier driver still write do no harm. A
    driver on the same machine writes the files itself, and the egress only delivers them.

    Args:
        directory: Directory of the service; its data are in the folders `outbox`, `dead-letters` and `staging` of the
            directory of the data.
        address: Address of the service, for errors.
        local: Keyword arguments `checkpoint` and `has_driver` of a local egress.

    Raises:
        RunError: As `Host`; R698 if the outbox is damaged.
    """

    request = pb.AttachOutboxRequest

    def __init__(self, directory: Path, address: str, **local: Any) -> None:
        super().__init__("egress", directory, address, **local)
        self._make_folders()
        self._outbox = None if self.is_local else self._open()
        self._deliveries: Deliveries | None = None
        self.fresh_letters = FreshLetters(self.data / "dead-letters")
        if live_segments(self.data / "outbox" / FOLDER):
            self.deliveries()
        self.resume()

    @property
    def outbox(self) -> Outbox:
        """The outbox of a remote egress, which publishes output itself. A local egress has none: its driver publishes.

        Raises:
            RunError: R648 if the egress is local.
        """
        if self._outbox is None:
            raise self.store.refused(reason="its driver publishes to the files of the outbox")
        return self._outbox

    def deliveries(self) -> Deliveries:
        """Return the object that takes the output of tasks in real-time mode, before their micro-batch ends.

        If there is no live log (the file of this output), create it. The object wakes the sender, which from now on
        need not poll the outbox.

        Raises:
            RunError: R698 if the log is damaged.
        """
        if self._deliveries is None:
            live = LiveLog(self.data / "outbox", self.data / "dead-letters")
            self._deliveries = Deliveries(live, self.store, self._ports, self._wake)
            self._use_live(self._part)
        if isinstance(self._part, Sender):
            self._part.is_woken = True
        return self._deliveries

    def _ports(self) -> set[int]:
        """Return the ports of the sinks."""
        return {sink["port"] for sink in self.store.attachment.config.get("sinks", ())}

    def _wake(self, port: int) -> None:
        if isinstance(self._part, Sender):
            self._part.wake(port)

    def _use_live(self, part: object) -> None:
        if self._deliveries is not None and isinstance(part, Sender):
            part.use(self._deliveries.live, self._deliveries.latencies)

    def is_full(self) -> bool:
        """Return whether so much output waits in the live log that the egress takes no more."""
        limit = int(self.store.attachment.config.get("backlog_bytes", 0))
        return bool(limit) and self.waiting_bytes() >= limit

    def published(self) -> Counter[int]:
        """Return the number of messages published since the outbox began, by port. Dead letters have port 65535."""
        live = Counter[int]() if self._deliveries is None else self._deliveries.live.state.messages
        return self.outbox.recorded() + live

    def delivered(self) -> int:
        """Return the sequence of the last message whose result or dead letter is in the live log; -1 if none is."""
        if self._deliveries is None:
            return -1
        with self._deliveries.lock:
            return self._deliveries.live.state.last

    def waiting_bytes(self) -> int:
        """Return the size of the live log from the first output that some sink has not delivered."""
        return self._part.waiting_bytes() if isinstance(self._part, Sender) else 0

    def _make_folders(self) -> None:
        for name in _FOLDERS:
            (self.data / name).mkdir(mode=0o700, exist_ok=True)
        if not self.id():
            self.store.begin()

    def _open(self) -> Outbox:
        ports = self._ports()
        check_outbox(self.data / "outbox", ports)
        known = ports if self.store.attachment.config else None  # without a configuration no output is removed
        return Outbox(self.data / "outbox", self.data / "dead-letters", ports=known)

    def staging(self, epoch: int) -> Path:
        """Return the directory for the staged files of one driver. `epoch` is the number of this driver."""
        return self.data / "staging" / str(epoch)

    def reply(self, attachment: Attachment) -> pb.AttachReply:
        """Return the reply to a driver that has just attached. Remove the staged files of earlier drivers."""
        if self._deliveries is not None:
            with self._deliveries.lock:
                pass  # the lock waits for a delivery in progress; after it, tasks of an earlier driver are refused
        reply = super().reply(attachment)
        if self.is_local:
            return reply
        self._outbox = self._open()
        self.fresh_letters = FreshLetters(self.data / "dead-letters")
        for folder in (self.data / "staging").iterdir():
            if folder.name != str(attachment.epoch):
                shutil.rmtree(folder, ignore_errors=True)
        self.staging(attachment.epoch).mkdir(mode=0o700, exist_ok=True)
        last = self._outbox.last()
        reply.query, reply.batch, reply.offsets = last.query, last.batch, last.offsets
        return reply

    def id(self) -> str:
        """Return the id of the outbox."""
        return self.store.attachment.store

    def clear(self) -> None:
        """Remove outbox, dead letters and staged files, and begin an empty outbox."""
        if self._deliveries is not None:
            self._deliveries.close()
            self._deliveries = None
        for name in _FOLDERS:
            shutil.rmtree(self.data / name)
        self._make_folders()
        self.store.begin()

    def answer(self, server: grpc.Server) -> None:
        """Add the gRPC methods of the egress to a server."""
        add_service(SERVICES["egress"], OutboxServicer(self), server)

    def make(self, config: pb.AttachOutboxRequest) -> Sender:
        """Make the object that delivers to the sinks of a configuration."""
        sender = Sender(self.data, config)
        self._use_live(sender)
        return sender

    def close(self) -> None:
        """End the delivery to sinks, and sync the live log to disk."""
        super().close()
        if self._deliveries is not None:
            self._deliveries.close()
            self._deliveries = None


class OutboxServicer:
    """Implements the gRPC methods of the egress."""

    def __init__(self, host: EgressHost) -> None:
        self._host, self._refused = host, host.store.refused

    @answering
    def Attach(self, request: pb.AttachOutboxRequest, context: grpc.ServicerContext) -> pb.AttachReply:  # noqa: N802
        """Attach a driver: from now on only its calls are accepted."""
        is_possible = all(sink.host and 0 < sink.tcp_port <= 65535 for sink in request.sinks)
        if max(len(request.sinks), len(request.sources)) > MAX_SINKS or not is_possible:
            raise self._refused(reason="sinks that cannot be")
        return self._host.attach(request)

    @answering
    def Stage(  # noqa: N802
        self, request_iterator: Iterator[pb.StageRequest], context: grpc.ServicerContext
    ) -> pb.StageReply:
        """Write the output of a task attempt to staged files, for `Publish`. If the stream breaks, remove the files."""
        attempt = next(request_iterator, pb.StageRequest()).attempt
        self._host.store.check(attempt.epoch)
        self._check_query(attempt.query)
        writer = StagingWriter(
            self._host.staging(attempt.epoch),
            attempt.query,
            attempt.batch,
            attempt.partition,
            attempt.attempt,
        )
        try:
            self._write(request_iterator, writer, attempt.epoch)
            files = writer.finish()
        except BaseException as error:
            writer.abort()
            if isinstance(error, FrameError):
                raise self._refused(reason=f"what came is no frame; {error}") from error
            raise
        return pb.StageReply(files=[staged_message(file) for file in files])

    def _check_query(self, query: str) -> None:
        if not _QUERY.fullmatch(query):
            raise self._refused(reason=f"query {query[:100]!r} cannot be part of a file name")

    def _write(self, requests: Iterator[pb.StageRequest], writer: StagingWriter, epoch: int) -> None:
        joiners: dict[int, ChunkJoiner] = {}
        is_whole = False
        for request in requests:
            self._host.store.check(epoch)
            is_whole = request.is_last
            if is_whole:
                continue
            try:
                data = joiners.setdefault(request.port, ChunkJoiner()).take(request.chunk)
            except ValueError as error:
                raise self._refused(str(error)) from error
            for header, start, end in split_frames(data) if data else ():
                if header.port != request.port:
                    raise self._refused(reason=f"a frame of port {header.port} came for port {request.port}")
                assert data is not None
                writer.write(request.port, data[start:end])
        if not is_whole or not all(joiner.is_whole for joiner in joiners.values()):
            raise self._refused(reason="a stream ended within a frame, or without its last request")

    @answering
    def Publish(self, request: pb.PublishRequest, context: grpc.ServicerContext) -> pb.PublishReply:  # noqa: N802
        """Move the staged files of a micro-batch to the outbox, unless the micro-batch was published before."""
        self._check_query(request.query)
        files = [self._located(file, request.epoch) for file in request.files]
        with self._host.lock:
            self._host.store.check(request.epoch)
            is_new = self._host.outbox.publish(request.query, request.batch, files, request.offsets)
        return pb.PublishReply(is_new=is_new)

    def _located(self, file: pb.StagedFile, epoch: int) -> StagedFile:
        if not _NAME.fullmatch(file.name):
            raise self._refused(reason=f"{file.name[:100]!r} is no staged file")
        path = self._host.staging(epoch) / file.name
        return StagedFile(file.port, str(path), file.bytes, file.crc32, file.messages, file.partition)

    @answering
    def ReadStaged(self, request: pb.ReadStagedRequest, context: grpc.ServicerContext) -> Iterator[pb.Chunk]:  # noqa: N802
        """Send a staged file of dead letters, which the driver reports to the user and counts."""
        self._host.store.check(request.epoch)
        file = self._located(request.file, request.epoch)
        if file.port != DEAD_LETTER_PORT:
            raise self._refused(reason=f"{request.file.name!r} holds no dead letters")
        try:
            data = Path(file.path).read_bytes()
        except FileNotFoundError:
            raise damaged(self._host.outbox.directory, f"staged file {file.path} is missing") from None
        for _, start, end in split_frames(data):
            yield from chunks(data[start:end])

    @answering
    def Deliver(  # noqa: N802
        self, request_iterator: Iterator[pb.DeliverRequest], context: grpc.ServicerContext
    ) -> Iterator[pb.DeliverReply]:
        """Take output of a task in real-time mode, and wake the sinks. Reply when the output is safe on disk."""
        opening = next(request_iterator, pb.DeliverRequest()).opening
        self._check_query(opening.query)
        writer = AttemptWriter(opening.epoch, opening.query, opening.batch, opening.partition, opening.attempt)
        with self._host.lock:
            deliveries = self._host.deliveries()
        stream = DeliveryStream(deliveries.open(writer), self._host.is_full, deliveries.live)
        try:
            yield from (pb.DeliverReply(number=number) for number in stream.numbers(request_iterator))
        finally:
            if deliveries.live.fault is not None:
                self._host.ended.set()  # the process ends, and the next process reads the log from the disk

    @answering
    def Status(self, request: pb.StatusRequest, context: grpc.ServicerContext) -> pb.StatusReply:  # noqa: N802
        """Return status and counts. If the request has the number of a dead letter, also return later dead letters."""
        with self._host.lock:
            self._host.store.check_look(request.epoch)
            if self._host.is_local:  # a local driver reads the files itself; it calls only if there is no status file
                return pb.StatusReply(document=self._host.status())
            asks_letters = request.HasField("known_letter")
            last, letters = self._host.fresh_letters.after(request.known_letter) if asks_letters else (0, [])
            size = self._host.outbox.size() + self._host.waiting_bytes()
            waiting = undelivered(self._host.outbox.directory, set(request.ports)) if request.ports else 0
            store, published = self._host.id(), self._host.published()
            delivered = self._host.delivered() if request.HasField("offset") else None
        return pb.StatusReply(
            document="" if asks_letters else self._host.status(),  # an egress that ends waits until its status is read
            backlog_bytes=size,
            waiting_messages=waiting,
            store=store,
            dead_letters=published.pop(DEAD_LETTER_PORT, 0),
            published=published.total(),
            delivered=delivered,
            last_letter=last,
            letters=letters,
        )
