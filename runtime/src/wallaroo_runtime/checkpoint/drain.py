"""Finds the unfinished work of a checkpoint, which some changes of a program must wait for."""

import json
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path

from wallaroo_runtime.checkpoint.manifest import Manifest
from wallaroo_runtime.checkpoint.uncommitted import between, delivered_of, next_of
from wallaroo_runtime.durable.directory import Directory
from wallaroo_runtime.errors import count
from wallaroo_runtime.peer.local import stop_left_behind
from wallaroo_runtime.peer.remote import RemoteOptions
from wallaroo_runtime.peer.takeover import Hold
from wallaroo_runtime.plan.change import Change, Impact
from wallaroo_runtime.plan.port import Ports
from wallaroo_runtime.service._proto import service_pb2 as pb
from wallaroo_runtime.storage.journal.reader import JournalReader
from wallaroo_runtime.storage.journal.visit import read_visits
from wallaroo_runtime.storage.outbox.position import undelivered
from wallaroo_runtime.storage.progress import Progress, progress_in


def waiting_ports(changes: Iterable[Change], *versions: Ports) -> set[int]:
    """Return the ports of the sinks whose output must be delivered before the changes of a program are safe.

    Args:
        versions: The ports of the old version, for sinks that are gone, and of the new one, for sinks that differ.
    """
    paths = {change.path for change in changes if change.impact is Impact.NEEDS_DRAIN and "/sinks/" in change.path}
    return {ports.parts[path] for ports in versions for path in paths & ports.parts.keys()}


@dataclass(frozen=True, slots=True)
class Drain:
    """Finds the unfinished work of a checkpoint: unprocessed input and undelivered output.

    Attributes:
        path: The checkpoint directory, locked by this process, so that no driver of this machine uses it.
        directory: The directory with Spark's own checkpoint.
        spark: Name of Spark's own checkpoint in `directory`.
        remote: The remote gateways and egress.
        hold: Calls the remote services of the checkpoint, and makes this process their driver if necessary.
    """

    path: Path
    directory: Directory
    spark: str
    remote: RemoteOptions
    hold: Hold

    @classmethod
    def of(cls, path: Path, manifest: Manifest, directory: Directory, remote: RemoteOptions | None = None) -> "Drain":
        """Return a `Drain` for the checkpoint with this record."""
        remote = remote or RemoteOptions()
        return cls(path, directory, manifest.spark, remote, Hold(remote, manifest.name, manifest.id, manifest.services))

    def left(self, gone_sinks: Collection[int]) -> str:
        """Return the unfinished work in words.

        If there is none, return an empty text, and let gateways take no more messages.

        Args:
            gone_sinks: Ports of the sinks whose output will no longer be delivered.

        Raises:
            RunError: R642 if a remote service does not answer, R643 if it is not the service of the checkpoint.
        """
        if left := self.look(gone_sinks):
            return left
        # Gateways without a driver may still receive messages for the former program. Stop that, and look again.
        stop_left_behind(self.path)
        self.hold.take_gateways()
        return self.look(gone_sinks)

    def repeated(self, *, is_attached: bool = False) -> range:
        """Return the messages that the next run processes again in real-time mode although their results were sent.

        They are the messages that Spark has not committed, up to the last one with sent results. A driver that uses the
        remote services is not disturbed.

        Args:
            is_attached: Whether gateway and egress serve this process.

        Raises:
            RunError: The errors of `left`, R698 if a file is damaged, R648 if a service does not report positions.
        """
        if not is_attached:
            stop_left_behind(self.path)  # an egress without a driver may still be writing
        offset = self._progress().offset
        return between(self._next(offset), self._delivered(offset))

    def _delivered(self, offset: int) -> int:
        """Return the number of the last message whose results were sent; -1 if there is none."""
        if not self.remote.egress:
            return delivered_of(self.path / "outbox")
        return int(self._told("egress", "", "delivered", offset))

    def _next(self, offset: int) -> int:
        """Return the number of the first message after an offset of the journal; -1 if there is none."""
        if not self.remote.gateways:
            return next_of(self.path / "journal", offset)
        # Real-time mode has one gateway. With several the offset has no meaning.
        return max(int(self._told("gateway", name, "next_sequence", offset)) for name in self.remote.gateways)

    def _told(self, kind: str, name: str, field: str, offset: int) -> int:
        """Return a field of a remote service's status; -1 if the service has no data of the checkpoint."""
        if not self.hold.store(kind, name):
            return -1
        reply = self._status(kind, name, offset=offset)
        if not reply.HasField(field):
            raise self.hold.client(kind, name).broke_rules(reason=f"it does not say {field} in its status")
        return int(getattr(reply, field))

    def _progress(self) -> Progress:
        return progress_in(self.directory, f"{self.spark}/")

    def look(self, gone_sinks: Collection[int]) -> str:
        """Return the unfinished work in words, as `left` does. But stop no gateway: messages may still come."""
        progress = self._progress()  # counts messages: ticks after the last one may be lost
        unread = self._received() - progress.messages_in
        if unread > 0:
            return f"the journal has {count(unread, 'unprocessed message')}"
        if visits := self._visits(progress.offset):
            return f"the journal has {count(visits, 'unprocessed visit')}"
        waiting = self._waiting(gone_sinks) if gone_sinks else 0
        return f"its outbox has {count(waiting, 'undelivered message')}" if waiting else ""

    def _received(self) -> int:
        """Return the number of messages in the journal since the checkpoint began."""
        if self.remote.gateways:
            return sum(self._status("gateway", name).end.messages for name in self.remote.gateways)
        journal = self.path / "journal"
        return JournalReader(journal).end().messages if (journal / "head").exists() else 0

    def _visits(self, offset: int) -> int:
        """Return the number of unprocessed visits. In a local journal, these are the visits after `offset`."""
        if self.remote.gateways:
            documents = (self._status("gateway", name).document or "{}" for name in self.remote.gateways)
            return sum(int(json.loads(document).get("visits", 0)) for document in documents)
        return sum(end > offset for end in read_visits(self.path / "journal").values())

    def _waiting(self, ports: Collection[int]) -> int:
        """Return the number of undelivered messages of the sinks with these ports."""
        if self.remote.egress:
            return int(self._status("egress", ports=ports).waiting_messages)
        return undelivered(self.path / "outbox", ports)

    def _status(
        self, kind: str, name: str = "", ports: Collection[int] = (), offset: int | None = None
    ) -> pb.StatusReply:
        """Ask a remote gateway or egress for its status. A driver that uses the service is not disturbed."""
        store = self.hold.store(kind, name)
        if not store:  # the service has no data of this checkpoint yet
            return pb.StatusReply()
        reply: pb.StatusReply = self.hold.client(kind, name).call(
            "Status", pb.StatusRequest(ports=ports, offset=offset)
        )
        if reply.store != store:
            self.hold.take(kind, name)  # raises the error for a wrong service
        return reply
