"""The broker's start where it cannot start, and what records look like: all that needs no Kafka."""

import base64
import builtins
import json
import os
import signal
import socket
import stat
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.run import wait_until
from wallaroo import KafkaRecord
from wallaroo_runtime.cli.broker import tell
from wallaroo_runtime.cli.main import main
from wallaroo_runtime.egress import kafka_session, kafka_transaction
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.kafka import topic
from wallaroo_runtime.kafka.broker import VERSION, Broker, cluster_id
from wallaroo_runtime.kafka.client import kafka_client
from wallaroo_runtime.kafka.record import record_json
from wallaroo_runtime.system.lock import TRY, take_lock
from wallaroo_runtime.system.process import process_start_time


def failure(broker: Broker) -> str:
    with pytest.raises(RunError) as raised:
        broker.start()
    return str(raised.value)


def test_a_directory_of_something_else_stays_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    expected = f"R616 {tmp_path} cannot be used by the broker; it holds other files\n"
    assert failure(Broker(tmp_path)).startswith(expected)
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_a_directory_that_a_broker_has(tmp_path: Path) -> None:
    (tmp_path / "lock").write_text("127.0.0.1:9092   ")
    lock = take_lock(tmp_path / "lock", TRY)
    said = failure(Broker(tmp_path))
    os.close(lock)
    assert said == (
        f"R610 {tmp_path} is in use by the broker at 127.0.0.1:9092\n"
        "  fix: wait until it has ended, or stop it (`wallaroo stop` ends a run); if both must run at the same time, "
        "give each its own --data and "
        "--listen"
    )


def test_an_address_in_use(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        said = failure(Broker(tmp_path / "data", port=port))
    assert said == (
        f"R714 the broker cannot listen at 127.0.0.1:{port}; Address already in use\n"
        "  fix: stop the program that uses the address, or give another HOST:PORT of this machine (`ip addr`) "
        "with --listen; ports below 1024 are for root"
    )


def test_without_maven(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", str(tmp_path))
    kept = tmp_path / "cache" / "wallaroo" / f"broker-{VERSION}"
    assert failure(Broker(tmp_path / "data")) == (
        f"R675 org.apache.kafka:kafka_2.13:{VERSION} cannot be fetched; there is no `mvn` on PATH\n"
        f"  fix: install Maven and run this once where its repository is reached; what it fetches stays in {kept}"
    )


def program(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o700)


@pytest.mark.slow
def test_maven_without_its_repository_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    program(tmp_path / "bin" / "mvn", "echo '[ERROR] Network is unreachable'; exit 1")
    assert f"R675 org.apache.kafka:kafka_2.13:{VERSION} cannot be fetched; Network is unreachable" in failure(
        Broker(tmp_path / "data")
    )
    program(tmp_path / "bin" / "mvn", "echo first; echo second; exit 3")
    kept = tmp_path / "cache" / "wallaroo" / f"broker-{VERSION}"
    assert failure(Broker(tmp_path / "data")) == (
        f"R675 org.apache.kafka:kafka_2.13:{VERSION} cannot be fetched; Maven ended with exit code 3; its last lines: "
        "first | second\n"
        f"  fix: install Maven and run this once where its repository is reached; what it fetches stays in {kept}"
    )
    assert not list((tmp_path / "cache" / "wallaroo").iterdir())


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("as_json", [False, True])
def test_a_signal_while_kafka_is_fetched(tmp_path: Path, number: int, as_json: bool) -> None:
    program(tmp_path / "bin" / "mvn", f"echo $$ > {tmp_path}/pid; sleep 600")
    command = [sys.executable, "-c", "import sys; from wallaroo_runtime.cli.main import main; sys.exit(main())"]
    options = ["broker", "--data", str(tmp_path / "data"), "--listen", "127.0.0.1:0", *(["--json"] if as_json else [])]
    environment = os.environ | {
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
        "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}",
    }
    with subprocess.Popen(
        [*command, *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as broker:
        wait_until(lambda: (tmp_path / "pid").exists(), lambda: "Maven", 60)
        broker.send_signal(number)
        out, err = broker.communicate(timeout=300)
    assert (broker.returncode, out) == (128 + number, "")
    text = f"fetching Kafka {VERSION} with Maven, once for this user; it takes about a minute"
    assert err == f"{text}\nstopped before it was ready\n" if not as_json else json.loads(err)["doing"] == text
    maven = int((tmp_path / "pid").read_text())
    wait_until(lambda: not Path(f"/proc/{maven}").exists(), lambda: "the end of Maven", 60)


@pytest.mark.slow
def test_kafka_that_ends_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "java"))
    (tmp_path / "cache" / "wallaroo" / f"broker-{VERSION}").mkdir(parents=True)
    program(tmp_path / "java" / "bin" / "java", "echo '12:00 [main] ERROR kafka.Kafka - no space left'; exit 1")
    data = tmp_path / "data"
    assert failure(Broker(data)) == (
        "R617 the broker ended unexpectedly; its directory was not prepared, exit code 1; kafka.Kafka - no space left\n"
        f"  fix: look into its log {data}/broker.log; run it again: an application continues from its checkpoint"
    )
    assert stat.S_IMODE(data.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in data.iterdir()} == {0o600}


STARTING = """
import sys
from pathlib import Path
from wallaroo_runtime.kafka.broker import Broker

Broker(Path(sys.argv[1])).start()
"""


@pytest.mark.slow
def test_kafka_ends_at_once_with_a_killed_broker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In order Kafka ends in 20 s, in which the directory is locked and nothing can be stopped."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "java"))
    (tmp_path / "cache" / "wallaroo" / f"broker-{VERSION}").mkdir(parents=True)
    program(tmp_path / "java" / "bin" / "java", f"trap '' TERM; echo $$ > {tmp_path}/pid; while :; do sleep 1; done")
    (data := tmp_path / "data").mkdir()
    (data / "lock").touch()
    (data / "topics").mkdir()
    (data / "topics" / "meta.properties").touch()
    with subprocess.Popen([sys.executable, "-c", STARTING, str(data)]) as process:
        wait_until(lambda: (tmp_path / "pid").is_file() and (tmp_path / "pid").read_text() != "", lambda: "Kafka", 60)
        java = int((tmp_path / "pid").read_text())
        process.kill()
    wait_until(lambda: process_start_time(java) is None, lambda: f"the end of {java}", 60)


def test_topics_without_a_broker(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
    assert main(["topics", "--brokers", address, "ls"]) == 1
    before = capsys.readouterr().err
    monkeypatch.setenv("WALLAROO_BROKERS", address)
    assert main(["topics", "ls"]) == 1
    assert capsys.readouterr().err == before
    monkeypatch.setenv("WALLAROO_BROKERS", "127.0.0.1:1")
    assert main(["topics", "ls", "--brokers", address]) == 1
    assert (
        capsys.readouterr().err
        == before
        == (
            f"R672 wallaroo topics: no answer from Kafka at {address}; Connection refused\n"
            "  fix: start the brokers, e.g. `wallaroo broker`, or correct their address: in the program, by "
            "WALLAROO_BROKERS=HOST:PORT (for several clusters by the variables that `wallaroo pack` names), or by "
            "--brokers of `wallaroo topics`\n"
        )
    )


def test_without_the_client(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def missing(name: str, *arguments: Any) -> Any:
        if name == "confluent_kafka":
            raise ImportError(name="confluent_kafka", path=None)
        return real(name, *arguments)

    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(RunError) as raised:
        kafka_client("wallaroo topics")
    assert str(raised.value).startswith("R728 wallaroo topics needs the package confluent_kafka; ")
    assert str(raised.value).endswith(f"fix: {sys.executable} -m pip install 'wallaroo-spark-runtime[kafka]'")


def test_a_broker_that_other_machines_reach_warns(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    broker = Broker(tmp_path)
    broker.address = "host:9092"
    tell(broker, is_open=True, as_json=True)
    said = capsys.readouterr()
    told = {"state": "serving", "address": "host:9092", "data": str(tmp_path)}
    assert json.loads(said.out).items() >= told.items()
    assert json.loads(said.err)[0]["code"] == "R713"
    tell(broker, is_open=True, as_json=False)
    assert capsys.readouterr().err == (
        "R713 the broker listens at host:9092, where other machines may reach it; any of them can read and write its "
        "topics\n  fix: restrict access to the address, e.g. by a firewall, or listen at 127.0.0.1\n"
    )


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["create", "t", "--partitions", "0"], "'0' is not a number from 1 to "),
        (["create", "t", "--config", "x"], "'x' is not NAME=VALUE"),
        (["emit", "t", "--partition", "-1"], "argument --partition: "),
        (["emit", "t", "--partitioner", "crc"], "crc is not a value of --partitioner"),
        (["tial", "t"], "tial is not a value of"),
        (["ls", "--brokers", "here"], "T211 "),
    ],
)
def test_arguments_that_cannot_be(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["topics", *arguments]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("place", ["--brokers", "WALLAROO_BROKERS"])
@pytest.mark.parametrize(
    ("brokers", "wrong", "reason"),
    [
        ("here", "here", "it has no port"),
        ("h:9092,:9093", ":9093", "it has no host"),
        ("SSL://h:0", "SSL://h:0", "0 is not the port of a broker"),
        ("own@h:9092", "own@h:9092", "a name is of no use here"),
    ],
)
def test_wrong_brokers_of_option_and_variable_have_one_text(
    place: str,
    brokers: str,
    wrong: str,
    reason: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    options = ["--brokers", brokers] if place == "--brokers" else []
    monkeypatch.setenv("WALLAROO_BROKERS", "other:1" if options else brokers)
    assert main(["topics", "ls", *options]) == 2
    assert capsys.readouterr().err == (
        f'T211 {place}: broker address "{wrong}" is not usable; {reason}\n'
        "  fix: give HOST:PORT with a port of at most 65535\n"
    )


def test_a_call_that_forgets_its_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kafka_transaction, "GRACE_S", 0.01)
    never = threading.Event()
    with pytest.raises(kafka_session.Unavailable, match="the client did not answer within 0.01 s"):
        kafka_transaction.within(0.01, lambda timeout: never.wait())
    never.set()
    found: list[float] = []
    kafka_transaction.within(60, found.append)
    assert found == [60]

    def failing(timeout: float) -> None:
        raise KeyError(timeout)

    with pytest.raises(KeyError):
        kafka_transaction.within(60, failing)


def test_a_broker_that_does_not_say_how_large_records_may_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topic, "ANSWER_S", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as listener:  # it takes connections, and never answers
        settings = {"bootstrap.servers": f"127.0.0.1:{listener.getsockname()[1]}", "log_level": 0}
        assert topic.record_limits(settings, "any") == topic.RecordLimits(1_048_588, needs_key=False)


OCTETS = st.binary(max_size=30)


@given(st.none() | OCTETS, st.none() | OCTETS, st.lists(st.tuples(st.text(min_size=1), st.none() | OCTETS)))
def test_a_record_as_json_has_everything(
    key: bytes | None, value: bytes | None, headers: list[tuple[str, bytes | None]]
) -> None:
    def octets(found: dict[str, Any], name: str) -> bytes | None:
        if f"{name}_base64" in found:
            return base64.b64decode(found[f"{name}_base64"])
        text = found[name]
        return None if text is None else text.encode()

    found = json.loads(json.dumps(record_json(KafkaRecord("t", key, value, headers))))
    assert (octets(found, "key"), octets(found, "value")) == (key, value)
    assert [(each["name"], octets(each, "value")) for each in found["headers"]] == headers


@given(st.binary(min_size=16, max_size=16))
def test_the_id_of_a_cluster_is_no_option(drawn: bytes) -> None:
    name = cluster_id(drawn)
    assert not name.startswith("-")
    assert base64.urlsafe_b64decode(f"{name}==")[1:] == drawn[1:]
