"""Sends visits (requests to call a function of the program for every key of a state) to a running application."""

import time
from typing import NamedTuple

from wallaroo_runtime.errors import RunError
from wallaroo_runtime.service._proto import service_pb2 as pb
from wallaroo_runtime.service.client import Away, ServiceClient
from wallaroo_runtime.service.endpoint import Service

ASK_S = 40.0  # longer than the time for which a gateway waits until a visit is safe
LOOK_S, POLL_S = 3.0, 0.1
PATIENCE_S = 10.0  # long enough for a gateway that is busy or restarts
AGAIN = "run the application, then ask again"


class VisitResult(NamedTuple):
    """The counts of a visit: for how many keys the user's function ran, and for how many it failed.

    Attributes:
        id: Id of the visit.
        keys: Number of keys for which a visitor ran, where a key counts once for each step; -1 if it is not known.
        failed: Number of these keys for which the visit became a dead letter.
    """

    id: int
    keys: int
    failed: int


def ask(service: Service, name: str, metadata: bytes) -> int:
    """Let the gateway write a visit to the journal, and return the visit's id. In the journal it happens only once.

    Raises:
        RunError: R720 if no step takes the visit; R733 if no application runs, or it takes no visit now.
    """
    try:
        reply: pb.VisitReply = ServiceClient(service).look(
            "Visit", pb.VisitRequest(name=name, metadata=metadata), ASK_S
        )
    except Away as error:
        raise away(name) from error
    return reply.id


def wait(service: Service, name: str, number: int) -> VisitResult:
    """Wait until a visit is done: its micro-batch is committed, or in real-time mode its output is in the outbox.

    Raises:
        RunError: R733 if the run ends before the visit is done.
    """
    until = time.monotonic() + PATIENCE_S
    while True:
        try:
            reply: pb.VisitReply = ServiceClient(service).look("Visit", pb.VisitRequest(id=number), LOOK_S)
        except Away as error:
            if time.monotonic() < until:
                time.sleep(POLL_S)
                continue
            reason = "the run has ended; the visit is in the journal, and comes with the next run"
            raise RunError.of("R733", name=name, reason=reason, fix="run the application again") from error
        if reply.done or not reply.id:
            has_count = reply.HasField("count")
            return VisitResult(number, reply.count.keys if has_count else -1, reply.count.failed)
        until = time.monotonic() + PATIENCE_S
        time.sleep(POLL_S)


def away(name: str) -> RunError:
    """Return the error R733: no application runs, so there is no gateway that could take the visit."""
    return RunError.of("R733", name=name, reason="nothing runs there", fix=AGAIN)
