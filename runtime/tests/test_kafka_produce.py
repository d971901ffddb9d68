"""How a sink gives records to Kafka's client: all of them in their order, and in transactions of a size that pays."""

from math import inf
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException
from hypothesis import given
from hypothesis import strategies as st

from wallaroo_runtime.egress import kafka_session
from wallaroo_runtime.egress.feed import Piece
from wallaroo_runtime.egress.kafka_session import ProducerSession
from wallaroo_runtime.egress.kafka_sink import TRANSACTION_BYTES, TRANSACTION_RECORDS
from wallaroo_runtime.egress.kafka_transaction_sink import LONGEST_S, SHORTEST_S, TransactionalSink
from wallaroo_runtime.kafka.topic import RecordLimits
from wallaroo_runtime.service._proto import service_pb2 as pb
from wallaroo_runtime.storage.outbox.position import SinkPosition
from wallaroo_runtime.storage.outbox.sink_record import RecordColumns, SinkRecord

BYTES = st.none() | st.binary(max_size=3)
PLAIN = st.tuples(BYTES, BYTES, st.none(), st.just(()), st.just(0))
HEADERS = st.lists(st.tuples(st.text(max_size=2), BYTES), max_size=2)
DRAWN = st.tuples(BYTES, BYTES, st.none() | st.integers(0, 5), HEADERS, st.integers(-1, 3))
RECORDS = (PLAIN | DRAWN).map(SinkRecord._make)


class Client:
    """Takes records in place of Kafka's client; every third one only at the second attempt."""

    def __init__(self, _: Any) -> None:
        self.taken: list[SinkRecord] = []
        self.is_full = False

    def produce(self, _: str, value: bytes | None, key: bytes | None, **more: Any) -> None:
        self.is_full = not self.is_full and len(self.taken) % 3 == 2
        if self.is_full:
            raise BufferError
        headers, time_ms = more.get("headers", []), more.get("timestamp", 0)
        self.taken.append(SinkRecord(key, value, more.get("partition"), headers, time_ms))

    def poll(self, _: float) -> int:
        return 0

    flush = poll

    def list_topics(self, *_: Any) -> None:
        raise KafkaException(KafkaError(KafkaError._TRANSPORT))


@pytest.fixture(scope="module")
def session() -> Any:
    """A session that writes up to two records at a time."""
    client = SimpleNamespace(Producer=Client, KafkaException=KafkaException, KafkaError=KafkaError)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kafka_session, "silence_of", lambda _: "")
        patch.setattr(kafka_session, "record_limits", lambda *_: RecordLimits())
        patch.setattr(kafka_session, "POLL_RECORDS", 2)
        yield ProducerSession(client, pb.KafkaTopic(brokers=["b:1"], topic="t"), "out")


@given(st.lists(st.lists(RECORDS, min_size=1, max_size=5)), st.sets(st.integers(0, 9), max_size=3))
def test_drawn_parts_reach_the_client_in_order(session: Any, parts: list[list[SinkRecord]], without: set[int]) -> None:
    session._producer.taken.clear()
    session.write(map(RecordColumns.of, parts), SinkPosition(), without)
    records = [record for part in parts for record in part]
    expected = [
        record._replace(headers=[*record.headers], timestamp_ms=max(0, record.timestamp_ms))
        for number, record in enumerate(records)
        if number not in without
    ]
    assert session._producer.taken == expected


@given(st.lists(RECORDS, min_size=1), st.integers(0, 9), st.integers(0, 9))
def test_columns_are_the_records(records: list[SinkRecord], begin: int, end: int) -> None:
    columns = RecordColumns.of(records)
    assert [*columns.records()] == records
    assert [*columns.part(begin, end).records()] == records[begin:end]


@given(st.lists(st.integers(1, 3000), min_size=1, max_size=60), st.integers(1, 200), st.floats(0.01, 9) | st.just(inf))
def test_transactions_wait_for_records_at_high_rates_only(counts: list[int], size: int, since_s: float) -> None:
    now = SinkPosition()
    period_s = TransactionalSink._period_s([Piece(bytes(n * size), [size] * n, now, now) for n in counts], since_s)
    is_full, rate = sum(counts) >= TRANSACTION_RECORDS or sum(counts) * size >= TRANSACTION_BYTES, sum(counts) / since_s
    assert SHORTEST_S <= period_s <= min(LONGEST_S, max(SHORTEST_S, 2 * since_s))
    if is_full or rate < 4999:
        assert period_s == SHORTEST_S
    elif rate > 50_001:
        assert period_s == min(LONGEST_S, max(SHORTEST_S, 2 * since_s))
