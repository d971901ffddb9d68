"""A gateway on its own: `wallaroo gateway` serves its journal to drivers and executors."""

import shutil
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol

import grpc

from wallaroo_runtime.errors import RunError
from wallaroo_runtime.gateway.config import CONNECTOR, GatewayConfig, GeneratorConfig, SourceConfig
from wallaroo_runtime.gateway.framing import KINDS
from wallaroo_runtime.gateway.gateway import Gateway
from wallaroo_runtime.gateway.worker_calls import worker_maker, worker_splitter
from wallaroo_runtime.service._proto import service_pb2 as pb
from wallaroo_runtime.service._proto.service_pb2_grpc import JournalServiceServicer
from wallaroo_runtime.service.chunk import CHUNK_BYTES, chunks
from wallaroo_runtime.service.server import answering
from wallaroo_runtime.service.store import Store
from wallaroo_runtime.storage.journal.head import Position
from wallaroo_runtime.storage.journal.reader import JournalReader
from wallaroo_runtime.storage.journal.writer import JournalWriter
from wallaroo_runtime.system.lock import lock_directory

STOP_S = 30.0
MAX_SOURCES = 1000
MAX_PARTS = 100_000
WORKER = "worker"


class Workers(Protocol):
    """Workers of an archive that run next to the gateway.

    Attributes:
        digest: SHA-256 of the archive, in hexadecimal.
        names: Of the workers.
    """

    digest: str
    names: frozenset[str]

    def target(self, name: str) -> str:
        """Return the gRPC target of a worker; it is started when it is not there yet."""


class GatewayHost:
    """Runs a gateway for the latest driver that has attached; after a restart at once, with the same sources.

    Args:
        directory: `journal` in it is the journal.
        address: Where it serves, for errors.
        workers: Cut and make messages; None: there are none.

    Attributes:
        ended: Set when the gateway cannot go on; the process is to end.

    Raises:
        RunError: R610, another process has the directory; R612, R616 or R619 of what is in it; R601.
    """

    def __init__(self, directory: Path, address: str, workers: Workers | None = None) -> None:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._directory, self._workers = directory, workers
        self._lock_file = lock_directory(directory)
        self.store = Store(directory, "gateway", address)
        self.journal = directory / "journal"
        self.ended = threading.Event()
        self.lock = threading.Lock()
        self._gateway: Gateway | None = None
        self._thread: threading.Thread | None = None
        if not (self.journal / "head").exists():
            JournalWriter(self.journal).close()
        config = self.store.attachment.config
        # With another archive it waits for the driver that runs it.
        if config and self._fault(config) is None:
            self._start(config)

    def attach(self, driver: pb.Driver, config: Mapping[str, Any]) -> pb.AttachReply:
        """Serve a driver: listen as it says, or go on when nothing has changed."""
        with self.lock:
            if (fault := self._fault(config)) is not None:
                raise fault
            before = self.store.attachment
            attachment, is_cleared = self.store.admit(driver, self._journal_id(), config)
            if is_cleared or before.config != attachment.config or self._thread is None:
                self._stop()
                if is_cleared:
                    shutil.rmtree(self.journal)
                    JournalWriter(self.journal).close()
                self._replace(attachment.config, {} if is_cleared else before.config)
            self.store.save(attachment)
            return pb.AttachReply(epoch=attachment.epoch, store=self._journal_id())

    def _replace(self, config: Mapping[str, Any], before: Mapping[str, Any]) -> None:
        """Start with `config`; where that fails go on with `before`, for the driver that is still served."""
        try:
            self._start(config)
        except RunError:
            if before and self._fault(before) is None:
                self._start(before)
            raise

    def _fault(self, config: Mapping[str, Any]) -> RunError | None:
        """Return why the sources of a driver cannot be served here."""
        asking = [source for source in config["sources"] if source["framing"]["kind"] == WORKER]
        asking += config.get("generators", ())
        if not asking:
            return None
        if self._workers is None:
            return RunError.of("R647", source=asking[0]["name"])
        actual, expected = self._workers.digest, config["archive"] or "a program that is not packed"
        if actual != expected:
            return RunError.of("R680", address=self.store.address, actual=actual, expected=expected)
        for part in asking:
            worker = part.get("framing", part)["worker"]
            if worker not in self._workers.names:
                return self.store.refused(reason=f"the archive has no worker {worker[:40]!r}")
        return None

    def _journal_id(self) -> str:
        return f"{JournalReader(self.journal).end().journal_id:016x}"

    def _start(self, config: Mapping[str, Any]) -> None:
        sources = tuple(SourceConfig(**{**source, "framing": self._found(source)}) for source in config["sources"])
        generators = tuple(
            GeneratorConfig(**{name: each[name] for name in ("port", "path", "name")}, target=self._target(each))
            for each in config.get("generators", ())
        )
        rest = {name: value for name, value in config.items() if name not in ("sources", "generators", "archive")}
        wanted = GatewayConfig(self.journal, self._directory / "gateway.json", sources, generators, **rest)
        self._gateway = Gateway(wanted, worker_splitter, worker_maker)
        self._thread = threading.Thread(target=self._run, args=(self._gateway,), name="gateway", daemon=True)
        self._thread.start()

    def _found(self, source: Mapping[str, Any]) -> dict[str, Any]:
        """Return the framing of a source, with its worker's target."""
        framing = source["framing"]
        return {**framing, "target": self._target(framing)} if framing["kind"] == WORKER else framing

    def _target(self, part: Mapping[str, Any]) -> str:
        assert self._workers is not None
        return self._workers.target(part["worker"])

    def _run(self, gateway: Gateway) -> None:
        try:
            gateway.run()
        except (OSError, RunError):
            self.ended.set()  # it has said why in its status and on stderr

    def _stop(self) -> None:
        if self._gateway is not None and self._thread is not None:
            self._gateway.stop()
            self._thread.join(STOP_S)
        self._gateway = self._thread = None

    def close(self) -> None:
        """End the gateway; what it has taken is safe then."""
        with self.lock:
            self._stop()

    def status(self) -> str:
        """Return what the gateway says of itself; not from its file, which a full disk does not take."""
        gateway = self._gateway
        return gateway.status.text if gateway is not None else "{}"


def _framing(source: pb.Source) -> dict[str, str | int]:
    if source.framing == WORKER:
        return {"kind": WORKER, "header_bytes": source.header_bytes, "worker": source.worker}
    if source.framing != CONNECTOR:
        return {"kind": source.framing}
    connector = source.connector
    settings = {"max_credits": connector.max_credits, "refill_credits": connector.refill_credits}
    return {"kind": CONNECTOR, "cookie": connector.cookie, **settings}


class JournalServicer(JournalServiceServicer):
    """The service, over a host."""

    def __init__(self, host: GatewayHost) -> None:
        self._host = host

    @answering
    def Attach(self, request: pb.AttachJournalRequest, context: grpc.ServicerContext) -> pb.AttachReply:  # noqa: N802
        """Serve a driver."""
        return self._host.attach(request.driver, self._config(request))

    def _config(self, request: pb.AttachJournalRequest) -> dict[str, Any]:
        sources = [
            {
                "port": source.port,
                "path": source.path,
                "name": source.name,
                "host": source.host,
                "tcp_port": source.tcp_port,
                "framing": _framing(source),
                "max_message_bytes": source.max_message_bytes,
            }
            for source in request.sources
        ]
        for source in request.sources:
            is_connector = source.framing == CONNECTOR and source.HasField("connector")
            is_possible = is_connector or source.framing in (*KINDS, WORKER)
            if not is_possible or not source.host or source.tcp_port > 65535:
                raise self._refused(reason=f"source {source.name!r} cannot be")
        generators = [
            {"port": each.port, "path": each.path, "name": each.name, "worker": each.worker}
            for each in request.generators
        ]
        if len(sources) + len(generators) > MAX_SOURCES:
            raise self._refused(reason=f"a driver has {len(sources) + len(generators)} sources")
        config = {
            "sources": sources,
            "generators": generators,
            "archive": request.archive if generators or any(each.framing == WORKER for each in request.sources) else "",
            "fsync": request.fsync,
            "fsync_interval_ms": request.fsync_interval_ms,
            "backlog_bytes": request.backlog_bytes,
            "tick_ms": request.tick_ms,
        }
        if request.fsync not in ("batch", "interval", "never") or not request.backlog_bytes:
            raise self._refused(reason=f"fsync {request.fsync!r} and backlog_bytes {request.backlog_bytes} cannot be")
        return config

    def _refused(self, reason: str) -> RunError:
        return self._host.store.refused(reason)

    def _open(self, request: Any) -> JournalReader:
        self._host.store.check(request.epoch)
        try:
            return JournalReader(self._host.journal, int(request.journal, 16) if request.journal else None)
        except ValueError:
            raise self._refused(reason=f"{request.journal[:40]!r} is no journal's id") from None

    @answering
    def End(self, request: pb.EndRequest, context: grpc.ServicerContext) -> pb.Position:  # noqa: N802
        """Say how far the journal may be read."""
        return position_message(self._open(request).end())

    @answering
    def Limit(self, request: pb.LimitRequest, context: grpc.ServicerContext) -> pb.Position:  # noqa: N802
        """Say where a micro-batch ends."""
        reader = self._open(request)
        end = reader.end()
        self._check_range(request.start, end.offset, reader)
        start = Position(request.start, request.messages, end.journal_id)
        return position_message(reader.limit(start, request.max_bytes))

    @answering
    def Split(self, request: pb.SplitRequest, context: grpc.ServicerContext) -> pb.SplitReply:  # noqa: N802
        """Cut a micro-batch into ranges."""
        reader = self._open(request)
        self._check_range(request.start, request.end, reader)
        parts = min(max(1, request.parts), MAX_PARTS)
        return pb.SplitReply(ends=[part.end for part in reader.split(request.start, request.end, parts)])

    @answering
    def Read(self, request: pb.ReadRequest, context: grpc.ServicerContext) -> Iterator[pb.Chunk]:  # noqa: N802
        """Send a range."""
        reader = self._open(request)
        self._check_range(request.start, request.end, reader)
        for data in reader.read(request.start, request.end, CHUNK_BYTES):
            self._host.store.check(request.epoch)
            yield from chunks(data)

    @answering
    def Commit(self, request: pb.CommitRequest, context: grpc.ServicerContext) -> pb.CommitReply:  # noqa: N802
        """Take note that what comes before is processed."""
        reader = self._open(request)
        self._check_range(0, request.offset, reader)
        reader.commit(request.offset)
        return pb.CommitReply()

    @answering
    def Status(self, request: pb.StatusRequest, context: grpc.ServicerContext) -> pb.StatusReply:  # noqa: N802
        """Report how it goes."""
        self._host.store.check_look(request.epoch)
        end = position_message(JournalReader(self._host.journal).end())
        return pb.StatusReply(document=self._host.status(), end=end, store=end.journal)

    def _check_range(self, start: int, end: int, reader: JournalReader) -> None:
        last = reader.end().offset
        if start > end and start > last or end > last:
            reason = f"it ends there; {max(start, end)} was asked for"
            raise RunError.of("R612", path=self._host.journal, offset=last, reason=reason)


def position_message(position: Position) -> pb.Position:
    """Return a position as it crosses the network."""
    return pb.Position(offset=position.offset, messages=position.messages, journal=f"{position.journal_id:016x}")
