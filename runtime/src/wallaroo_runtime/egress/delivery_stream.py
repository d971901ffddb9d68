"""Serves a call of `Deliver`: one thread takes frames of output, another syncs and acknowledges them in groups."""

import threading
from collections.abc import Callable, Iterator

import grpc

from wallaroo_runtime.egress.delivery import AttemptReceiver
from wallaroo_runtime.service._proto import service_pb2 as pb
from wallaroo_runtime.storage.outbox.live_log import LiveLog
from wallaroo_runtime.system.backoff import Backoff

FULL_S, LAST_FULL_S = 0.02, 0.2
PACE_S = 0.01


class DeliveryStream:
    """Takes deliveries (numbered frames of output) as fast as they come, and reports which are safe on disk.

    Sinks send deliveries at once, safe or not. The first delivery after a pause is made safe and acknowledged at once.
    Deliveries that follow it within 10 ms share one sync and one reply.

    Args:
        is_full: Returns whether so much output waits for sinks that no more may be taken now.
        live: The live log, which has the deliveries.
    """

    def __init__(self, receiver: AttemptReceiver, is_full: Callable[[], bool], live: LiveLog) -> None:
        self._receiver, self._is_full, self._live = receiver, is_full, live
        self._changed = threading.Condition()
        self._over = threading.Event()
        self._error: Exception | None = None

    def numbers(self, requests: Iterator[pb.DeliverRequest]) -> Iterator[int]:
        """Take deliveries until no more come. Yield the number of the last one that is safe on disk, whenever it rises.

        Raises:
            RunError: As `AttemptReceiver.take`; earlier deliveries are safe.
            OSError: The disk failed.
        """
        threading.Thread(target=self._take, args=(requests,), name="delivery", daemon=True).start()
        sent = 0
        try:
            while True:
                with self._changed:
                    self._changed.wait_for(lambda: self._over.is_set() or self._receiver.taken > sent)
                    number, is_over = self._receiver.taken, self._over.is_set()
                if number > sent:
                    self._live.sync()
                    yield (sent := number)
                    self._over.wait(PACE_S)
                elif self._error is not None:
                    raise self._error
                elif is_over:
                    return
        finally:
            self._over.set()

    def _wait_for_room(self) -> None:
        """Wait while too much output waits for sinks. If this takes long, check less often."""
        look = Backoff(FULL_S, LAST_FULL_S)
        while self._is_full() and not self._over.wait(look.next()):
            continue

    def _take(self, requests: Iterator[pb.DeliverRequest]) -> None:
        try:
            for request in requests:
                self._wait_for_room()
                if request.WhichOneof("kind") == "committed":
                    self._receiver.commit(request.committed)
                    continue
                for delivery in request.deliveries.items:
                    self._receiver.take(delivery)
                if request.deliveries.arrived:
                    self._receiver.arrive(request.deliveries.arrived, request.deliveries.computed_ms)
                with self._changed:
                    self._changed.notify()
            self._receiver.end()
        except grpc.RpcError:
            pass  # the caller has gone
        except Exception as error:
            self._error = error  # any error must end the call: a normal end means that everything was taken
        finally:
            with self._changed:
                self._over.set()
                self._changed.notify()
