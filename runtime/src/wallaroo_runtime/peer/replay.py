"""A user's way to the gateway of a running application: hands it messages of dead letters that run again."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from wallaroo_runtime.errors import RunError
from wallaroo_runtime.peer.local_gateway import local_gateway
from wallaroo_runtime.service._proto import service_pb2 as pb
from wallaroo_runtime.service.chunk import chunks
from wallaroo_runtime.service.client import Away, Client
from wallaroo_runtime.service.endpoint import Service

ASK_S = 40.0  # longer than a gateway holds a block back
RUN = "run the application on this machine, in micro-batches, then give the command again"


class Blocks:
    """Hands blocks to a gateway.

    Args:
        service: It.
    """

    def __init__(self, service: Service) -> None:
        self._service = service

    def send(self, number: int, frame: bytes = b"") -> int:
        """Have a block journaled, unless it is; returns the id of the last block in the journal.

        Raises:
            RunError: R777.
        """
        requests = [pb.ReplayRequest(id=number, chunk=chunk) for chunk in chunks(frame)] if frame else []
        try:
            reply: pb.ReplayReply = Client(self._service).look("Replay", iter(requests), ASK_S)
        except Away as error:
            raise _away() from error
        return reply.last


@contextmanager
def blocks_of(checkpoint: Path) -> Iterator[Blocks]:
    """Give the way to the gateway of a checkpoint that runs on this machine.

    Raises:
        RunError: R777, there is none.
    """
    with local_gateway(checkpoint, _away()) as service:
        yield Blocks(service)


def _away() -> RunError:
    return RunError.of("R777", reason="the application does not run", fix=RUN)
