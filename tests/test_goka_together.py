"""Four processors of one Go program as one application: Goka's messaging example on real Spark and Kafka."""

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from support.goka import Processor, build_ours
from support.kafka import Broker
from support.run import TESTS, wait_until
from wallaroo import goka

pytestmark = [pytest.mark.kafka, pytest.mark.long]
PROGRAM, PREFIX, WAIT_S = TESTS / "support" / "goka_messages", "m-", 300.0
TEXT = goka.String()


@pytest.fixture
def messages(broker: Broker, tmp_path: Path) -> Iterator[Processor]:
    for topic, partitions in {"sent": 3, "received": 2, "commands": 1, "words": 2}.items():
        broker.create(PREFIX + topic, partitions)
    made = Processor(build_ours(tmp_path, PROGRAM), tmp_path / "messages", broker, "", "messages", PREFIX=PREFIX)
    yield made
    made.end()


def test_messages_between_users(messages: Processor, broker: Broker) -> None:
    brokers = [broker.address]
    with goka.Emitter(brokers, f"{PREFIX}words", TEXT) as emitter:
        emitter.emit("hello", "servus")
    messages.start()
    for group, partitions in {"blocker": 1, "collector": 2, "detector": 3, "filter": 3}.items():
        assert f"{PREFIX}{group} has {partitions} partitions" in messages.output()
    assert sum("java" in name.lower() for name in messages.parts()) <= 1
    emitter = goka.Emitter(brokers, f"{PREFIX}sent", TEXT)
    blocked = goka.View(brokers, f"{PREFIX}blocker-table", TEXT)
    received = goka.View(brokers, f"{PREFIX}collector-table", goka.Json())
    with emitter, blocked, received:
        for view in (blocked, received):
            view.wait_running(WAIT_S)

        def wait_for(view: goka.View, expected: dict[str, object]) -> None:
            seen: Callable[[], str] = lambda: f"{dict(view.iterate())} instead of {expected}"  # noqa: E731
            wait_until(lambda: dict(view.iterate()) == expected, lambda: seen() + messages.output()[-2000:], WAIT_S)

        for number in range(3):
            emitter.emit("spammer", f"ann hello {number}")
        told: list[object] = [f"spammer: servus {number} (messages)" for number in range(3)]
        wait_for(blocked, {"spammer": "too many"})
        wait_for(received, {"ann": told})

        def is_filtered() -> bool:
            """Write until nothing of it comes: a joined table is seen with a later micro-batch."""
            before = len(received.get("bob") or ())
            emitter.emit_sync("spammer", "bob buy")
            emitter.emit_sync("friend", "bob hi")
            wait_until(lambda: len(received.get("bob") or ()) > before or before == 5, messages.output, WAIT_S)
            return "spammer: buy (messages)" not in received.get("bob")

        wait_until(is_filtered, messages.output, WAIT_S, every=0.5)
        assert messages.process is not None
        os.kill(messages.process.pid, signal.SIGUSR1)
        wait_for(blocked, {})
        wait_until(lambda: "VISITED 1 <nil>" in messages.output(), messages.output, WAIT_S)
    messages.end(signal.SIGTERM)
    assert messages.process.returncode == 0
