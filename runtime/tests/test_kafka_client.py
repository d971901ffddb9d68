"""Clients of Kafka while brokers do not know, or do not answer, for a moment."""

import concurrent.futures
from unittest.mock import Mock, patch

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition
from hypothesis import given
from hypothesis import strategies as st
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]

from wallaroo_runtime.errors import RunError
from wallaroo_runtime.gateway.kafka_reader import KafkaReader
from wallaroo_runtime.kafka import client
from wallaroo_runtime.kafka.client import ACCESS, EARLIEST, LATEST, Cluster
from wallaroo_runtime.run import topics
from wallaroo_runtime.run.mode import MicroBatchMode
from wallaroo_runtime.run.options import CheckpointOptions
from wallaroo_runtime.service._proto import service_pb2 as pb
from wallaroo_runtime.spark.failure.cause import causes_of
from wallaroo_runtime.spark.source import kafka as spark_kafka
from wallaroo_runtime.topology.model import KafkaSource

ERRORS = "org.apache.kafka.common.errors"
NO_LEADER, NO_ANSWER = KafkaError.LEADER_NOT_AVAILABLE, KafkaError._TIMED_OUT


def failing(code: int) -> KafkaException:
    return KafkaException(KafkaError(code))


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> tuple[Cluster, Mock]:
    """Give a cluster, and the client that it asks."""
    monkeypatch.setattr(client, "check_answer", lambda brokers, what: None)
    monkeypatch.setattr(client, "ANSWER_S", 0.0)
    cluster, admin = Cluster(["h:1"], {}), Mock()
    monkeypatch.setattr(cluster, "admin", lambda: admin)
    return cluster, admin


@pytest.mark.parametrize(
    ("codes", "said"),
    [
        ([], "R672 wallaroo topics: no answer from Kafka at h:1; "),
        ([KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN], "R672 wallaroo topics: no answer from Kafka at h:1; 0"),
        ([KafkaError._TRANSPORT, KafkaError._AUTHENTICATION], "R727 wallaroo topics: Kafka at h:1 refuses it; 1"),
        ([KafkaError._SSL, KafkaError._ALL_BROKERS_DOWN], "R727 wallaroo topics: Kafka at h:1 refuses it; 0"),
    ],
)
def test_an_error_of_a_connection_is_the_reason(codes: list[int], said: str, asked: tuple[Cluster, Mock]) -> None:
    cluster, admin = asked
    admin.list_topics.side_effect = failing(KafkaError._TRANSPORT)
    report = cluster.settings["error_cb"]
    admin.poll.side_effect = lambda _: [report(KafkaError(code, str(at))) for at, code in enumerate(codes)]
    for _ in range(2):
        with pytest.raises(RunError) as caught:
            cluster.metadata()
        assert str(caught.value).startswith(said)
        assert str(caught.value).endswith(f"fix: {ACCESS}") == said.startswith("R727")


ACCESS_CODES = (KafkaError._AUTHENTICATION, KafkaError._SSL)
CONNECTION_CODES = (*ACCESS_CODES, KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN)


@given(st.lists(st.lists(st.sampled_from(CONNECTION_CODES), max_size=4), min_size=1, max_size=5))
def test_a_call_is_not_repeated_if_brokers_refuse_access(connections: list[list[int]]) -> None:
    """Each call fails after some connections have failed; the last one that has a reason of its own decides."""
    expected, last = 0, 0
    for codes in connections:
        expected, last = expected + 1, next((code for code in reversed(codes) if code != CONNECTION_CODES[-1]), last)
        if last in ACCESS_CODES:
            break
    with patch.object(client, "check_answer"), patch.object(client, "time") as clock:
        cluster, admin, left = Cluster(["h:1"], {}), Mock(), list(connections)
        clock.monotonic.side_effect = lambda: 0 if left else client.ANSWER_S + 1
        admin.list_topics.side_effect = failing(KafkaError._TRANSPORT)
        report = cluster.settings["error_cb"]
        admin.poll.side_effect = lambda _: [report(KafkaError(code)) for code in (left.pop(0) if left else ())]
        with patch.object(cluster, "admin", return_value=admin), pytest.raises(RunError):
            cluster.metadata()
    waits = [call.kwargs["timeout"] for call in admin.list_topics.call_args_list]
    assert waits == [client.FIRST_S, *[client.CONNECT_S] * (expected - 1)]


def test_brokers_that_are_not_ready_have_not_answered(asked: tuple[Cluster, Mock]) -> None:
    cluster, admin = asked
    admin.list_topics.return_value = Mock(brokers={}, topics={})
    with pytest.raises(RunError, match="R672 .*; the cluster has no brokers now"):
        cluster.partitions("any")
    admin.list_offsets.side_effect = failing(NO_LEADER)
    with pytest.raises(RunError, match="R672 .*; Broker: Leader not available"):
        cluster.offsets("any", [0], LATEST)
    late = Mock(result=Mock(side_effect=concurrent.futures.TimeoutError))
    admin.describe_topics.return_value = {"any": late}
    with pytest.raises(RunError, match="R672 .*; no answer in time"):
        cluster.topic_id("any")


@given(st.lists(st.tuples(st.sampled_from(["a:1", "b:1"]), st.integers(0, 15))), st.booleans())
def test_a_start_asks_until_brokers_answer(outages: list[tuple[str, int]], is_refused: bool) -> None:
    """It reports each outage at once, and again after ten seconds. Other errors end it."""
    now, told, expected, last = 0.0, Mock(), list[str](), ("", 0.0)
    left = list(outages)

    def ask() -> str:
        nonlocal now, last
        if not left and is_refused:
            raise RunError.of("R673", topic="t", brokers="a:1", reason="it does not exist")
        if not left:
            return "answer"
        brokers, seconds = left.pop(0)
        now += seconds
        if brokers != last[0] or now >= last[1] + 10:
            last = brokers, now
            expected.append(brokers)
        raise RunError.of("R672", what="a part", brokers=brokers, reason="Connection refused")

    def sleep(seconds: float) -> None:
        nonlocal now
        now += seconds

    with patch.object(topics, "time", Mock(monotonic=lambda: now, sleep=sleep)):
        if is_refused:
            with pytest.raises(RunError, match="R673"):
                topics.until_answered(ask, told)
        else:
            assert topics.until_answered(ask, told) == "answer"
    said = [call.args[0].message for call in told.warn.call_args_list]
    assert said == [f"a part: no answer from Kafka at {brokers}; Connection refused" for brokers in expected]
    assert [call.args[1] for call in told.doing.call_args_list] == [
        *["waiting for Kafka"] * bool(said),
        *["Kafka answers"] * bool(said and not is_refused),
    ]


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


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (f"{ERRORS}.TimeoutException: Timed out waiting for a node assignment", "R672"),
        (f"{ERRORS}.LeaderNotAvailableException: There is no leader", "R672"),
        ("java.util.concurrent.TimeoutException", "R672"),
        (f"{ERRORS}.UnknownTopicOrPartitionException: This server does not host it", "R673"),
        (f"{ERRORS}.SaslAuthenticationException: Authentication failed", "R727"),
        (f"{ERRORS}.SslAuthenticationException: SSL handshake failed", "R727"),
        (f"{ERRORS}.TopicAuthorizationException: Not authorized", "R727"),
        ("java.lang.IllegalStateException: no such thing", "R727"),
    ],
)
def test_spark_s_client_tells_silence_from_a_refusal(error: str, code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A start waits for brokers that give no answer, and not for those that refuse."""
    kind, _, message = error.partition(": ")
    cause = Mock(_target_id="o1")
    cause.getClass.return_value.getSimpleName.return_value = kind.rpartition(".")[2]
    cause.getMessage.return_value = message
    thrown = Py4JJavaError("failed", Mock(_target_id="o2", getCause=lambda: cause))
    monkeypatch.setattr(spark_kafka, "causes_of", lambda _: causes_of(f"{error}\n\tat x.y.Z(Z.java:1)"))
    source = KafkaSource(
        path="0/sources/0", name="in", kind="kafka", codec="", worker="main", topic="t", brokers=("h:1",),
        start="start", options={}, max_message_bytes=1000,
    )  # fmt: skip
    admin = object.__new__(spark_kafka.KafkaAdmin)
    admin._part, admin._jvm = source, Mock()
    with pytest.raises(RunError) as caught:
        admin._get(Mock(get=Mock(side_effect=thrown)))
    (finding,) = caught.value.diagnostics
    assert finding.code == code
    assert ("Authenti" in error or "Authori" in error) == (finding.fix == ACCESS)


def test_micro_batches_wait_for_the_brokers_of_sources(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark's client asks for them, when Spark runs already."""
    away = RunError.of("R672", what='source "in"', brokers="h:1", reason="Connection refused")
    check, reporter, checkpoint = Mock(side_effect=[away, away, {"0/sources/0": "id"}]), Mock(), Mock(repeated=-1)
    monkeypatch.setattr(spark_kafka, "check_kafka", check)
    monkeypatch.setattr(topics, "AGAIN_S", 0.0)
    options = CheckpointOptions()
    ids = MicroBatchMode().begin(Mock(), Mock(), checkpoint, options, Mock(), reporter)
    assert ids == {"0/sources/0": "id"}
    assert check.call_count == 3
    reporter.warn.assert_called_once_with(*away.diagnostics)
