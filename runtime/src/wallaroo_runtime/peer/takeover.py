"""Takes a checkpoint's remote gateways and egress from their driver, so that a command can change the checkpoint."""

from collections.abc import Mapping

from wallaroo_runtime.peer.configuration import UNSET
from wallaroo_runtime.peer.limits import JOURNAL_FSYNC
from wallaroo_runtime.peer.peer import ATTACH_PATIENCE_S, Request
from wallaroo_runtime.peer.remote import RemoteOptions, driver_identity
from wallaroo_runtime.service._proto import service_pb2 as pb
from wallaroo_runtime.service.client import ServiceClient


class Hold:
    """Makes this process the driver of remote services, only so that the services refuse all other drivers.

    Args:
        application: Name of the application.
        checkpoint: Id of the checkpoint.
        stores: Id of the journal or outbox of each service, by the service's name; an empty id if the checkpoint has
            never used the service.
    """

    def __init__(self, remote: RemoteOptions, application: str, checkpoint: str, stores: Mapping[str, str]) -> None:
        self._remote, self._application, self._checkpoint, self._stores = remote, application, checkpoint, stores
        self._epochs: dict[str, int] = {}

    def take_gateways(self) -> None:
        """Attach to all gateways, so that from then on no other driver gets or acknowledges messages.

        Raises:
            RunError: R642 if a gateway cannot be reached; R643 if its journal does not belong to the checkpoint.
        """
        for name in self._remote.gateways:
            self._epochs[name] = self.take("gateway", name)

    def check(self) -> None:
        """Check that the gateways still serve this process.

        Raises:
            RunError: R644 if a gateway serves another driver; R642 if it cannot be reached.
        """
        for name, epoch in self._epochs.items():
            self.client("gateway", name).call("Status", pb.StatusRequest(epoch=epoch))

    def take(self, kind: str, name: str = "") -> int:
        """Attach to one service. Return the epoch, the number by which the service refuses calls of earlier drivers.

        Raises:
            RunError: As `take_gateways`.
        """
        driver = driver_identity(self._application, self._checkpoint, self.store(kind, name), fresh=False)
        request: Request = pb.AttachOutboxRequest(driver=driver)
        if kind == "gateway":
            request = pb.AttachJournalRequest(driver=driver, fsync=JOURNAL_FSYNC, backlog_bytes=UNSET.journal_bytes)
        return int(self.client(kind, name).call("Attach", request).epoch)

    def client(self, kind: str, name: str = "") -> ServiceClient:
        """Return the client of a service."""
        address = self._remote.gateways[name] if kind == "gateway" else self._remote.egress
        return ServiceClient(self._remote.service(kind, address), ATTACH_PATIENCE_S)

    def store(self, kind: str, name: str = "") -> str:
        """Return the id of a service's journal or outbox, as the checkpoint records it."""
        return self._stores[f"{kind} {name}".strip()]
