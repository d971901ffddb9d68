"""Gateway and egress as a driver sees them: services, remote or local."""

import json
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from wallaroo.diagnostic import Diagnostic
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.service._proto import service_pb2 as pb
from wallaroo_runtime.service.client import Away, Client
from wallaroo_runtime.service.endpoint import Service
from wallaroo_runtime.storage.journal.head import Position
from wallaroo_runtime.storage.outbox.log import Published
from wallaroo_runtime.storage.place import JournalPlace, OutputPlace

ATTACH_PATIENCE_S = 15.0
AWAY_LIMIT_S = 60.0
STATUS_S = 0.1
STATUS_CALL_S = 3.0

Request = pb.AttachJournalRequest | pb.AttachOutboxRequest


class Peer(ABC):
    """A gateway or an egress.

    Attributes:
        name: `gateway` or `egress`.
        store: Id of its journal or outbox, once `attach` was called.
        published: The last micro-batch of a remote egress, once `attach` was called.
    """

    name: str
    store: str
    published: Published

    @abstractmethod
    def launch(self) -> None:
        """Let there be a process to attach to; does not wait for it."""

    @abstractmethod
    def attach(self, request: Request) -> None:
        """Attach as the driver that is served from now on; again, to change what is to be done.

        Raises:
            RunError: R617, R641, R642, R643, R647, R648, R649, or what keeps it from listening, e.g. R601.
        """

    @abstractmethod
    def status(self) -> dict[str, Any]:
        """Return what it last said of itself; empty when that is not known."""

    @abstractmethod
    def check(self, note: Callable[[str], None]) -> None:
        """Look once; `note` notifies the user of what was mended.

        Raises:
            RunError: It serves another driver (R644), was away for too long (R642), ends again and again (R617), or
                says why it cannot go on.
        """

    @abstractmethod
    def stop(self) -> None:
        """End a process of ours; leave others as they are: senders and receivers notice nothing of our end."""

    @abstractmethod
    def end(self) -> Position:
        """Return how far its journal goes."""

    @abstractmethod
    def commit(self, offset: int) -> None:
        """Release everything of its journal below `offset`."""

    @abstractmethod
    def journal(self) -> JournalPlace:
        """Return where tasks find its journal."""

    @abstractmethod
    def output(self) -> OutputPlace:
        """Return where driver and tasks put output."""

    def addresses(self) -> list[tuple[str, str]]:
        """Return name and address of each source that it listens for; none for an egress."""
        return [(str(source["name"]), str(source["address"])) for source in self.status().get("sources", [])]

    def failure_of(self, status: dict[str, Any]) -> RunError | None:
        """Return why it cannot go on, if it has said so."""
        if status.get("state") == "failed" and status.get("diagnostics"):
            return RunError([Diagnostic.from_json(finding) for finding in status["diagnostics"]])
        return None


class RemotePeer(Peer):
    """A service that somebody else runs.

    Args:
        service: Where it is.
    """

    def __init__(self, service: Service) -> None:
        self.name, self.service = service.kind, service
        self.store, self.published = "", Published()
        self._document: dict[str, Any] = {}
        self._end = Position(0, 0, 0)
        self._looked_at = 0.0
        self._away_since: float | None = None
        self._away: Away | None = None

    def launch(self) -> None:
        """Nothing is to do."""

    def attach(self, request: Request) -> None:
        """See `Peer`."""
        reply = Client(self.service, ATTACH_PATIENCE_S).call("Attach", request)
        self.service = self.service.attached(reply.epoch, reply.store)
        self.store = reply.store
        if reply.query:
            self.published = Published(reply.query, reply.batch, reply.offsets)
        self._look()

    def status(self) -> dict[str, Any]:
        """See `Peer`."""
        if time.monotonic() - self._looked_at >= STATUS_S:
            self._look()
        return self._document

    def _look(self) -> None:
        client = Client(self.service)
        try:
            reply = client.look("Status", pb.StatusRequest(epoch=self.service.epoch), STATUS_CALL_S)
            self._document = json.loads(reply.document)
            self._end = Position(reply.end.offset, reply.end.sequence, int(reply.end.journal or "0", 16))
            self._away_since = None
        except Away as error:
            self._away = error
            if self._away_since is None:
                self._away_since = time.monotonic()
        except ValueError as error:
            raise client.broke_rules(reason=f"its status is no JSON: {error}") from error
        self._looked_at = time.monotonic()

    def check(self, note: Callable[[str], None]) -> None:
        """See `Peer`."""
        if (failure := self.failure_of(self.status())) is not None:
            raise failure
        if self._away_since is not None and time.monotonic() - self._away_since > AWAY_LIMIT_S:
            assert self._away is not None
            raise self._away

    def stop(self) -> None:
        """See `Peer`."""

    def end(self) -> Position:
        """Return how far its journal went when it last said so."""
        self.status()
        return self._end

    def commit(self, offset: int) -> None:
        """See `Peer`."""
        request = pb.CommitRequest(epoch=self.service.epoch, journal=self.store, offset=offset)
        Client(self.service, STATUS_CALL_S).call("Commit", request)

    def journal(self) -> JournalPlace:
        """See `Peer`."""
        return JournalPlace(service=self.service)

    def output(self) -> OutputPlace:
        """See `Peer`."""
        return OutputPlace(service=self.service)
