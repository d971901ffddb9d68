"""`make bench-expiry`: memory while keys come at a steady rate and their states end after a minute.

Half of the messages have a new key; the others have one again whose last message was two and a half minutes ago, so its
state has ended: every result must count 1.
"""

import argparse
import os
import sys
import tempfile
import threading
import time
from collections import Counter
from contextlib import ExitStack
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import key
from paced import Receiver, name_of
from processor_time import descendants, memory

from support.run import Run
from wallaroo_runtime.monitor.endpoint import status_of

CASE = Path(__file__).resolve().parent / "expiring"
APPS = {"go": CASE, "python": CASE / "app.py"}
AGAIN_S, LOOK_S, MIB = 150, 30, 1 << 20


class Sender:
    """Sends messages at a rate, in a thread."""

    def __init__(self, run: Run, rate: int, seconds: int) -> None:
        self._connection, self._rate, self._seconds = run.connect(), rate // 2, seconds
        self.sent, self.fault = 0, ""
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            begin = time.monotonic()
            for step in range(self._seconds * 10):
                time.sleep(max(0.0, begin + step / 10 - time.monotonic()))
                now, before = step * self._rate // 10, (step - AGAIN_S * 10) * self._rate // 10
                numbers = [*range(now, now + self._rate // 10)]
                numbers += range(before, before + self._rate // 10) if before >= 0 else ()
                names = [key.name(number) for number in numbers]
                self._connection.sendall(b"".join(len(name).to_bytes(4, "big") + name for name in names))
                self.sent += len(names)
        except OSError as error:
            self.fault = str(error)

    def is_done(self) -> bool:
        """Say whether all is sent."""
        assert not self.fault, self.fault
        return not self._thread.is_alive()


def sizes_of(run: Run) -> dict[str, int]:
    """Return the memory of each kind of process, in MiB."""
    sizes = Counter[str]()
    for pid in [run.process.pid, *descendants(run.process.pid)]:
        sizes[name_of(pid, run.process.pid)] += memory(pid)
    return {name: size // MIB for name, size in sizes.items()}


def disk(folder: Path) -> float:
    """Return the bytes of a directory, in MiB."""
    sizes = 0
    for path, _, names in os.walk(folder):
        for name in names:
            try:
                sizes += os.lstat(os.path.join(path, name)).st_blocks * 512
            except FileNotFoundError:
                continue
    return sizes / MIB


def measure(side: str, mode: str, options: argparse.Namespace) -> None:
    """Run a language in a mode, and print what it holds now and then."""
    receiver, ones = Receiver(), 0
    with tempfile.TemporaryDirectory(prefix="wallaroo-bench-") as folder, ExitStack() as stack:
        checkpoint = Path(folder) / "checkpoint"
        run = stack.enter_context(Run(APPS[side], receiver, checkpoint, "--mode", mode)).ready()
        begin, sender = time.monotonic(), Sender(run, options.rate, options.seconds)

        def look() -> None:
            nonlocal ones
            results = [line.rpartition(b" ")[2] for _, line in receiver.take()]
            assert set(results) <= {b"1"}, f"a state has not ended: {set(results)}"
            ones += len(results)
            expired = sum(part.get("expired", 0) for part in status_of(checkpoint)["parts"])
            sizes = sizes_of(run)
            print(
                f"{side}, {mode}: {time.monotonic() - begin:.0f} s, {sender.sent:,} sent, {ones:,} answered, "
                f"{expired:,} expired; {sum(sizes.values()):,} MiB: {sizes}; checkpoint {disk(checkpoint):,.0f} MiB; "
                f"load {os.getloadavg()[0]:.1f}",
                flush=True,
            )

        while not sender.is_done():
            time.sleep(LOOK_S)
            look()
        run.wait_while_alive(lambda: receiver.lines >= sender.sent, lambda: f"{receiver.lines} of {sender.sent}")
        look()
        assert run.stop() == 0, run.said()
    receiver.close()


def main() -> None:
    """Measure all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sides", nargs="+", choices=sorted(APPS), default=sorted(APPS))
    parser.add_argument("--mode", choices=("microbatch", "realtime"), default="microbatch")
    parser.add_argument("--rate", type=int, default=20_000, help="messages a second; half of them have new keys")
    parser.add_argument("--seconds", type=int, default=600)
    options = parser.parse_args()
    for side in options.sides:
        measure(side, options.mode, options)


if __name__ == "__main__":
    main()
