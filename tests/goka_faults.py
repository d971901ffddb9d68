"""`make fault-goka`: a counting group on Goka's own processor and on ours, killed ten times while messages come.

Ours is Goka's program in Go, and a group in Python. What each has counted at the end is compared with what was written:
ours must be equal, Goka's is shown. Each kind of process is killed as often as the others; a dead egress or worker is
started again by the run, all else by a new start.
"""

import argparse
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from support.goka import START_S, InPython, Processor, Table, build_ours, build_own, click
from support.kafka import Broker
from support.run import TESTS, wait_until

PARTITIONS = 8
SETTLE_S = 20.0
ROUND_S = (0.2, 1.5)  # from the messages of a round to its kill
REPLACED = ("egress", "worker")
BUILDS = {"goka": build_own, "ours": build_ours, "python": lambda _: TESTS / "support" / "goka_count.py"}


def killed(broker: Broker, binary: Path, folder: Path, name: str, options: argparse.Namespace) -> tuple[int, str]:
    """Run one program with its kills; returns how many keys have a wrong count, and the line to print."""
    topic, source = f"clicks-{name}", random.Random(options.seed)
    broker.create(topic, PARTITIONS)
    kind = InPython if name == "python" else Processor
    processor = kind(binary, folder / topic, broker, topic, f"count-{name}")
    part, hits = options.messages // (options.kills + 1), Counter[str]()
    try:
        processor.start()
        victims = drawn(sorted(processor.parts()), options.kills, source)
        for number in range(options.kills):
            click(broker, topic, part, options.keys, number * part)
            time.sleep(source.uniform(*ROUND_S))
            victim = victims[number]
            dead = processor.parts()[victim]
            os.kill(dead, signal.SIGKILL)
            hits[victim] += 1
            if victim in REPLACED:
                back = lambda: processor.parts().get(victim, dead) != dead  # noqa: E731, B023
                wait_until(back, processor.output, START_S)
            else:
                processor.end(signal.SIGKILL)
                processor.start()
            print(f"{name}: kill {number + 1}, {victim}, is over", flush=True)
        click(broker, topic, options.messages - options.kills * part, options.keys, options.kills * part)
        table = Table(broker, processor.group)
        counts = table.settle(SETTLE_S, options.messages)
        table.close()
    finally:
        processor.end()
    expected = {b"user-%d" % key: len(range(key, options.messages, options.keys)) for key in range(options.keys)}
    wrong = sum(counts.get(key, 0) != count for key, count in expected.items())
    kills = ", ".join(f"{count} of {part}" for part, count in sorted(hits.items()))
    more = sum(counts.values()) - options.messages
    return (
        wrong,
        f"{name}: {options.messages:,} messages of {options.keys:,} keys, kills {kills}: {wrong} wrong, sum {more:+,}",
    )


def drawn(kinds: Sequence[str], kills: int, source: random.Random) -> list[str]:
    """Draw what is killed: each kind once in each round of all kinds."""
    return [kind for _ in range(kills) for kind in source.sample(kinds, len(kinds))][:kills]


def main() -> int:
    """Run all; returns 1 when ours is not exact."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=100_000)
    parser.add_argument("--keys", type=int, default=1000)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--only", choices=BUILDS, nargs="+", default=list(BUILDS), help="default: all of them")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1_000_000))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="wallaroo-goka-") as name:
        folder = Path(name)
        broker = Broker(folder)
        broker.start()
        try:
            lost = 0
            for kind in options.only:
                wrong, line = killed(broker, BUILDS[kind](folder), folder, kind, options)
                lost += wrong if kind != "goka" else 0
                print(f"{line}; seed {options.seed}", flush=True)
        finally:
            broker.stop()
    return int(lost > 0)


if __name__ == "__main__":
    sys.exit(main())
