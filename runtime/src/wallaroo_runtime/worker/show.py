"""Lets a worker show its states to people."""

import json
from collections.abc import Iterable
from typing import Any

from wallaroo.message.handshake import SHOW_STATE
from wallaroo.worker._proto import worker_pb2 as pb
from wallaroo_runtime.errors import WORKER, RunError
from wallaroo_runtime.worker.endpoint import remote_error
from wallaroo_runtime.worker.idempotent_call import RESTART_SECONDS, IdempotentCalls

Shown = dict[tuple[int, bytes], Any]  # readable states, by port and key


def shown_of(worker: str, reply: pb.ShowStateReply) -> Shown:
    """Return the states in a worker's reply.

    Raises:
        RunError: The error that the worker reports; W410 if the answer is no JSON.
    """
    if reply.HasField("failure"):
        raise remote_error(worker, reply.failure)
    try:
        return {(state.port, state.key): json.loads(state.json) for state in reply.states}
    except ValueError as error:
        raise RunError.of("W410", WORKER, worker=worker, reason=f"ShowStateReply, field json: {error}") from error


class WorkerShower(IdempotentCalls):
    """Calls the worker at a gRPC target to show states. Parameters: `IdempotentCalls`; path is the worker's name."""

    def __init__(self, target: str, worker: str, timeout: float = RESTART_SECONDS) -> None:
        super().__init__(target, worker, timeout, SHOW_STATE, "showing states")

    def show(self, stage: pb.Stage, entries: Iterable[bytes]) -> Shown:
        """Return the states at the end of a log.

        Args:
            stage: A stage that begins with state.
            entries: Entries of its log, in total no larger than a message may be.

        Raises:
            RunError: W410 if the worker cannot be reached in time, or its reply is no JSON; W416 if it cannot show
                states; an error that the worker reports, e.g. C507.
        """
        request = pb.ShowStateRequest(stage=stage, entries=entries)
        return shown_of(self.path, self.ask("ShowState", request, "states"))
