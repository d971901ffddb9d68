"""A real Kafka broker for tests: fetched with Maven, one node, no ZooKeeper, ports that the system chooses."""

import socket
import subprocess
import time
import uuid
from pathlib import Path

from confluent_kafka.admin import AdminClient, NewTopic

from support import maven

VERSION = "4.1.1"
COORDINATE = f"org.apache.kafka:kafka_2.13:{VERSION}"
START_S, STOP_S = 180, 60


def jars() -> Path:
    """Return the directory of the broker's jars."""
    return maven.jars(f"kafka-{VERSION}", COORDINATE)


def free_port() -> int:
    """Return a port that nothing uses; a broker that is started again must find its own."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


class Broker:
    """One Kafka node with its files in a directory; topics are made by `create`."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.address = f"127.0.0.1:{free_port()}"
        controller = f"127.0.0.1:{free_port()}"
        self._properties = directory / "server.properties"
        settings = {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.bootstrap.servers": controller,
            "listeners": f"PLAINTEXT://{self.address},CONTROLLER://{controller}",
            "controller.listener.names": "CONTROLLER",
            "log.dirs": str(directory / "logs"),
            "auto.create.topics.enable": "false",
            "offsets.topic.replication.factor": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "group.initial.rebalance.delay.ms": "0",
        }
        self._properties.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        self._process: subprocess.Popen[bytes] | None = None
        identity = uuid.uuid4().hex[:22]
        self._run("kafka.tools.StorageTool", "format", "--standalone", "-t", identity, "-c", str(self._properties))

    def _command(self, program: str, *arguments: str) -> list[str]:
        return ["java", "-Xmx384m", "-XX:TieredStopAtLevel=1", "-cp", f"{jars()}/*", program, *arguments]

    def _run(self, program: str, *arguments: str) -> None:
        with (self.directory / "tool.log").open("ab") as log:
            command = self._command(program, *arguments)
            subprocess.run(command, check=True, timeout=START_S, stdout=log, stderr=log)

    def start(self) -> None:
        """Start the broker; returns when it takes connections."""
        with (self.directory / "broker.log").open("ab") as log:
            command = self._command("kafka.Kafka", str(self._properties))
            self._process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
        host, port = self.address.split(":")
        deadline = time.monotonic() + START_S
        while True:
            try:
                socket.create_connection((host, int(port)), timeout=1).close()
                return
            except OSError:
                log_text = (self.directory / "broker.log").read_text()[-2000:]
                assert self._process.poll() is None, f"the broker ended: {log_text}"
                assert time.monotonic() < deadline, f"no broker at {self.address} after {START_S} s: {log_text}"
                time.sleep(0.1)

    def stop(self) -> None:
        """End the broker; its files stay, and it may be started again."""
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait(STOP_S)
            self._process = None

    def create(self, topic: str, partitions: int = 1) -> None:
        """Make a topic."""
        client = AdminClient({"bootstrap.servers": self.address})
        client.create_topics([NewTopic(topic, partitions, 1)])[topic].result(START_S)
