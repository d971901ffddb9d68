"""A driver's calls of its gateway or egress: attach, status, commit, end."""

import json
import time
from collections.abc import Callable, Collection
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path
from typing import Any

from wallaroo.diagnostic.diagnostic import Diagnostic
from wallaroo_runtime.durable.file import noted
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.service._proto import service_pb2 as pb
from wallaroo_runtime.service.client import Away, ServiceClient
from wallaroo_runtime.service.endpoint import Service
from wallaroo_runtime.storage.journal.head import Position
from wallaroo_runtime.storage.journal.reader import JournalReader
from wallaroo_runtime.storage.journal.visit import add_counts
from wallaroo_runtime.storage.outbox.log import Published
from wallaroo_runtime.storage.outbox.position import undelivered
from wallaroo_runtime.storage.place import JournalPlace, OutputPlace
from wallaroo_runtime.worker.step_count import VisitCounts

ATTACH_PATIENCE_S = 15.0
AWAY_LIMIT_S, AWAY_NOTE_S = 60.0, 5.0
STATUS_S, AWAY_STATUS_S = 0.1, 1.0  # seconds between two status calls, since a call to a peer that is away takes long
STATUS_CALL_S = 3.0

Request = pb.AttachJournalRequest | pb.AttachOutboxRequest


class Peer:
    """A remote gateway or egress, which an operator has started. The subclass `LocalPeer` is a process of the driver.

    Args:
        directory: Directory of the peer's files, if driver and tasks use the files; None if they call the service.

    Attributes:
        name: `gateway` or `egress`.
        service: The service; after `attach` with its epoch and the id of its journal or outbox.
        published: The last micro-batch of a remote egress, after `attach`.
    """

    def __init__(self, service: Service, directory: Path | None = None) -> None:
        self.name, self.service, self._directory = service.kind, service, directory
        self.published = Published()
        self._document: dict[str, Any] = {}
        self._end = Position(0, 0, 0)
        self._looked_at = 0.0
        self._away: Away | None = None
        self._away_since, self._is_noted = 0.0, False

    def launch(self) -> None:
        """Start the process of a local peer, if none runs. Do not wait until it serves."""

    def wait_ready(self) -> None:
        """Wait until a local process serves. From then on the journal of a gateway exists.

        Raises:
            RunError: The error that the process reports, e.g. R610; R617 if it reports none.
        """

    def attach(self, request: Request) -> None:
        """Make this process the driver of the peer, and send the configuration, which further calls may change.

        Raises:
            RunError: R617, R641, R642, R643, R647, R648 or R649 if the peer cannot serve this driver; the error with
                which the peer cannot listen, e.g. R714.
        """
        self._take(ServiceClient(self.service, ATTACH_PATIENCE_S).call("Attach", request))
        self._look()

    def _take(self, reply: pb.AttachReply) -> None:
        self.service = self.service.attached(reply.epoch, reply.store)
        if reply.query:
            self.published = Published(reply.query, reply.batch, reply.offsets)

    def status(self) -> dict[str, Any]:
        """Return the last status of the peer; empty if no status is known."""
        if self._directory is not None and (status := noted(self._directory / f"{self.name}.json")):
            return status
        if time.monotonic() - self._looked_at >= (STATUS_S if self._away is None else AWAY_STATUS_S):
            self._look()
        return self._document

    def _endpoint(self) -> AbstractContextManager[Service]:
        """Return a context that gives the service, with an address that calls can use."""
        return nullcontext(self.service)

    def _look(self) -> None:
        with self._endpoint() as service:
            self._look_at(ServiceClient(service))

    def _look_at(self, client: ServiceClient) -> None:
        try:
            reply = client.look("Status", pb.StatusRequest(epoch=client.service.epoch), STATUS_CALL_S)
            self._document = json.loads(reply.document)
            self._end = Position(reply.end.offset, reply.end.messages, int(reply.end.journal or "0", 16))
            self._away = None
        except Away as error:
            self._miss(error)
        except ValueError as error:
            raise client.broke_rules(reason=f"its status is no JSON: {error}") from error
        self._looked_at = time.monotonic()

    def _miss(self, error: Away) -> None:
        if self._away is None:
            self._away_since = time.monotonic()
        self._away = error

    def _tell(self, request: pb.CommitRequest) -> None:
        """Send progress to the peer, and do not repeat a failed call. If the peer is known to be away, do not call.

        `status` notices when the peer is back.

        Raises:
            Away: The peer cannot be reached now.
        """
        if self._away is not None:
            raise self._away
        try:
            ServiceClient(self.service).look("Commit", request, STATUS_CALL_S)
        except Away as error:
            self._miss(error)
            raise

    def addresses(self) -> list[tuple[str, str]]:
        """Return name and address of each source for which the peer listens; empty for an egress."""
        return [(str(source["name"]), str(source["address"])) for source in self.status().get("sources", [])]

    def failure(self) -> RunError | None:
        """Return the error because of which the peer cannot go on; None if it can."""
        status = self.status()
        if status.get("state") == "failed" and status.get("diagnostics"):
            return RunError([Diagnostic.from_json(finding) for finding in status["diagnostics"]])
        return None

    def check(self, note: Callable[[str], None]) -> None:
        """Check the peer once; `note` notifies the user if it was started again, is away or is back.

        Raises:
            RunError: R644 if the peer serves another driver; R642 if it was away for too long; R617 if it ends again
                and again; the error with which it cannot go on.
        """
        if (failure := self.failure()) is not None:
            raise failure
        self._note_outage(note)
        if self._away is not None and time.monotonic() - self._away_since > AWAY_LIMIT_S:
            raise self._away

    def _note_outage(self, note: Callable[[str], None]) -> None:
        """Notify the user once when the peer has been away for some seconds, and once when it is back."""
        is_away = self._away is not None
        if self._is_noted == is_away or (is_away and time.monotonic() - self._away_since < AWAY_NOTE_S):
            return
        self._is_noted, what = is_away, f"the {self.name} at {self.service.address}"
        note(f"{what} is away; the run waits for it {AWAY_LIMIT_S:g} s at most" if is_away else f"{what} is back")

    def stop(self) -> None:
        """End the process of a local peer. A remote peer goes on, so that its senders and receivers notice nothing."""

    def end(self) -> Position:
        """Return the last known end of the gateway's journal."""
        if self._directory is not None:
            return JournalReader(self._directory / "journal").end()
        self.status()
        return self._end

    def undelivered(self, ports: Collection[int]) -> int:
        """Return the number of messages in the egress that wait for the sinks of some ports; -1 if the peer is away.

        Raises:
            RunError: R698 if the outbox is damaged.
        """
        if self._directory is not None:
            return undelivered(self._directory / "outbox", ports)
        with suppress(Away):
            request = pb.StatusRequest(epoch=self.service.epoch, ports=ports)
            return int(ServiceClient(self.service).look("Status", request, STATUS_CALL_S).waiting_messages)
        return -1

    def commit(self, offset: int) -> bool:
        """Commit the gateway's journal up to `offset`. Return False if the peer is away; then repeat the call."""
        if self._directory is not None:
            JournalReader(self._directory / "journal").commit(offset)
            return True
        with suppress(Away):
            self._tell(pb.CommitRequest(epoch=self.service.epoch, journal=self.service.store, offset=offset))
            return True
        return False

    def tell_visits(self, counts: VisitCounts, done: int = 0) -> None:
        """Record the counts of visits (calls of user code for every key of a state) at the gateway.

        This happens before the visits are committed, because a crash after the commit would lose the counts.

        Args:
            counts: Counts of each visit, by its id.
            done: Offset in the journal before which visits are done, though they may not be committed. 0 if their
                commit will show this; then the call waits while the peer is away.

        Raises:
            Away: `done` was given, and the peer cannot be reached now; the call must be repeated later.
            RunError: `done` was not given, and the peer is away for too long, or refuses the call.
        """
        visits = [pb.VisitCount(id=number, **of_visit) for number, of_visit in counts.items()]
        request = pb.CommitRequest(epoch=self.service.epoch, counts=visits, done=done)
        if self._directory is not None:
            add_counts(self._directory / "journal", visits, done)
        elif done:
            self._tell(request)
        else:
            ServiceClient(self.service, AWAY_LIMIT_S).call("Commit", request)

    def journal(self) -> JournalPlace:
        """Return the place where tasks read the gateway's journal: a directory, or the remote gateway."""
        if self._directory is not None:
            return JournalPlace(str(self._directory / "journal"))
        return JournalPlace(service=self.service)

    def output(self) -> OutputPlace:
        """Return the place where driver and tasks write output: directories, or the remote egress."""
        return OutputPlace(service=self.service) if self._directory is None else OutputPlace.on(self._directory)
