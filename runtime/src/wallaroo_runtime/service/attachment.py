"""A service's record of the driver that it serves: `attachment.json`, next to its data."""

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from wallaroo_runtime.durable.record import read_record, write_record
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.service._proto import service_pb2 as pb

PROTOCOL_VERSION = 5
ATTACHMENT_FILE = "attachment.json"
Config = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Attachment:
    """The latest driver that attached to a service, with the configuration that it sent.

    Attributes:
        epoch: Number that rises with each driver; 0 if no driver has attached yet.
        driver: Random id of the driver's process.
        application: Name of its application.
        checkpoint: Random id of its checkpoint.
        config: Configuration of the service: the driver's request, as JSON.
        store: Random id of the outbox; empty for a gateway, whose journal has an id itself.
    """

    epoch: int = 0
    driver: str = ""
    application: str = ""
    checkpoint: str = ""
    config: Config = field(default_factory=dict)
    store: str = ""


class AttachmentStore:
    """Decides which driver a gateway or egress serves, and records the driver. Only one thread at a time may call.

    Args:
        directory: Directory of the service.
        kind: `gateway` or `egress`.
        address: Address of the service, for errors.
        keeps_parts: Whether to record sources and sinks, with their secrets. A service that restarts without a driver
            needs them.

    Raises:
        RunError: R698 if the file is damaged.
    """

    def __init__(self, directory: Path, kind: str, address: str, *, keeps_parts: bool = True) -> None:
        self.kind, self.address, self._keeps_parts = kind, address, keeps_parts
        self._path = directory / ATTACHMENT_FILE
        self.attachment = read_record(self._path, Attachment) or Attachment()

    def damaged(self, error: Exception) -> RunError:
        """Return the error for a file with impossible content (R698)."""
        return RunError.of("R698", what=self._path, reason=error)

    def admit(self, driver: pb.Driver, store: str, config: Config) -> tuple[Attachment, bool]:
        """Return the record of a driver that attaches, and whether data of an earlier checkpoint must be removed first.

        Args:
            store: Id of the journal or outbox of this service.

        Raises:
            RunError: R643 if the checkpoint refers to another journal or outbox; R648 if the driver breaks the
                protocol; R649 if the service keeps data of another checkpoint.
        """
        now = self.attachment
        if driver.protocol_version != PROTOCOL_VERSION or not driver.id or not driver.checkpoint:
            reason = f"a driver speaks version {driver.protocol_version}; expected {PROTOCOL_VERSION}"
            raise self.refused(reason)
        is_other = bool(now.checkpoint) and now.checkpoint != driver.checkpoint
        is_cleared = is_other and driver.fresh and now.application == driver.application
        if driver.store and driver.store != store:
            what = "journal" if self.kind == "gateway" else "outbox"
            raise self._error("R643", path=driver.application, what=what, expected=driver.store, actual=store)
        if is_other and not is_cleared:
            raise self._error("R649", actual=now.application)
        wanted = Attachment(now.epoch, driver.id, driver.application, driver.checkpoint, dict(config), now.store)
        return (wanted if now.driver == driver.id else replace(wanted, epoch=now.epoch + 1)), is_cleared

    def refused(self, reason: str) -> RunError:
        """Return the error for an impossible request of a driver (R648)."""
        return self._error("R648", reason=reason)

    def busy(self) -> RunError:
        """Return the error for a driver that attaches while the work for an earlier driver has not ended (R610)."""
        holder = "an earlier driver, whose work has not ended yet"
        return RunError.of("R610", what=f"the {self.kind} at {self.address}", holder=holder, own=self.kind)

    def _error(self, code: str, **values: Any) -> RunError:
        return RunError.of(code, service=self.kind, address=self.address, **values)

    def save(self, attachment: Attachment) -> None:
        """Record the driver that the service serves from now on. The record survives a loss of power."""
        if attachment == self.attachment:
            return
        config = attachment.config if self._keeps_parts else without_parts(attachment.config)
        write_record(self._path, replace(attachment, config=config))
        self.attachment = attachment

    def begin(self) -> None:
        """Give an emptied outbox a new id, so that a checkpoint with the old id does not continue with it."""
        self.save(replace(self.attachment, store=secrets.token_hex(8)))

    def check_look(self, epoch: int) -> None:
        """Refuse a status call of an earlier driver. Accept epoch 0: then the caller is not a driver.

        Raises:
            RunError: As `check`.
        """
        if epoch:
            self.check(epoch)

    def check(self, epoch: int) -> None:
        """Refuse a call that is not of the latest driver.

        Raises:
            RunError: R644 if a later driver has attached; R648 if no driver ever had that epoch.
        """
        latest = self.attachment.epoch
        if epoch < latest:
            raise self._error("R644", epoch=epoch, latest=latest)
        if epoch > latest or not epoch:
            reason = f"a call has epoch {epoch}; the latest is {latest}"
            raise self.refused(reason)


def without_parts(config: Config) -> Config:
    """Return a configuration without its sources and sinks.

    Example:
        >>> without_parts({"fsync": "never", "sinks": [{"cookie": "secret"}]})
        {'fsync': 'never'}
    """
    return {name: value for name, value in config.items() if not isinstance(value, list)}
