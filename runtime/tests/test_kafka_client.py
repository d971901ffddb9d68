"""Clients of Kafka while brokers do not know, or do not answer, for a moment."""

from unittest.mock import Mock

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition
from hypothesis import given
from hypothesis import strategies as st

from wallaroo_runtime.gateway.kafka_reader import KafkaReader
from wallaroo_runtime.kafka import client
from wallaroo_runtime.kafka.client import EARLIEST, LATEST, Cluster
from wallaroo_runtime.service._proto import service_pb2 as pb

NO_LEADER, NO_ANSWER = KafkaError.LEADER_NOT_AVAILABLE, KafkaError._TIMED_OUT


def failing(code: int) -> KafkaException:
    return KafkaException(KafkaError(code))


def test_offsets_of_a_new_topic_wait_for_its_leaders(monkeypatch: pytest.MonkeyPatch) -> None:
    """A topic that was just created has no leader for a moment."""
    monkeypatch.setattr(client, "check_answer", lambda brokers, what: None)
    cluster, admin = Cluster(["h:1"], {}), Mock()
    monkeypatch.setattr(cluster, "admin", lambda: admin)
    fails = [Mock(result=Mock(side_effect=failing(NO_LEADER))), Mock(result=Mock(return_value=Mock(offset=7)))]
    admin.list_offsets.side_effect = lambda asked, **_: dict.fromkeys(asked, fails.pop(0))
    assert cluster.offsets("new", [0, 1], LATEST) == {0: 7, 1: 7}
    assert cluster.offsets("new", [], EARLIEST) == {}


@given(st.dictionaries(st.integers(0, 5), st.tuples(st.integers(0, 9), st.integers(10, 99)), min_size=1), st.data())
def test_lost_partitions_go_on_when_brokers_answer(ends: dict[int, tuple[int, int]], data: st.DataObject) -> None:
    """Brokers that are away do not end the reader: it asks again."""
    reset = data.draw(st.sampled_from(["start", "end"]))
    reader, consumer = KafkaReader(pb.KafkaSource(topic="t", reset=reset), dict.fromkeys(ends, 1), Mock()), Mock()
    silent = data.draw(st.integers(0, 3))
    assigned = dict.fromkeys(ends, 1)

    def bounds(partition: TopicPartition, _: float) -> tuple[int, int]:
        nonlocal silent
        if silent:
            silent -= 1
            raise failing(NO_ANSWER)
        return ends[partition.partition]

    def assign(partitions: list[TopicPartition]) -> None:
        assigned.update({each.partition: each.offset for each in partitions})

    def unassign(partitions: list[TopicPartition]) -> None:
        for each in partitions:
            del assigned[each.partition]  # the client refuses partitions that it does not read

    consumer.get_watermark_offsets.side_effect = bounds
    consumer.incremental_assign.side_effect, consumer.incremental_unassign.side_effect = assign, unassign
    reader._gone.update(ends)
    while reader._gone:
        reader._begin_again(consumer)
    assert assigned == reader._next == {number: places[reset == "end"] for number, places in ends.items()}
