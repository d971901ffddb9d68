"""Three Kafka nodes with a copy of each partition on each: the first controls the cluster, the others may be killed."""

import subprocess
from pathlib import Path
from typing import Any

from support.kafka import Broker, free_port
from support.run import wait_until
from wallaroo_runtime.kafka.broker import JAVA_OPTIONS, VERSION
from wallaroo_runtime.kafka.client import Cluster
from wallaroo_runtime.kafka.topic import create_topic
from wallaroo_runtime.system.maven import fetched_jars

NODES, IN_SYNC = 3, 2
WAIT_S = 180.0
SHARED = {
    "offsets.topic.replication.factor": str(NODES),
    "transaction.state.log.replication.factor": str(NODES),
    "transaction.state.log.min.isr": str(IN_SYNC),
    "min.insync.replicas": str(IN_SYNC),
    "auto.leader.rebalance.enable": "false",  # a test says when leaders move
}


class Node(Broker):
    """A node of a cluster.

    Args:
        controller: HOST:PORT of the cluster's controller, which is part of the first node.
        cluster: The id that the first node has drawn; empty makes this the first node.
    """

    def __init__(self, directory: Path, number: int, controller: str, cluster: str = "") -> None:
        self._id = cluster
        address = f"127.0.0.1:{free_port()}"
        listeners = f"PLAINTEXT://{address}"
        own = {
            "node.id": str(number),
            "process.roles": "broker" if cluster else "broker,controller",
            "controller.quorum.bootstrap.servers": controller,
            "listeners": listeners if cluster else f"{listeners},CONTROLLER://{controller}",
            "advertised.listeners": listeners,
        }
        super().__init__(directory, SHARED | own)
        self._port = int(address.rpartition(":")[2])

    def _command(self, jars: Path, classes: str, program: str, *arguments: str) -> list[str]:
        if self._id and arguments[:1] == ("format",):
            arguments = ("format", "-t", self._id, *arguments[-2:])
        return super()._command(jars, classes, program, *arguments)


class Nodes(Broker):
    """A cluster in place of a broker: its address has those of all nodes.

    Attributes:
        nodes: By their numbers, from 1.
    """

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self._controller = f"127.0.0.1:{free_port()}"
        self.nodes = {1: Node(directory / "1", 1, self._controller)}

    def start_all(self) -> None:
        """Start the nodes, and return when the cluster knows all."""
        first = self.nodes[1]
        first.start()
        lines = (first.directory / "topics" / "meta.properties").read_text(encoding="utf-8").splitlines()
        (name,) = (line.partition("=")[2] for line in lines if line.startswith("cluster.id="))
        for number in range(2, NODES + 1):
            self.nodes[number] = Node(self.directory.parent / str(number), number, self._controller, name)
            self.nodes[number].start()
        self.address = ",".join(node.address for node in self.nodes.values())
        wait_until(lambda: len(self.cluster.metadata().brokers) == NODES, lambda: "the cluster", WAIT_S)

    @property
    def cluster(self) -> Cluster:
        """A client's view of it."""
        return Cluster(self.address.split(","), {})

    def create(self, topic: str, partitions: int = 1, **settings: str) -> None:
        """Make a topic with a copy on each node."""
        create_topic(self.cluster, topic, partitions, NODES, {key.replace("_", "."): settings[key] for key in settings})

    def leaders(self, topic: str) -> dict[int, int]:
        """Return the node that leads each partition."""
        partitions = self.cluster.metadata().topics[topic].partitions
        return {number: partition.leader for number, partition in partitions.items()}

    def restore(self, number: int, *topics: str) -> None:
        """Start a node again, wait until it has copied everything, and let it lead the partitions that it led."""
        from confluent_kafka import ElectionType, TopicPartition

        self.nodes[number].start()

        def is_copied() -> bool:
            found = self.cluster.metadata().topics
            return all(len(part.isrs) == NODES for name in found for part in found[name].partitions.values())

        wait_until(is_copied, lambda: f"the copies of node {number}", WAIT_S, every=0.2)
        places = [TopicPartition(topic, partition) for topic in topics for partition in self.leaders(topic)]
        admin = self.cluster.admin()  # the answer comes as long as there is the client
        admin.elect_leaders(ElectionType.PREFERRED, places).result(WAIT_S)

    def configure(self, *arguments: str) -> None:
        """Change settings as `kafka-configs.sh` does, e.g. quotas of clients."""
        jars: Any = fetched_jars(f"broker-{VERSION}", ())
        command = ["java", *JAVA_OPTIONS, "-cp", f"{jars}/*", "kafka.admin.ConfigCommand", "--bootstrap-server"]
        done = subprocess.run(
            [*command, self.address, "--alter", *arguments], capture_output=True, text=True, timeout=WAIT_S, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr

    def stop(self) -> None:
        """End all nodes."""
        for node in reversed(self.nodes.values()):
            if node.is_alive:
                node.kill()
