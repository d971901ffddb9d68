"""Goka groups in real-time mode: drawn ones that depend on each other, killed at drawn moments, and converted.

What readers of committed records see is compared with a sequential reference: each record of each topic, and tables.
"""

import json
import random
import re
import time
from contextlib import ExitStack
from dataclasses import asdict
from itertools import accumulate
from pathlib import Path

import pytest

from support.drawn_group import DEADLINE_S, DRAWN, MESSAGES, Drawn, wait_until_ready
from support.kafka import Broker
from support.kafka_application import Make, application
from support.kafka_kill import PROCESSES, REALTIME, kill
from support.run import wait_until, wallaroo

pytestmark = [pytest.mark.kafka, pytest.mark.long]
__all__ = ["application"]  # the fixture
READ_S = 60.0


def test_drawn_groups_over_a_kill_of_each_process(broker: Broker, application: Make, tmp_path: Path) -> None:
    seed = random.randrange(1_000_000)
    print(f"seed {seed}")
    drawn, source = Drawn(seed, broker), random.Random(seed)
    described = tmp_path / "groups.json"
    described.write_text(json.dumps([asdict(group) for group in drawn.groups]), encoding="utf-8")
    running = application(DRAWN, broker.address, str(described))
    drawn.write(MESSAGES)
    running.start(*REALTIME)
    wait_until_ready(running)
    for victim in source.sample(sorted(PROCESSES), len(PROCESSES)):
        drawn.write(MESSAGES)
        time.sleep(source.uniform(0.0, 1.5))  # the moment is what is drawn
        print(f"kill {victim}", flush=True)
        kill(running, victim)
    drawn.write(MESSAGES)
    with ExitStack() as ends:
        ends.callback(drawn.reader.consumer.close)
        assert drawn.reader.read_until(drawn.is_counted, [running]), running.output()
        drawn.check_topics()
        drawn.ask([running])
        assert running.end() == 0, running.output()


def test_a_broker_that_goes_away(broker: Broker, application: Make, tmp_path: Path) -> None:
    seed = random.randrange(1_000_000)
    print(f"seed {seed}")
    drawn = Drawn(seed, broker)
    described = tmp_path / "groups.json"
    described.write_text(json.dumps([asdict(group) for group in drawn.groups]), encoding="utf-8")
    running = application(DRAWN, broker.address, str(described))
    running.start(*REALTIME)
    wait_until_ready(running)
    drawn.write(MESSAGES)
    broker.kill()
    wait_until(lambda: "R791" in running.output() and "R613" in running.output(), running.output, DEADLINE_S)
    broker.start()
    drawn.write(MESSAGES)
    with ExitStack() as ends:
        ends.callback(drawn.reader.consumer.close)
        assert drawn.reader.read_until(drawn.is_counted, [running]), running.output()
        drawn.check_topics()
        assert running.end() == 0, running.output()


def test_stretches_in_both_modes(broker: Broker, application: Make, tmp_path: Path) -> None:
    """Each run ends when it is idle and has read all; after a change of the mode the next one goes on there."""
    seed = random.randrange(1_000_000)
    print(f"seed {seed}")
    drawn, modes = Drawn(seed, broker), ["realtime", "microbatch"]
    random.Random(seed).shuffle(modes)
    described = tmp_path / "groups.json"
    described.write_text(json.dumps([asdict(group) for group in drawn.groups]), encoding="utf-8")
    running = application(DRAWN, broker.address, str(described))
    for number, mode in enumerate([*modes, *modes]):
        print(mode, flush=True)
        if number:
            done = wallaroo("state", "rescale", tmp_path / "checkpoint", "--mode", mode, seconds=DEADLINE_S)
            assert done.returncode == 0, done.stderr
        drawn.write(MESSAGES)
        running.start("--mode", mode, "--stop-when-idle", "10")
        assert running.wait() == 0, running.output()
        assert drawn.reader.read_until(drawn.is_counted, [], READ_S), running.output()
        drawn.check_topics()
    drawn.reader.consumer.close()
    ends = [line for line in running.output().splitlines() if line.startswith("stopped: ")]
    counts = [[int(number.replace(",", "")) for number in re.findall(r"\bin ([\d,]+)", end)] for end in ends]
    assert len(ends) == 2 * len(modes) and "at least" not in "".join(ends)
    assert [count[0] for count in counts] == list(accumulate(count[-1] for count in counts))
