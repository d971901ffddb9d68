"""An outbox, an egress over it as a process, and the topic of Kafka that it writes."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.kafka import Broker
from support.part import PART, configured
from wallaroo.message.frame import encode_frame
from wallaroo_runtime.kafka.record import follow
from wallaroo_runtime.storage.outbox.live import OUTPUT, Entry
from wallaroo_runtime.storage.outbox.live_log import LiveLog
from wallaroo_runtime.storage.outbox.outbox import Outbox
from wallaroo_runtime.storage.outbox.position import begin_position, read_position
from wallaroo_runtime.storage.outbox.staging import StagingWriter

DEADLINE_S = 180.0
PORT, PARTITIONS = 3, 3


class Delivery:
    """An outbox, the egress over it, and its topic."""

    def __init__(self, root: Path, broker: Broker, topic: str = "") -> None:
        self.root, self.broker, self.batch, self.topic = root, broker, 0, topic or f"once-{root.name}"
        self.sent: list[tuple[bytes | None, bytes | None]] = []
        self.outbox = Outbox(root / "outbox", root / "dead-letters", root / "staging")
        self.egress: subprocess.Popen[bytes] | None = None
        self.options: dict[str, str] = {}
        self.environment: dict[str, str] = {}
        self.more: dict[str, object] = {"exactly_once": True}
        self.name, self.deaths, self.live = "out", 0, None  # type: str, int, LiveLog | None
        self.brokers = [broker.address]
        if not topic:
            broker.create(self.topic, PARTITIONS)

    def start(self, **environment: str) -> "subprocess.Popen[bytes]":
        target = {
            "application": "app",
            "brokers": self.brokers,
            "topic": self.topic,
            "options": self.options,
            **self.more,
        }
        host, _, port = self.brokers[0].partition(":")
        sink = {"port": PORT, "name": self.name, "host": host, "tcp_port": int(port), "kafka": target}
        command = [sys.executable, "-X", "faulthandler", PART, "egress", configured(self.root, {"sinks": [sink]})]
        with (self.root / "log").open("ab") as log:
            self.egress = subprocess.Popen(command, stderr=log, env=os.environ | self.environment | environment)
        return self.egress

    def publish(self, count: int = 50) -> None:
        """Publish a micro-batch of the next numbers in frames of 20; each tenth is a tombstone."""
        begin, frames = len(self.sent), StagingWriter(self.root / "staging", "q", self.batch, 0, self.batch)
        records: list[tuple[bytes | None, bytes | None]] = [
            (b"%d" % number if number % 3 else None, b"value %d" % number if number % 10 or not number % 3 else None)
            for number in range(begin, begin + count)
        ]
        for at in range(0, count, 20):
            part = records[at : at + 20]
            frames.write(
                PORT,
                encode_frame(
                    [value or b"" for _, value in part],
                    keys=[key or b"" for key, _ in part],
                    key_indexes=list(range(len(part))),
                    absent=[number for number, (_, value) in enumerate(part) if value is None],
                    port=PORT,
                ),
            )
        self.outbox.publish("q", self.batch, frames.finish())
        self.batch += 1
        self.sent += records

    def publish_live(self, drawn: random.Random) -> None:
        """Deliver drawn results of a running batch, among those of another sink; now and then a batch ends."""
        if self.live is None:
            self.live = LiveLog(self.root / "outbox", self.root / "dead-letters", segment_bytes=3000)
            begin_position(self.root / "outbox", PORT)
        for _ in range(drawn.randrange(1, 6)):
            if drawn.random() < 0.4:
                other = encode_frame([b"of another sink"], port=PORT + 1)
                self.live.append(Entry(OUTPUT, PORT + 1, 0, content=other))
            if drawn.random() < 0.2:
                self.outbox.publish("q", self.batch, ())
                self.batch += 1
            count = drawn.randrange(1, 30)
            skip, first = drawn.randrange(count), len(self.sent)
            values = [b"value %d" % number for number in range(first - skip, first - skip + count)]
            frame = encode_frame(values, keys=[b"k"], key_indexes=[0] * count, port=PORT)
            self.live.append(Entry(OUTPUT, PORT, 0, skip=skip, sequence=first, content=frame))
            self.sent += [(b"k", value) for value in values[skip:]]
        if drawn.random() < 0.7:  # a transaction ends after it, and then more comes
            self.live.append(Entry(OUTPUT, PORT + 1, 0, content=encode_frame([b"of another sink"], port=PORT + 1)))
        self.live.sync()

    def committed(self) -> list[tuple[bytes | None, bytes | None]]:
        """Return what readers of committed records see."""
        records = follow(self.broker.cluster, self.topic, from_beginning=True, to_end=True)
        return [(record.key, record.value) for record in records]

    def status(self) -> dict[str, Any]:
        try:
            value: dict[str, Any] = json.loads((self.root / "egress.json").read_bytes())
        except FileNotFoundError:
            return {"state": "", "diagnostics": [], "sinks": [{"messages": 0}]}
        return value

    def wait(self, holds: Callable[[], object], what: str) -> None:
        deadline = time.monotonic() + DEADLINE_S
        while not holds():
            if time.monotonic() > deadline:
                status = self.status()
                self.show_stacks()
                pytest.fail(f"waited for {what}; {status}; {self.log()}")
            if self.egress is not None and self.egress.poll() == -signal.SIGKILL:
                self.deaths += 1
                self.start()
            time.sleep(0.02)

    def show_stacks(self) -> None:
        """Let the egress end with the stacks of its threads in the log."""
        if self.egress is not None and self.egress.poll() is None:
            self.egress.send_signal(signal.SIGABRT)
            self.egress.wait(DEADLINE_S)

    def wait_delivered(self) -> None:
        self.wait(lambda: read_position(self.root / "outbox", PORT).messages == len(self.sent), "all to be delivered")

    def check(self) -> None:
        """End the egress in order; the topic has each record once."""
        self.stop()
        assert Counter(self.committed()) == Counter(self.sent)
        assert not list((self.root / "outbox").glob("*.frames"))

    def stop(self) -> None:
        """End the egress in order."""
        egress = self.egress
        assert egress is not None
        self.wait(lambda: self._is_connected(egress.pid), "a connection")  # by then it takes signals
        egress.terminate()
        assert egress.wait(DEADLINE_S) == 0, self.log()

    def _is_connected(self, pid: int) -> bool:
        status = self.status()
        return status.get("pid") == pid and status.get("sinks", [{}])[0].get("state") == "connected"

    def log(self) -> str:
        return (self.root / "log").read_text()[-4000:]

    def forget(self) -> None:
        """Let Kafka forget the position, as it does after a week without a transaction."""
        group = read_position(self.root / "outbox", PORT).sender
        client = self.broker.cluster.admin()  # the answer comes as long as there is the client
        for done in client.delete_consumer_groups([group]).values():
            done.result(60)

    def findings(self) -> str:
        return "\n".join(f"{each['code']} {each['message']}" for each in self.status()["diagnostics"])

    def close(self) -> None:
        if self.egress is not None and self.egress.poll() is None:
            self.egress.kill()
            self.egress.wait(DEADLINE_S)
