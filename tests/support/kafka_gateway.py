"""A gateway that reads topics into its journal, as a process of its own."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from confluent_kafka import Producer

from support.kafka import Broker
from support.part import PART, configured
from support.run import wait_until
from wallaroo.message.frame import read_frame, split_frames
from wallaroo_runtime.errors import RunError
from wallaroo_runtime.kafka.consumer import consumer_settings
from wallaroo_runtime.storage.journal.reader import JournalReader
from wallaroo_runtime.storage.outbox.sink_record import SinkRecord, whole_record

PORT, DEADLINE_S = 3, 120.0
QUIET = {"log_level": 0}


def new_topic(broker: Broker, partitions: int = 1) -> str:
    name = f"t{time.monotonic_ns()}"
    broker.create(name, partitions)
    return name


def produce(broker: Broker, topic: str, values: list[bytes], partition: int = 0) -> None:
    producer, errors = Producer({**QUIET, "bootstrap.servers": broker.address}), list[Any]()
    for value in values:
        producer.produce(topic, value, key=b"k", partition=partition, on_delivery=lambda error, _: errors.append(error))
    assert producer.flush(60) == 0 and errors == [None] * len(values), errors


class TopicGateway:
    """A gateway over some topics; it may be killed and started again.

    Args:
        directory: Of the journal.
        brokers: Address of the broker.
    """

    def __init__(self, directory: Path, brokers: str) -> None:
        self.directory, self.brokers = directory, brokers
        self.kafka: list[dict[str, Any]] = []
        self.more: dict[str, Any] = {"segment_bytes": 5000, "fsync_interval_ms": 1}
        self.process: subprocess.Popen[bytes] | None = None
        self.done = self.read_to = 0

    def read(self, topic: str, starts: dict[int, int], *, records: bool = True, **more: Any) -> int:
        """Add a topic; returns its port."""
        port = PORT + len(self.kafka)
        own = {"port": port, "path": f"0/sources/{port}", "name": topic, "topic": topic, "brokers": [self.brokers]}
        settings = consumer_settings({})
        self.kafka.append(
            {"starts": starts, "maxMessageBytes": 1 << 20, "records": records, "settings": settings, **own, **more}
        )
        return port

    def start(self, **environment: str) -> None:
        """Start the process."""
        path = configured(self.directory, {"kafka": self.kafka, **self.more})
        (self.directory / "gateway.json").unlink(missing_ok=True)
        with (self.directory / "log").open("ab") as log:
            command = [sys.executable, PART, "gateway", path]
            self.process = subprocess.Popen(command, stderr=log, env=os.environ | environment)

    def end(self, number: int = signal.SIGKILL) -> int:
        """End the process by a signal, if it lives; returns its exit status."""
        assert self.process is not None
        self.process.send_signal(number)
        return self.process.wait(30)

    def is_alive(self) -> bool:
        """Whether the process runs."""
        return self.process is not None and self.process.poll() is None

    def status(self) -> dict[str, Any]:
        """Return what it says; empty before it says anything."""
        try:
            value: dict[str, Any] = json.loads((self.directory / "gateway.json").read_bytes())
        except (FileNotFoundError, ValueError):
            return {}
        return value

    def findings(self) -> list[str]:
        """Return the codes of its findings."""
        return [each["code"] for each in self.status().get("diagnostics", [])]

    def log(self) -> str:
        """Return what it has printed, and its status."""
        return f"{(self.directory / 'log').read_text()[-2000:]} {self.status()}"

    def processed(self) -> list[SinkRecord]:
        """Return the records that the journal has, and say that they are processed."""
        found = self.records()
        if self.read_to:
            JournalReader(self.directory / "journal").commit(self.read_to)
            self.done = self.read_to
        return found

    def frames(self) -> Iterator[Any]:
        """Yield the frames of the journal that are not processed."""
        try:
            reader = JournalReader(self.directory / "journal")
            end = reader.end().offset
        except RunError:
            return
        self.read_to = end
        for data in reader.read(self.done, end):
            for _, start, stop in split_frames(data):
                yield read_frame(data[start:stop])

    def ports(self) -> list[int]:
        """Return the port of each message of the journal."""
        return [frame.header.port for frame in self.frames() for _ in range(frame.header.count)]

    def records(self, port: int = PORT) -> list[SinkRecord]:
        """Return the records of a topic, in the order of the journal."""
        frames = [frame for frame in self.frames() if frame.header.port == port]
        return [whole_record(value) for frame in frames for value in frame.values()]

    def values(self, port: int = PORT) -> list[bytes | None]:
        """Return the values of the records of a topic."""
        return [record.value for record in self.records(port)]

    def wait_messages(self, count: int) -> None:
        """Wait until the journal has so many messages."""
        wait_until(lambda: len(self.ports()) >= count or not self.is_alive(), self.log, DEADLINE_S)
        assert self.is_alive(), self.log()
