"""A user's way to the gateway of a running application: hands it messages of dead letters that run again."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from wallaroo_runtime.errors import RunError
from wallaroo_runtime.peer.local_gateway import local_gateway
from wallaroo_runtime.service._proto import service_pb2 as pb
from wallaroo_runtime.service.chunk import chunks
from wallaroo_runtime.service.client import Away, Client
from wallaroo_runtime.service.endpoint import Service

ASK_S = 40.0  # longer than a gateway holds a block back
RUN = "run the application on this machine, in micro-batches, then give the command again"


def send(service: Service, number: int, frame: bytes = b"") -> int:
    """Have a gateway journal a block, unless it has; returns the id of the last block in its journal.

    Raises:
        RunError: R777.
    """
    requests = [pb.ReplayRequest(id=number, chunk=chunk) for chunk in chunks(frame)] if frame else []
    try:
        reply: pb.ReplayReply = Client(service).look("Replay", iter(requests), ASK_S)
    except Away as error:
        raise _away() from error
    return reply.last


@contextmanager
def sending_to(checkpoint: Path) -> Iterator[Callable[..., int]]:
    """Give `send` for the gateway of a checkpoint that runs on this machine.

    Raises:
        RunError: R777, there is none.
    """
    with local_gateway(checkpoint, _away()) as service:
        yield partial(send, service)


def _away() -> RunError:
    return RunError.of("R777", reason="the application does not run", fix=RUN)
