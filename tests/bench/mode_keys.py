"""`make bench-keys`, second part: a million keys with state in both modes, from TCP to TCP.

Each key once, in a drawn order, then keys drawn uniformly, as fast as they are taken. The first rate is of new keys,
the second one of keys that have a state. Each key's results must count 1, 2, 3, ... and end where the messages say.
"""

import argparse
import os
import sys
import tempfile
import time
from array import array
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import key
from paced import Receiver
from processor_time import descendants, memory

from support.run import Run

CASE = Path(__file__).resolve().parent / "count"
APPS = {"go": CASE, "python": CASE / "app.py"}
MODES = ("microbatch", "realtime")
BLOCK, MIB = 10_000, 1 << 20
GOAL = 0.5  # of the rate of micro-batches


def encoded(numbers: Sequence[int]) -> list[bytes]:
    """Return messages, many in each block."""
    names = (key.name(number) for number in numbers)
    messages = [len(name).to_bytes(4, "big") + name for name in names]
    return [b"".join(messages[at : at + BLOCK]) for at in range(0, len(messages), BLOCK)]


class Keys:
    """A run, and how often each key was sent."""

    def __init__(self, run: Run, receiver: Receiver, keys: int) -> None:
        self._run, self._receiver, self._sent = run, receiver, 0
        self._expected, self._counts = array("L", [0]) * keys, array("L", [0]) * keys
        self._connection = run.connect()

    def rate(self, numbers: Sequence[int]) -> float:
        """Send messages as fast as they are taken; returns how many a second were answered."""
        blocks = encoded(numbers)
        for number in numbers:
            self._expected[number] += 1
        self._sent += len(numbers)
        begin = time.monotonic()
        for block in blocks:
            self._connection.sendall(block)
        self._run.wait_while_alive(
            lambda: self._receiver.lines >= self._sent, lambda: f"{self._receiver.lines} of {self._sent}"
        )
        last = self._receiver.blocks[-1][0]
        self._check()
        return len(numbers) / (last - begin)

    def _check(self) -> None:
        for _, line in self._receiver.take():
            name, count = line.split()
            number = int(name[1:])
            self._counts[number] += 1
            assert int(count) == self._counts[number], f"{line!r} is result {self._counts[number]} of its key"
        assert self._counts == self._expected, "results are missing"

    def memory(self) -> float:
        """Return what all processes of the run have in memory, shared parts in shares, in MiB."""
        pids = [self._run.process.pid, *descendants(self._run.process.pid)]
        return sum(map(memory, pids)) / MIB

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


def measure(side: str, mode: str, options: argparse.Namespace) -> float:
    """Run a language in a mode; print, and return the rate of keys that have a state."""
    receiver = Receiver()
    first = key.draw(options.keys, options.keys, every_key_first=True, seed=2)
    then = key.draw(options.keys, options.messages - options.keys, every_key_first=False, seed=3)
    with tempfile.TemporaryDirectory(prefix="wallaroo-bench-") as folder, ExitStack() as stack:
        run = stack.enter_context(Run(APPS[side], receiver, Path(folder) / "checkpoint", "--mode", mode)).ready()
        keys = Keys(run, receiver, options.keys)
        stack.callback(keys.close)
        new, known = keys.rate(first), keys.rate(then)
        load, memory = os.getloadavg()[0], keys.memory()
        run.stop()
    receiver.close()
    rates = f"{new:,.0f} new keys/s; {known:,.0f} messages/s"
    print(f"{side}, {mode}: {rates}; {memory:,.0f} MiB; load {load:.1f}", flush=True)
    return known


def main() -> None:
    """Measure all in turns."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sides", nargs="+", choices=sorted(APPS), default=sorted(APPS))
    parser.add_argument("--keys", type=int, default=1_000_000)
    parser.add_argument("--messages", type=int, default=3_000_000)
    parser.add_argument("--turns", type=int, default=2)
    options = parser.parse_args()
    sys.setswitchinterval(0.0005)
    print(f"{options.keys:,} keys; {' '.join([sys.executable, *sys.argv])}", flush=True)
    for side in options.sides:
        rates = {mode: 0.0 for mode in MODES}
        for _ in range(options.turns):
            for mode in MODES:
                rates[mode] = max(rates[mode], measure(side, mode, options))
        ratio = rates["realtime"] / rates["microbatch"]
        print(f"{side}: real-time / micro-batches: {ratio:.2f} (goal {GOAL})", flush=True)


if __name__ == "__main__":
    main()
