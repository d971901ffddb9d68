"""`make bench`: how long one message takes from the sender to the receiver while nothing else goes on, in both modes.

Runs the word count as a user does and sends one word at a time, each a random while after the last result.
"""

import random
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from support.run import CASES, Receiver, Run, framed, wait_until

MESSAGES = 30
SEED = 7


def main() -> int:
    """Measure and print each mode."""
    for mode in ("microbatch", "realtime"):
        measure(mode)
    return 0


def measure(mode: str) -> None:
    """Measure and print; the first message is not counted."""
    source = random.Random(SEED)
    times = []
    with (
        tempfile.TemporaryDirectory(prefix="wallaroo-bench-") as folder,
        Receiver() as receiver,
        Run(CASES / "word_count" / "app.py", receiver, Path(folder) / "checkpoint", "--mode", mode) as run,
        run.ready().connect() as connection,
    ):
        for number in range(1, MESSAGES + 2):
            time.sleep(source.uniform(0.2, 1.2))
            begin = time.monotonic()
            connection.sendall(framed([b"word"]))
            wait_until(
                lambda expected=number: receiver.data().count(b"\n") >= expected,  # type: ignore[misc]
                lambda expected=number: f"line {expected}",  # type: ignore[misc]
                every=0.001,
            )
            times.append(time.monotonic() - begin)
        run.stop()
    first, *rest = (round(1000 * each) for each in times)
    cuts = statistics.quantiles(rest, n=20)
    print(
        f"latency, one message at a time (Python, {mode}): first {first} ms; then "
        f"median {statistics.median(rest):.0f} ms, "
        f"95 % {cuts[18]:.0f} ms, least {min(rest)} ms, most {max(rest)} ms, of {len(rest)}"
    )


if __name__ == "__main__":
    sys.exit(main())
