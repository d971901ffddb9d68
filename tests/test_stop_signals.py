"""A signal for driver and Java, in drawn order and at drawn moments: a run stops in order, and the next continues."""

import contextlib
import os
import random
import signal
import time
from collections import Counter
from pathlib import Path

import pytest

from support.host import descendants
from support.run import CASES, MODES, Receiver, Run, framed, wait_until

pytestmark = [pytest.mark.jvm, pytest.mark.long]
APP = CASES / "word_count" / "app.py"
SIGNALS = (signal.SIGINT, signal.SIGTERM)
BROKEN_OFF = "stopped before it was ready"
MESSAGES, WORDS = 2_000, 50
LONGEST_PAUSE_S, LONGEST_START_S, LONGEST_STOP_S = 0.5, 6.0, 1.0


def javas(run: Run) -> list[int]:
    """Return the processes of Java that a run has started; a script becomes Spark's."""
    found = []
    for pid in descendants(run.process.pid):
        with contextlib.suppress(OSError):  # it has ended
            found += [pid] if Path(f"/proc/{pid}/comm").read_text().strip() == "java" else []
    return found


def signal_both(draw: random.Random, run: Run, number: int) -> None:
    """Send a signal to driver and Java, in drawn order and with a drawn pause between them."""
    pids = [run.process.pid, *javas(run)]
    draw.shuffle(pids)
    pause = draw.choice([0.0, draw.uniform(0.0, LONGEST_PAUSE_S)])
    print(f"signal {number}, {'driver' if pids[0] == run.process.pid else 'Java'} first, {pause:.3f} s between them")
    for place, pid in enumerate(pids):
        time.sleep(pause if place else 0.0)
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


class Words:
    """Words that runs of one checkpoint count, one after the other."""

    def __init__(self, draw: random.Random, receiver: Receiver) -> None:
        self._draw, self._receiver = draw, receiver
        self.sent: Counter[str] = Counter()

    def send(self, run: Run) -> None:
        """Send some; some of the counts may have come when this returns."""
        words = [f"w{self._draw.randrange(WORDS)}" for _ in range(MESSAGES)]
        run.send(framed(word.encode() for word in words))
        self.sent.update(words)
        time.sleep(self._draw.choice([0.0, self._draw.uniform(0.0, 1.0)]))

    def check(self, run: Run) -> None:
        """Assert that each word was counted once."""
        lines = self._receiver.wait_for_lines(self.sent.total(), run)
        totals: Counter[str] = Counter()
        for line in lines:
            word, _, total = line.partition(" => ")
            totals[word] += 1
            assert int(total) == totals[word], line
        assert totals == self.sent


def starting(draw: random.Random, words: Words, run: Run) -> None:
    number = draw.choice(SIGNALS)
    wait_until(lambda: bool(javas(run)), lambda: f"Java:\n{run.said()}")
    time.sleep(draw.uniform(0.0, LONGEST_START_S))
    signal_both(draw, run, number)
    code, is_broken_off = run.end(), run.reports[-1].get("text") == BROKEN_OFF
    assert code == (128 + number if is_broken_off else 0), run.said()


def running(draw: random.Random, words: Words, run: Run) -> None:
    words.send(run.ready())
    signal_both(draw, run, draw.choice(SIGNALS))
    assert run.end() == 0, run.said()


def stopping(draw: random.Random, words: Words, run: Run) -> None:
    words.send(run.ready())
    run.process.send_signal(draw.choice(SIGNALS))
    time.sleep(draw.uniform(0.0, LONGEST_STOP_S))
    signal_both(draw, run, signal.SIGTERM)  # a second SIGINT breaks the stop off
    assert run.end() == 0, run.said()


def to_java_alone(draw: random.Random, words: Words, run: Run) -> None:
    (java,) = javas(run.ready())
    for number in SIGNALS:
        os.kill(java, number)
    words.send(run)
    words.check(run)
    assert run.stop() == 0, run.said()


@pytest.mark.parametrize("mode", MODES)
def test_a_stop_is_in_order_whoever_is_signalled_first(mode: str, tmp_path: Path) -> None:
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    draw = random.Random(seed)
    with Receiver() as receiver:
        words = Words(draw, receiver)
        for phase in (*draw.sample([starting, running, stopping], 3), to_java_alone):
            print(phase.__name__)
            with Run(APP, receiver, tmp_path / "c", *MODES[mode]) as run:
                phase(draw, words, run)
            assert not any("R617" in line for line in run.output + run.errors), run.said()
        assert words.sent.total() == MESSAGES * 3
