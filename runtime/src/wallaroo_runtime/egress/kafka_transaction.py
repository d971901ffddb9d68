"""A transactional producer of Kafka, and the position that is committed with its records."""

import json
import threading
import time
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import Future, wait
from contextlib import suppress
from dataclasses import asdict
from functools import partial
from typing import Any

from wallaroo.diagnostic.fault import reach
from wallaroo_runtime.egress.kafka_session import LOOK_S, KafkaRefusal, ProducerSession, RecordPart, Unavailable
from wallaroo_runtime.kafka.producer import reader_settings
from wallaroo_runtime.service._proto import service_pb2 as pb
from wallaroo_runtime.storage.outbox.position import SinkPosition

ANSWER_S, COMMIT_S = 15.0, 30.0
GRACE_S = 5.0
TIMEOUT = "transaction.timeout.ms"
# The broker refuses a transaction's first request until it has ended the transaction before, some milliseconds later.
# With the client's default, 100 ms, most transactions waited for that long.
RETRIES = {"retry.backoff.ms": 2}
_now = partial(time.clock_gettime, time.CLOCK_BOOTTIME)  # this time also passes while the machine sleeps


def within(seconds: float, call: Callable[..., Any], *arguments: Any, look: Callable[[], None] = lambda: None) -> None:
    """Call a function of the client with a timeout. If it hangs in spite of the timeout, stop waiting for it.

    The timeout is the last argument. `look` is called repeatedly during the wait. An exception of `look` ends the wait.

    librdkafka may forget its own timeout: send_offsets_to_transaction has waited forever after the connection to the
    broker broke at that moment. A call that does not return keeps its thread and its producer. The producer of the next
    session replaces that producer.

    Raises:
        Unavailable: The call did not return.
    """
    outcome: Future[None] = Future()

    def work() -> None:
        try:
            outcome.set_result(call(*arguments, seconds))
        except Exception as error:
            outcome.set_exception(error)

    threading.Thread(target=work, name="kafka-call", daemon=True).start()
    deadline = time.monotonic() + seconds + GRACE_S
    while (left := deadline - time.monotonic()) > 0:
        if wait([outcome], min(LOOK_S, left)).done:
            return outcome.result()
        look()
    reason = f"the client did not answer within {seconds:g} s"
    raise Unavailable(reason)


class TransactionalSession(ProducerSession):
    """Writes records and the sink's position in transactions. Kafka then refuses older producers with the same name.

    Args:
        name: Transactional id and consumer group.

    Attributes:
        prepare: Called before each commit of records, with the position after them.
        written: Called when Kafka has the records of a transaction, which is committed next.

    Parameters, attributes and errors are otherwise those of `ProducerSession`.
    """

    def __init__(self, client: Any, target: pb.KafkaTopic, sink: str, name: str) -> None:
        self._name, self._began = name, _now()
        self.prepare: Callable[[SinkPosition], None] = lambda end: None
        self.written: Callable[[], None] = lambda: None
        super().__init__(client, target, sink)
        with self._judged():
            # Aborts the open transaction of an earlier producer of this name, and fences that producer off.
            within(ANSWER_S, self._producer.init_transactions)
            self._group = self._reader.consumer_group_metadata()
            (committed,) = self._reader.committed([client.TopicPartition(self._topic, 0)], ANSWER_S)
        self.position = None if committed.offset < 0 else SinkPosition(**json.loads(committed.metadata), sender=name)

    def _open(self) -> None:
        self._producer = self._transactional()
        reader = {"group.id": self._name, "enable.auto.commit": False}
        self._reader = self._client.Consumer({**reader_settings(self._settings), **reader})

    def _transactional(self) -> Any:
        defaults = {**RETRIES, "enable.idempotence": True}
        return self._made({**defaults, **self._settings, "transactional.id": self._name})

    def _write(self, parts: Sequence[RecordPart], end: SinkPosition, without: Collection[int] | None) -> None:
        """Write records and the position after them in one transaction."""
        self._producer.begin_transaction()
        self._began = _now()
        self._produce_all(parts, without)
        reach("egress.kafka_produced")
        partition = self._client.TopicPartition(self._topic, 0, end.messages, metadata=_text(end))
        send_position = partial(self._producer.send_offsets_to_transaction, [partition], self._group)
        within(ANSWER_S, send_position, look=self.look)
        reach("egress.kafka_positioned")
        if parts:
            self.prepare(end)
        while self._producer.flush(LOOK_S) and not self._failed:
            self.look()
        if self._failed:  # the other records are not sent then: a commit would wait for them, and permit no abort
            within(ANSWER_S, send_position, look=self.look)  # raises the error of the transaction, which may say more
            raise self._client.KafkaException(self._failed[0][1])
        self.written()
        within(COMMIT_S, self._producer.commit_transaction, look=self.look)

    def _judge(self, errors: list[Any]) -> Unavailable | KafkaRefusal:
        judged, limit_ms = super()._judge(errors), int(self._settings.get(TIMEOUT, 60_000))
        if isinstance(judged, KafkaRefusal) and judged.is_fenced and _now() - self._began >= limit_ms / 1000:
            return Unavailable(f"Kafka has aborted a transaction that took longer than {TIMEOUT}, {limit_ms}")
        return judged

    def _undo(self) -> None:
        """Abort the transaction with a new producer. After a refusal the old producer cannot write further records."""
        super().close()
        self._producer = self._transactional()
        self._failed.clear()  # reports of the aborted records say nothing about the next attempt
        with self._judged():
            within(ANSWER_S, self._producer.init_transactions)

    def close(self) -> None:
        """Close the producer and the reader. The next session aborts uncommitted records."""
        super().close()
        with suppress(self._client.KafkaException):
            self._reader.close()


def _text(position: SinkPosition) -> str:
    value = asdict(position)
    del value["sender"]
    return json.dumps(value)
