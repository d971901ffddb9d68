"""Brokers that are away while an application starts: the start waits for them, says so, and goes on by itself."""

import signal
import time
from pathlib import Path
from typing import Any

import pytest

from support.kafka import Broker
from support.kafka_application import (
    DEADLINE_S,
    PARTITIONS,
    Application,
    Make,
    Topic,
    application,
    send,
    words,
)
from support.run import READY, TESTS, wait_until
from wallaroo_runtime.monitor.endpoint import status_of

__all__ = ["application"]  # the fixture

pytestmark = pytest.mark.kafka
APP = TESTS / "support" / "kafka_words.py"


def waits(running: Application, text: str, times: int = 1) -> None:
    """Wait until the run has said something so often; it does not end."""
    assert running.process is not None
    process = running.process
    wait_until(lambda: process.poll() is not None or running.output().count(text) >= times, running.output, DEADLINE_S)
    assert process.poll() is None, running.output()


def check(running: Application, broker: Broker, topic: str, sent: list[str]) -> None:
    """Read the topic until it has each word, once; end the run in order."""
    found = Topic(broker, topic)
    try:
        found.read_words(len(sent), running)
    finally:
        found.close()
    assert found.counts == {word: {1} for word in sent}
    assert found.records == len(sent)
    assert running.end() == 0, running.output()


def check_latencies(checkpoint: Path, messages: int, begun: float) -> None:
    """Wait until each message counts once in each part of its latency; the means of the parts add up."""

    def found() -> dict[str, Any]:
        return {stage: each["run"] for stage, each in status_of(checkpoint)["latency_ms"].items()}

    def are_counted() -> bool:
        counts = {stage: each["count"] for stage, each in found().items()}
        # A sink may be faster than the report of the output: then its commit is not measured.
        return 0 < counts.pop("commit") <= messages and set(counts.values()) == {messages}

    wait_until(are_counted, lambda: str(found()), DEADLINE_S)
    means = {stage: each["mean"] for stage, each in found().items()}
    whole = means.pop("end_to_end")
    assert 0 < whole <= 1000 * (time.time() - begun)
    assert abs(sum(means.values()) - whole) <= 0.2 * whole + 20, means  # on a busy machine


@pytest.mark.parametrize("mode", ["microbatch", "realtime"])
def test_a_start_waits_for_brokers_and_creates_the_topics_then(mode: str, tmp_path: Path, application: Make) -> None:
    broker = Broker(tmp_path / "late")
    broker.address = f"127.0.0.1:{broker._port}"
    running = application(APP, "late", broker.address, "--create")
    told = (
        'R672 sink "late" that creates topic "late-out": no answer from '
        f"Kafka at {broker.address}; Connection refused\n"
        "  fix: start the brokers, e.g. `wallaroo broker`, or correct their address: in the program, by "
        "WALLAROO_BROKERS=HOST:PORT (for several clusters by the variables that `wallaroo pack` names), or by "
        "--brokers of `wallaroo topics`\n"
    )
    for number in (signal.SIGINT, signal.SIGTERM):  # Ctrl-C, `wallaroo stop`
        running.start("--mode", mode)
        waits(running, told)
        tries = running.output().count(told)
        assert running.end(number) == 128 + number
        assert running.output().count(told) <= tries + 1  # it does not wait for the brokers
        (running.directory / "output").unlink()
    running.start("--mode", mode)
    waits(running, told, 3)
    assert READY not in running.output()
    broker.start()
    try:
        waits(running, READY)
        assert f'topic "late-in" created, {PARTITIONS} partitions\n' in running.output()
        sent = words(0, 300)
        begun = time.time()
        send(broker, "late-in", sent)
        if mode == "realtime":
            check_latencies(running.directory / "checkpoint", len(sent), begun)
        check(running, broker, "late-out", sent)
    finally:
        broker.stop()


@pytest.mark.parametrize(
    ("away", "mode", "is_frozen"),
    [
        ("source", "microbatch", False),
        *(
            pytest.param(away, mode, True, marks=pytest.mark.long)
            for away in ("source", "sink")
            for mode in ("microbatch", "realtime")
        ),
    ],
)
def test_a_start_waits_for_the_brokers_of_a_source_or_a_sink(
    away: str, mode: str, is_frozen: bool, broker: Broker, tmp_path: Path, application: Make,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """The other one has another cluster, which answers. A frozen broker takes connections, and answers nothing."""
    late, name = Broker(tmp_path / "late"), f"{away}-{mode}-{is_frozen}"
    late.start()
    origin, goal = (late, broker) if away == "source" else (broker, late)
    origin.create(f"{name}-in", PARTITIONS)
    goal.create(f"{name}-out", PARTITIONS)
    sent = words(0, 300)
    send(origin, f"{name}-in", sent)
    late.freeze() if is_frozen else late.stop()
    monkeypatch.setenv("FROM", origin.address)
    running = application(APP, name, goal.address)
    what = 'source "words"' if away == "source" else 'sink "'
    try:
        running.start("--mode", mode)
        waits(running, f"R672 {what}")
        assert f"no answer from Kafka at {late.address}; " in running.output()
        late.thaw() if is_frozen else late.start()
        check(running, goal, f"{name}-out", sent)
    finally:
        if late.is_alive:
            late.kill()
