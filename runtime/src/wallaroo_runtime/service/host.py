"""Declares the host of a gateway or an egress, which serves one driver at a time."""

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

import grpc
from google.protobuf import json_format

from wallaroo_runtime.errors import RunError
from wallaroo_runtime.service._proto import service_pb2 as pb
from wallaroo_runtime.service.attachment import Attachment, AttachmentStore, Config
from wallaroo_runtime.service.status import StatusFile
from wallaroo_runtime.system.lock import lock_directory

STOP_S = 30.0
HEARD_S = 2.0  # limit for the wait until a driver asks for the status, which it does ten times a second


class ServicePart(Protocol):
    """The gateway or egress that a `Host` runs."""

    status: StatusFile

    def run(self) -> None:
        """Work until stopped. If it cannot go on, report the reason in the status and raise RunError or OSError."""

    def stop(self) -> None:
        """Make `run` end."""


class Host(ABC):
    """Runs a gateway or an egress for the latest driver that has attached.

    A remote service goes on at once after a restart. A local service waits until its driver attaches again.

    Args:
        kind: `gateway` or `egress`.
        directory: Directory of the service.
        address: Address of the service, for errors.
        checkpoint: Directory with the data of a local service, which driver and tasks use, too. None if the service is
            remote and its data are in `directory`.
        has_driver: Returns whether a driver is alive.

    Attributes:
        data: The directory with the data.
        is_local: Whether driver and tasks use the files themselves.
        ended: Set when the service cannot go on, so that the process must end.

    Raises:
        RunError: R610 if another process uses the directory; R698 if the record of the latest driver is damaged.
    """

    request: Callable[[], Any]  # type of the message that attaches a driver

    def __init__(
        self,
        kind: str,
        directory: Path,
        address: str,
        checkpoint: Path | None = None,
        has_driver: Callable[[], bool] = lambda: True,
    ) -> None:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.lock_file = lock_directory(directory)
        self.store = AttachmentStore(directory, kind, address, keeps_parts=checkpoint is None)
        self.data, self.is_local, self.has_driver = checkpoint or directory, checkpoint is not None, has_driver
        self.ended = threading.Event()
        self.lock = threading.Lock()
        self._part: ServicePart | None = None
        self._last: ServicePart | None = None
        self._is_closed, self._heard = False, threading.Event()
        self._thread: threading.Thread | None = None

    @abstractmethod
    def id(self) -> str:
        """Return the id of the journal or outbox."""

    @abstractmethod
    def clear(self) -> None:
        """Remove the data of an earlier checkpoint."""

    @abstractmethod
    def answer(self, server: grpc.Server) -> None:
        """Add the gRPC methods of this gateway or egress to a server."""

    @abstractmethod
    def make(self, config: Any) -> ServicePart:
        """Create the gateway or egress for a configuration. `config` is a message of the type `self.request`."""

    def fault(self, config: Any) -> RunError | None:
        """Return an error if this service cannot serve a configuration, else None."""
        return None

    def resume(self) -> None:
        """Serve the former driver again after a restart, if its configuration was recorded."""
        config = self._parsed(self.store.attachment.config)
        if self.store.attachment.config and not self.is_local and self.fault(config) is None:
            self._start(config)

    def attach(self, request: Any) -> pb.AttachReply:
        """Attach a driver: start the gateway or egress that its request configures, or go on if nothing has changed."""
        driver = request.driver
        wanted = type(request)()
        wanted.CopyFrom(request)
        wanted.ClearField("driver")
        config: Config = json_format.MessageToDict(
            wanted, preserving_proto_field_name=True, always_print_fields_with_no_presence=True
        )
        with self.lock:
            if self.ended.is_set() or self._is_closed:
                raise self.store.refused(reason="it ends")
            if (fault := self.fault(wanted)) is not None:
                raise fault
            before = self.store.attachment
            attachment, is_cleared = self.store.admit(driver, self.id(), config)
            if is_cleared or before.config != config or self._part is None:
                if not self._stop():
                    raise self.store.busy()
                if is_cleared:
                    self.clear()
                self._replace(wanted, {} if is_cleared else before.config)
            attachment = replace(attachment, store=self.store.attachment.store)  # `clear` may have changed it
            self.store.save(attachment)
            return self.reply(attachment)

    def reply(self, attachment: Attachment) -> pb.AttachReply:
        """Return the answer to a driver that has attached: its number (epoch), and the id and directory of the data."""
        directory = str(self.data) if self.is_local else ""
        return pb.AttachReply(epoch=attachment.epoch, store=self.id(), directory=directory)

    def _replace(self, config: Any, before: Config) -> None:
        """Replace the running gateway or egress by one for `config`; if this fails, by one for `before`."""
        try:
            self._start(config)
        except RunError:
            if before and not self.is_local and self.fault(known := self._parsed(before)) is None:
                self._start(known)
            raise

    def _parsed(self, config: Config) -> Any:
        try:
            return json_format.ParseDict(config, type(self).request())
        except json_format.ParseError as error:
            raise self.store.damaged(error) from error

    def _start(self, config: Any) -> None:
        self._part = self._last = part = self.make(config)
        self._thread = threading.Thread(target=self._run, args=(part,), name=self.store.kind, daemon=True)
        self._thread.start()

    def _run(self, part: ServicePart) -> None:
        """Run a gateway or egress. If it fails, set `ended`, because the process must then end, too."""
        try:
            part.run()
        except (OSError, RunError):
            self.ended.set()
        except Exception:
            self.ended.set()
            raise  # the traceback goes to the log of the service

    def _stop(self) -> bool:
        """Stop the gateway or egress, wait for its end, and return whether it has ended. A second call waits again."""
        if self._part is not None:
            self._part.stop()
        self._part = None
        if self._thread is not None:
            self._thread.join(STOP_S)
        return self._thread is None or not self._thread.is_alive()

    def release(self) -> None:
        """End the calls that have no time limit, before the server stops."""
        return  # most services have no such calls

    def close(self) -> None:
        """End the gateway, after its input is safe, or the egress, which first delivers output for some seconds.

        After a failure (`ended` is set) the call waits a little, so that the driver can ask for the status: a full disk
        may have no status file.
        """
        with self.lock:
            if self._is_closed:
                return
            self._is_closed = True
            self._stop()
        if self.ended.is_set() and self.has_driver():
            self._heard.wait(HEARD_S)

    def status(self) -> str:
        """Return the status from memory, since on a full disk the status file cannot be written."""
        if self._is_closed and self._part is None:
            self._heard.set()
        return self._last.status.text if self._last is not None else "{}"
