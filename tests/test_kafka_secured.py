"""A broker that wants a login over TLS: groups of Goka, whose topics Spark's client reads, and librdkafka writes."""

import random
import string
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from support.goka import Processor, build_ours
from support.kafka import Broker, free_port
from support.kafka_application import Make, application, document
from support.run import READY, TESTS, WALLAROO, wait_until
from wallaroo import goka
from wallaroo_runtime.kafka.client import ACCESS, Cluster
from wallaroo_runtime.kafka.topic import create_topic
from wallaroo_runtime.topology.canonical import interface_hash
from wallaroo_runtime.topology.load import load_document

pytestmark = [pytest.mark.kafka, pytest.mark.long]
__all__ = ["application"]  # the fixture
PROGRAM = TESTS / "support" / "goka_secured.py"
LEDGER = TESTS / "support" / "goka_ledger"
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
WAIT_S = 300.0


def certificate(directory: Path) -> tuple[Path, Path]:
    """Make a certificate of 127.0.0.1 that its own key signs; returns it, and a file with the key before it."""
    chain, key, both = directory / "ca.pem", directory / "key.pem", directory / "server.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=broker"]
    names = ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(chain)]
    subprocess.run([*command, *names], check=True, capture_output=True, timeout=300)
    both.write_text(key.read_text() + chain.read_text())
    return chain, both


def password() -> str:
    """Draw a password, with what has a meaning in Java's configuration."""
    return "".join(random.choices(string.ascii_letters + "\"\\'; =#${}é", k=12))


class Secured(Broker):
    """A broker with a listener that wants a login, besides the plain one.

    Args:
        directory: Of its files.

    Attributes:
        options: How sources and sinks reach it.
        secured: Address of the listener.
    """

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        authority, server = certificate(directory)
        plain, secured, controller = free_port(), free_port(), free_port()
        secret = password()
        self.authority, self.secured, self.password = authority, f"127.0.0.1:{secured}", secret
        quoted = secret.replace("\\", "\\\\").replace('"', '\\"')
        login = f'{PLAIN} required user_ann="{quoted}";'
        self._port = plain
        self._settings |= {
            "controller.quorum.bootstrap.servers": f"127.0.0.1:{controller}",
            "listeners": f"PLAINTEXT://127.0.0.1:{plain},SASL_SSL://{self.secured},CONTROLLER://127.0.0.1:{controller}",
            "advertised.listeners": f"PLAINTEXT://127.0.0.1:{plain},SASL_SSL://{self.secured}",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SASL_SSL:SASL_SSL,CONTROLLER:PLAINTEXT",
            "inter.broker.listener.name": "PLAINTEXT",
            "sasl.enabled.mechanisms": "PLAIN",
            # A file of properties has escapes of its own, and is read as Latin 1.
            "listener.name.sasl_ssl.plain.sasl.jaas.config": login.replace("\\", "\\\\").replace("é", "\\u00e9"),
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(server),
        }

    @property
    def options(self) -> Mapping[str, str]:
        """How sources and sinks reach it."""
        return {
            "kafka.security.protocol": "SASL_SSL",
            "kafka.ssl.ca.location": str(self.authority),
            "kafka.sasl.mechanism": "PLAIN",
            "kafka.sasl.username": "ann",
            "kafka.sasl.password": self.password,
        }


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    made = Secured(tmp_path_factory.mktemp("secured"))
    made.start()
    yield made
    made.stop()


def client(broker: Secured) -> dict[str, str]:
    """Return the settings of a client of ours."""
    return {name.removeprefix("kafka."): value for name, value in broker.options.items()}


def test_a_group_in_python(secured: Secured, application: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster([secured.secured], client(secured))
    for topic in ("words", "prices"):
        create_topic(cluster, topic, 2, 1, {})
    for name, value in secured.options.items():
        monkeypatch.setenv(name.replace(".", "_"), value)
    brokers, text = [secured.secured], goka.String()
    with goka.Emitter(brokers, "prices", text, options=client(secured)) as emitter:
        emitter.emit("k", "7")
    running = application(PROGRAM, secured.secured)
    running.start()
    wait_until(lambda: READY in running.output() or running.process.poll() is not None, running.output, WAIT_S)  # type: ignore[union-attr]
    with goka.Emitter(brokers, "words", text, options=client(secured)) as emitter:
        emitter.emit("k", "one")
    with goka.View(brokers, goka.group_table("secured"), text, options=client(secured)) as table:
        table.wait_running(WAIT_S)
        wait_until(lambda: table.get("k") == "one, joined 7, looked up 7, looped", running.output, WAIT_S)
    assert running.end() == 0, running.output()


@pytest.mark.parametrize("builders", ["", "yes"])
def test_a_processor_in_go(builders: str, secured: Secured, tmp_path: Path) -> None:
    topic, prices = f"ledger{builders}-in", f"ledger{builders}-prices"
    for name in (topic, prices):
        secured.create(name, 2)
    binary = build_ours(tmp_path, LEDGER)
    more = {"INPUTS": topic, "TABLE": prices, "WALLAROO": str(WALLAROO), "BUILDERS": builders}
    login = {"BROKERS": secured.secured, "LOGIN": f"ann:{secured.password}", "AUTHORITY": str(secured.authority)}
    ledger = Processor(binary, tmp_path / "ledger", secured, "", "ledger", **more, **login)
    try:
        ledger.start()
        brokers, text = [secured.address], goka.String()
        with goka.Emitter(brokers, topic, text) as emitter:
            emitter.emit("k", "four")
        with goka.View(brokers, goka.group_table(ledger.group), text) as table:
            table.wait_running(WAIT_S)
            wait_until(lambda: table.get("k") == "1 4 0", ledger.output, WAIT_S)
    finally:
        ledger.end()


@pytest.mark.parametrize("mode", ["microbatch", "realtime"])
@pytest.mark.parametrize("end", ["source", "sink"])
@pytest.mark.parametrize("what", ["password", "certificate"])
def test_a_start_does_not_wait_for_brokers_that_refuse_access(
    what: str, end: str, mode: str, secured: Secured, tmp_path: Path, application: Make
) -> None:
    options = dict(secured.options)
    if what == "password":
        options["kafka.sasl.password"] = "no"
    else:
        (tmp_path / "other").mkdir()
        options["kafka.ssl.ca.location"] = str(certificate(tmp_path / "other")[0])
    name = f"refused-{what}-{end}-{mode}"
    for topic in ("in", "out"):
        secured.create(f"{name}-{topic}")
    app = document(secured, name)
    app["pipelines"][0][f"{end}s"][0] |= {"brokers": [secured.secured], "options": options}
    app["workers"][0]["interface_hash"] = interface_hash(load_document(app))
    running = application(app)
    running.start("--mode", mode)
    assert running.wait() == 2, running.output()
    said = f'R727 {end} "{"in" if end == "source" else "out"}": Kafka at {secured.secured} refuses it; '
    assert said in running.output() and f"  fix: {ACCESS}\n" in running.output(), running.output()
