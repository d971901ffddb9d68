"""`wallaroo broker` and `wallaroo topics` with real processes."""

import json
import secrets
import select
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from support.kafka import Broker, free_port
from support.run import WALLAROO
from wallaroo import KafkaRecord
from wallaroo_runtime.cli.main import main
from wallaroo_runtime.kafka.record import emit, follow
from wallaroo_runtime.kafka.topic import describe_topic

pytestmark = pytest.mark.kafka
START_S = 180.0
PARTITIONS = 5


class Command:
    """`wallaroo broker` as a process."""

    def __init__(self, data: Path, address: str) -> None:
        command = [str(WALLAROO), "broker", "--data", str(data), "--listen", address, "--json"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True)
        assert self.process.stdout is not None
        readable, _, _ = select.select([self.process.stdout], [], [], START_S)
        self.told: dict[str, Any] = json.loads(self.process.stdout.readline()) if readable else {}

    def end(self, number: int) -> int:
        self.process.send_signal(number)
        with self.process:
            return self.process.wait(START_S)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("command") / "data"


def topics(capsys: pytest.CaptureFixture[str], address: str, *arguments: str) -> str:
    assert main(["topics", *arguments, "--brokers", address]) == 0, capsys.readouterr().err
    return capsys.readouterr().out


def test_topics_stay_between_runs_whatever_ends_the_broker(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    address = f"127.0.0.1:{free_port()}"
    for turn, number in enumerate((signal.SIGKILL, signal.SIGINT)):
        command = Command(data, address)
        try:
            assert command.told.items() >= {"state": "serving", "address": address, "data": str(data)}.items()
            if turn == 0:
                assert main(["broker", "--data", str(data), "--listen", "127.0.0.1:0"]) == 2
                assert f"R610 {data} is in use by the broker at {address}\n" in capsys.readouterr().err
                topics(capsys, address, "create", "kept", "--compact")
            topics(capsys, address, "emit", "kept", f"key{turn}", "välue")
            shown = topics(capsys, address, "tail", "kept", "--to-end")
            assert shown == "".join(f"0/{number} key{number} välue\n" for number in range(turn + 1))
        finally:
            code = command.end(number)
        assert code == (-number if number == signal.SIGKILL else 0)
        deadline = time.monotonic() + START_S  # Java ends after the process that started it
        while subprocess.run(["pgrep", "-f", str(data)], capture_output=True, check=False).stdout:
            assert time.monotonic() < deadline, "Kafka outlived the command"
            time.sleep(0.1)


def fnv1a(key: bytes) -> int:
    """FNV-1a of 32 bits as Goka's hasher gives it, and sarama's partitioner uses it."""
    value = 0x811C9DC5
    for octet in key:
        value = (value ^ octet) * 0x01000193 & 0xFFFFFFFF
    return abs(value - (1 << 32) if value >= 1 << 31 else value)


def murmur2(key: bytes) -> int:
    """Murmur2 as Kafka's own clients have it."""
    mask, factor = 0xFFFFFFFF, 0x5BD1E995
    value = 0x9747B28C ^ len(key)
    for at in range(0, len(key) // 4 * 4, 4):
        part = int.from_bytes(key[at : at + 4], "little") * factor & mask
        part = (part ^ part >> 24) * factor & mask
        value = (value * factor & mask) ^ part
    if rest := key[len(key) // 4 * 4 :]:
        value = (value ^ int.from_bytes(rest, "little")) * factor & mask
    value = (value ^ value >> 13) * factor & mask
    return (value ^ value >> 15) & 0x7FFFFFFF


OCTETS = st.binary(max_size=20)
HEADERS = st.lists(st.tuples(st.text("abc", min_size=1, max_size=3), st.none() | OCTETS), max_size=2).map(tuple)
RECORDS = st.lists(
    st.builds(KafkaRecord, st.just(""), st.none() | st.binary(min_size=1, max_size=20), st.none() | OCTETS, HEADERS)
)


@pytest.mark.parametrize(("partitioner", "reference"), [("fnv1a", fnv1a), ("murmur2", murmur2)])
@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(records=RECORDS)
def test_what_is_emitted_is_shown_and_keys_choose_partitions(
    partitioner: str, reference: Callable[[bytes], int], records: list[KafkaRecord], broker: Broker
) -> None:
    topic = f"drawn-{secrets.token_hex(8)}"
    broker.create(topic, PARTITIONS)
    counts = emit(broker.cluster, topic, records, partitioner=partitioner)
    found = list(follow(broker.cluster, topic, from_beginning=True, to_end=True))
    assert counts == Counter(record.partition for record in found)
    expected = Counter((record.key, record.value, record.headers) for record in records)
    assert Counter((record.key, record.value, record.headers) for record in found) == expected
    for record in found:
        assert record.key is None or record.partition == reference(record.key) % PARTITIONS


def test_following_shows_what_comes_from_then_on(broker: Broker, capsys: pytest.CaptureFixture[str]) -> None:
    broker.create("followed", 2)
    topics(capsys, broker.address, "emit", "followed", "before")
    command = [str(WALLAROO), "topics", "tail", "followed", "--brokers", broker.address, "-n", "3", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stderr is not None and process.stdout is not None
        assert process.stderr.readline() == b"following followed; Ctrl-C ends it\n"
        lines = b"ann\t1\nbob\t2\n"
        done = subprocess.run(
            [str(WALLAROO), "topics", "emit", "followed", "--brokers", broker.address, "--header", "via=web"],
            input=lines, capture_output=True, timeout=START_S, check=True,
        )  # fmt: skip
        assert done.stdout == b"2 records written to followed\n"
        topics(capsys, broker.address, "emit", "followed", "--tombstone", "ann")
        found = [json.loads(line) for line in process.stdout]
        assert process.wait(START_S) == 0
    assert sorted((each["key"], each["value"] or "", len(each["headers"])) for each in found) == [
        ("ann", "", 0),
        ("ann", "1", 1),
        ("bob", "2", 1),
    ]


def test_a_topic_can_be_described_at_once(broker: Broker) -> None:
    for number in range(5):
        broker.create(f"new-{number}", 40)
        assert len(describe_topic(broker.cluster, f"new-{number}").partitions) == 40


def test_topics_are_listed_and_described(broker: Broker, capsys: pytest.CaptureFixture[str]) -> None:
    made = topics(capsys, broker.address, "create", "listed", "--partitions", "2", "--compact", "--json")
    expected = {
        "topic": "listed",
        "partitions": [{"number": number, "leader": 1, "begin": 0, "end": 0} for number in range(2)],
        "settings": {"cleanup.policy": "compact"},
    }
    assert json.loads(made).items() >= expected.items()
    listed = [json.loads(line) for line in topics(capsys, broker.address, "ls", "--json").splitlines()]
    assert [each for each in listed if each.items() >= expected.items()]
    assert not [each for each in listed if each["topic"].startswith("__")]
    assert "  cleanup.policy=compact\n" in topics(capsys, broker.address, "describe", "listed")
    address = broker.address
    for arguments, said in (
        (["create", "listed"], f'R727 wallaroo topics: Kafka at {address} refuses it; topic "listed" exists already\n'),
        (["create", "bad", "--config", "no.such=1"], f"R727 wallaroo topics: Kafka at {address} refuses it; "),
        (["emit", "listed", "no key"], "  fix: give each record a key, if the topic is compacted\n"),
        (["tail", "nowhere"], f'R673 Kafka at {address} has no such topic "nowhere"; it does not exist\n'),
        (["tail", "listed", "--partition", "7"], "it has partitions 0, 1, not 7\n"),
    ):
        assert main(["topics", *arguments, "--brokers", address]) != 0
        assert said in capsys.readouterr().err
