"""An egress on its own: `wallaroo egress` takes output from executors and delivers it."""

import re
import secrets
import shutil
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import grpc

from wallaroo.frame import DEAD_LETTER_PORT, FrameError, split_frames
from wallaroo_runtime.durable.file import replace_file
from wallaroo_runtime.egress.config import EgressConfig, SinkConfig
from wallaroo_runtime.egress.sender import Sender
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.service._proto import service_pb2 as pb
from wallaroo_runtime.service._proto.service_pb2_grpc import OutboxServiceServicer
from wallaroo_runtime.service.chunk import Joiner, chunks
from wallaroo_runtime.service.server import answering
from wallaroo_runtime.service.store import Store
from wallaroo_runtime.storage.outbox.check import check_outbox
from wallaroo_runtime.storage.outbox.outbox import Outbox
from wallaroo_runtime.storage.outbox.position import undelivered
from wallaroo_runtime.storage.outbox.staging import StagedFile, StagingWriter
from wallaroo_runtime.storage.remote_staging import staged_message
from wallaroo_runtime.system.lock import lock_directory

STOP_S = 30.0
MAX_SINKS = 1000
_QUERY = re.compile(r"[A-Za-z0-9._-]{1,100}")
_NAME = re.compile(r"[A-Za-z0-9._-]{1,200}\.frames")
_FOLDERS = ("outbox", "dead-letters", "staging")


class EgressHost:
    """Keeps an outbox and delivers it for the latest driver that has attached; after a restart at once.

    Staged files lie in a directory of their epoch, so that what tasks of an earlier driver still write is out
    of the way.

    Args:
        directory: `outbox`, `dead-letters` and `staging` in it hold what they are called.
        address: Where it serves, for errors.

    Attributes:
        ended: Set when nothing can be delivered from now on; the process is to end.

    Raises:
        RunError: R610, another process has the directory; R616 or R620 of what is in it.
    """

    def __init__(self, directory: Path, address: str) -> None:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._directory = directory
        self._lock_file = lock_directory(directory)
        self.store = Store(directory, "egress", address)
        self.ended = threading.Event()
        self.lock = threading.Lock()
        self._sender: Sender | None = None
        self._thread: threading.Thread | None = None
        self._make()
        self.outbox = self._open()
        if self.store.attachment.config:
            self._start(self.store.attachment.config)

    def _make(self) -> None:
        for name in _FOLDERS:
            (self._directory / name).mkdir(mode=0o700, exist_ok=True)
        if not (self._directory / "id").exists():
            replace_file(self._directory / "id", secrets.token_hex(8).encode(), durable=True)

    def _open(self) -> Outbox:
        sinks = self.store.attachment.config.get("sinks", ())
        ports = {sink["port"] for sink in sinks} if self.store.attachment.config else None
        check_outbox(self._directory / "outbox", ports or ())
        return Outbox(self._directory / "outbox", self._directory / "dead-letters", ports=ports)

    def staging(self, epoch: int) -> Path:
        """Return where the files of an epoch are staged."""
        return self._directory / "staging" / str(epoch)

    def attach(self, driver: pb.Driver, config: Mapping[str, Any]) -> pb.AttachReply:
        """Serve a driver: deliver to its sinks, or go on when nothing has changed; staged files of others go."""
        with self.lock:
            before = self.store.attachment
            attachment, is_cleared = self.store.admit(driver, self.id(), config)
            if is_cleared or before.config != attachment.config or self._thread is None:
                self._stop()
                if is_cleared:
                    self._clear()
                self._start(attachment.config)
            self.store.save(attachment)
            self.outbox = self._open()
            for folder in (self._directory / "staging").iterdir():
                if folder.name != str(attachment.epoch):
                    shutil.rmtree(folder, ignore_errors=True)
            self.staging(attachment.epoch).mkdir(mode=0o700, exist_ok=True)
            last = self.outbox.last()
            return pb.AttachReply(
                epoch=attachment.epoch, store=self.id(), query=last.query, batch=last.batch, offsets=last.offsets
            )

    def id(self) -> str:
        """Return the id of the outbox."""
        return (self._directory / "id").read_text(encoding="ascii").strip()

    def _clear(self) -> None:
        for name in _FOLDERS:
            shutil.rmtree(self._directory / name)
        (self._directory / "id").unlink()
        self._make()

    def _start(self, config: Mapping[str, Any]) -> None:
        sinks = tuple(SinkConfig(**sink) for sink in config["sinks"])
        status = self._directory / "egress.json"
        wanted = EgressConfig(self._directory / "outbox", status, sinks, resend_bytes=config["resend_bytes"])
        self._sender = Sender(wanted)
        self._thread = threading.Thread(target=self._run, args=(self._sender,), name="egress", daemon=True)
        self._thread.start()

    def _run(self, sender: Sender) -> None:
        try:
            sender.run()
        except (OSError, RunError):
            self.ended.set()  # it has said why in its status and on stderr

    def _stop(self) -> None:
        if self._sender is not None and self._thread is not None:
            self._sender.stop()
            self._thread.join(STOP_S)
        self._sender = self._thread = None

    def close(self) -> None:
        """End the egress; it delivers what it can for some seconds."""
        with self.lock:
            self._stop()

    def status(self) -> str:
        """Return what the egress says of itself; not from its file, which a full disk does not take."""
        sender = self._sender
        return sender.status.text if sender is not None else "{}"


class OutboxServicer(OutboxServiceServicer):
    """The service, over a host."""

    def __init__(self, host: EgressHost) -> None:
        self._host = host

    @answering
    def Attach(self, request: pb.AttachOutboxRequest, context: grpc.ServicerContext) -> pb.AttachReply:  # noqa: N802
        """Serve a driver."""
        sinks = [
            {"port": sink.port, "name": sink.name, "host": sink.host, "tcp_port": sink.tcp_port}
            | ({"cookie": sink.cookie} if sink.HasField("cookie") else {})
            for sink in request.sinks
        ]
        if len(sinks) > MAX_SINKS or any(not sink.host or not 0 < sink.tcp_port <= 65535 for sink in request.sinks):
            raise self._refused(reason="sinks that cannot be")
        sources = [
            {"port": source.port, "path": source.path, "name": source.name, "framing": source.framing}
            for source in request.sources[:MAX_SINKS]
        ]
        config = {"sinks": sinks, "resend_bytes": request.resend_bytes, "sources": sources}
        return self._host.attach(request.driver, config)

    @answering
    def Stage(  # noqa: N802
        self, request_iterator: Iterator[pb.StageRequest], context: grpc.ServicerContext
    ) -> pb.StageReply:
        """Write the output of an attempt; a stream that breaks leaves nothing."""
        attempt = next(request_iterator, pb.StageRequest()).attempt
        self._host.store.check(attempt.epoch)
        if not _QUERY.fullmatch(attempt.query):
            raise self._refused(reason=f"query {attempt.query[:100]!r} cannot be part of a file name")
        writer = StagingWriter(
            self._host.staging(attempt.epoch),
            attempt.query,
            attempt.batch,
            attempt.partition,
            attempt.stage_attempt,
            attempt.task_attempt,
        )
        try:
            self._write(request_iterator, writer, attempt.epoch)
            files = writer.finish()
        except FrameError as error:
            writer.abort()
            raise self._refused(reason=f"what came is no frame; {error}") from error
        except BaseException:
            writer.abort()
            raise
        return pb.StageReply(files=[staged_message(_named(file)) for file in files])

    def _write(self, requests: Iterator[pb.StageRequest], writer: StagingWriter, epoch: int) -> None:
        joiners: dict[int, Joiner] = {}
        for request in requests:
            self._host.store.check(epoch)
            try:
                data = joiners.setdefault(request.port, Joiner()).take(request.chunk)
            except ValueError as error:
                raise self._refused(str(error)) from error
            for header, start, end in split_frames(data) if data else ():
                if header.port != request.port:
                    raise self._refused(reason=f"a frame of port {header.port} came for port {request.port}")
                assert data is not None
                writer.write(request.port, data[start:end])
        if not all(joiner.is_whole for joiner in joiners.values()):
            raise self._refused(reason="a stream ended within a frame")

    @answering
    def Publish(self, request: pb.PublishRequest, context: grpc.ServicerContext) -> pb.PublishReply:  # noqa: N802
        """Make a micro-batch count, once."""
        if not _QUERY.fullmatch(request.query):
            raise self._refused(reason=f"query {request.query[:100]!r} cannot be part of a file name")
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
        """Send a staged file of dead letters."""
        self._host.store.check(request.epoch)
        file = self._located(request.file, request.epoch)
        if file.port != DEAD_LETTER_PORT:
            raise self._refused(reason=f"{request.file.name!r} holds no dead letters")
        try:
            data = Path(file.path).read_bytes()
        except FileNotFoundError:
            reason = f"staged file {file.path} is missing"
            raise RunError.of("R620", path=self._host.outbox.directory, reason=reason) from None
        for _, start, end in split_frames(data):
            yield from chunks(data[start:end])

    @answering
    def Status(self, request: pb.StatusRequest, context: grpc.ServicerContext) -> pb.StatusReply:  # noqa: N802
        """Report how it goes."""
        with self._host.lock:
            self._host.store.check_look(request.epoch)
            size = self._host.outbox.size()
            waiting = undelivered(self._host.outbox.directory, set(request.ports)) if request.ports else 0
            store, letters = self._host.id(), self._host.outbox.letters()
        return pb.StatusReply(
            document=self._host.status(),
            backlog_bytes=size,
            waiting_messages=waiting,
            store=store,
            dead_letters=letters,
        )

    def _refused(self, reason: str) -> RunError:
        store = self._host.store
        return RunError.of("R648", service=store.kind, address=store.address, reason=reason)


def _named(file: StagedFile) -> StagedFile:
    return StagedFile(file.port, Path(file.path).name, file.bytes, file.crc32, file.messages, file.partition)
