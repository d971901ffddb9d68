"""Sinks that tasks write themselves: everything arrives, and again only what an interrupted micro-batch held."""

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from arrival import Arrivals
from life import Life, free_port
from remote import Site, running
from run import WAIT_S, Run, framed, wait_until, wallaroo

pytestmark = pytest.mark.jvm
RATE = 3_000
DIRECT = ("--delivery", "executor")
FAULTS = ("task.after_send:3", "worker.after_compute:12", "driver.before_publish:6", "driver.before_commit:4")


class Batches:
    """Which micro-batch each message belongs to, as Spark's checkpoint says: offsets that are gone were read before."""

    def __init__(self, checkpoint: Path) -> None:
        self._offsets = checkpoint / "spark" / "offsets"
        self._ends: dict[int, int] = {}

    def look(self) -> None:
        for path in self._offsets.glob("[0-9]*"):
            if int(path.name) not in self._ends:
                self._ends[int(path.name)] = json.loads(path.read_text().splitlines()[2])["sequence"]

    def of(self, message: int) -> int:
        return min(number for number, end in self._ends.items() if message < end)


def items(life: Life, count: int) -> Iterator[tuple[tuple[str, int], int]]:
    """Yield (word, number) of the lines that messages lead to, and the number of the message."""
    for message in range(count):
        for item in life.throttle.message(message)[4:].decode().split(" "):
            word, _, number = item.partition(":")
            yield (word, int(number)), message


@pytest.mark.long
@pytest.mark.parametrize("language", ["python", "go"])
def test_deaths_repeat_what_their_micro_batches_held_and_lose_nothing(language: str, tmp_path: Path) -> None:
    arrivals = Arrivals()
    with Life(language, tmp_path, seed=5, rate=RATE, faults=FAULTS, ledger=arrivals, options=DIRECT) as life:
        batches = Batches(life.checkpoint)
        life.throttle.goal = 1_000_000  # goes on until everything has died that shall

        def all_died() -> bool:
            batches.look()
            return life.fired_points() == set(FAULTS) or arrivals.differences > 0

        life.keep(all_died, lambda: f"deaths at {set(FAULTS) - life.fired_points()}", seconds=600)
        goal = life.throttle.settle()
        expected = life.finish(goal)
        life.check(expected)
        batches.look()
        message_of = dict(items(life, goal))
        again = {batches.of(message_of[line]) for line in arrivals.repeated}
    assert 1 <= len(again) <= len(FAULTS), f"{len(arrivals.repeated)} lines of micro-batches {sorted(again)} came again"
    assert not list((life.checkpoint / "outbox").glob("*.frames")), "nothing goes through the outbox"


def counted(start: int, count: int) -> bytes:
    """Return messages that each hold one word of seven and its number."""
    return framed(f"w{number % 7}:{number // 7 + 1}".encode() for number in range(start, start + count))


@pytest.mark.slow
@pytest.mark.parametrize("language", ["python", "go"])
def test_a_receiver_that_is_away_or_slow(language: str, tmp_path: Path) -> None:
    arrivals = Arrivals()
    app = Path(__file__).parent / "recovery" / "sequence" / ("app.py" if language == "python" else "")
    with Run(app, arrivals, tmp_path / "checkpoint", *DIRECT).ready() as run:
        port = int(arrivals.address.rpartition(":")[2])
        run.send(counted(0, 7_000))
        run.wait_for("messages_out", 7_000)
        assert arrivals.lines == 7_000 and not arrivals.repeated, "without a failure each line comes once"
        assert run.last("sent_by_tasks") == 7_000
        arrivals.close()

        run.send(counted(7_000, 7_000))  # nobody listens
        run.wait_for("messages_in", 14_000)
        later = Arrivals(port)
        run.wait_while_alive(lambda: later.lines == 7_000, lambda: f"7000 lines, have {later.lines}")
        later.reads.clear()  # and one that listens does not read: the tasks wait for it
        run.send(counted(14_000, 70_000))
        run.wait_for("messages_in", 84_000)
        assert later.lines < 70_000
        later.reads.set()
        run.wait_while_alive(lambda: later.lines == 77_000, lambda: f"77000 lines, have {later.lines}")
        run.wait_for("messages_out", 84_000)
        assert run.stop() == 0, run.said()
        later.close()
    for each in (arrivals, later):
        assert not each.differences, each.first


@pytest.mark.slow
def test_a_sink_that_stays_away_ends_the_run_and_the_next_one_goes_on(tmp_path: Path) -> None:
    port = free_port(17)
    checkpoint = tmp_path / "checkpoint"

    class Nobody:
        address = f"127.0.0.1:{port}"

    app = Path(__file__).parent / "recovery" / "sequence" / "app.py"
    with Run(app, Nobody(), checkpoint, *DIRECT, "--master", "local[2,1]").ready() as run:  # which repeats no task
        run.send(counted(0, 70))
        assert run.end(WAIT_S) == 1
        (finding,) = json.loads(run.errors[-1])
    assert finding["code"] == "R687"
    expected = f'sink "Sequence": a task cannot deliver to 127.0.0.1:{port}; no connection for 15 s; Connection refused'
    assert finding["message"] == expected
    arrivals = Arrivals(port)
    with Run(app, arrivals, checkpoint, *DIRECT).ready() as run:
        run.wait_while_alive(lambda: arrivals.lines == 70, lambda: f"70 lines, have {arrivals.lines}")
        assert run.stop() == 0, run.said()
    assert not arrivals.repeated and not arrivals.differences
    refused = wallaroo("run", app, "--out", Nobody.address, "--in", "127.0.0.1:0", "--delivery", "Sequense=executor")
    assert refused.returncode == 2 and 'R608 --delivery: no TCP sink is called "Sequense"' in refused.stderr
    arrivals.close()


@pytest.mark.slow
def test_a_run_that_waits_for_a_receiver_can_be_stopped(tmp_path: Path) -> None:
    arrivals = Arrivals()
    arrivals.reads.clear()
    app = Path(__file__).parent / "recovery" / "sequence" / "app.py"
    with Run(app, arrivals, tmp_path / "checkpoint", *DIRECT).ready() as run:
        run.send(framed(b"w:%d" % number for number in range(1, 1_000_001)))
        run.wait_while_alive(lambda: arrivals.connections > 0, lambda: "a connection of a task")
        os.kill(run.process.pid, signal.SIGTERM)
        assert run.end(WAIT_S) == 0, run.said()
    arrivals.reads.set()
    wait_until(lambda: run.processes(str(tmp_path)) == [], lambda: "the end of all processes")
    arrivals.close()


@pytest.mark.slow
def test_an_egress_elsewhere_gets_nothing_of_such_a_sink(tmp_path: Path) -> None:
    arrivals = Arrivals()
    app = Path(__file__).parent / "recovery" / "sequence" / "app.py"
    with running(Site(tmp_path, "")) as site:
        with site.run(app, arrivals, *DIRECT) as run:
            run.send(counted(0, 7_000))
            run.wait_for("messages_out", 7_000)
            assert run.last("sent_by_tasks") == 7_000
            assert run.stop() == 0, run.said()
        kept = [path.name for path in site.egress.directory.rglob("*.frames")]
    assert kept == []
    assert arrivals.lines == 7_000 and not arrivals.repeated and not arrivals.differences
    arrivals.close()
