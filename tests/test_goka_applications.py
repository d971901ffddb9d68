"""Applications of several groups on real Spark and Kafka, which depend on each other through topics.

Groups are drawn: their inputs, outputs, loops, and which tables of the others they join and look up, in one application
or one for each group. Sums are compared with a sequential reference, over a kill as well. The two groups of Goka's
introduction run from an archive, with 32 and 3 partitions and values of 1 MB.
"""

import json
import random
import signal
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path

import pytest

from support.drawn_group import DEADLINE_S, DRAWN, MESSAGES, TESTS, USERS, Drawn, Reader, send, wait_until_ready
from support.kafka import Broker
from support.kafka_application import Make, application
from support.run import wallaroo

pytestmark = [pytest.mark.jvm, pytest.mark.kafka]
__all__ = ["application"]  # the fixture
PROGRAM = TESTS.parent / "examples" / "tutorial" / "user_status"
CLICKS, STATUS = "user-clicks", "user-status-updates"
LONG = "x" * 999_000


def drawn_run(
    seed: int, broker: Broker, make: Make, tmp_path: Path, *, apart: bool = False, kills: bool = False
) -> None:
    """Run drawn groups, in one application or each in its own, and compare."""
    print(f"seed {seed}")
    drawn = Drawn(seed, broker)
    described = tmp_path / "groups.json"
    described.write_text(json.dumps([asdict(group) for group in drawn.groups]), encoding="utf-8")
    names = [[group.name] for group in drawn.groups] if apart else [[]]
    running = []
    drawn.write(MESSAGES)
    for each in names:
        running.append(make(DRAWN, broker.address, str(described), *each))
        running[-1].directory = tmp_path / "-".join(["run", *each])
        running[-1].directory.mkdir()
        running[-1].start()
    for one in running:
        wait_until_ready(one)
    drawn.write(MESSAGES)
    if kills:
        assert running[0].end(signal.SIGKILL) == -signal.SIGKILL
        drawn.write(MESSAGES)
        running[0].start()
        wait_until_ready(running[0], times=2)
    with ExitStack() as ends:
        ends.callback(drawn.reader.consumer.close)
        assert drawn.reader.read_until(drawn.is_counted, running), [one.output() for one in running]
        drawn.check_topics()
        drawn.ask(running)
        for one in running:
            assert one.end() == 0, one.output()


def test_drawn_groups_that_depend_on_each_other(broker: Broker, application: Make, tmp_path: Path) -> None:
    drawn_run(random.randrange(1_000_000), broker, application, tmp_path)


@pytest.mark.long
@pytest.mark.parametrize(("apart", "kills"), [(True, False), (False, True), (True, True)])
def test_drawn_groups_apart_and_over_a_kill(
    apart: bool, kills: bool, broker: Broker, application: Make, tmp_path: Path
) -> None:
    drawn_run(random.randrange(1_000_000), broker, application, tmp_path, apart=apart, kills=kills)


@pytest.fixture
def reader(broker: Broker) -> Iterator[Reader]:
    for topic, partitions in ((CLICKS, 32), (STATUS, 3)):
        broker.create(topic, partitions)
    made = Reader(broker, ["click-count-table", "user-status-table"])
    yield made
    made.consumer.close()


@pytest.mark.long
def test_two_groups_of_goka_from_an_archive(
    broker: Broker, application: Make, reader: Reader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BROKERS", broker.address)
    archive = tmp_path / "users.tar.gz"
    packed = wallaroo("pack", PROGRAM, "-o", archive, "--arch", "amd64", seconds=DEADLINE_S)
    assert packed.returncode == 0, packed.stderr
    running = application(archive)
    running.start()
    wait_until_ready(running)
    users = [f"user-{user}" for user in range(USERS)]
    send(broker, [(CLICKS, user, "click") for user in users] * 3)
    counts = {user.encode(): b"3" for user in users}
    assert reader.read_until(lambda: reader.tables["click-count-table"] == counts, [running]), running.output()
    texts = [("user-1", "away"), ("user-2", "@user-3"), ("user-4", LONG), ("nobody", "new")]
    send(broker, [(STATUS, user, text) for user, text in texts])
    expected = {
        b"user-1": b"away after 3 clicks", b"user-2": b"user-3 has clicked 3 times",
        b"user-4": f"{LONG} after 3 clicks".encode(), b"nobody": b"new after 0 clicks",
    }  # fmt: skip
    found = reader.tables["user-status-table"]
    assert reader.read_until(lambda: len(found) == len(expected), [running]), running.output()
    assert found == expected
    assert running.end() == 0, running.output()
